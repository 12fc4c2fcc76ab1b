// SPDX-License-Identifier: Apache-2.0
// A switch as a circle: hosts round it, a line for each connection.
import { badge, el, plural, svg } from "/dom.js";
import { TRUNK, badPorts } from "/model.js";
import { detail, pickable } from "/pick.js";
import { asTable, filtered } from "/tables.js";

const R = 132;
const MOST = 96;	// places round the circle; more hosts share one
const SHOWN = 12;	// connections that are named at a time

// Places round the circle: hosts in order, some together, then what is not a
// host. Returns the names and the place of a port.
function places(view, device) {
	const hosts = [...new Set([...device.in, ...device.out].filter((p) => p >= 0)
		.map((p) => view.host[p]))].sort((a, b) => a - b);
	const size = Math.max(1, Math.ceil(hosts.length / MOST));
	const names = [];
	const at = new Map();

	hosts.forEach((h, i) => {
		const name = view.picture.hosts[h][0];
		const k = Math.floor(i / size);

		names[k] = i % size === 0 ? name : `${names[k].split(" – ")[0]} – ${name}`;
		at.set(h, k);
	});
	const other = (what) => {
		if (!at.has(what)) {
			at.set(what, names.push(what) - 1);
		}
		return at.get(what);
	};
	return { names, of: (port) => (port >= 0 ? at.get(view.host[port])
		: other(port === TRUNK ? "other switches" : "no host")) };
}

// Connections between the same two places by the same job are one line.
function bundle(device, place) {
	const lines = new Map();

	for (const link of device.links) {
		const a = place.of(link.a);
		const b = place.of(link.b);
		const name = [Math.min(a, b), Math.max(a, b), link.job?.letter ?? "",
			link.state].join(" ");
		const line = lines.get(name) ?? { a, b, links: [], forth: false, back: false };

		line.links.push(link);
		line.forth ||= a === line.a;
		line.back ||= a !== line.a;
		lines.set(name, line);
	}
	return [...lines.values()];
}

function point(angle, radius) {
	return [radius * Math.sin(angle), -radius * Math.cos(angle)];
}

function xy([x, y]) {
	return `${x.toFixed(1)} ${y.toFixed(1)}`;
}

function bend(a, b) {
	const turn = Math.abs(a - b) % (2 * Math.PI);
	const apart = Math.min(turn, 2 * Math.PI - turn) / Math.PI;
	const [ax, ay] = point(a, R - 8);
	const [bx, by] = point(b, R - 8);
	const pull = 0.6 - 0.45 * apart;

	return { from: [ax, ay], to: [bx, by],
		by: [(ax + bx) / 2 * pull, (ay + by) / 2 * pull] };
}

const SIGNS = { missing: "✕", dark: "✕", unexpected: "!", pending: "…" };

function thick(n) {
	return (1.4 + 0.6 * Math.min(5, Math.log2(n))).toFixed(1);
}

// The line itself; an arrow where light goes one way only, a sign where the
// device is not as intended. carry: what circuits carry in a step, in
// thousandths of the fullest, by their number in the picture; or undefined.
function drawLine(line, angle, carry) {
	const { from, to, by } = bend(angle(line.a), angle(line.b));
	const { job, state } = line.links[0];
	const middle = from.map((v, i) => (v + 2 * by[i] + to[i]) / 4);
	const head = line.forth && line.back ? null
		: svg("circle", { class: "head", cx: to[0].toFixed(1), cy: to[1].toFixed(1), r: 3 });
	const sign = SIGNS[state] && svg("text", { class: "sign", x: middle[0].toFixed(1),
		y: middle[1].toFixed(1) }, SIGNS[state]);
	const style = state === "unexpected" ? "external" : `c${job.colour} d${job.pattern}`;
	const carried = carry && Math.max(...line.links.map((l) => carry.get(l.index) ?? 0));
	const width = thick(line.links.length) * (carry ? 0.6 + carried / 1000 : 1);

	return svg("g", { class: `line ${style} ${state.replace(" ", "-")} ${
		carry ? carried ? "carries" : "idle" : ""}` },
	svg("path", { d: `M${xy(from)}Q${xy(by)} ${xy(to)}`, "stroke-width": width.toFixed(1) }),
	head, sign);
}

function arc(from, to, radius) {
	return `M${xy(point(from, radius))}A${radius} ${radius} 0 ${
		to - from > Math.PI ? 1 : 0} 1 ${xy(point(to, radius))}`;
}

// Of several hosts the first; their number is in the label.
function shortName(name) {
	const [first, more] = name.split(" – ");
	const text = first.length > 10 ? `${first.slice(0, 9)}…` : first;

	return more ? `${text} …` : text;
}

// The places of ports that are out of use: their names and why.
function badPlaces(view, device, place) {
	const bad = new Map();

	for (const { side, port, why } of badPorts(device.status)) {
		const list = side === "out" ? device.out : device.in;
		const at = place.of(list[port - 1] ?? -1);
		const name = view.picture.ports[list[port - 1]];

		bad.set(at, [...bad.get(at) ?? [], `${side} ${port}${name ? ` (${name})` : ""} ${why}`]);
	}
	return bad;
}

function drawPlace(name, i, n, lines, bad) {
	const step = 2 * Math.PI / n;
	const [x, y] = point(i * step, R + 10);
	const turn = (i * step * 180 / Math.PI + 270) % 360;
	const flip = turn > 90 && turn < 270;
	const every = Math.ceil(n / 36);
	const uses = lines.filter((l) => l.a === i || l.b === i)
		.reduce((sum, l) => sum + l.links.length, 0);
	const isNamed = bad || (i % every === 0 && (i === 0 || n - i > every / 2));
	const text = !isNamed ? null
		: svg("text", { class: "name", x: 0, y: 0, "text-anchor": flip ? "end" : "start",
			transform: `translate(${xy([x, y])}) rotate(${
				(flip ? turn - 180 : turn).toFixed(1)})` },
		bad ? flip ? `${shortName(name)} ✕` : `✕ ${shortName(name)}` : shortName(name));

	return svg("g", { class: `place${uses ? "" : " unused"}${bad ? " failed" : ""}`,
		"aria-label": `${name}, ${plural(uses, "circuit")}${
			bad ? `; ✕ ${bad.join(", ")}` : ""}` },
	svg("path", { class: "rim", d: arc((i - 0.42) * step, (i + 0.42) * step, R) }),
	svg("path", { class: "reach", d: arc((i - 0.5) * step, (i + 0.5) * step, R + 4) }),
	text);
}

function linkText(l) {
	return [`${l.from || "?"} → ${l.to || "?"}`, `in ${l.in} → out ${l.out}`,
		l.job ? `${l.job.letter} ${l.job.name}` : l.owner || "not of weft", l.state];
}

function tell(box, name, links) {
	const rows = links.slice(0, SHOWN).map((l) => {
		const [ports, device, job, state] = linkText(l);

		return el("li", {}, el("b", {}, ports), ` ${device} · ${job} · ${state}`);
	});

	box.replaceChildren(el("p", {}, el("b", {}, name)),
		el("ul", {}, rows), links.length > SHOWN
			? el("p", { class: "quiet" }, `and ${links.length - SHOWN} more, see the table`)
			: "");
}

export function linksTable(device) {
	const columns = [
		{ name: "From", cell: (l) => l.from || "?" }, { name: "To", cell: (l) => l.to || "?" },
		{ name: "In", number: true, cell: (l) => l.in },
		{ name: "Out", number: true, cell: (l) => l.out },
		{ name: "Job", cell: (l) => linkText(l)[2] },
		{ name: "State", cell: (l) => l.state },
	];

	return filtered(columns, device.links, `Circuits of ${device.name}`, "No circuits.",
		(l) => linkText(l).join(" "));
}

// Names beside those of failed ports would overlap theirs.
function clearNames(items, bad, n) {
	const every = Math.ceil(n / 36);

	for (const at of bad.keys()) {
		for (let k = 1; k < every; k++) {
			for (const i of [(at + k) % n, (at - k + n) % n]) {
				if (!bad.has(i)) {
					items[i].querySelector("text")?.remove();
				}
			}
		}
	}
}

// The circle: its places, and its lines as drawn.
function chords(view, device) {
	const place = places(view, device);
	const lines = bundle(device, place);
	const n = place.names.length;
	const bad = badPlaces(view, device, place);
	const drawn = lines.map((l) => drawLine(l, (i) => i * 2 * Math.PI / n, device.carry));
	const items = place.names.map((name, i) => drawPlace(name, i, n, lines, bad.get(i)));

	clearNames(items, bad, n);
	return { place, lines, drawn, items };
}

function summary(device) {
	const odd = device.links.filter((l) => l.state !== "as intended").length;
	const bad = badPorts(device.status).length;

	return [`${plural(device.links.length, "circuit")} `,
		odd ? badge("warn", `${odd} not as intended `) : "",
		bad ? badge("bad", `${plural(bad, "port")} out of use`) : ""];
}

// Without names: one among many.
export function switchPicture(view, device) {
	const { drawn, items } = chords(view, device);

	items.forEach((g) => g.querySelectorAll("text").forEach((t) => t.remove()));
	return [svg("svg", { viewBox: "-142 -142 284 284", class: "chords small", role: "img",
		"aria-label": `${device.name}: ${summary(device).map((x) => x.textContent ?? x).join("")}` },
	drawn, items), el("p", { class: "hint" }, summary(device))];
}

export function drawSwitch(view, device, open) {
	const { place, lines, drawn, items } = chords(view, device);
	const box = detail("Hosts: arrow keys or pointer.");
	const picture = svg("svg", { viewBox: "-214 -214 428 428", role: "listbox",
		"aria-label": `${device.name}: hosts and their circuits`, class: "chords" },
		drawn, items);

	items.forEach((item, i) => item.setAttribute("data-key", `${device.name} ${i}`));
	pickable(picture, items, { right: 1, down: 1, round: true }, (i) => {
		picture.classList.add("picked");
		lines.forEach((l, k) => drawn[k].classList.toggle("on", l.a === i || l.b === i));
		tell(box, items[i].getAttribute("aria-label"), lines.filter((l) => l.a === i || l.b === i)
			.flatMap((l) => l.links));
	});
	return [items.length ? picture : el("p", { class: "nothing" }, "Nothing is connected to it."),
		el("p", { class: "hint" }, summary(device)),
		box, asTable(device.name, open, () => linksTable(device))];
}
