// SPDX-License-Identifier: Apache-2.0
// A ring's wavelengths as lanes: for each direction and job one band along the
// ring, as high as its channels are in use. Readable on any number of hosts;
// the grid of a device's own view (grid.js) has every channel.
import { el, percent, svg } from "/dom.js";
import { faultText, hostName, jobOf, profiles, spans } from "/rings.js";

const H = 24;

function channels(p) {
	return p ? `channels ${p.first_channel}–${p.first_channel + p.channels - 1}` : "";
}

// An outline along the columns; v: 0 to 1.
function area(values) {
	return spans(values).map(([from, to, v]) =>
		(v > 0 ? `M${from} ${H}V${(H * (1 - v)).toFixed(2)}H${to}V${H}Z` : "")).join("");
}

// Of all rows of the direction; a job that may use a part of the channels only is
// drawn against that part.
function lane(view, device, dir, index, values) {
	const job = jobOf(view, index) ?? { name: "?", letter: "?", colour: 7, pattern: 0 };
	const program = device.programs?.find((p) => p.job === index);
	const part = program ? program.channels / device.channels : 1;
	const mine = values.map((v) => Math.min(1, v / part));
	const lit = mine.reduce((a, b) => a + b, 0) / mine.length;
	const cuts = device.faults.filter((f) => f[1] === dir || f[0] === 3);

	return el("li", { class: "lane" },
		el("span", { class: "lane-name" }, el("span", { class: "way" }, dir ? "↺" : "↻",
			el("span", { class: "hidden" }, dir ? "counter-clockwise" : "clockwise")),
		el("span", { class: `mark c${job.colour}`, "aria-hidden": "true" }, job.letter),
		el("span", {}, job.name, el("small", {}, ` ${channels(program)}`))),
		svg("svg", { viewBox: `0 0 ${device.columns} ${H}`, preserveAspectRatio: "none",
			"aria-hidden": "true", class: `c${job.colour}` },
		svg("rect", { class: "ground", width: device.columns, height: H }),
		svg("path", { class: "fill", d: area(mine) }),
		cuts.map((f) => svg("rect", { class: "cut", x: f[3] / device.segment_size, y: 0,
			width: 1 / device.segment_size, height: H }))),
		el("b", { class: "number" }, percent(lit)),
		cuts.length ? el("span", { class: "badge bad lane-cut" }, `✕ ${
			faultText(view, device, cuts[0])}${cuts.length > 1 ? `, and ${
			cuts.length - 1} more` : ""}`) : "");
}

function axis(view, device) {
	const n = device.members.length;

	return el("p", { class: "lane axis", "aria-hidden": "true" }, el("span", {}),
		el("span", { class: "ends" }, [0, 0.5, 1].map((at) =>
			el("span", {}, hostName(view, device, Math.floor(n * at))))), el("span", {}));
}

export function drawLanes(view, device) {
	const by = profiles(device);

	return [el("ul", { class: "lanes", "aria-label": `${device.name}: channels in use along the ring` },
		by.flatMap((jobs, dir) => [...jobs].map(([index, values]) =>
			lane(view, device, dir, index, values)))),
	axis(view, device),
	device.whole === false ? el("p", { class: "hint" }, "The first steps of its programs only.")
		: ""];
}
