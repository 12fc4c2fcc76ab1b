// Asks weftd for everything, then for what is new, and has it shown.
import { setBadge, setNow, tickAges } from "/dom.js";
import { derive } from "/model.js";
import { hatches } from "/rings.js";
import { renderChange, renderDevices, renderDifferences, renderEvents, renderHead,
	renderJobs, renderPictures } from "/sections.js";

const PACE_MS = 150;		// between two looks
const HELD_MS = 30000;		// weftd answers within 20 s, news or not
const RETRY_MS = [300, 1000, 2000, 4000];

// Each section with what it depends on: drawn again when that has changed.
const sections = [
	[renderHead, (v) => v.status],
	[renderChange, (v) => [v.state.progress, v.status.last_change, v.status.open_change,
		v.status.confirm]],
	[renderPictures, (v) => [v.state.picture_id, v.picture === null, v.status.devices.map((d) =>
		[d.name, d.driver, d.reachable, d.ever_read, d.proof, d.missing, d.unexpected,
			d.pending, d.program?.equal, d.program?.unlocked])]],
	[renderJobs, (v) => [v.status.jobs, v.state.requests]],
	[renderDevices, (v) => v.status.devices],
	[renderDifferences, (v) => v.differences],
	[renderEvents, (v) => v.state.events],
];
const shown = new Map();

let state = null;

function show(answer) {
	state = { picture: state?.picture ?? null, ...answer };
	setNow(state.at);
	const view = derive(state);

	for (const [render, slice] of sections) {
		const now = JSON.stringify(slice(view));

		if (shown.get(render) !== now) {
			render(view);
			shown.set(render, now);
		}
	}
	document.body.dataset.version = state.version;
}

async function ask(path) {
	const answer = await fetch(path, { signal: AbortSignal.timeout(HELD_MS), cache: "no-store" });

	if (!answer.ok) {
		throw new Error(`${path}: ${answer.status}`);
	}
	return answer.json();
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
	for (;;) {
		const live = await ask(`/live.json?after=${state.version}`);

		show(live.picture_id === state.picture_id ? live : await ask("/state.json"));
		await sleep(PACE_MS);
	}
}

async function main() {
	let failed = 0;

	document.body.append(hatches());
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
