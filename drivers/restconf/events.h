/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a switch tells of its own accord, over RESTCONF: by a stream of RFC 8040
 * (server-sent events) if it has one that sends JSON, else by its notification
 * log, which is read every so often. Private to drivers/restconf.
 */
#ifndef WEFT_DRIVERS_RESTCONF_EVENTS_H
#define WEFT_DRIVERS_RESTCONF_EVENTS_H

#include "drivers/core/driver_base.h"
#include "drivers/restconf/http_client.h"

struct restconf_events;

/* Begins to listen every_ms from now. What comes goes to base_event(); `client`
 * is used when no operation is under way, and conf for a connection of the
 * stream's own. All are borrowed. */
struct restconf_events *restconf_events_new(struct driver_base *h, struct http_client *client,
					    const struct http_conf *conf, int64_t every_ms);
/* Ends; cb comes when all is freed. The client must be closed before. */
void restconf_events_close(struct restconf_events *ev, void (*cb)(void *arg), void *arg);

#endif
