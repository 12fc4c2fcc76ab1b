/*
 * What weftd says, written once for all who show it: the command line, and
 * the page that weftd serves. JSON names are a contract (docs/api.md).
 */
#ifndef WEFT_PROTO_CONVERT_REPORT_H
#define WEFT_PROTO_CONVERT_REPORT_H

#include <stdbool.h>

#include "lib/output/writer.h"
#include "weft/v1/jobs.pb-c.h"
#include "weft/v1/weft.pb-c.h"

/* An enumeration's value for people and programs: the proto name without
 * its prefix, in lower case with dashes, into buf. Returns buf. */
const char *wire_enum(const ProtobufCEnumDescriptor *type, int value,
		      char *buf, int size);
/* Circuits as an array of o. */
void wire_out_circuits(struct out *o, const char *key,
		       Weft__V1__Circuit *const *v, size_t n);
/* ISO time, or null for 0. */
void wire_out_time(struct out *o, const char *key, int64_t wall_ns);
/* A list of texts. */
void wire_out_strings(struct out *o, const char *name, char *const *v,
		      size_t n);
/* "12 s ago", "never" for 0. */
void wire_out_age(struct out *o, const char *key, int64_t at_ns);
/* A duration: key_ns in whole ns for programs, key in three digits for
 * tables. */
void wire_out_ns(struct out *o, enum out_format format, const char *key,
		 int64_t ns);
/* What gets no new light, as an array of o. */
void wire_out_holds(struct out *o, Weft__V1__Hold *const *v, size_t n);
/* A line for each job that hides retuning, in tables. */
void wire_note_hidden(struct out *o, Weft__V1__PlanJob *const *jobs, size_t n);
/* What a job on a ring does without, as it has failed: fields of the job where
 * there are any, and a line for each such job in tables. */
void wire_out_without(struct out *o, const Weft__V1__PlanJob *j);
void wire_note_without(struct out *o, Weft__V1__PlanJob *const *jobs, size_t n);
/* What a job has lost, in a sentence; j->loss is there. */
void wire_loss_text(const Weft__V1__PlanJob *j, char *text, size_t size);
/* The fields of a job that was asked for. */
void wire_out_request(struct out *o, enum out_format format,
		      const Weft__V1__Job *j);

/* ---- hosts.c ---- */

/* Nothing when h is NULL; a table lists only what is wrong, unless full. */
void wire_out_hosts(struct out *o, enum out_format format,
		    const Weft__V1__HostsState *h, bool full);

/* ---- circuits.c ---- */

/* The fields of a device all of whose circuits were asked for. */
/* Times of late, as an object. */
void wire_out_timing(struct out *o, const char *name,
		     const Weft__V1__Timing *t);
void wire_out_device(struct out *o, enum out_format format,
		     const Weft__V1__DeviceState *d);

/* ---- status.c ---- */

/* True when a device that was read is as intended. */
bool wire_is_same(const Weft__V1__DeviceState *d);
/* The fields of a change. */
void wire_out_change(struct out *o, enum out_format format,
		     const Weft__V1__Change *ch);
/* What becomes of light when the device loses its power, as a warning: "forgets
 * its map ..."; NULL: it keeps it, or nobody knows. */
const char *wire_power_loss(const char *power_loss);
/* A line for each device with light that a loss of power would take, in
 * tables. */
void wire_note_power_loss(struct out *o, Weft__V1__DeviceState *const *v,
			  size_t n);
/* Changes by others, as an array of o called key. */
void wire_out_foreign(struct out *o, enum out_format format, const char *key,
		      Weft__V1__ExternalChange *const *v, size_t n);
/* Those of all devices that are still so, in tables; nothing when there are
 * none. Not all of a device, unless full. */
void wire_note_foreign(struct out *o, Weft__V1__DeviceState *const *v, size_t n,
		       bool full);
/* Lines of the audit trail, as an array of o; each with who made its change and
 * what became of that. */
void wire_out_audit(struct out *o, enum out_format format,
		    const Weft__V1__AuditResponse *a);
/* The fields of a whole answer. Tables name no more than a few differences of
 * a device, unless full. */
void wire_out_status(struct out *o, enum out_format format, bool full,
		     const Weft__V1__StatusResponse *s);
void wire_out_diff(struct out *o, enum out_format format, bool full,
		   const Weft__V1__DiffResponse *d);

#endif
