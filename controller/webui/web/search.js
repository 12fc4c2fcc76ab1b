// SPDX-License-Identifier: Apache-2.0
// One field that finds devices, jobs, hosts and ports: a combobox whose list
// is walked by the arrow keys; Enter goes there.
import { el } from "/dom.js";
import { address } from "/route.js";

const MOST = 12;	// found at a time

// Everything that has a name: what it is, where it leads, what is said of it.
function* all(view) {
	const { picture, status } = view;

	for (const j of status.jobs) {
		yield { what: "job", name: j.name, to: address("job", j.name), note: j.health };
	}
	for (const d of status.devices) {
		yield { what: d.kind, name: d.name, to: address("device", d.name), note: d.driver };
	}
	for (const [name] of picture?.hosts ?? []) {
		yield { what: "host", name, to: address("host", name), note: "" };
	}
	for (let i = 0; i < (picture?.ports.length ?? 0); i++) {
		const name = picture.ports[i];

		yield { what: "port", name, to: address("host", picture.hosts[view.host[i]][0]),
			note: "" };
	}
}

// Those that begin with the word come first.
export function find(view, text) {
	const word = text.trim().toLowerCase();
	const first = [];
	const others = [];

	for (const x of word ? all(view) : []) {
		const at = x.name.toLowerCase().indexOf(word);

		if (at === 0) {
			first.push(x);
		} else if (at > 0 && others.length < MOST) {
			others.push(x);
		}
		if (first.length === MOST) {
			break;
		}
	}
	return [...first, ...others].slice(0, MOST);
}

// input: the field, list: where what is found goes; view(): what is known now.
export function searchable(input, list, view) {
	let found = [];
	let at = -1;
	const close = () => {
		list.hidden = true;
		input.setAttribute("aria-expanded", "false");
		input.removeAttribute("aria-activedescendant");
		at = -1;
	};
	const go = (x) => {
		input.value = "";
		close();
		location.hash = x.to;
	};
	const mark = (i) => {
		at = i;
		[...list.children].forEach((li, k) => li.setAttribute("aria-selected", k === i));
		input.setAttribute("aria-activedescendant", `found-${i}`);
		list.children[i]?.scrollIntoView({ block: "nearest" });
	};
	const show = () => {
		found = view() ? find(view(), input.value) : [];
		list.replaceChildren(...found.map((x, i) => el("li", { role: "option", id: `found-${i}`,
			"aria-selected": "false", onpointerdown: (e) => {
				e.preventDefault();
				go(x);
			} }, el("b", {}, x.name), ` ${x.what}`, x.note ? ` · ${x.note}` : "")),
		...(input.value.trim() && !found.length
			? [el("li", { class: "quiet" }, "Nothing has this name.")] : []));
		list.hidden = !input.value.trim();
		input.setAttribute("aria-expanded", String(!list.hidden));
		at = -1;
		if (found.length) {
			mark(0);
		}
	};

	input.addEventListener("input", show);
	input.addEventListener("blur", close);
	input.addEventListener("keydown", (e) => {
		const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];

		if (step && found.length && !list.hidden) {
			mark((at + step + found.length) % found.length);
			e.preventDefault();
		} else if (e.key === "Enter" && at >= 0) {
			go(found[at]);
		} else if (e.key === "Escape") {
			close();
		}
	});
}
