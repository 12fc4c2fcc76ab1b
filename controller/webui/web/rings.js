// A ring as a circle with what each job has of it, and its wavelengths as a
// grid of channels by segments.
import { el, percent, plural, svg } from "/dom.js";
import { detail, pickable } from "/pick.js";
import { asTable, filtered } from "/tables.js";

const R = 138;

function jobOf(view, index) {
	return view.marks.get(view.picture.jobs?.[index]?.name);
}

export function hostName(view, device, position) {
	const n = device.members.length;
	const host = view.picture.hosts[device.members[((position % n) + n) % n]];

	return host ? host[0] : String(position);
}

// "node03 – node04" of a column, which may be several segments.
function segmentName(view, device, column) {
	const first = column * device.segment_size;
	const end = Math.min(first + device.segment_size, device.members.length);

	return `${hostName(view, device, first)} – ${hostName(view, device, end)}`;
}

function rowName(device, row) {
	const perFibre = device.rows / (2 * device.fibres);
	const line = Math.floor(row / perFibre);
	const first = (row % perFibre) * device.row_size;
	const last = Math.min(first + device.row_size, device.channels) - 1;
	const fibre = device.fibres > 1 ? ` fibre ${line % device.fibres}` : "";

	return `${line < device.fibres ? "clockwise" : "counter-clockwise"}${fibre} channel ${
		first === last ? first : `${first}–${last}`}`;
}

// Per column: mean share over all rows, in each direction.
function load(device) {
	const half = device.rows / 2;
	const sum = [new Float64Array(device.columns), new Float64Array(device.columns)];

	for (const [row, first, n, , share] of device.lit ?? []) {
		for (let c = first; c < first + n; c++) {
			sum[row < half ? 0 : 1][c] += share / 1000 / half;
		}
	}
	return sum;
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

// Thicker where more is lit: clockwise outside the fibre, the other inside.
function drawSegment(view, device, column, loads) {
	const n = device.columns ?? device.members.length;
	const from = column / n;
	const to = (column + 1) / n;
	const out = R + 2 + 18 * loads[0][column];
	const inn = R - 2 - 18 * loads[1][column];

	return svg("g", { class: "segment", "aria-label": segmentText(view, device, column, loads) },
		svg("path", { class: "hit", d: band(from, to, R - 24, R + 24) }),
		svg("path", { class: "lit", d: band(from + 0.04 / n, to - 0.04 / n, R, out) }),
		svg("path", { class: "lit back", d: band(from + 0.04 / n, to - 0.04 / n, inn, R) }));
}

function segmentText(view, device, column, loads) {
	return `${segmentName(view, device, column)}: ${percent(loads[0][column])} lit clockwise, ${
		percent(loads[1][column])} counter-clockwise`;
}

function short(name) {
	return name.length > 9 ? `${name.slice(0, 8)}…` : name;
}

function drawNames(view, device) {
	const n = device.members.length;
	const every = Math.ceil(n / 16);
	const names = [];

	for (let i = 0; i < n; i += every) {
		names.push(svg("path", { class: "tick",
			d: `M${point(i / n, R + 24)}L${point(i / n, R + 28)}` }));
		const [x, y] = point(i / n, R + 31).split(" ");
		const side = Math.abs(x) < 20 ? "middle" : x > 0 ? "start" : "end";

		names.push(svg("text", { class: "name", x, y, "text-anchor": side },
			short(hostName(view, device, i))));
	}
	return names;
}

// What each job has of the ring, one inside the other, with its letter.
function drawPrograms(view, device) {
	const n = device.members.length;
	const programs = device.programs ?? [];
	const width = Math.min(20, 76 / Math.max(1, programs.length));

	return programs.slice(0, 16).map((p, i) => {
		const job = jobOf(view, p.job);
		const outer = R - 30 - i * (width + 2);
		const from = p.first_node / n;
		const to = (p.first_node + p.nodes) / n;
		const d = band(from, to, outer - width, outer);
		const [x, y] = point((from + to) / 2, outer - width / 2).split(" ");

		return job && svg("g", { class: `band c${job.colour}` },
			svg("path", { class: "fill", d }),
			svg("path", { class: "hatch", d, fill: `url(#hatch-${job.pattern})` }),
			svg("circle", { class: "plate", cx: x, cy: y, r: 8 }),
			svg("text", { class: "letter", x, y }, job.letter));
	});
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

export function drawRing(view, device, open) {
	const loads = load(device);
	const items = [];
	const box = detail("Segments: arrow keys or pointer.");

	for (let c = 0; c < (device.columns ?? 0); c++) {
		items.push(drawSegment(view, device, c, loads));
		items[c].setAttribute("data-key", `${device.name} ${c}`);
	}
	const picture = svg("svg", { viewBox: "-214 -190 428 380", class: "ring",
		role: items.length ? "listbox" : "img",
		"aria-label": `${device.name}: a ring of ${device.members.length} hosts` },
		svg("circle", { class: "fibre", r: R }), drawPrograms(view, device),
		items, drawNames(view, device),
		items.length ? null : svg("text", { class: "name middle", x: 0, y: 0 }, "no program"));

	pickable(picture, items, { right: 1, down: 1, round: true }, (i) => {
		box.replaceChildren(el("p", {}, segmentText(view, device, i, loads)));
	});
	return [picture, el("p", { class: "hint" }, `${plural(device.members.length, "host")}, ${
		plural(device.channels, "channel")}, ${plural(device.fibres, "fibre")} each way`),
	box, asTable(device.name, open, () => programsTable(view, device))];
}

// ---- wavelengths ----

const LETTER = 5;	// about as wide as one of a label
const CELL = 10;	// units of the drawing
const SIDE = 46;	// for the names of the rows

// The more rows, the lower they are.
function height(device) {
	return device.rows <= 40 ? 12 : device.rows <= 80 ? 8 : 5;
}

// The letter stands where a job begins in a row.
function drawRun(view, device, [row, first, n, job, share], i) {
	const before = device.lit[i - 1];
	const begins = !before || before[0] !== row || before[3] !== job ||
		before[1] + before[2] !== first;
	const m = jobOf(view, job);
	const tall = height(device);
	const at = { x: SIDE + first * CELL, y: row * tall + tall / 12, width: n * CELL - 0.6,
		height: tall * 5 / 6 };

	return svg("g", { class: `run c${m?.colour ?? 0}` },
		svg("rect", { ...at, class: "fill", "fill-opacity": (0.15 + 0.6 * share / 1000).toFixed(2) }),
		svg("rect", { ...at, class: "hatch", fill: `url(#hatch-${m?.pattern ?? 0})` }),
		begins && tall > 9 ? svg("text", { class: "letter small", x: at.x + 5, y: at.y + at.height / 2 },
			m?.letter ?? "?") : null,
		svg("rect", { x: at.x, y: at.y + at.height - tall / 6, height: tall / 6, class: "share",
			width: Math.max(0.5, at.width * share / 1000).toFixed(1) }));
}

function rowLabel(device, row) {
	const tall = height(device);
	const perFibre = device.rows / (2 * device.fibres);
	const line = Math.floor(row / perFibre);
	const arrow = line < device.fibres ? "↻" : "↺";
	const fibre = device.fibres > 1 ? `${line % device.fibres}.` : "";

	return row % Math.ceil(10 / tall) ? null : svg("text", { class: "label", x: SIDE - 4,
		y: row * tall + tall / 2 },
		`${arrow} ${fibre}${(row % perFibre) * device.row_size}`);
}

// The run under a cell: what is lit there.
function cellText(view, device, row, column) {
	const run = device.lit.find(([r, first, n]) =>
		r === row && column >= first && column < first + n);
	const job = run && jobOf(view, run[3]);

	return `${rowName(device, row)}, ${segmentName(view, device, column)}: ${run
		? `${job?.letter} ${job?.name}, lit ${percent(run[4] / 1000)} of its steps` : "dark"}`;
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

function placeCursor(cursor, x, y) {
	cursor.setAttribute("x", x);
	cursor.setAttribute("y", y);
	cursor.removeAttribute("visibility");
}

// One element with a cursor of its own: thousands of cells need no elements.
function explore(picture, view, device, cursor, box) {
	let row = 0;
	let column = 0;
	const show = (r, c) => {
		row = Math.max(0, Math.min(device.rows - 1, r));
		column = (c + device.columns) % device.columns;
		placeCursor(cursor, SIDE + column * CELL - 1, row * height(device));
		box.replaceChildren(el("p", {}, cellText(view, device, row, column)));
	};

	picture.addEventListener("focus", () => show(row, column));
	picture.addEventListener("keydown", (e) => {
		const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0],
			ArrowUp: [-1, 0] }[e.key];

		if (move && !e.altKey && !e.ctrlKey && !e.metaKey) {
			show(row + move[0], column + move[1]);
			e.preventDefault();
		}
	});
	picture.addEventListener("pointermove", (e) => {
		const at = picture.getBoundingClientRect();
		const scale = (SIDE + device.columns * CELL) / at.width;
		const c = Math.floor(((e.clientX - at.left) * scale - SIDE) / CELL);

		if (c >= 0 && c < device.columns) {
			show(Math.floor((e.clientY - at.top) * scale / height(device)), c);
		}
	});
}

function columnNames(view, device) {
	const all = Array.from({ length: device.columns },
		(_, c) => hostName(view, device, c * device.segment_size));
	const longest = Math.max(...all.map((name) => name.length));
	const every = Math.ceil(Math.max(device.columns / 12, (longest + 1) * LETTER / CELL));

	return all.map((name, c) => c % every ? null
		: svg("text", { class: "label start", x: SIDE + c * CELL,
			y: device.rows * height(device) + 9 }, name));
}

export function drawGrid(view, device, open) {
	const box = detail("Channels down, segments across: arrow keys or pointer.");
	const cursor = svg("rect", { class: "cursor", width: CELL + 1.4, height: height(device),
		visibility: "hidden" });
	const width = SIDE + device.columns * CELL;
	const ground = device.rows * height(device);
	const picture = svg("svg", { viewBox: `0 0 ${width} ${ground + 14}`,
		width: Math.round(1.6 * width), class: "grid", tabindex: "0",
		role: "application", "aria-roledescription": "grid of wavelengths",
		"aria-label": `${device.name}: ${plural(device.rows, "channel")} by ${
			plural(device.columns, "segment")}, arrow keys look at one`,
		"data-key": `grid ${device.name}` },
		svg("rect", { class: "ground", x: SIDE, y: 0, width: device.columns * CELL,
			height: ground }),
		device.lit.map((run, i) => drawRun(view, device, run, i)),
		Array.from({ length: device.rows }, (_, r) => rowLabel(device, r)),
		columnNames(view, device), cursor);

	explore(picture, view, device, cursor, box);
	return el("article", { class: "card" }, el("h3", {}, device.name),
		device.whole ? "" : el("p", { class: "hint" }, "The first steps of its programs only."),
		el("div", { class: "scroll wide" }, picture), box,
		asTable(`grid ${device.name}`, open, () => runsTable(view, device)));
}

export function hatches() {
	const lines = ["", "M0 8L8 0", "M0 0L8 8", "M4 3v2", "M0 4H8", "M4 0V8", "M0 0L8 8M0 8L8 0",
		"M0 4H8M4 0V8"];

	return svg("svg", { class: "hidden", "aria-hidden": "true", width: 0, height: 0 },
		svg("defs", {}, lines.map((d, i) => svg("pattern", { id: `hatch-${i}`, width: 8, height: 8,
			patternUnits: "userSpaceOnUse" }, svg("path", { class: "hatching", d: d || "M0 0" })))));
}
