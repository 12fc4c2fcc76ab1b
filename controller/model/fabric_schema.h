/* The sections of a fabric file and the numbers of their keys; the manual is
 * tested against the same tables. */
#ifndef WEFT_MODEL_FABRIC_SCHEMA_H
#define WEFT_MODEL_FABRIC_SCHEMA_H

#include "lib/conf/conf.h"

enum { FABRIC_WEFT, FABRIC_NAME, FABRIC_HOSTS, FABRIC_SWITCHES, FABRIC_PANELS,
       FABRIC_RINGS, FABRIC_FIBRES, FABRIC_JOBS, FABRIC_CHANGES, FABRIC_DEAD,
       FABRIC_KEYS };
enum { DEAD_PORT, DEAD_RING, DEAD_NODE, DEAD_SPAN, DEAD_CHANNEL, DEAD_DIRECTION,
       DEAD_FIBRE, DEAD_KEYS };
enum { CHANGES_KEEP, CHANGES_KEEP_PAIR, CHANGES_GATE, CHANGES_BELOW,
       CHANGES_VERIFY, CHANGES_DRAIN,
       CHANGES_EXTERNAL, CHANGES_RESTORE_AFTER,
       CHANGES_KEYS };
enum { HOST_NAME, HOST_PORTS, HOST_RATE, HOST_REACTIVATION,
       HOST_CHANNELS, HOST_NETNS, HOST_LAUNCH, HOST_RECEIVE_MIN, HOST_RECEIVE_MAX,
       HOST_KEYS };
/* What every device has stands first, in the same order. */
enum { DEVICE_NAME, DEVICE_DRIVER, DEVICE_ADDRESS, DEVICE_OPTIONS,
       DEVICE_DOMAIN, DEVICE_TIMEOUT, DEVICE_EXTERNAL, DEVICE_KEYS };
enum { SPACE_SIZE = DEVICE_KEYS, SPACE_PORTS, SPACE_ANY_TO_ANY, SPACE_LOSS,
       SPACE_TIME, SPACE_KEYS };
enum { RING_NODES = DEVICE_KEYS, RING_FIBRES, RING_CHANNELS, RING_RATE,
       RING_RETUNE, RING_CONVERSION, RING_OVERLAP,
       RING_MEMORY, RING_LOSS, RING_KEYS };
enum { LOSS_LAUNCH, LOSS_SENSITIVITY, LOSS_MARGIN, LOSS_ADD, LOSS_DROP,
       LOSS_PASS, LOSS_RINGS, LOSS_SPAN, LOSS_KEYS };
enum { FIBRE_FROM, FIBRE_TO, FIBRE_LOSS, FIBRE_CHANNELS, FIBRE_GAIN,
       FIBRE_KEYS };
enum { JOB_NAME, JOB_NODES, JOB_RING, JOB_COLLECTIVE, JOB_SIZE, JOB_ALGORITHM,
       JOB_TOPOLOGY, JOB_DEPTH, JOB_ALPHA, JOB_CHANNELS, JOB_SEGMENT,
       JOB_KEYS };

extern const struct conf_section section_fabric, section_host, section_switch,
	section_panel, section_ring, section_loss, section_fibre, section_job,
	section_changes, section_dead;

/* All of them, NULL-terminated: for tests of the documentation. */
extern const struct conf_section *const schema_sections[];

#endif
