/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of weft.v1 for people and programs, written once for all who show
 * them: the command line, and the page that weftd serves. Names in JSON are a
 * contract: those of the fields in proto/weft/v1 (printer.c has the rules,
 * docs/api.md tells users).
 */
#ifndef WEFT_PROTO_CONVERT_REPORT_H
#define WEFT_PROTO_CONVERT_REPORT_H

#include <stdbool.h>

#include "lib/output/writer.h"
#include "weft/v1/jobs.pb-c.h"
#include "weft/v1/weft.pb-c.h"

/* ---- any message (printer.c) ---- */

/* A value of an enumeration by name: that of the .proto file without the
 * type's name before it, in lower case with dashes ("read-back"); a number
 * that is not known as it is. Into buf; returns buf. */
const char *msg_enum(const ProtobufCEnumDescriptor *type, int value, char *buf, int size);

/* A moment as ISO time, or null for 0. */
void msg_out_time(struct out *o, const char *key, int64_t at_ns);

/* All fields of message m into the open object of o, but for bytes and the
 * field `except` (NULL: none). */
void msg_out_fields(struct out *o, const void *m, const char *except);

/* n messages as an array of o. */
void msg_out_list(struct out *o, const char *key, void *const *v, size_t n);

/* A column of a table: a field, also of a message in the message
 * ("signal.loss_mdb"), or what `text` appends to b. A column has one of the
 * two. */
struct msg_column {
	const char *title;	/* NULL ends a list of columns */
	const char *field;
	void (*text)(const void *m, struct buf *b);
};

/* n messages as rows of these columns: figures with their units, lists as
 * their lengths, "-" for what is not known. */
void msg_out_table(struct out *o, const char *title, const struct msg_column *columns,
		   void *const *v, size_t n);
/* One of them, into the open array of o. */
void msg_out_row(struct out *o, const struct msg_column *columns, const void *m);

/* ---- what weftd knows (report.c) ---- */

/* Tables name no more than the first differences of a device, unless full. */
void msg_out_status(struct out *o, enum out_format format, bool full,
		    const Weft__V1__StatusResponse *s);
void msg_out_diff(struct out *o, enum out_format format, bool full,
		  const Weft__V1__Diff *d);
/* A device all of whose circuits were asked for: for people its own fields,
 * external changes and a table of circuits with their insertion loss. */
void msg_out_device(struct out *o, enum out_format format, const Weft__V1__DeviceState *d);
/* "1.5 ms before, 1 ms after, an outage of 20 ms, paid back after 40 collectives of
 * 1MB": appended to b. */
void msg_gain_text(const Weft__V1__JobGain *g, struct buf *b);
/* A note of each job that does not stay as it is. */
void msg_note_gains(struct out *o, Weft__V1__JobGain *const *v, size_t n);
/* A note of each job that a change was to change, begin or end. */
void msg_note_change(struct out *o, const Weft__V1__Change *c);
/* The lines of an audit trail, each with who made its change, and what became
 * of that. */
void msg_out_audit(struct out *o, enum out_format format, const Weft__V1__AuditResponse *a);
/* n changes as an array under key, for people with the time in which each
 * happened. */
void msg_out_external_changes(struct out *o, enum out_format format, const char *key,
			      Weft__V1__ExternalChange *const *v, size_t n);
/* Jobs of a plan, as the array "jobs". */
void msg_out_planned_jobs(struct out *o, enum out_format format, Weft__V1__PlanJob *const *jobs,
			  size_t n);
/* Jobs that orchestrators asked for, as the array "jobs". */
void msg_out_requests(struct out *o, enum out_format format, Weft__V1__Job *const *v, size_t n);

/* The fields of an event; the verdict only when a change has ended. */
void msg_out_event(struct out *o, const Weft__V1__WatchResponse *ev);

/* Columns of Change and of Hold. */
/* The table of a job's step, with what it is near to. step.c */
void msg_out_step(struct out *o, const Weft__V1__PlanJob *j);

extern const struct msg_column msg_change_columns[], msg_hold_columns[];

/* True when a device that was read is as intended. */
bool msg_is_as_intended(const Weft__V1__DeviceState *d);
/* What becomes of circuits when a device loses power, as a warning: "forgets
 * its map ..."; NULL: it keeps them, or it is not known. */
const char *msg_power_loss_text(const char *power_loss);

/* What is to be said of a device; "": nothing. */
struct msg_saying {
	const char *name;
	char text[128];
};

/* Whether v[i] is the first of the n of which its text is said; then names holds all of
 * these, as a fabric file would write them: "ocs[0-3],panel: each". O(n). */
bool msg_alike(const struct msg_saying *v, size_t n, size_t i, struct buf *names);

/* What a job has lost, in a sentence; j->degradation is there. */
void msg_degradation_text(const Weft__V1__PlanJob *j, char *text, size_t size);
/* What a ring's job does without, likewise; j->failed_parts are there. */
void msg_without_text(const Weft__V1__PlanJob *j, char *text, size_t size);

#endif
