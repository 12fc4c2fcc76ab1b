// SPDX-License-Identifier: Apache-2.0
// Elements, and numbers and times as text. Texts only ever become text nodes.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
	for (const [name, value] of Object.entries(attributes ?? {})) {
		if (value === undefined || value === null || value === false) {
			continue;
		}
		if (name.startsWith("on")) {
			node.addEventListener(name.slice(2), value);
		} else {
			node.setAttribute(name, value === true ? "" : String(value));
		}
	}
	node.append(...children.flat(2).filter((c) => c !== null && c !== undefined));
	return node;
}

export function el(tag, attributes, ...children) {
	return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
	return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Replaces what is inside, and gives the focus back to the element with the
// same data-key if it was inside.
export function replace(parent, ...children) {
	const active = document.activeElement;
	const key = parent.contains(active) ? active.dataset.key : undefined;
	const scrolled = [...parent.querySelectorAll(".scroll")].map((s) => s.scrollTop);

	parent.replaceChildren(...children.flat(2).filter((c) => c));
	[...parent.querySelectorAll(".scroll")].forEach((s, i) => {
		s.scrollTop = scrolled[i] ?? 0;
	});
	if (key !== undefined) {
		parent.querySelector(`[data-key="${CSS.escape(key)}"]`)
			?.focus({ preventScroll: true });
	}
}

// A shape and a word: never colour alone.
const SHAPES = { good: "●", busy: "◐", warn: "▲", bad: "✕", none: "○" };

export function badge(kind, text) {
	return el("span", { class: `badge ${kind}` },
		el("span", { class: "shape", "aria-hidden": "true" }, SHAPES[kind]), text);
}

export function setBadge(node, kind, text) {
	const now = `${kind}|${text}`;

	if (node.dataset.now !== now) {
		node.dataset.now = now;
		node.className = `badge ${kind}`;
		node.replaceChildren(el("span", { class: "shape", "aria-hidden": "true" },
			SHAPES[kind]), text);
	}
}

export function duration(ns) {
	const units = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
	const [name, size] = units.find(([, s]) => ns >= s) ?? units[3];
	const value = ns / size;

	return `${value >= 100 ? value.toFixed(0) : value.toPrecision(3)} ${name}`;
}

export function percent(x) {
	return `${(100 * x).toFixed(1)} %`;
}

export function count(n) {
	return n.toLocaleString("en-US").replaceAll(",", "\u202f");
}

export function plural(n, one, many = `${one}s`) {
	return `${count(n)} ${n === 1 ? one : many}`;
}

// at: an ISO time, or milliseconds.
export function clock(at) {
	return at ? new Date(at).toLocaleTimeString([], { hour12: false }) : "";
}

export function ageText(iso, now) {
	const s = Math.max(0, Math.round((now - Date.parse(iso)) / 1000));

	return s < 120 ? `${s} s ago` : s < 7200 ? `${Math.round(s / 60)} min ago`
		: `${Math.round(s / 3600)} h ago`;
}

// Ages grow while nothing else happens; the clock is weftd's.
let offset = 0;

export function setNow(iso) {
	offset = Date.parse(iso) - Date.now();
}

export function age(iso) {
	return iso ? el("time", { datetime: iso, class: "age", title: iso },
		ageText(iso, Date.now() + offset)) : "never";
}

export function tickAges() {
	for (const t of document.querySelectorAll("time.age")) {
		const text = ageText(t.dateTime, Date.now() + offset);

		if (t.textContent !== text) {
			t.textContent = text;
		}
	}
}
