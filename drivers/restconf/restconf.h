/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading what Polatis switches answer over RESTCONF: JSON of the YANG modules
 * optical-switch and system-config. Every function takes one body, trusts
 * nothing, and says WEFT_EDEVICE with what it expected and what came. Private
 * to drivers and emulators.
 *
 * Forms that public clients of these switches take, and that are taken here:
 * names with the module's prefix ("optical-switch:cross-connects",
 * PublicQuantumNetwork/pqn-stack) and without (quintons/polatis2); either, and
 * a list in its container or alone (alexandret01/UFABC_REDES); a list of one as
 * an object, and no content in place of an empty list (pqn-stack); `pairs` for
 * `pair` (ONOS' NETCONF driver, revisions to 2017-08-04). Numbers may be
 * strings: RFC 7951 has decimal64 so, and these clients convert what they read.
 */
#ifndef WEFT_DRIVERS_RESTCONF_RESTCONF_H
#define WEFT_DRIVERS_RESTCONF_RESTCONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

/* Highest port number on the wire; ports start at 1. */
#define RESTCONF_MAX_PORT 8192
/* All ports' settings, with room to spare. */
#define RESTCONF_MAX_BODY (4 << 20)

/* Where things are, below the address. Those without a module's prefix are as
 * the only known client has them (quintons/polatis2). */
#define RESTCONF_DATA "/api/data/"
#define RESTCONF_PRODUCT RESTCONF_DATA "optical-switch:product-information"
#define RESTCONF_CIRCUITS RESTCONF_DATA "optical-switch:cross-connects"
#define RESTCONF_PORTS RESTCONF_DATA "optical-switch:port-config"
#define RESTCONF_POWERS RESTCONF_DATA "optical-switch:opm-power"
#define RESTCONF_STARTUP RESTCONF_DATA "system-config/startup-mode"
#define RESTCONF_BOOT RESTCONF_DATA "system-config/boot-datetime"
#define RESTCONF_LOG RESTCONF_DATA "notification-log/log"
#define RESTCONF_PORT_STATE "/api/operations/optical-switch:port-set-state"
/* RFC 8040, 9.3; not seen from these switches. */
#define RESTCONF_STREAMS RESTCONF_DATA "ietf-restconf-monitoring:restconf-state/streams"
#define RESTCONF_JSON "application/yang-data+json"

struct restconf_pair {
	int32_t ingress, egress;	/* device numbers, from 1 */
};

/* The circuits; *pairs is the caller's. An empty body is none. */
int restconf_parse_pairs(const char *body, struct restconf_pair **pairs, int *n, struct err *err);

/* "Polatis,N-VST-512x512-LA1-DMHNV-701,2000,6.7.3.9": maker, model, serial
 * number and software, as the SCPI dialect has it. line holds size bytes; what
 * is not printable becomes a question mark. */
int restconf_parse_product(const char *body, char *line, size_t size, struct err *err);

enum restconf_status { RESTCONF_ENABLED, RESTCONF_DISABLED, RESTCONF_FAILED };

/* What a port's entry says: calls fn for each one that has it. A port that
 * the switch does not support has failed. fn returns 0, or an error that ends
 * the walk. */
int restconf_parse_states(const char *body,
			  int (*fn)(int32_t port, enum restconf_status s, void *arg,
				    struct err *err),
			  void *arg, struct err *err);
/* The same for powers, in milli-dBm; ports without one are passed over. */
int restconf_parse_powers(const char *body,
			  int (*fn)(int32_t port, int32_t mdbm, void *arg, struct err *err),
			  void *arg, struct err *err);

/* A text by this name: {"optical-switch:startup-mode": "MODE_PRESERVE"}. text
 * holds size bytes. */
int restconf_parse_text(const char *body, const char *name, char *text, size_t size,
			struct err *err);

/* Of an answer that is an error: its tag ("data-missing"), or "", and in words
 * what it says. Both of RFC 8040's form of errors, and of any other text, whose
 * first line is taken; "" when there is none. */
void restconf_parse_error(const char *body, char *tag, size_t tag_size, char *text, size_t size);

/* Something that the switch tells of its own accord. Only the forms of RFC 8040
 * and the names of the notifications (the module's) are known: of what is in
 * them, only `port-id`. */
struct restconf_note {
	int64_t id;		/* of the log; 0: it has none */
	int32_t port;		/* 0: it is about none */
	bool alarm;		/* a port, or the switch, is not well */
	bool change;		/* another user may have changed something */
	char text[256];
};

/* One notification, as it comes over a stream. */
int restconf_parse_note(const char *body, struct restconf_note *note, struct err *err);

/* The log's entries in their order, from after_id on. *last is the highest
 * number in it, 0 without any. */
int restconf_parse_log(const char *body, int64_t after_id,
		       void (*fn)(const struct restconf_note *note, void *arg), void *arg,
		       int64_t *last, struct err *err);

/* The path of the first stream that sends JSON, of the device's answer at
 * RESTCONF_STREAMS. False: it has none. */
bool restconf_parse_stream(const char *body, char *path, size_t size);

#endif
