// SPDX-License-Identifier: Apache-2.0
// Run by grpc_js.sh: MODULES PROTO ADDRESS TEST... One "pass WHAT" line a
// test; what fails ends it. ADDRESS is a socket's path, or HOST:PORT of TLS
// with CERTS/$NAME.{pem,key} as the own certificate, none if NAME is empty.
"use strict";
const assert = require("assert");
const fs = require("fs");
const path = require("path");

const [modules, protos, address, ...tests] = process.argv.slice(2);
const grpc = require(path.join(modules, "@grpc/grpc-js"));
const loader = require(path.join(modules, "@grpc/proto-loader"));

const files = ["weft/v1/weft.proto", "weft/v1/jobs.proto", "grpc/health/v1/health.proto",
	"grpc/reflection/v1/reflection.proto", "grpc/reflection/v1alpha/reflection.proto"];
const definition = loader.loadSync(files, { includeDirs: [protos], keepCase: true,
	longs: Number, enums: String, defaults: true, oneofs: true });
const api = grpc.loadPackageDefinition(definition);
const SERVICES = { Fabric: api.weft.v1.FabricService, Jobs: api.weft.v1.JobsService };
const code = grpc.status;
const called = new Set();

function credentials() {
	if (address.startsWith("/")) {
		return grpc.credentials.createInsecure();
	}
	const read = (name) => fs.readFileSync(path.join(process.env.CERTS, name));
	const own = process.env.NAME;

	return own ? grpc.credentials.createSsl(read("ca.pem"), read(`${own}.key`), read(`${own}.pem`))
		: grpc.credentials.createSsl(read("ca.pem"));
}

function connect(Service) {
	return new Service(address.startsWith("/") ? `unix:${address}` : address, credentials(),
		{ "grpc.use_local_subchannel_pool": 1, "grpc.max_receive_message_length": 1 << 26 });
}

const fabric = connect(SERVICES.Fabric);
const jobs = connect(SERVICES.Jobs);
const config = process.env.FABRIC ? fs.readFileSync(process.env.FABRIC) : Buffer.alloc(0);

function deadline(seconds) {
	return { deadline: Date.now() + 1000 * seconds };
}

// One answer, or all of a stream, as an array; rejects with the error, which
// has the answers before it.
function ask(client, name, request = {}, options = deadline(60)) {
	const method = client[name];

	called.add(method.path);
	if (!method.responseStream) {
		return new Promise((done, fail) => method.call(client, request, options,
			(e, answer) => (e ? fail(e) : done([answer]))));
	}
	return new Promise((done, fail) => {
		const answers = [];
		const call = method.call(client, request, options);

		call.on("data", (a) => answers.push(a));
		call.on("end", () => done(answers));
		call.on("error", (e) => fail(Object.assign(e, { answers })));
	});
}

async function codeOf(promise) {
	try {
		await promise;
		return code.OK;
	} catch (e) {
		assert(e.code !== undefined, e);
		return e.code;
	}
}

// A stream that has told something, and how it ends.
function listen(client, name, request = {}, options = {}) {
	const call = client[name](request, options);
	const seen = [];
	let wake = () => {};

	called.add(client[name].path);
	call.on("data", (a) => { seen.push(a); wake(); });
	return { call, seen,
		ended: new Promise((done) => call.on("status", (s) => done(s.code))),
		async until(found) {
			call.on("error", () => {});
			while (!seen.some(found)) {
				await new Promise((done) => { wake = done; });
			}
		} };
}

function last(events) {
	return events.at(-1).event.result;
}

// ---- tests ----

const TESTS = {
	async changes() {
		const parts = await ask(fabric, "Plan", { config });
		assert(parts[0].summary && parts.some((p) => p.device));
		const watch = listen(fabric, "Watch");
		await watch.until((e) => e.kind === "EVENT_KIND_RESYNC");
		const result = last(await ask(fabric, "Apply", { config, comment: "js",
			confirm_within_ns: 600e9 }));
		assert.strictEqual(result.verdict, "VERDICT_COMMITTED");
		const [confirmed] = await ask(fabric, "Confirm", {});
		assert.strictEqual(confirmed.change, result.change);
		await ask(fabric, "Drain", { target: "h0", reason: "js" });
		await watch.until((e) => e.kind === "EVENT_KIND_DRAINED");
		await ask(fabric, "Undrain", { target: "h0" });
		await ask(fabric, "Freeze", { reason: "js" });
		assert.strictEqual(await codeOf(ask(fabric, "Apply", { config })), code.ABORTED);
		await ask(fabric, "Unfreeze");
		watch.call.cancel();
		assert.strictEqual(await watch.ended, code.CANCELLED);
		assert.strictEqual(last(await ask(fabric, "Rollback", { comment: "js" })).verdict,
			"VERDICT_COMMITTED");
		assert.strictEqual(last(await ask(fabric, "Apply", { config })).verdict,
			"VERDICT_COMMITTED");
		assert.strictEqual(await codeOf(ask(fabric, "Cancel", {})), code.NOT_FOUND);
		// What they do is shown elsewhere; here, that they are called.
		assert.strictEqual(await codeOf(ask(fabric, "SetPort", { device: "no-such-device",
			port: 1 })), code.NOT_FOUND);
		assert.strictEqual(await codeOf(ask(fabric, "Recover", { device: "no-such-device",
			what: "RECOVERY_CLEAR" })), code.NOT_FOUND);
	},

	async questions() {
		const [status] = await ask(fabric, "Status");
		const [diff] = await ask(fabric, "Diff");
		const [verified] = await ask(fabric, "Verify");
		const [history] = await ask(fabric, "History", { limit: 5 });
		assert.strictEqual(status.fabric, "small");
		assert(diff.diff.same && verified.diff.same && verified.diff.complete, verified);
		assert.strictEqual(diff.diff.generation, status.generation);
		assert(history.changes.length > 0 && history.changes.length <= 5);
		const [audit] = await ask(fabric, "Audit", { limit: 3 });
		assert(audit.lines.length === 3 && audit.more && audit.changes.length > 0);
		assert((await ask(fabric, "ExternalChanges")).length === 1);
		const pieces = await ask(fabric, "GetSchedule", { job: "reduce" });
		const bytes = pieces.reduce((n, p) => n + p.data.length, 0);
		assert(bytes > 0 && bytes === pieces[0].total_bytes, bytes);
		const picture = Buffer.concat((await ask(fabric, "GetPicture")).map((p) => p.data));
		assert.strictEqual(JSON.parse(picture).fabric, "small");
		const [log] = await ask(fabric, "Log");
		assert(log.levels.length > 0);
	},

	async requests() {
		const id = `js-${process.pid}`;
		// Every port is taken: it waits, and is given back.
		const asked = await ask(jobs, "RequestJob", { name: "js", nodes: ["h0", "h1"],
			collective: "allreduce", size_bytes: 1 << 20, no_wait: true, request_id: id });
		const again = await ask(jobs, "RequestJob", { name: "js", no_wait: true,
			request_id: id, nodes: ["h0", "h1"], collective: "allreduce",
			size_bytes: 1 << 20 });
		assert.strictEqual(again.at(-1).job.id, asked.at(-1).job.id);
		assert.strictEqual(asked.at(-1).job.name, "js");
		const [list] = await ask(jobs, "ListJobs", { name: "js" });
		assert.strictEqual(list.jobs.length, 1);
		const [renewed] = await ask(jobs, "RenewJob", { name: "js", duration_ns: 1e12 });
		assert.strictEqual(renewed.job.name, "js");
		assert.strictEqual(await codeOf(ask(jobs, "SetLight",
			{ job: "js", collective: "sync" })), code.NOT_FOUND);
		const over = await ask(jobs, "ReleaseJob", { name: "js" });
		assert(["JOB_STATE_ENDED", "JOB_STATE_FAILED"].includes(over.at(-1).job.state), over);
		assert.strictEqual(await codeOf(ask(jobs, "ReleaseJob", { name: "js" })),
			code.NOT_FOUND);
	},

	async health() {
		const health = connect(api.grpc.health.v1.Health);
		const [check] = await ask(health, "Check", { service: "weft.v1.FabricService" });
		assert.strictEqual(check.status, "SERVING");
		assert.strictEqual(await codeOf(ask(health, "Check", { service: "no.such" })),
			code.NOT_FOUND);
		const watch = listen(health, "Watch");
		await watch.until((a) => a.status === "SERVING");
		watch.call.cancel();
		assert.strictEqual(await watch.ended, code.CANCELLED);
	},

	async reflection() {
		for (const version of ["v1", "v1alpha"]) {
			const client = connect(api.grpc.reflection[version].ServerReflection);
			const call = client.ServerReflectionInfo(deadline(30));
			const names = await new Promise((done, fail) => {
				call.on("data", (a) => done(a.list_services_response.service
					.map((s) => s.name)));
				call.on("error", fail);
				call.write({ list_services: "*" });
			});
			const ended = new Promise((done) => call.on("status", (s) => done(s.code)));

			called.add(client.ServerReflectionInfo.path);
			assert(names.includes("weft.v1.FabricService") && names.includes("weft.v1.JobsService"), names);
			call.end();
			assert.strictEqual(await ended, code.OK);
		}
	},

	// After the others: nothing that the interface has was left out.
	async complete() {
		const all = Object.values(definition).filter((s) => !s.format)
			.flatMap((s) => Object.values(s).map((m) => m.path));

		assert(all.length > 20, all);
		assert.deepStrictEqual(all.filter((p) => !called.has(p)), []);
	},

	async errors() {
		const e = await ask(fabric, "Plan", { name: "a b.yaml",
			config: Buffer.from("weft: 1\nfabric: x\nhosts: 7\n") }).catch((x) => x);

		assert.strictEqual(e.code, code.INVALID_ARGUMENT);
		assert(e.details.includes("hosts"), e.details);
		assert.deepStrictEqual(e.metadata.get("weft-error"), ["EINVAL"]);
		assert(e.metadata.get("weft-place")[0].endsWith(":3:8"), e.metadata);
		assert(e.metadata.get("grpc-status-details-bin")[0].length > 0);
		const unknown = await new Promise((done) => connect(grpc.Client).makeUnaryRequest(
			"/weft.v1.FabricService/NoSuch", (x) => x, (x) => x, Buffer.alloc(0), done));
		assert.strictEqual(unknown.code, code.UNIMPLEMENTED);
	},

	async deadlines() {
		assert.strictEqual(await codeOf(ask(fabric, "Watch", {}, deadline(0.3))),
			code.DEADLINE_EXCEEDED);
		assert.strictEqual(await codeOf(ask(fabric, "Status", {}, deadline(-1))),
			code.DEADLINE_EXCEEDED);
		assert.strictEqual(await codeOf(ask(fabric, "Status")), code.OK);
	},

	async cancels() {
		const clients = Array.from({ length: 4 }, () => connect(SERVICES.Fabric));
		const streams = clients.flatMap((c) => Array.from({ length: 50 }, () =>
			listen(c, "Watch")));

		await Promise.all(streams.map((s) => s.until(() => true)));
		streams.forEach((s) => s.call.cancel());
		const ends = await Promise.all(streams.map((s) => s.ended));
		assert(ends.every((e) => e === code.CANCELLED), ends);
		clients.forEach((c) => c.close());
		assert.strictEqual(await codeOf(ask(fabric, "Status")), code.OK);
	},

	async many() {
		const answers = await Promise.all(Array.from({ length: 2000 }, () =>
			ask(fabric, "Status", {}, deadline(120))));

		assert(answers.every(([a]) => a.fabric === "small" && a.devices.length === 2));
	},

	async viewer() {
		await each(async (client, method, looks) => {
			const got = await first(client, method);

			assert.strictEqual(got === code.PERMISSION_DENIED, !looks, `${method}: ${got}`);
		});
	},

	async unknown_client() {
		await each(async (client, method) => {
			assert.strictEqual(await first(client, method), code.PERMISSION_DENIED, method);
		});
	},

	// Without a certificate, or with one of another authority.
	async stranger() {
		await each(async (client, method) => {
			assert.strictEqual(await first(client, method), code.UNAVAILABLE, method);
		});
	},
};

const LOOKING = new Set(["Plan", "Status", "Diff", "Verify", "History", "Audit", "ExternalChanges", "GetSchedule", "GetPicture", "Watch",
	"ListJobs"]);

// The code of a call that is ended at its first answer.
async function first(client, name) {
	const method = client[name];

	if (!method.responseStream) {
		return codeOf(ask(client, name));
	}
	const call = method.call(client, {}, deadline(60));

	return new Promise((done) => {
		call.on("data", () => { done(code.OK); call.cancel(); });
		call.on("error", (e) => done(e.code));
		call.on("end", () => done(code.OK));
	});
}

async function each(check) {
	let refusable = 0;

	for (const [name, client] of [["Fabric", fabric], ["Jobs", jobs]]) {
		for (const method of Object.keys(SERVICES[name].service)) {
			await check(client, method, LOOKING.has(method));
			refusable += !LOOKING.has(method);
		}
	}
	assert(refusable >= 11, refusable);
}

async function main() {
	for (const name of tests) {
		await TESTS[name]();
		console.log(`pass ${name}`);
	}
	process.exit(0);
}

main().catch((e) => {
	console.log(e.stack ?? String(e));
	process.exit(1);
});
