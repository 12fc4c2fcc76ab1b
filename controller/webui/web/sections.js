// SPDX-License-Identifier: Apache-2.0
// The sections of the page, each from what was last told.
import { age, badge, clock, count, duration, el, percent, plural, replace, setBadge }
	from "/dom.js";
import { drawLanes } from "/lanes.js";
import { drawRing } from "/rings.js";
import { linkTo } from "/route.js";
import { drawSwitch } from "/switches.js";
import { filtered, table } from "/tables.js";
import { HEALTH, deviceBadge, deviceState, eventsTable, markOf, problemsTable, timeNow, worstFirst }
	from "/views.js";

const opened = new Set();	// tables that are open
const unfolded = new Map();	// domains of the map that were opened or closed by hand
const STATES = { ready: "good", changing: "busy", reading: "busy", empty: "none",
	interrupted: "bad" };
const DRAWN = 6;	// devices; more are a map
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
	const known = status.devices.filter((d) => d.driver && !d.elsewhere);
	const circuits = status.devices.reduce((n, d) => n + d.circuits, 0);

	return [
		fact("generation", status.generation),
		fact("devices", known.filter((d) => d.reachable).length, `of ${known.length} answer`),
		fact("circuits", count(circuits)),
		fact("jobs", status.jobs.filter((j) => j.health === "up").length,
			`of ${status.jobs.length} up`),
		status.links ? fact("ports with light", status.links.good,
			`of ${status.links.expected} as intended`) : "",
		fact("problems", count(view.problems.length)),
		status.last_change ? fact("last change", status.last_change.id,
			status.last_change.outcome) : "",
	];
}

export function renderHead(view) {
	const { status } = view;
	const rings = view.devices.filter((d) => d.lit).length;
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
	for (const node of document.querySelectorAll("#light, nav [href='#light']")) {
		node.hidden = !rings || rings > DRAWN;
	}
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

// How long it still takes, as devices and the plan tell.
function timeLeft(ns) {
	const s = ns / 1e9;

	return s >= 120 ? `about ${Math.round(s / 60)} min left` : `about ${Math.ceil(s)} s left`;
}

// What a change does to jobs, as it was planned.
function gains(jobs) {
	const time = (ns) => (ns === null || ns === undefined ? "–" : duration(ns));
	const mine = jobs.filter((j) => j.gain && j.gain.effect !== "stays");

	return mine.length ? el("ul", { class: "gains", "aria-label": "What jobs gain" },
		mine.map((j) => el("li", {}, linkTo("job", j.name), ` ${j.gain.effect}: ${
			time(j.gain.before_ns)} → ${time(j.gain.after_ns)}${j.gain.down_ns
			? `, without light for ${duration(j.gain.down_ns)}` : ""}`))) : "";
}

export function renderChange(view) {
	const p = view.state.progress;
	const { status } = view;
	const now = status.progress ?? p;
	const confirm = status.confirm && el("p", {}, badge("warn", "waits for confirmation"),
		` change ${status.confirm.change} is rolled back at ${clock(status.confirm.deadline_at)}`);

	if (!p) {
		replace(body("change"), confirm ?? "", lastChange(status.open_change ??
			status.last_change) ?? el("p", { class: "nothing" }, "Nothing was ever applied."));
		return;
	}
	replace(body("change"), confirm ?? "", changeHead(p),
		el("div", { class: "meter" }, el("progress", { max: Math.max(1, now.total),
			value: now.total ? now.done : p.running ? 0 : 1, "aria-label": "Steps done" }),
		el("span", { class: "number" }, `${now.done} of ${now.total}${
			p.running && now.eta_ns ? `, ${timeLeft(now.eta_ns)}` : ""}`)),
		p.running ? gains(status.jobs) : "",
		el("ol", { class: "lines scroll", tabindex: "0", "data-key": "change lines",
			"aria-label": "Steps of the change, newest first" },
		[...p.lines].reverse().map(changeLine)));
}

// ---- pictures ----

function card(view, device) {
	return el("article", { class: "card", "aria-label": `${device.kind} ${device.name}` },
		el("h3", {}, linkTo("device", device.name), el("small", {}, device.kind),
			deviceBadge(view, device.status)),
		device.kind === "ring" ? drawRing(view, device, opened) : drawSwitch(view, device, opened));
}

// Beyond DRAWN devices: one row a device, by failure domain, the worst first; those where all is
// well are folded.
function mapRow(view, d) {
	return el("li", {}, linkTo("device", d.name), deviceBadge(view, d.status),
		el("span", { class: "number quiet" }, d.kind === "ring" ? "ring"
			: plural(d.links.length, "circuit")));
}

function unwell(view, devices) {
	return devices.filter((d) => ["bad", "warn"].includes(deviceState(view, d.status)[0])).length;
}

function mapDomain(view, name, devices, isAlone) {
	const bad = unwell(view, devices);
	const circuits = devices.reduce((n, d) => n + d.links.length, 0);
	const box = el("details", { open: unfolded.get(name) ?? (bad > 0 || isAlone) },
	el("summary", { "data-key": `domain ${name}`,
		onclick: () => unfolded.set(name, !box.open) }, el("b", {}, name), " ",
		bad ? badge("warn", `${bad} of ${plural(devices.length, "device")} not well`)
			: badge("good", plural(devices.length, "device")),
		el("span", { class: "quiet" }, ` ${plural(circuits, "circuit")}`)),
	el("ul", {}, devices.map((d) => mapRow(view, d))));

	return box;
}

function map(view) {
	const state = (d) => deviceState(view, d.status)[0];
	const domains = new Map();

	for (const d of worstFirst(view.devices, state)) {
		const name = d.domain === d.name ? "each by itself" : d.domain;

		domains.set(name, [...domains.get(name) ?? [], d]);
	}
	return el("div", { class: "map" }, [...domains].sort(([, a], [, b]) => unwell(view, b) -
		unwell(view, a)).map(([name, devices]) => mapDomain(view, name, devices, domains.size === 1)));
}

export function renderPictures(view) {
	const { picture } = view;
	const legend = document.querySelector("#fabric .legend");
	const rings = view.devices.filter((d) => d.lit);
	const drawn = view.devices.length <= DRAWN;

	replace(legend, !drawn ? [] : [...view.marks.values()].map((m) =>
		el("li", {}, markOf(m), el("span", { class: `dash c${m.colour} d${m.pattern}` },
			dashSample()), linkTo("job", m.name))));
	replace(body("fabric"), !picture ? el("p", { class: "nothing" }, "No fabric is known yet.")
		: picture.too_large ? el("p", { class: "nothing" }, "Too large to be drawn.")
			: drawn ? el("div", { class: "cards" }, view.devices.map((d) => card(view, d))) : map(view));
	replace(body("light"), rings.slice(0, DRAWN).map((d) => el("article", { class: "card" },
		el("h3", {}, linkTo("device", d.name)), drawLanes(view, d))));
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
		{ name: "Job", cell: (j) => el("span", {}, markOf(view.marks.get(j.name)), " ",
			linkTo("job", j.name)) },
		{ name: "Health", cell: (j) => badge(HEALTH[j.health] ?? "none", j.health) },
		{ name: "Proof", cell: (j) => j.proof },
		{ name: "Collective", cell: (j) => j.collective },
		{ name: "Algorithm", cell: (j) => j.algorithm },
		{ name: "Topology", cell: (j) => j.topology },
		{ name: "Hosts", number: true, cell: (j) => count(j.nodes) },
		{ name: "Steps", number: true, cell: (j) => count(j.steps) },
		{ name: "Rate", number: true, cell: (j) => percent(j.rate) },
		{ name: "Time now", number: true, cell: timeNow },
		{ name: "When whole", number: true, cell: (j) => duration(j.whole_time_ns) },
		{ name: "Bound", number: true, cell: (j) => duration(j.bound_ns) },
		{ name: "Gap", number: true, cell: (j) => percent(j.gap) },
	];
	const { requests } = view.state;

	const jobs = worstFirst(view.status.jobs, (j) => HEALTH[j.health] ?? "none");

	replace(body("jobs"), ...filtered(columns, jobs, "Jobs",
		!view.status.jobs_known && !view.status.jobs_problem ? "They are being planned."
			: view.status.fabric ? "No jobs." : "No fabric.", (j) => `${j.name} ${j.collective}`),
	view.status.jobs_known || !view.status.jobs.length ? "" : el("p", { class: "hint" },
		"As before the change, until they are planned again."),
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
		{ name: "Device", cell: (d) => linkTo("device", d.name) },
		{ name: "Kind", cell: (d) => d.kind },
		{ name: "Health", cell: (d) => deviceBadge(view, d) },
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

	const devices = worstFirst(view.status.devices, (d) => deviceState(view, d)[0]);

	replace(body("devices"), ...filtered(columns, devices, "Devices", "No devices.",
		(d) => `${d.name} ${d.driver} ${d.address} ${d.problem}`));
}

export function renderProblems(view) {
	replace(body("problems"), ...problemsTable(view, view.problems,
		"None: all that was read is as intended."));
}

export function renderEvents(view) {
	replace(body("events"), eventsTable(view.state.events,
		"Nothing has happened since weftd started."));
}
