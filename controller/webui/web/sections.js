// The sections of the page, each from what was last told.
import { age, badge, clock, count, duration, el, percent, plural, replace, setBadge }
	from "/dom.js";
import { isSame } from "/model.js";
import { drawGrid, drawRing } from "/rings.js";
import { drawSwitch } from "/switches.js";
import { filtered, table } from "/tables.js";

const opened = new Set();	// tables that are open
const STATES = { ready: "good", changing: "busy", reading: "busy", empty: "none",
	interrupted: "bad" };
const HEALTH = { up: "good", degraded: "warn", down: "bad", unverified: "none" };
const PROOFS = ["unverified", "acked", "read-back", "settled", "measured"];

function body(id) {
	return document.querySelector(`#${id} .body`);
}

// ---- head ----

function fact(name, value, note) {
	return el("div", {}, el("dt", {}, name), el("dd", { "data-fact": name }, value,
		note ? el("small", {}, ` ${note}`) : ""));
}

function facts(view) {
	const { status } = view;
	const known = status.devices.filter((d) => d.driver);
	const circuits = status.devices.reduce((n, d) => n + d.circuits, 0);

	return [
		fact("generation", status.generation),
		fact("devices", known.filter((d) => d.reachable).length, `of ${known.length} answer`),
		fact("circuits", count(circuits)),
		fact("jobs", status.jobs.filter((j) => j.health === "up").length,
			`of ${status.jobs.length} up`),
		status.links ? fact("ports with light", status.links.good,
			`of ${status.links.expected} as intended`) : "",
		fact("differences", count(view.differences.length)),
		status.last_change ? fact("last change", status.last_change.id,
			status.last_change.outcome) : "",
	];
}

export function renderHead(view) {
	const { status } = view;
	const advice = document.getElementById("advice");
	const held = (status.holds ?? []).map((h) => (h.target === "" ? "the fabric is frozen"
		: `${h.target} is drained`)).join(", ");
	const note = [status.advice, held, status.jobs_problem].filter(Boolean).join(" · ");

	document.title = `${status.fabric || "no fabric"} · ${status.state} · weft`;
	document.getElementById("fabric-name").textContent = status.fabric;
	setBadge(document.getElementById("state"), STATES[status.state] ?? "none", status.state);
	advice.hidden = !note;
	if (advice.textContent !== note) {
		advice.textContent = note;
	}
	replace(document.getElementById("facts"), facts(view));
	document.getElementById("version").textContent = `weftd ${status.version}`;
}

// ---- the change ----

function resultKind(progress) {
	return progress.running ? "busy"
		: ["committed", "nothing to do"].includes(progress.result) ? "good" : "bad";
}

function changeLine(line) {
	return el("li", { class: line.is_problem ? "problem" : undefined },
		line.is_problem ? badge("bad", "problem") : "",
		el("b", {}, line.phase), line.device ? ` ${line.device}` : "", `: ${line.text}`);
}

function changeHead(p) {
	const last = p.lines.at(-1);
	const what = p.running ? `${last ? last.phase : "planning"}${
		last?.device ? `, ${last.device}` : ""}` : p.result;

	return el("p", { role: "status", id: "change-status" }, badge(resultKind(p), what),
		` change of ${p.who}${p.comment ? `: ${p.comment}` : ""}, `, clock(p.began_at),
		p.ended_at ? ` – ${clock(p.ended_at)}` : "", p.problem ? ` · ${p.problem}` : "");
}

function lastChange(change) {
	return change ? el("p", {}, badge(change.outcome === "committed" ? "good" : "warn",
		change.outcome), ` change ${change.id} of ${change.who}${
		change.comment ? `: ${change.comment}` : ""} · ${change.summary} · `,
	age(change.ended_at ?? change.started_at)) : null;
}

export function renderChange(view) {
	const p = view.state.progress;
	const { status } = view;
	const confirm = status.confirm && el("p", {}, badge("warn", "waits for confirmation"),
		` change ${status.confirm.change} is rolled back at ${clock(status.confirm.deadline_at)}`);

	if (!p) {
		replace(body("change"), confirm ?? "", lastChange(status.open_change ??
			status.last_change) ?? el("p", { class: "nothing" }, "Nothing was ever applied."));
		return;
	}
	replace(body("change"), confirm ?? "", changeHead(p),
		el("div", { class: "meter" }, el("progress", { max: Math.max(1, p.total),
			value: p.total ? p.done : p.running ? 0 : 1, "aria-label": "Steps done" }),
		el("span", { class: "number" }, `${p.done} of ${p.total}`)),
		el("ol", { class: "lines scroll", tabindex: "0", "data-key": "change lines",
			"aria-label": "Steps of the change, newest first" },
		[...p.lines].reverse().map(changeLine)));
}

// ---- pictures ----

function markOf(mark) {
	return el("span", { class: `mark c${mark.colour} p${mark.pattern}`, "aria-hidden": "true" },
		mark.letter);
}

function deviceBadge(d) {
	return !d ? badge("none", "not known")
		: !d.driver ? badge("none", "moved by hand")
		: !d.reachable ? badge("bad", d.ever_read ? "does not answer" : "never read")
		: !isSame(d) ? badge("warn", "not as intended") : badge("good", d.proof);
}

function card(view, device) {
	return el("article", { class: "card", "aria-label": `${device.kind} ${device.name}` },
		el("h3", {}, device.name, el("small", {}, device.kind), deviceBadge(device.status)),
		device.kind === "ring" ? drawRing(view, device, opened)
			: drawSwitch(view, device, opened));
}

export function renderPictures(view) {
	const { picture } = view;
	const legend = document.querySelector("#fabric .legend");
	const rings = view.devices.filter((d) => d.lit);

	replace(legend, [...view.marks.values()].map((m) =>
		el("li", {}, markOf(m), el("span", { class: `dash c${m.colour} d${m.pattern}` },
			dashSample()), m.name)));
	replace(body("fabric"), !picture ? el("p", { class: "nothing" }, "No fabric is known yet.")
		: picture.too_large ? el("p", { class: "nothing" }, "Too large to be drawn.")
			: view.devices.map((d) => card(view, d)));
	replace(body("light"), rings.length ? rings.map((d) => drawGrid(view, d, opened))
		: el("p", { class: "nothing" }, "No ring carries a program."));
}

function dashSample() {
	const ns = "http://www.w3.org/2000/svg";
	const box = document.createElementNS(ns, "svg");
	const line = document.createElementNS(ns, "path");

	box.setAttribute("viewBox", "0 0 40 6");
	box.setAttribute("aria-hidden", "true");
	line.setAttribute("d", "M0 3H40");
	box.append(line);
	return box;
}

// ---- tables ----

export function renderJobs(view) {
	const columns = [
		{ name: "Job", cell: (j) => el("span", { "data-job": j.name },
			markOf(view.marks.get(j.name)), " ", j.name) },
		{ name: "Health", cell: (j) => badge(HEALTH[j.health] ?? "none", j.health) },
		{ name: "Proof", cell: (j) => j.proof },
		{ name: "Collective", cell: (j) => j.collective },
		{ name: "Algorithm", cell: (j) => j.algorithm },
		{ name: "Topology", cell: (j) => j.topology },
		{ name: "Hosts", number: true, cell: (j) => count(j.nodes) },
		{ name: "Steps", number: true, cell: (j) => count(j.steps) },
		{ name: "Time", number: true, cell: (j) => duration(j.time_ns) },
		{ name: "Bound", number: true, cell: (j) => duration(j.bound_ns) },
		{ name: "Gap", number: true, cell: (j) => percent(j.gap) },
		{ name: "Rate", number: true, cell: (j) => percent(j.degradation ? j.degradation.rate : 1) },
	];
	const { requests } = view.state;

	replace(body("jobs"), ...filtered(columns, view.status.jobs, "Jobs",
		view.status.fabric ? "No jobs." : "No fabric.", (j) => `${j.name} ${j.collective}`),
	requests.length ? [el("h3", {}, "Asked for by orchestrators"), renderRequests(requests)]
		: "");
}

const REQUESTS = { running: "good", starting: "busy", queued: "busy", ending: "busy" };

function renderRequests(requests) {
	const columns = [
		{ name: "Job", cell: (j) => j.name },
		{ name: "State", cell: (j) => badge(REQUESTS[j.state] ?? "none", j.state) },
		{ name: "Of", cell: (j) => j.who },
		{ name: "Hosts", number: true, cell: (j) => j.nodes.length },
		{ name: "In the queue", number: true, cell: (j) => j.position || "" },
		{ name: "Asked", cell: (j) => age(j.requested_at) },
		{ name: "Why", cell: (j) => j.problem },
	];

	return table(columns, requests, "Jobs asked for", "None.");
}

// The layers of proof as a ladder: each includes those before it.
function proof(d) {
	const level = PROOFS.indexOf(d.proof);

	return el("span", { class: "proof" }, el("span", { "aria-hidden": "true" },
		"●".repeat(level) + "○".repeat(PROOFS.length - 1 - level)), ` ${d.proof}`);
}

function programText(p) {
	return !p || (!p.wanted && !p.loaded) ? "" : p.equal
		? `${p.loaded_steps} steps${p.unlocked ? `, ${p.unlocked} not locked` : ""}`
		: !p.wanted ? "unexpected" : p.loaded ? "another one" : "missing";
}

export function renderDevices(view) {
	const columns = [
		{ name: "Device", cell: (d) => el("span", { "data-device": d.name }, d.name) },
		{ name: "Kind", cell: (d) => d.kind },
		{ name: "Health", cell: deviceBadge },
		{ name: "Proof", cell: proof },
		{ name: "Read", cell: (d) => age(d.read_at) },
		{ name: "Circuits", number: true, cell: (d) => count(d.circuits) },
		{ name: "Missing", number: true, cell: (d) => count(d.missing.length) },
		{ name: "Unexpected", number: true, cell: (d) => count(d.unexpected.length) },
		{ name: "Program", cell: (d) => programText(d.program) },
		{ name: "Driver", cell: (d) => d.driver },
		{ name: "Address", cell: (d) => d.address },
		{ name: "Problem", cell: (d) => [d.problem, d.marked_dead_count ?
			`marked as dead: ${d.marked_dead.join(", ")}` : "", d.unusable_count ?
			`out of use: ${d.unusable.join(", ")}` : ""].filter(Boolean).join(" · ") },
	];

	replace(body("devices"), ...filtered(columns, view.status.devices, "Devices", "No devices.",
		(d) => `${d.name} ${d.driver} ${d.address} ${d.problem}`));
}

const WOULD = { missing: ["warn", "makes it"], unexpected: ["warn", "not intended"],
	pending: ["busy", "in an open change"], program: ["warn", "loads it"] };

export function renderDifferences(view) {
	const ports = (c) => (c.from || c.to ? `${c.from || "?"} → ${c.to || "?"}` : "");
	const columns = [
		{ name: "Device", cell: (x) => x.device },
		{ name: "What", cell: (x) => `${x.what === "program" ? `program ${
			programText(x.program)}` : x.what}` },
		{ name: "Circuit", cell: (x) => (x.circuit ? `in ${x.circuit.in} → out ${x.circuit.out}`
			: `${x.program.wanted_steps} steps`) },
		{ name: "Ports", cell: (x) => (x.circuit ? ports(x.circuit) : "") },
		{ name: "An apply", cell: (x) => badge(...WOULD[x.what]) },
		{ name: "Owner", cell: (x) => x.circuit?.owner ?? "" },
	];

	replace(body("differences"), ...filtered(columns, view.differences, "Differences",
		"None: every device that was read is as intended.",
		(x) => `${x.device} ${x.what} ${x.circuit ? ports(x.circuit) : ""}`));
}

export function renderEvents(view) {
	const columns = [
		{ name: "When", cell: (e) => el("time", { datetime: e.at, title: e.at }, clock(e.at)) },
		{ name: "What", cell: (e) => e.kind.replaceAll("-", " ") },
		{ name: "Told", cell: (e) => e.text },
	];

	replace(body("events"), table(columns, view.state.events, "Events, newest first",
		"Nothing has happened since weftd started."));
}
