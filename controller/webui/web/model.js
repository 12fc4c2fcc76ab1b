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

// Circuits of one device: those of jobs as intended, joined with how the
// device differs.
function links(picture, marks, place, device, status) {
	const missing = new Set((status?.missing ?? []).map(key));
	const pending = new Set((status?.pending ?? []).map(key));
	const port = (i) => (i >= 0 ? picture.ports[i] : "");
	const end = (side, n) => (device[side][n - 1] ?? -1);
	const out = [];

	for (const [at, i, o, tx, rx, job, channel] of picture.circuits ?? []) {
		if (at === place) {
			const c = { in: i, out: o };

			out.push({ ...c, from: port(tx), to: port(rx),
				a: end("in", i), b: end("out", o), channel,
				job: marks.get(picture.jobs[job]?.name),
				state: missing.has(key(c)) ? "missing"
					: pending.has(key(c)) ? "pending" : "as intended" });
		}
	}
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

export function isSame(d) {
	return !d.missing.length && !d.unexpected.length && !d.pending.length &&
		(!d.program || (d.program.equal && !d.program.unlocked));
}

function differences(status) {
	return status.devices.flatMap((d) => [
		...["missing", "unexpected", "pending"].flatMap((what) =>
			d[what].map((c) => ({ device: d.name, what, circuit: c }))),
		...(d.program && d.ever_read && !d.program.equal
			? [{ device: d.name, what: "program", program: d.program }] : []),
	]);
}

// Draws on what was last told; picture may be of an earlier answer.
export function derive(state) {
	const { status, picture } = state;
	const marks = markJobs(state);
	const byName = new Map(status.devices.map((d) => [d.name, d]));
	const devices = (picture?.devices ?? []).map((d, i) => ({
		...d, place: i, status: byName.get(d.name),
		links: d.kind === "ring" ? []
			: links(picture, marks, i, d, byName.get(d.name)),
	}));

	return { state, status, picture, marks, byName, devices,
		host: picture ? hostOfPorts(picture) : null,
		differences: differences(status) };
}
