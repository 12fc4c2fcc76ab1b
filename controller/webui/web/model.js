// SPDX-License-Identifier: Apache-2.0
// What the pictures and tables need, worked out once from what weftd tells.
export const TRUNK = -2;

// A, B, ... Z, AA, ...
function letters(i) {
	return (i >= 26 ? letters(Math.floor(i / 26) - 1) : "") +
		String.fromCharCode(65 + i % 26);
}

// A colour, a dash and a hatching that differ among neighbours, and a letter.
function mark(name, i) {
	return { name, letter: letters(i), colour: i % 8,
		pattern: (i + Math.floor(i / 8)) % 8 };
}

function markJobs(state) {
	const names = [...(state.picture?.jobs ?? []), ...state.status.jobs]
		.map((j) => j.name);

	return new Map([...new Set(names)].map((name, i) => [name, mark(name, i)]));
}

function key(c) {
	return `${c.in}:${c.out}`;
}

// What is wrong with intended circuits, by their ports.
function states(status) {
	return new Map(["dark", "missing", "pending"].flatMap((state) =>
		(status?.[state] ?? []).map((c) => [key(c), state])));
}

// Circuits of one device: those of jobs as intended, joined with how the
// device differs. index: in the picture's list.
function links(picture, marks, place, device, status) {
	const wrong = states(status);
	const port = (i) => (i >= 0 ? picture.ports[i] : "");
	const end = (side, n) => (device[side][n - 1] ?? -1);
	const out = [];

	(picture.circuits ?? []).forEach(([at, i, o, tx, rx, job, channel], index) => {
		if (at === place) {
			const c = { in: i, out: o };

			out.push({ ...c, index, from: port(tx), to: port(rx),
				a: end("in", i), b: end("out", o), tx, rx, channel,
				job: marks.get(picture.jobs[job]?.name),
				state: wrong.get(key(c)) ?? "as intended" });
		}
	});
	for (const c of status?.unexpected ?? []) {
		out.push({ in: c.in, out: c.out, from: c.from, to: c.to, owner: c.owner,
			a: end("in", c.in), b: end("out", c.out), state: "unexpected" });
	}
	return out;
}

function hostOfPorts(picture) {
	const host = new Int32Array(picture.ports.length);

	picture.hosts.forEach(([, first, n], i) => host.fill(i, first, first + n));
	return host;
}

// Ports that a device has out of use, as { side, port, why }; of "port 3" either side.
export function badPorts(d) {
	return [...d?.unusable ?? [], ...(d?.marked_dead ?? []).map((p) => `${p} marked as dead`)]
		.map((text) => text.match(/^(in|out|port) (\d+) (.+)$/))
		.filter(Boolean).map(([, side, port, why]) => ({ side, port: Number(port), why }));
}

// What of a device is drained: itself, or ports, as they are named.
export function drained(view, name) {
	return (view.status.holds ?? []).filter(({ target: t }) => t === name || t.startsWith(`${name}.`));
}

// Draws on what was last told; picture may be of an earlier answer.
export function derive(state) {
	const { status, picture } = state;
	const marks = markJobs(state);
	const byName = new Map(status.devices.map((d) => [d.name, d]));
	const devices = (picture?.devices ?? []).map((d, i) => ({
		...d, place: i, status: byName.get(d.name),
		faults: (state.faults ?? []).filter((f) => f[0] === d.name).map((f) => f.slice(1)),
		links: d.kind === "ring" ? []
			: links(picture, marks, i, d, byName.get(d.name)),
	}));

	return { state, status, picture, marks, byName, devices,
		host: picture ? hostOfPorts(picture) : null, problems: status.problems };
}
