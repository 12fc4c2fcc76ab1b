// SPDX-License-Identifier: Apache-2.0
// A ring as a circle: outside the fibre what goes clockwise, inside the other
// way, for each job a band as high as its share of the channels; failed parts
// are crossed out.
import { el, percent, plural, svg } from "/dom.js";
import { detail, pickable } from "/pick.js";
import { asTable, filtered } from "/tables.js";

const R = 132;
const HIGH = 34;	// of a band when all channels carry
export const RESONATOR = 1;	// enum ring_part
const SPAN = 2;
export const NODE = 3;

export function jobOf(view, index) {
	return view.marks.get(view.picture.jobs?.[index]?.name);
}

export function hostName(view, device, position) {
	const n = device.members.length;
	const host = view.picture.hosts[device.members[((position % n) + n) % n]];

	return host ? host[0] : String(position);
}

// "node03 – node04" of a column, which may be several segments.
export function segmentName(view, device, column) {
	const first = column * device.segment_size;
	const end = Math.min(first + device.segment_size, device.members.length);

	return `${hostName(view, device, first)} – ${hostName(view, device, end)}`;
}

// Faults as [part, direction, fibre, node, channel], in words.
export function faultText(view, device, [part, dir, fibre, node, channel]) {
	const way = `${dir ? "counter-clockwise" : "clockwise"}${
		device.fibres > 1 ? ` fibre ${fibre}` : ""}`;

	return part === SPAN ? `${way} cut between ${hostName(view, device, node)} and ${
		hostName(view, device, node + 1)}`
		: part === NODE ? `${hostName(view, device, node)} failed`
			: `${hostName(view, device, node)} ${way} channel ${channel} failed`;
}

// What of a column of a row is not cut, of 1.
function whole(device, row, column) {
	const fibre = Math.floor(row / (device.rows / 2 / device.fibres));
	const cuts = device.faults.filter((f) => f[0] === SPAN && f[1] * device.fibres + f[2] === fibre &&
		Math.floor(f[3] / device.segment_size) === column).length;

	return Math.max(0, 1 - cuts / device.segment_size);
}

// Per direction and job: the mean share of its rows that is lit, by column.
export function profiles(device) {
	const half = device.rows / 2;
	const by = [new Map(), new Map()];

	for (const [row, first, n, job, share] of device.lit ?? []) {
		const jobs = by[row < half ? 0 : 1];

		if (!jobs.has(job)) {
			jobs.set(job, new Float64Array(device.columns));
		}
		for (let c = first; c < first + n; c++) {
			jobs.get(job)[c] += share / 1000 / half * whole(device, row, c);
		}
	}
	return by;
}

// [first column, end, value] of equal neighbours; up to a thousandth.
export function spans(values) {
	const out = [];

	for (let c = 0; c < values.length; c++) {
		const v = Math.round(values[c] * 1000) / 1000;
		const before = out.at(-1);

		if (before && before[2] === v) {
			before[1] = c + 1;
		} else {
			out.push([c, c + 1, v]);
		}
	}
	return out;
}

function point(turn, radius) {
	const a = turn * 2 * Math.PI;

	return `${(radius * Math.sin(a)).toFixed(1)} ${(-radius * Math.cos(a)).toFixed(1)}`;
}

// In two halves: an arc that ends where it begins is none.
function band(from, to, inner, outer) {
	if (to - from > 0.5) {
		return band(from, from + 0.5, inner, outer) + band(from + 0.5, to, inner, outer);
	}
	return `M${point(from, outer)}A${outer} ${outer} 0 0 1 ${point(to, outer)}` +
		`L${point(to, inner)}A${inner} ${inner} 0 0 0 ${point(from, inner)}Z`;
}

// The bands of a direction one on the other, each with its letter where it is
// longest.
function drawJobs(view, device, jobs, out) {
	const below = new Float64Array(device.columns);
	const n = device.columns;
	const radius = (v) => R + (out ? 2 + HIGH * v : -2 - HIGH * v);

	return [...jobs].map(([index, values], k) => {
		const job = jobOf(view, index) ?? { colour: 7, pattern: 0, letter: "?" };
		const parts = spans(values).filter((s) => s[2] > 0);
		const longest = parts.reduce((a, b) => (b[1] - b[0] > a[1] - a[0] ? b : a), parts[0]);
		let d = "";

		for (const [first, end, v] of parts) {
			for (const [from, to, base] of spans(below.slice(first, end))) {
				const a = radius(base);
				const b = radius(base + v);

				d += band((first + from) / n, (first + to) / n, Math.min(a, b), Math.max(a, b));
			}
		}
		const turn = (longest[0] + (longest[1] - longest[0]) * (k + 0.5) / jobs.size) / n;
		const middle = Math.floor(turn * n) % n;
		const [x, y] = point(turn, radius(below[middle] + longest[2] / 2)).split(" ");

		values.forEach((v, c) => {
			below[c] += v;
		});
		return svg("g", { class: `band c${job.colour}` },
			svg("path", { class: "fill", d }),
			svg("path", { class: "hatch", d, fill: `url(#hatch-${job.pattern})` }),
			svg("circle", { class: "plate", cx: x, cy: y, r: 7 }),
			svg("text", { class: "letter", x, y }, job.letter));
	});
}

// A cross where something failed; of several at one place one.
function drawFaults(device) {
	const n = device.members.length;
	const seen = new Map();

	for (const f of device.faults) {
		seen.set(f[0] === NODE ? `${f[3]}` : `${f[3]} ${f[1]} ${f[0]}`, f);
	}
	return [...seen.values()].map(([part, dir, , node]) => {
		const turn = (node + (part === SPAN ? 0.5 : 0)) / n;
		const radius = part === NODE ? R : dir ? R - 2 - HIGH / 2 : R + 2 + HIGH / 2;
		const [x, y] = point(turn, radius).split(" ");
		const cut = part === SPAN ? band(node / n, (node + 1) / n, Math.min(R, radius * 2 - R),
			Math.max(R, radius * 2 - R)) : null;

		return svg("g", { class: "fault" }, cut && svg("path", { class: "cut", d: cut }),
			svg("circle", { class: "plate", cx: x, cy: y, r: 7 }),
			svg("text", { class: "sign", x, y }, "✕"));
	});
}

function sums(jobs, columns) {
	const sum = new Float64Array(columns);

	for (const values of jobs.values()) {
		values.forEach((v, c) => {
			sum[c] += v;
		});
	}
	return sum;
}

function segmentText(view, device, column, loads) {
	const size = device.segment_size;
	const failed = device.faults.filter((f) => Math.floor(f[3] / size) === column)
		.map((f) => `; ✕ ${faultText(view, device, f)}`).join("");

	return `${segmentName(view, device, column)}: ${percent(loads[0][column])} lit clockwise, ${
		percent(loads[1][column])} counter-clockwise${failed}`;
}

function short(name) {
	return name.length > 9 ? `${name.slice(0, 8)}…` : name;
}

function drawNames(view, device) {
	const n = device.members.length;
	const every = Math.ceil(n / 16);
	const names = [];

	for (let i = 0; i < n - every / 2; i += every) {
		names.push(svg("path", { class: "tick",
			d: `M${point(i / n, R + HIGH + 4)}L${point(i / n, R + HIGH + 8)}` }));
		const [x, y] = point(i / n, R + HIGH + 12).split(" ");
		const side = Math.abs(x) < 20 ? "middle" : x > 0 ? "start" : "end";

		names.push(svg("text", { class: "name", x, y, "text-anchor": side },
			short(hostName(view, device, i))));
	}
	return names;
}

function programsTable(view, device) {
	const n = device.members.length;
	const columns = [
		{ name: "Job", cell: (p) => `${jobOf(view, p.job)?.letter ?? "?"} ${
			jobOf(view, p.job)?.name ?? "?"}` },
		{ name: "Hosts", cell: (p) => (p.nodes === n ? `all ${n}`
			: `${hostName(view, device, p.first_node)} – ${
				hostName(view, device, p.first_node + p.nodes - 1)}`) },
		{ name: "Channels", cell: (p) => `${p.first_channel}–${
			p.first_channel + p.channels - 1}` },
		{ name: "Steps", number: true, cell: (p) => p.steps },
		{ name: "Settings", number: true, cell: (p) => p.settings },
	];

	return filtered(columns, device.programs ?? [], `Programs of ${device.name}`,
		"No program.", (p) => jobOf(view, p.job)?.name ?? "");
}

export function mean(values) {
	return values.length ? values.reduce((a, b) => a + b, 0) / values.length : 0;
}

// Per direction: the share of its rows that is lit, by column.
export function loadsOf(device, jobs = profiles(device)) {
	return jobs.map((j) => sums(j, device.columns ?? 0));
}

// The circle alone; items: its segments, for those who look closer.
export function ringPicture(view, device, items = []) {
	const jobs = profiles(device);
	const loads = loadsOf(device, jobs);
	const cut = (dir) => (device.faults.some((f) => f[0] === SPAN && f[1] === dir) ? " ✕ cut" : "");
	const used = device.lit ? [`↻ ${percent(mean(loads[0]))}${cut(0)}`,
		`↺ ${percent(mean(loads[1]))}${cut(1)}`] : ["no program"];

	for (let c = 0; c < (device.columns ?? 0); c++) {
		items.push(svg("g", { class: "segment", "data-key": `${device.name} ${c}`,
			"aria-label": segmentText(view, device, c, loads) },
		svg("path", { class: "hit", d: band(c / device.columns, (c + 1) / device.columns,
			R - HIGH - 4, R + HIGH + 4) })));
	}
	return svg("svg", { viewBox: "-242 -190 484 380", class: "ring", role: "img",
		"aria-label": `${device.name}: a ring of ${device.members.length} hosts, lit ${
			used.join(", ")}` },
	svg("circle", { class: "fibre", r: R }),
	device.lit ? [drawJobs(view, device, jobs[0], true), drawJobs(view, device, jobs[1], false)]
		: null,
	drawFaults(device), items, drawNames(view, device),
	used.map((text, i) => svg("text", { class: "name middle large", x: 0,
		y: (i - (used.length - 1) / 2) * 20 }, text)));
}

export function drawRing(view, device, open) {
	const items = [];
	const picture = ringPicture(view, device, items);
	const box = detail(items.length ? "Segments: arrow keys or pointer." : "");

	if (items.length) {
		picture.setAttribute("role", "listbox");
		pickable(picture, items, { right: 1, down: 1, round: true }, (i) => {
			box.replaceChildren(el("p", {}, items[i].getAttribute("aria-label")));
		});
	}
	return [picture, el("p", { class: "hint" }, `${plural(device.members.length, "host")}, ${
		plural(device.channels, "channel")}, ${plural(device.fibres, "fibre")} each way`),
	device.faults.length ? el("ul", { class: "faults" }, device.faults.slice(0, 6).map((f) =>
		el("li", {}, el("span", { class: "badge bad" }, "✕ "), faultText(view, device, f)))) : "",
	device.faults.length > 6 ? el("p", { class: "hint" }, `and ${device.faults.length - 6} more`)
		: "",
	box, asTable(device.name, open, () => programsTable(view, device))];
}

export function hatches() {
	const lines = ["", "M0 8L8 0", "M0 0L8 8", "M4 3v2", "M0 4H8", "M4 0V8", "M0 0L8 8M0 8L8 0",
		"M0 4H8M4 0V8"];

	return svg("svg", { class: "hidden", "aria-hidden": "true", width: 0, height: 0 },
		svg("defs", {}, lines.map((d, i) => svg("pattern", { id: `hatch-${i}`, width: 8, height: 8,
			patternUnits: "userSpaceOnUse" }, svg("path", { class: "hatching", d: d || "M0 0" })))));
}
