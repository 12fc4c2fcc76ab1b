/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of the text of a store. Who leads is not among them: that is a fact about
 * running processes. A name is never given another meaning; what is added later is left
 * out by a reader of an older form.
 */
#include <stddef.h>

#include "controller/store/portable.h"

#define T PORTABLE_TEXT
#define B PORTABLE_BYTES
#define N PORTABLE_NUMBER
#define C PORTABLE_COUNT

#define CIRCUIT { "device", T }, { "in_port", N }, { "out_port", N }

const struct portable_table portable_tables[] = {
	{ "state", "state", "uuid",
	  { { "uuid", T }, { "generation", C }, { "fence", C }, { "applied", C } } },
	{ "configurations", "config", "hash", { { "hash", T }, { "text", B } } },
	{ "programs", "program", "digest", { { "digest", B }, { "data", B } } },
	{ "changes", "change", "id",
	  { { "id", C }, { "generation", C }, { "started_ns", C }, { "ended_ns", C }, { "who", T },
	    { "comment", T }, { "config_name", T }, { "config", T }, { "verdict", T },
	    { "undoing", N }, { "summary", T }, { "superseded_by", C }, { "request", T },
	    { "arguments", T }, { "confirm_within_ns", C }, { "proof", N }, { "trace", T },
	    { "expected_down_ns", C }, { "down_ns", C }, { "downtime_source", N },
	    { "topologies", T }, { "empties", T } } },
	{ "change_jobs", "change_job", "change, seq",
	  { { "change", C }, { "seq", N }, { "name", T }, { "nodes", T }, { "collective", T },
	    { "topology", T }, { "algorithm", T }, { "ring", T }, { "size_bytes", C },
	    { "channels", N }, { "ports", T }, { "circuits", T } } },
	{ "change_gains", "change_gain", "change, seq",
	  { { "change", C }, { "seq", N }, { "job", T }, { "effect", T }, { "size_bytes", C },
	    { "before_ns", C }, { "before_whole_ns", C }, { "after_ns", C },
	    { "after_whole_ns", C }, { "down_ns", C } } },
	{ "confirming", "confirm", "change",
	  { { "change", C }, { "by_ns", C }, { "back_to", C } } },
	{ "journal_devices", "journal_device", "change, seq",
	  { { "change", C }, { "seq", N }, { "device", T }, { "is_ring", N },
	    { "old_program", B }, { "new_program", B } } },
	{ "journal_steps", "journal_step", "change, device_seq, seq",
	  { { "change", C }, { "device_seq", N }, { "seq", N }, { "op", T }, { "in_port", N },
	    { "out_port", N }, { "state", T }, { "note", T }, { "proof", N } } },
	{ "intent_devices", "intent_device", "device", { { "device", T }, { "program", B } } },
	{ "intent_circuits", "intent_circuit", "device, in_port, out_port",
	  { CIRCUIT, { "proof", N } } },
	{ "observed_devices", "observed_device", "device",
	  { { "device", T }, { "read_at_ns", C }, { "epoch", T }, { "identity", T },
	    { "program_digest", B } } },
	{ "observed_circuits", "observed_circuit", "device, in_port, out_port", { CIRCUIT } },
	{ "circuit_losses", "circuit_loss", "device, in_port, out_port",
	  { CIRCUIT, { "mdb", N } } },
	{ "timings", "timing", "kind, name, seq",
	  { { "kind", T }, { "name", T }, { "seq", N }, { "ns", C } } },
	{ "drains", "drain", "what",
	  { { "what", T }, { "who", T }, { "reason", T }, { "since_ns", C } } },
	{ "repairs", "repair", "device, in_port, out_port",
	  { CIRCUIT, { "change", C }, { "since_ns", C }, { "why", T }, { "layer", N } } },
	{ "jobs", "job", "id",
	  { { "id", C }, { "name", T }, { "who", T }, { "request", T }, { "spec", T },
	    { "nodes", T }, { "state", T }, { "problem", T }, { "priority", N },
	    { "preemptible", N }, { "duration_ns", C }, { "asked_ns", C }, { "started_ns", C },
	    { "ended_ns", C }, { "repairs", N }, { "repair_ns", C }, { "told_ns", C },
	    { "preempt_ns", C } } },
	{ "external_changes", "external_change", "id",
	  { { "id", C }, CIRCUIT, { "kind", T }, { "right_ns", C }, { "noticed_ns", C },
	    { "how", T }, { "who", T }, { "outcome", T }, { "resolved_ns", C }, { "change", C },
	    { "given_up", N } } },
	{ "audit", "audit", "id",
	  { { "id", C }, { "at_ns", C }, { "change", C }, { "device", T }, { "kind", T },
	    { "text", T } } },
	/* The last ids that were given, so that none is given twice; after their rows. */
	{ "last_ids", "sqlite_sequence", "name", { { "name", T }, { "seq", C } } },
	{ NULL, NULL, NULL, { { NULL, T } } },
};
