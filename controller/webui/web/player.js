// SPDX-License-Identifier: Apache-2.0
// A job's schedule played on the fabric: a slider over its steps, and what
// each of them uses drawn as the fabric is drawn.
import { el, percent, plural } from "/dom.js";
import { drawGrid } from "/grid.js";
import { linkTo } from "/route.js";
import { loadsOf, mean, ringPicture } from "/rings.js";
import { switchPicture } from "/switches.js";

const PACE_MS = 900;	// a frame while it plays

const opened = new Set();	// tables that are open
const places = new Map();	// the frame that is shown, by job
let playing = null;		// { job, timer }

export function stopPlaying() {
	clearInterval(playing?.timer);
	playing = null;
}

function bytes(n) {
	const [name, size] = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]].find(([, s]) => n >= s)
		?? ["B", 1];

	return `${Number((n / size).toPrecision(3))} ${name}`;
}

function frameName(schedule, frame) {
	return frame.steps > 1 ? `steps ${frame.first + 1} to ${frame.first + frame.steps} of ${
		schedule.steps}` : `step ${frame.first + 1} of ${schedule.steps}`;
}

function sumRuns(runs, at) {
	return runs.reduce((sum, r) => sum + r[at], 0);
}

// What is in use, in words.
function frameText(view, schedule, frame) {
	const job = view.status.jobs.find((j) => j.name === schedule.name);
	const device = view.devices[schedule.device];

	if (device) {
		const loads = loadsOf({ ...device, lit: frame.lit }).map(mean);

		return `${percent(mean(loads))} of the ring is lit`;
	}
	const all = view.devices.flatMap((d) => d.links).filter((l) => l.job?.name === schedule.name);
	const shard = job ? job.size_bytes / job.nodes : 0;

	return `${sumRuns(frame.lit, 1)} of ${plural(all.length, "circuit")} carry, the fullest ${
		Number(frame.most.toPrecision(3))} of a shard${shard ? ` (${bytes(frame.most * shard)})` : ""}`;
}

// Devices as the frame has them: rings with its light, switches with what their
// circuits carry.
function drawFrame(view, schedule, frame) {
	const ring = view.devices[schedule.device];

	if (ring) {
		const device = { ...ring, lit: frame.lit };

		return el("div", { class: "beside" }, el("article", { class: "card" },
			el("h4", {}, linkTo("device", ring.name)), ringPicture(view, device)),
		el("div", {}, drawGrid(view, device, opened, (share) => (frame.steps > 1
			? `lit ${percent(share)} of these steps` : "lit"))));
	}
	const carry = new Map();

	for (const [first, n, share] of frame.lit) {
		for (let i = first; i < first + n; i++) {
			carry.set(i, share);
		}
	}
	return el("div", { class: "cards compact" }, view.devices
		.filter((d) => d.links.some((l) => l.job?.name === schedule.name))
		.map((d) => {
			const mine = d.links.filter((l) => l.job?.name === schedule.name);

			return el("article", { class: "card" }, el("h4", {}, linkTo("device", d.name)),
				switchPicture(view, { ...d, links: mine, carry }));
		}));
}

// The player of one job's schedule; undefined: not known yet.
export function drawPlayer(view, schedule) {
	if (!schedule || !schedule.frames.length) {
		return [el("p", { class: "nothing" }, schedule ? "It has no steps to show."
			: "Its steps are not known.")];
	}
	const frames = schedule.frames;
	const input = el("input", { type: "range", min: 0, max: frames.length - 1, step: 1,
		"aria-label": "Step of the schedule", "data-key": "step" });
	const name = el("b", { class: "step-name" });
	const text = el("p", { class: "hint", "aria-live": "off" });
	const stage = el("div", { class: "stage" });
	const button = el("button", { type: "button", "data-key": "play" });
	const show = (i) => {
		const frame = frames[i];

		places.set(schedule.name, i);
		input.value = i;
		input.setAttribute("aria-valuetext", frameName(schedule, frame));
		name.textContent = frameName(schedule, frame);
		text.textContent = frameText(view, schedule, frame);
		stage.replaceChildren(...[drawFrame(view, schedule, frame)].flat(2).filter(Boolean));
	};
	const label = () => {
		button.textContent = playing ? "❚❚ pause" : "▶ play";
	};
	const play = () => {
		playing = { job: schedule.name, timer: setInterval(() => {
			show((places.get(schedule.name) + 1) % frames.length);
		}, PACE_MS) };
	};

	if (playing) {
		stopPlaying();
		play();
	}
	input.addEventListener("input", () => show(Number(input.value)));
	button.addEventListener("click", () => {
		if (playing) {
			stopPlaying();
		} else {
			play();
		}
		label();
	});
	label();
	show(Math.min(places.get(schedule.name) ?? 0, frames.length - 1));
	return [el("div", { class: "player" }, button, input, name), text, schedule.whole ? ""
		: el("p", { class: "hint" }, "Too long to be shown whole: its first steps."), stage];
}
