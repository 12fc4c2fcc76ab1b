/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the room share. */
#ifndef WEFT_RUNTIME_LAUNCH_PRIVATE_H
#define WEFT_RUNTIME_LAUNCH_PRIVATE_H

#include <sys/types.h>

#include "lib/base/buf.h"
#include "lib/base/vec.h"
#include "runtime/launch/launch.h"

/* A command line; words are owned. */
struct launch_command {
	VEC(char *) words;	/* NULL ends */
};

/* mpirun with what o asks for, both programs by their paths. WEFT_EUNAVAIL;
 * launch_command_fini after an error too. O(words). */
int launch_command_make(const struct launch_options *o, struct launch_command *out,
			struct err *err);
void launch_command_fini(struct launch_command *c);

/* A file of PATH that can be run, "/dir/name", or NULL; for free(). */
char *launch_find(const char *name);

/* Waits until the name service has answered for each host of a hostfile, whatever it says.
 * WEFT_EUNAVAIL: it did not in 5 s, for the host that is named; WEFT_ECANCELED. Nothing is asked
 * where an agent starts the processes. */
int launch_resolve(const struct launch_options *o, struct err *err);

/* What a command wrote. */
struct launch_output {
	struct buf out;
	struct buf errors;	/* the last of it */
	int status;		/* of waitpid() */
};

/*
 * Runs a command in a session of its own with input on its standard input, until it
 * ends, or limit and stop of o end it. WEFT_EIO, WEFT_ETIMEOUT, WEFT_ECANCELED,
 * WEFT_ELIMIT (it writes too much); both buffers are for buf_fini in any case.
 */
int launch_process(char *const *argv, const struct launch_options *o, struct launch_output *out,
		   struct err *err);

struct json_t;

/* What the ranks wrote: *result is their result, for json_decref, or NULL and the error that
 * they agreed on; WEFT_EIO for what is neither. O(bytes). */
int launch_read_result(const char *text, size_t len, struct json_t **result, struct err *err);
/* That it has what callers of launch_run go by: wrong_elements, bytes, time_ns and, of each of
 * n_steps, median_ns, worst_ns and a worst_rank below ranks. WEFT_EIO. O(steps). */
int launch_check_result(const struct json_t *result, int ranks, int n_steps, struct err *err);

#endif
