// SPDX-License-Identifier: Apache-2.0
// Every channel of a ring by its segments, in a window that follows the keys.
import { el, percent, plural, svg } from "/dom.js";
import { detail } from "/pick.js";
import { NODE, RESONATOR, hostName, jobOf, segmentName } from "/rings.js";
import { asTable, filtered } from "/tables.js";

const CELL = 10;	// units of the drawing
const TALL = 12;
const SIDE = 46;	// for the names of the rows
const LETTER = 5;	// about as wide as one of a label
const ROWS = 32;	// of a window
const COLUMNS = 64;

const looked = new Map();	// the cell that was looked at last, by device

function rowName(device, row) {
	const perFibre = device.rows / (2 * device.fibres);
	const line = Math.floor(row / perFibre);
	const first = (row % perFibre) * device.row_size;
	const last = Math.min(first + device.row_size, device.channels) - 1;
	const fibre = device.fibres > 1 ? ` fibre ${line % device.fibres}` : "";

	return `${line < device.fibres ? "clockwise" : "counter-clockwise"}${fibre} channel ${
		first === last ? first : `${first}–${last}`}`;
}

function rowLabel(device, row) {
	const perFibre = device.rows / (2 * device.fibres);
	const line = Math.floor(row / perFibre);
	const fibre = device.fibres > 1 ? `${line % device.fibres}.` : "";

	return `${line < device.fibres ? "↻" : "↺"} ${fibre}${(row % perFibre) * device.row_size}`;
}

// The part of a run in the window; a letter where its job begins in the row.
function drawRun(view, w, run, before) {
	const [row, first, n, job, share] = run;
	const from = Math.max(first, w.column);
	const to = Math.min(first + n, w.column + w.columns);
	const begins = from === w.column || !before || before[0] !== row || before[3] !== job ||
		before[1] + before[2] !== first;
	const m = jobOf(view, job);
	const at = { x: SIDE + (from - w.column) * CELL, y: (row - w.row) * TALL + 1,
		width: (to - from) * CELL - 0.6, height: TALL - 2 };

	return svg("g", { class: `run c${m?.colour ?? 0}` },
		svg("rect", { ...at, class: "fill", "fill-opacity": (0.15 + 0.6 * share / 1000).toFixed(2) }),
		svg("rect", { ...at, class: "hatch", fill: `url(#hatch-${m?.pattern ?? 0})` }),
		begins ? svg("text", { class: "letter small", x: at.x + 5, y: at.y + at.height / 2 },
			m?.letter ?? "?") : null,
		svg("rect", { x: at.x, y: at.y + at.height - 2, height: 2, class: "share",
			width: Math.max(0.5, at.width * share / 1000).toFixed(1) }));
}

// The run under a cell: what is lit there; how(share) says how much.
function cellText(view, device, row, column, how) {
	const run = device.lit.find(([r, first, n]) =>
		r === row && column >= first && column < first + n);
	const job = run && jobOf(view, run[3]);

	return `${rowName(device, row)}, ${segmentName(view, device, column)}: ${run
		? `${job?.letter} ${job?.name}, ${how(run[4] / 1000)}` : "dark"}`;
}

function runsTable(view, device) {
	const columns = [
		{ name: "Channel", cell: (r) => rowName(device, r[0]) },
		{ name: "From", cell: (r) => hostName(view, device, r[1] * device.segment_size) },
		{ name: "To", cell: (r) => hostName(view, device, (r[1] + r[2]) * device.segment_size) },
		{ name: "Job", cell: (r) => `${jobOf(view, r[3])?.letter} ${jobOf(view, r[3])?.name}` },
		{ name: "Lit", number: true, cell: (r) => percent(r[4] / 1000) },
	];

	return filtered(columns, device.lit, `Wavelengths of ${device.name}`, "All dark.",
		(r) => columns.map((c) => c.cell(r)).join(" "));
}

function columnNames(view, device, w) {
	const all = Array.from({ length: w.columns }, (_, c) => hostName(view, device,
		(w.column + c) * device.segment_size));
	const longest = Math.max(...all.map((name) => name.length));
	const every = Math.ceil(Math.max(w.columns / 12, (longest + 2) * LETTER / CELL));

	return all.map((name, c) => c % every ? null
		: svg("text", { class: "label start", x: SIDE + c * CELL, y: w.rows * TALL + 9 }, name));
}

// What is cut lies over all rows of its direction.
function drawCuts(device, w) {
	const half = device.rows / 2;

	return device.faults.map(([part, dir, , node]) => {
		const column = Math.floor(node / device.segment_size) - w.column;
		const first = Math.max(0, (dir && part !== NODE ? half : 0) - w.row);
		const end = Math.min(w.rows, (dir || part === NODE ? 2 * half : half) - w.row);

		return column < 0 || column >= w.columns || end <= first || part === RESONATOR ? null
			: svg("rect", { class: "cut", x: SIDE + column * CELL + CELL / 3,
				width: CELL / 3, y: first * TALL, height: (end - first) * TALL });
	});
}

function drawWindow(view, device, w, cursor) {
	const lit = device.lit;

	return [svg("rect", { class: "ground", x: SIDE, y: 0, width: w.columns * CELL,
		height: w.rows * TALL }),
	lit.map((run, i) => (run[0] >= w.row && run[0] < w.row + w.rows &&
		run[1] < w.column + w.columns && run[1] + run[2] > w.column
		? drawRun(view, w, run, lit[i - 1]) : null)),
	drawCuts(device, w),
	Array.from({ length: w.rows }, (_, r) => svg("text", { class: "label", x: SIDE - 4,
		y: r * TALL + TALL / 2 }, rowLabel(device, w.row + r))),
	columnNames(view, device, w), cursor];
}

// Keys move one cell, page keys a window; a pointer looks at the cell under it.
function explore(picture, show, at, w) {
	const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0],
		PageDown: [w.rows, 0], PageUp: [-w.rows, 0], End: [0, w.columns], Home: [0, -w.columns] };

	picture.addEventListener("focus", () => show(at[0], at[1]));
	picture.addEventListener("keydown", (e) => {
		const move = moves[e.key];

		if (move && !e.altKey && !e.ctrlKey && !e.metaKey) {
			show(at[0] + move[0], at[1] + move[1]);
			e.preventDefault();
		}
	});
	picture.addEventListener("pointermove", (e) => {
		const box = picture.getBoundingClientRect();
		const scale = (SIDE + w.columns * CELL) / box.width;
		const c = Math.floor(((e.clientX - box.left) * scale - SIDE) / CELL);
		const r = Math.floor((e.clientY - box.top) * scale / TALL);

		if (c >= 0 && c < w.columns && r < w.rows) {
			show(w.row + r, w.column + c);
		}
	});
}

// A step of half a window, for pointers.
function shift(text, name, device, act) {
	return el("button", { type: "button", "aria-label": name, "data-key": `${device.name} ${name}`,
		onclick: act }, text);
}

function clamp(v, most) {
	return Math.max(0, Math.min(most, v));
}

export function drawGrid(view, device, open,
	how = (share) => `lit ${percent(share)} of its steps`) {
	const w = { rows: Math.min(ROWS, device.rows), columns: Math.min(COLUMNS, device.columns) };
	const at = looked.get(device.name) ?? [0, 0];
	const box = detail(`Channels down, segments across: arrow keys or pointer${
		device.rows > w.rows || device.columns > w.columns ? "; Page Up, Page Down, Home and End move on"
			: ""}.`);
	const cursor = svg("rect", { class: "cursor", width: CELL + 1.4, height: TALL,
		visibility: "hidden" });
	const width = SIDE + w.columns * CELL;
	const picture = svg("svg", { viewBox: `0 0 ${width} ${w.rows * TALL + 14}`,
		width: Math.round(1.6 * width), class: "grid", tabindex: "0",
		role: "application", "aria-roledescription": "grid of wavelengths",
		"aria-label": `${device.name}: ${plural(device.rows, "channel")} by ${
			plural(device.columns, "segment")}, arrow keys look at one`,
		"data-key": `grid ${device.name}` });
	// Where the window begins so that it shows this; it stays where it does already.
	const begin = (now, i, size, n) => (i >= now && i < now + size ? now
		: clamp(i - (i % size), n - size));
	const place = () => {
		w.row = begin(w.row, at[0], w.rows, device.rows);
		w.column = begin(w.column, at[1], w.columns, device.columns);
	};
	const draw = () => {
		place();
		picture.replaceChildren(...drawWindow(view, device, w, cursor).flat(2).filter(Boolean));
	};
	const show = (row, column) => {
		const before = [w.row, w.column];

		at[0] = clamp(row, device.rows - 1);
		at[1] = clamp(column, device.columns - 1);
		place();
		if (before[0] !== w.row || before[1] !== w.column) {
			draw();
		}
		cursor.setAttribute("x", SIDE + (at[1] - w.column) * CELL - 1);
		cursor.setAttribute("y", (at[0] - w.row) * TALL);
		cursor.removeAttribute("visibility");
		box.replaceChildren(el("p", {}, cellText(view, device, at[0], at[1], how)));
	};
	const move = (r, c) => () => show(at[0] + r * w.rows, at[1] + c * w.columns);

	looked.set(device.name, at);
	draw();
	explore(picture, show, at, w);
	return [el("div", { class: "pan" },
		device.rows > w.rows ? [shift("▲", "channels before", device, move(-1, 0)),
			shift("▼", "channels after", device, move(1, 0))] : "",
		device.columns > w.columns ? [shift("◀", "segments before", device, move(0, -1)),
			shift("▶", "segments after", device, move(0, 1))] : ""),
	el("div", { class: "scroll wide" }, picture), box,
	asTable(`grid ${device.name}`, open, () => runsTable(view, device))];
}
