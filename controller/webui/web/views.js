// SPDX-License-Identifier: Apache-2.0
// One device, one job, one host: all that is known of it, with links to the
// others.
import { age, badge, clock, count, duration, el, percent, plural } from "/dom.js";
import { drawGrid } from "/grid.js";
import { drawLanes } from "/lanes.js";
import { badPorts, drained } from "/model.js";
import { drawPlayer } from "/player.js";
import { drawRing } from "/rings.js";
import { linkTo } from "/route.js";
import { drawSwitch } from "/switches.js";
import { filtered, table } from "/tables.js";

export const HEALTH = { up: "good", changing: "busy", degraded: "warn", down: "bad", unverified: "none" };

const opened = new Set();	// tables that are open

export function markOf(mark) {
	return el("span", { class: `mark c${mark.colour} p${mark.pattern}`, "aria-hidden": "true" },
		mark.letter);
}

// By the same list as everything that tells of problems: the kind of its badge, and the words.
export function deviceState(view, d) {
	const mine = view.problems.filter((p) => p.device === d?.name);

	return !d ? ["none", "not known"]
		: !d.driver ? ["none", "moved by hand"]
		: d.elsewhere ? ["none", "led elsewhere"]
		: !d.ever_read ? ["bad", "never read"]
		: mine.length ? [d.reachable ? "warn" : "bad", `${words(mine[0].kind)}${
			mine.length > 1 ? ` and ${mine.length - 1} more` : ""}`]
		: drained(view, d.name).some((h) => h.target === d.name) ? ["none", "drained"]
		: ["good", d.proof];
}

export function deviceBadge(view, d) {
	return badge(...deviceState(view, d));
}

// The worst first, else as in the file.
export function worstFirst(list, state) {
	const order = ["bad", "warn", "none", "busy", "good"];

	return list.map((x) => [order.indexOf(state(x)), x]).sort((a, b) => a[0] - b[0])
		.map(([, x]) => x);
}

const STATES = { "as intended": ["good", ""], missing: ["bad", "not in the device's map"],
	dark: ["bad", "in its map, and nothing is heard"],
	unexpected: ["warn", "not of weft"], pending: ["busy", "of a change that is open"] };

// How a circuit of a device is, with why it is dark: ports, or what is heard.
function stateBadge(state, status, c) {
	const [kind, meaning] = STATES[state] ?? ["none", ""];
	const ports = state === "dark" ? badPorts(status).filter(({ side, port }) =>
		(side !== "out" && port === c.in) || (side !== "in" && port === c.out)) : [];
	const why = ports.map(({ side, port, why: how }) => `${side} ${port} ${how}`).join(", ");

	return el("span", {}, badge(kind, state), why || meaning ? ` ${why || meaning}` : "");
}

function words(kind) {
	return kind.replaceAll("-", " ");
}

function problemState(p) {
	return ["job-down", "device-unreachable"].includes(p.kind) ? "bad" : "warn";
}

// One list for all who tell of problems: as weftd has it, the worst first.
export function problemsTable(view, problems, nothing) {
	const columns = [
		{ name: "What", cell: (p) => badge(problemState(p), words(p.kind)) },
		{ name: "Where", cell: (p) => (p.device ? linkTo("device", p.device)
			: p.job ? linkTo("job", p.job) : "hosts") },
		{ name: "Told", cell: (p) => p.text },
	];

	return filtered(columns, worstFirst(problems, problemState), "Problems", nothing,
		(p) => `${p.kind} ${p.text}`);
}

export function eventsTable(events, nothing) {
	const columns = [
		{ name: "When", cell: (e) => clock(e.at) },
		{ name: "What", cell: (e) => words(e.kind) },
		{ name: "Told", cell: (e) => e.text },
	];

	return table(columns, events, "Events, newest first", nothing);
}

function facts(list) {
	return el("dl", { class: "facts small" }, list.filter(Boolean).map(([name, value, note]) =>
		el("div", {}, el("dt", {}, name), el("dd", {}, value,
			note ? el("small", {}, ` ${note}`) : ""))));
}

function part(title, ...content) {
	return el("section", { "aria-label": title }, el("h3", {}, title), content);
}

// A place for charts of these kinds; page.js fills it.
function history(kinds, of) {
	return part("History", el("div", { "data-history": kinds, "data-of": of }));
}

function eventsOf(view, what, name) {
	const mine = view.state.events.filter((e) => e[what] === name || (what === "job" &&
		e.text.includes(`job ${name}:`)));

	return part("Events", eventsTable(mine, "None of the newest events is about it."));
}

function problemsOf(view, what, name) {
	const mine = view.problems.filter((p) => p[what] === name);

	return part("Problems", problemsTable(view, mine, "None."));
}

function list(items) {
	return items.flatMap((x, i) => (i ? [", ", x] : [x]));
}

// ---- a device ----

function jobsOn(device) {
	return [...new Set([...device.links ?? []].map((l) => l.job?.name).filter(Boolean))];
}

function deviceFacts(view, device, status) {
	const jobs = device.kind === "ring" ? (device.programs ?? []).map((p) =>
		view.picture.jobs[p.job]?.name).filter(Boolean) : jobsOn(device);

	return facts([
		["jobs", jobs.length ? list(jobs.map((j) => linkTo("job", j))) : "none"],
		device.kind === "ring" ? ["program", status?.program?.loaded
			? `${status.program.loaded_steps} steps` : "none"]
			: ["circuits", count(status?.circuits ?? device.links.length)],
		["read", age(status?.read_at)],
		["proof", status?.proof ?? "unknown"],
		status?.driver ? ["driver", status.driver, status.address] : null,
		status?.identity ? ["says it is", status.identity] : null,
		status?.switching ? ["switching", duration(status.switching.median_ns)] : null,
		...drained(view, device.name).map((h) => ["drained", [h.target, ", ", age(h.since_at)]]),
	]);
}

function oddCircuits(device) {
	const { status } = device;
	const job = (c) => device.links.find((l) => l.in === c.in && l.out === c.out)?.job?.name;
	const odd = ["missing", "dark", "unexpected", "pending"].flatMap((what) =>
		(status?.[what] ?? []).map((c) => ({ what, ...c })));
	const columns = [
		{ name: "What", cell: (c) => stateBadge(c.what, status, c) },
		{ name: "Circuit", cell: (c) => `in ${c.in} → out ${c.out}` },
		{ name: "Ports", cell: (c) => (c.from || c.to ? `${c.from || "?"} → ${c.to || "?"}` : "") },
		{ name: "Job", cell: (c) => (job(c) ? linkTo("job", job(c)) : c.owner || "not of weft") },
		{ name: "Since", cell: (c) => (c.since_at ? age(c.since_at) : "") },
	];

	return odd.length ? part("Circuits that are not as intended", filtered(columns, odd,
		"Circuits that are not as intended", "None.", (c) => `${c.what} ${c.from} ${c.to}`)) : "";
}

export function deviceView(view, name) {
	const device = view.devices.find((d) => d.name === name);
	const status = view.byName.get(name);

	if (!device) {
		return status ? [facts([["health", deviceBadge(view, status)]]), problemsOf(view, "device", name)]
			: null;
	}
	const ring = device.kind === "ring";

	return [el("p", { class: "under" }, device.kind, " ", deviceBadge(view, status),
		status?.problem ? ` ${status.problem}` : ""),
	deviceFacts(view, device, status),
	problemsOf(view, "device", name),
	part(ring ? "Ring" : "Hosts and circuits", el("div", { class: "large" },
		ring ? drawRing(view, device, opened) : drawSwitch(view, device, opened))),
	ring && device.lit ? [part("Wavelengths by job", drawLanes(view, device)),
		part("Wavelengths", drawGrid(view, device, opened))] : "",
	ring ? "" : oddCircuits(device),
	history("power drift unlocked", name),
	eventsOf(view, "device", name)];
}

// ---- a job ----

export function timeNow(j) {
	return j.expected_time_ns ? duration(j.expected_time_ns) : "–";
}

function jobFacts(j, schedule) {
	return facts([
		["rate", percent(j.rate), "of the fault-free one"],
		["time now", timeNow(j)],
		["time when whole", duration(j.whole_time_ns)],
		j.advice ? ["advice", j.advice] : null,
		["no schedule is below", duration(j.bound_ns), `gap ${percent(j.gap)}`],
		["collective", j.collective, j.algorithm],
		["hosts", count(j.nodes), j.topology],
		["steps", j.step ? "–" : count(schedule?.steps ?? j.steps)],
		["proof", j.proof],
		["on", list(j.devices.map((d) => linkTo("device", d)))],
	]);
}

function ranks(view, job) {
	return el("ol", { class: "ranks" }, job.hosts.map((h, rank) => el("li", {},
		el("span", { class: "number" }, rank), linkTo("host", view.picture.hosts[h][0]))));
}

// A training step: each collective with its light, the light's ports where it is new.
function stepTable(step) {
	const ports = (u, i) => u.light === step.uses[i - 1]?.light ? "" : step.lights[u.light - 1]
		.shares.map((s) => `${s.axes} ${s.ports}${s.topology ? ` (${s.topology})` : ""}`).join(", ");
	const columns = [
		{ name: "Light", number: true, cell: (u) => u.light },
		{ name: "Axes and ports", cell: (u) => ports(u, step.uses.indexOf(u)) },
		{ name: "Collective", cell: (u) => u.name },
		{ name: "Kind", cell: (u) => `${u.collective} of ${u.ranks}` },
		{ name: "Bytes", number: true, cell: (u) => count(u.size_bytes) },
		{ name: "Time", number: true, cell: (u) => duration(u.time_ns) },
		{ name: "Calls", number: true, cell: (u) => count(u.calls) },
		{ name: "Share", number: true, cell: (u) => percent(u.share) },
	];

	return table(columns, step.uses, "Collectives of the step", "None.");
}

export function jobView(view, name) {
	const j = view.status.jobs.find((x) => x.name === name);
	const job = view.picture?.jobs?.find((x) => x.name === name);
	const schedule = view.state.schedules?.jobs.find((x) => x.name === name);

	if (!j) {
		return null;
	}
	return [el("p", { class: "under" }, markOf(view.marks.get(name)), " ",
		badge(HEALTH[j.health] ?? "none", j.health), j.reason ? ` ${j.reason}` : ""),
	jobFacts(j, schedule),
	problemsOf(view, "job", name),
	j.step ? part("Step", stepTable(j.step)) : part("Schedule", drawPlayer(view, schedule)),
	history("rate", name),
	job ? part("Hosts by rank", ranks(view, job)) : "",
	eventsOf(view, "job", name)];
}

// ---- a host ----

// What devices say of the ports that a host's fibres end at, by the port's name.
function badPortsOf(view, index) {
	const bad = new Map();

	for (const d of view.devices) {
		for (const { side, port, why } of badPorts(d.status)) {
			const at = d[side === "out" ? "out" : "in"]?.[port - 1] ?? -1;

			if (at >= 0 && view.host[at] === index) {
				bad.set(view.picture.ports[at], `${d.name} ${side} ${port} ${why}`);
			}
		}
	}
	return bad;
}

function portList(view, index, first, n) {
	const bad = badPortsOf(view, index);

	return el("ul", { class: "ports" }, view.picture.ports.slice(first, first + n).map((p) =>
		el("li", {}, `${p} `, bad.has(p) ? badge("bad", bad.get(p)) : "")));
}

export function hostView(view, name) {
	const index = view.picture?.hosts.findIndex(([n]) => n === name) ?? -1;

	if (index < 0) {
		return null;
	}
	const [, first, n] = view.picture.hosts[index];
	const jobs = (view.picture.jobs ?? []).filter((j) => j.hosts.includes(index));
	const rings = view.devices.filter((d) => d.members?.includes(index));
	// Of a lightpath over several devices the circuits of each.
	const links = view.devices.flatMap((d) => d.links.filter((l) => [l.a, l.b, l.tx, l.rx].some(
		(port) => view.host[port] === index)).map((l) => ({ ...l, device: d.name, status: d.status })));
	const columns = [
		{ name: "From", cell: (l) => l.from || "?" }, { name: "To", cell: (l) => l.to || "?" },
		{ name: "Device", cell: (l) => linkTo("device", l.device) },
		{ name: "Circuit", cell: (l) => `in ${l.in} → out ${l.out}` },
		{ name: "Job", cell: (l) => (l.job ? linkTo("job", l.job.name) : l.owner || "not of weft") },
		{ name: "State", cell: (l) => stateBadge(l.state, l.status, l) },
	];

	return [el("p", { class: "under" }, "host"),
		facts([["ports", count(n)],
			["jobs", jobs.length ? list(jobs.map((j) => linkTo("job", j.name))) : "none"],
			rings.length ? ["rings", list(rings.map((d) => linkTo("device", d.name)))] : null]),
		part("Ports", n ? portList(view, index, first, n) : el("p", {},
			`It has no ports of its own; it is on ${plural(rings.length, "ring")}.`)),
		part("Circuits", filtered(columns, worstFirst(links,
			(l) => STATES[l.state]?.[0] ?? "none"), `Circuits of ${name}`, "None.",
			(l) => `${l.from} ${l.to} ${l.device}`))];
}
