// SPDX-License-Identifier: Apache-2.0
// Asks weftd for everything, then for what is new, and has it shown: the
// overview, or the view of one thing that the address names.
import { el, replace, setBadge, setNow, tickAges } from "/dom.js";
import { charts, newestSample, takeHistory } from "/charts.js";
import { derive } from "/model.js";
import { stopPlaying } from "/player.js";
import { hatches } from "/rings.js";
import { current } from "/route.js";
import { searchable } from "/search.js";
import { renderChange, renderDevices, renderEvents, renderHead, renderJobs, renderPictures,
	renderProblems } from "/sections.js";
import { deviceView, hostView, jobView } from "/views.js";

const PACE_MS = 150;		// between two looks
const HELD_MS = 30000;		// weftd answers within 20 s, news or not
const RETRY_MS = [300, 1000, 2000, 4000];

// What the drawings depend on.
function drawn(v) {
	return [v.state.picture_id, v.picture === null, v.state.faults, v.status.devices.map((d) =>
		[d.name, d.driver, d.reachable, d.ever_read, d.proof, d.missing, d.dark, d.unexpected,
			d.pending, d.unusable, d.program]), v.problems, v.status.holds];
}

// Each section with what it depends on: drawn again when that has changed.
const sections = [
	[renderProblems, (v) => v.problems],
	[renderChange, (v) => [v.state.progress, v.status.last_change, v.status.open_change,
		v.status.confirm, v.status.progress, v.status.jobs.map((j) => j.gain)]],
	[renderPictures, drawn],
	[renderJobs, (v) => [v.status.jobs, v.status.jobs_known, v.state.requests]],
	[renderDevices, (v) => [v.status.devices, v.problems, v.status.holds]],
	[renderEvents, (v) => v.state.events],
];
const VIEWS = { device: deviceView, job: jobView, host: hostView };
const shown = new Map();	// what each was drawn from
const tables = new Set();	// of charts, that are open

let state = null;	// as it was told
let schedules = null;	// of the picture picture_id
let view = null;	// derived from it

// Draws what has changed of what it depends on; true if something had.
function refresh(render, slice) {
	const now = JSON.stringify(slice);

	if (shown.get(render) === now) {
		return false;
	}
	shown.set(render, now);
	render(view);
	return true;
}

function renderView() {
	const { kind, name } = current();
	const content = VIEWS[kind](view, name)?.flat(3).filter(Boolean);

	replace(document.getElementById("view"), el("p", { class: "back" },
		el("a", { href: "#", "data-key": "back" }, "← the whole fabric")),
	el("h2", { id: "view-title", tabindex: "-1", "data-key": "title" }, name),
	content ?? el("p", { class: "nothing" }, `There is no ${kind} of this name now.`));
	document.title = `${name} · ${view.status.fabric} · weft`;
}

// Charts of what is in sight, where a place for them is.
function renderCharts() {
	for (const node of document.querySelectorAll("[data-history]")) {
		if (node.checkVisibility()) {
			replace(node, ...charts(view, node.dataset.history.split(" "), node.dataset.of, tables,
				() => renderCharts(), node.clientWidth));
		}
	}
}

function draw() {
	const place = current();
	let isNew = refresh(renderHead, view.status);

	if (place.kind === "overview") {
		isNew = false;
		for (const [render, slice] of sections) {
			refresh(render, slice(view));
		}
	} else {
		isNew = refresh(renderView, [place, drawn(view), view.status.jobs, view.state.events,
			schedules?.picture_id]);
	}
	refresh(renderCharts, [place, newestSample(), isNew && Date.now()]);
	document.body.dataset.version = state.version;
}

function derived() {
	return derive({ ...state, schedules: schedules?.schedules });
}

// While the jobs are planned again, as after a change, those before stay on show.
function keepJobs(now, before) {
	if (!now.jobs_known && !now.jobs_problem && before?.fabric === now.fabric) {
		now.jobs = before.jobs;
	}
	return now;
}

function show(answer) {
	const before = state;

	state = { picture: before?.picture ?? null, ...answer };
	keepJobs(state.status, before?.status);
	setNow(state.at);
	view = derived();
	draw();
}

async function ask(path) {
	const answer = await fetch(path, { signal: AbortSignal.timeout(HELD_MS), cache: "no-store" });

	if (!answer.ok) {
		throw new Error(`${path}: ${answer.status}`);
	}
	return answer.json();
}

// What is not in every answer: samples that are new, and the schedules of the
// picture when a job is looked at.
async function askMore() {
	if (state.history !== newestSample() &&
		takeHistory(await ask(`/history.json?after=${newestSample()}`))) {
		draw();
	}
	if (current().kind === "job" && schedules?.picture_id !== state.picture_id) {
		schedules = await ask("/steps.json");
		view = derived();
		draw();
	}
}

// The address is another one: shows that view, and takes the focus there.
function go() {
	const place = current();
	const isDetail = place.kind !== "overview";

	stopPlaying();
	document.getElementById("overview").hidden = isDetail;
	document.getElementById("view").hidden = !isDetail;
	if (!view) {
		return;
	}
	shown.delete(renderHead);
	draw();
	askMore().catch(() => {});
	if (isDetail) {
		window.scrollTo(0, 0);
		document.getElementById("view-title")?.focus({ preventScroll: true });
	} else if (place.section) {
		document.getElementById(place.section)?.scrollIntoView();
	} else {
		window.scrollTo(0, 0);
		document.getElementById("main").focus({ preventScroll: true });
	}
}

function link(kind, text) {
	setBadge(document.getElementById("link"), kind, text);
}

function sleep(ms) {
	return new Promise((done) => setTimeout(done, ms));
}

// One conversation with weftd, from everything on; ends when it is lost.
async function converse(isBack) {
	show(await ask("/state.json"));
	link("good", "live");
	isBack();
	await askMore();
	for (;;) {
		const live = await ask(`/live.json?after=${state.version}`);

		show(live.picture_id === state.picture_id ? live : await ask("/state.json"));
		await askMore();
		await sleep(PACE_MS);
	}
}

async function main() {
	let failed = 0;

	document.body.append(hatches());
	searchable(document.getElementById("search"), document.getElementById("found"), () => view);
	document.querySelector(".skip").addEventListener("click", (e) => {
		e.preventDefault();	// the address says what is looked at
		document.getElementById("main").focus();
	});
	window.addEventListener("hashchange", go);
	go();
	setInterval(tickAges, 1000);
	for (;;) {
		try {
			await converse(() => { failed = 0; });
		} catch {
			const since = new Date().toLocaleTimeString([], { hour12: false });

			if (failed === 0) {
				link("bad", `connection lost at ${since}, trying again`);
			}
			await sleep(RETRY_MS[Math.min(failed++, RETRY_MS.length - 1)]);
		}
	}
}

main();
