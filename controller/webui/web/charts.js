// SPDX-License-Identifier: Apache-2.0
// Rate, power and drift over time: small line charts of what weftd keeps. Only
// new samples are asked for, while a chart is in sight.
import { clock, el, svg } from "/dom.js";
import { asTable, table } from "/tables.js";

const LEAST = 360;	// width of a chart
const GAP = 16;
const H = 120;
const LEFT = 52;
const BOTTOM = 18;
const MOST = 8;		// lines of a chart
const RANGES = [["15 min", 15], ["1 h", 60], ["6 h", 360], ["24 h", 1440]];

const KINDS = {
	rate: { title: "Rate", of: "of the fault-free rate", text: (v) => `${v / 10} %`,
		least: 0, most: 1000, worst: Math.min },
	power: { title: "Weakest light", of: "at an output", text: (v) => `${(v / 1000).toFixed(1)} dBm`,
		worst: Math.min },
	drift: { title: "Drift of loss", of: "above its best", text: (v) => `${(v / 1000).toFixed(2)} dB`,
		least: 0, most: 1000, worst: Math.max },
	unlocked: { title: "Resonators not locked", of: "or failed", text: (v) => String(v),
		least: 0, most: 4, worst: Math.max },
};

const kept = { at: [], series: new Map(), newest: 0 };
let range = 60;

// Adds what is new; true if there was something.
export function takeHistory(answer) {
	if (answer.newest < kept.newest) {
		kept.at = [];
		kept.series.clear();
	}
	const before = kept.at.length;

	kept.newest = answer.newest;
	kept.at.push(...answer.at_ms);
	for (const s of answer.series) {
		const key = `${s.what} ${s.name}`;
		const known = kept.series.get(key) ?? { ...s, values: [] };

		known.values.length = before;
		known.values.push(...s.values);
		kept.series.set(key, known);
	}
	return kept.at.length > before;
}

export function newestSample() {
	return kept.newest;
}

function ofKind(what, of) {
	return [...kept.series.values()].filter((s) => s.what === what &&
		(of === undefined || s.name === of) && s.values.some((v) => v !== null && v !== undefined));
}

// Where a line is, held from sample to sample, with gaps where nothing was known.
function path(values, from, x, y) {
	let d = "";
	let drawn = false;

	for (let i = from; i < kept.at.length; i++) {
		const v = values[i] ?? null;

		if (v === null) {
			drawn = false;
			continue;
		}
		d += drawn ? `H${x(kept.at[i]).toFixed(1)}V${y(v).toFixed(1)}`
			: `M${x(kept.at[i]).toFixed(1)} ${y(v).toFixed(1)}h0`;
		drawn = true;
	}
	return d;
}

function limits(kind, lines, from) {
	const values = lines.flatMap((s) => s.values.slice(from)).filter((v) => v !== null &&
		v !== undefined);
	const least = Math.min(kind.least ?? Infinity, ...values);
	const most = Math.max(kind.most ?? -Infinity, ...values);
	const room = kind.most === undefined ? Math.max(500, (most - least) * 0.1) : 0;

	return [least - room, most + room];
}

function last(values) {
	return values.findLast((v) => v !== null && v !== undefined);
}

// The worst first, as only some are drawn.
function choose(kind, lines, from) {
	const worst = (s) => kind.worst(...s.values.slice(from).filter((v) => v !== null &&
		v !== undefined));

	return kind.worst === Math.min ? [...lines].sort((a, b) => worst(a) - worst(b))
		: [...lines].sort((a, b) => worst(b) - worst(a));
}

function legend(view, kind, drawn) {
	return el("ul", { class: "chart-legend" }, drawn.map((s, i) => {
		const m = view.marks.get(s.name);

		return el("li", {}, m ? el("span", { class: `mark c${m.colour} p${m.pattern}`,
			"aria-hidden": "true" }, m.letter) : el("span", { class: `key c${i % 8} d${i % 8}` },
			svg("svg", { viewBox: "0 0 24 6", "aria-hidden": "true" },
				svg("path", { d: "M0 3H24" }))), `${s.name} `,
		el("b", { class: "number" }, kind.text(last(s.values))));
	}));
}

function valuesTable(kind, drawn, from) {
	const every = Math.ceil((kept.at.length - from) / 60);
	const at = kept.at.map((_, i) => i).slice(from).filter((i) => (i - from) % every === 0)
		.reverse();
	const text = (v) => (v === null || v === undefined ? "" : kind.text(v));

	return table([{ name: "When", cell: (i) => clock(kept.at[i]) },
		...drawn.map((s) => ({ name: s.name, number: true, cell: (i) => text(s.values[i]) }))],
	at, kind.title, "No samples.");
}

function drawChart(view, what, of, open, key, W) {
	const kind = KINDS[what];
	const end = kept.at.at(-1);
	const begin = Math.max(kept.at[0], end - range * 60000);
	const from = Math.max(0, kept.at.findIndex((t) => t >= begin));
	const lines = choose(kind, ofKind(what, of), from);

	if (!lines.length || kept.at.length < 2) {
		return null;
	}
	const drawn = lines.slice(0, MOST);
	const [least, most] = limits(kind, lines, from);
	const x = (t) => LEFT + (W - LEFT - 4) * (t - begin) / Math.max(1, end - begin);
	const y = (v) => 8 + (H - BOTTOM - 8) * (most - v) / Math.max(1, most - least);
	const ticks = [least, (least + most) / 2, most];
	const now = drawn.map((s) => `${s.name} ${kind.text(last(s.values))}`).join(", ");

	return el("figure", { class: "chart" },
		el("figcaption", {}, el("b", {}, kind.title), ` ${kind.of}`),
		svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img",
			"aria-label": `${kind.title} since ${clock(begin)}; now ${now}` },
		ticks.map((v) => [svg("path", { class: "rule", d: `M${LEFT} ${y(v)}H${W - 4}` }),
			svg("text", { class: "axis end", x: LEFT - 5, y: y(v) }, kind.text(v))]),
		svg("text", { class: "axis", x: LEFT, y: H - 5 }, clock(begin)),
		svg("text", { class: "axis end", x: W - 4, y: H - 5 }, clock(end)),
		drawn.map((s, i) => {
			const m = view.marks.get(s.name) ?? { colour: i % 8, pattern: i % 8 };

			return svg("g", { class: `line c${m.colour} d${m.pattern}` },
				svg("path", { d: path(s.values, from, x, y) }));
		})),
		legend(view, kind, drawn),
		lines.length > MOST ? el("p", { class: "hint" }, `and ${lines.length - MOST} more`) : "",
		asTable(`history ${what} ${key}`, open, () => valuesTable(kind, drawn, from)));
}

function rangeChoice(again, key) {
	return el("fieldset", { class: "choice" }, el("legend", { class: "hidden" }, "Time shown"),
		RANGES.map(([text, minutes]) => el("label", {}, el("input", { type: "radio",
			name: `range ${key}`, checked: minutes === range, "data-key": `range ${minutes}`,
			onchange: () => {
				range = minutes;
				again();
			} }), ` ${text}`)));
}

// Charts of these kinds, of one job or device, or of all, that fill so many pixels; again() draws
// them for another time.
export function charts(view, kinds, of, open, again, width) {
	const key = of ?? "all";
	const some = kinds.filter((what) => ofKind(what, of).length);
	const beside = Math.max(1, Math.min(some.length, Math.floor(width / (LEAST + GAP))));
	const each = Math.max(LEAST, width / beside - GAP);
	const drawn = some.map((what) => drawChart(view, what, of, open, key, each)).filter(Boolean);

	return [rangeChoice(again, key), drawn.length ? el("div", { class: "charts" }, drawn)
		: el("p", { class: "nothing" }, "Nothing was recorded yet.")];
}
