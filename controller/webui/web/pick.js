// SPDX-License-Identifier: Apache-2.0
// A list of things in a picture of which one can be picked: by pointer, by
// arrow keys, Home and End; Tab goes on to the next picture.
import { el } from "/dom.js";

// steps: by how many places each arrow key goes.
export function pickable(picture, items, steps, show) {
	let now = -1;
	const pick = (i, focus) => {
		if (i < 0 || i >= items.length) {
			return;
		}
		if (now >= 0) {
			items[now].setAttribute("tabindex", "-1");
			items[now].setAttribute("aria-selected", "false");
		}
		now = i;
		items[i].setAttribute("tabindex", "0");
		items[i].setAttribute("aria-selected", "true");
		if (focus) {
			items[i].focus();
		}
		show(i);
	};
	const target = (key) => ({
		ArrowRight: now + steps.right, ArrowLeft: now - steps.right,
		ArrowDown: now + steps.down, ArrowUp: now - steps.down,
		Home: 0, End: items.length - 1,
	})[key];

	items.forEach((item, i) => {
		item.setAttribute("role", "option");
		item.setAttribute("aria-selected", "false");
		item.setAttribute("tabindex", i === 0 ? "0" : "-1");
		item.addEventListener("focus", () => i !== now && pick(i, false));
		item.addEventListener("pointerenter", () => pick(i, false));
		item.addEventListener("click", () => pick(i, true));
	});
	picture.addEventListener("keydown", (e) => {
		const to = target(e.key);

		if (to !== undefined && !e.altKey && !e.ctrlKey && !e.metaKey) {
			const n = items.length;
			pick(steps.round ? (to + n) % n : Math.max(0, Math.min(to, n - 1)), true);
			e.preventDefault();
		}
	});
	return pick;
}

export function detail(text) {
	return el("div", { class: "detail", "aria-live": "polite" },
		el("p", { class: "quiet" }, text));
}
