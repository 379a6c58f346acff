/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What operators see of a nest's content: read beneath its store, never through the mount,
 * no link followed, nothing outside reached, nothing changed. The nest may be in use:
 * what comes and goes meanwhile is seen or not.
 *
 * Paths are as a payload writes them: "/tmp/x" (or "/private/tmp/x"), "/var/tmp/x", or "x",
 * which is below /tmp. A component ".." is -EINVAL. Any thread. 0 or a descriptor, or -errno.
 */
#pragma once

#include "nest.h"

#include <stdatomic.h>
#include <sys/stat.h>

/* An O_PATH descriptor of whatever is there, a symbolic link itself. */
int tn_nest_look(TnNest *nest, const char *path);
/* A directory, to be listed. */
int tn_nest_look_dir(TnNest *nest, const char *path);
/* A regular file, to be read. -EISDIR, -ELOOP for a link, -EINVAL for any other kind. */
int tn_nest_look_file(TnNest *nest, const char *path);

/* Bytes and inodes of one thing in a directory, everything below it included. */
typedef struct TnLookUse {
	char *name; /* in the directory; of a file: its path below it */
	uint64_t bytes, inodes;
	mode_t type; /* S_IFMT bits */
} TnLookUse;

typedef struct TnLookUsage {
	uint64_t bytes, inodes; /* of all entries, however many are listed */
	/* Largest first, at most as many as asked for. */
	TnLookUse *entries, *files;
	size_t n_entries, n_files;
	uint64_t entries_seen;
	/* Of the whole nest: unlinked, still in use. */
	uint64_t held_bytes, held_inodes;
	bool complete; /* false: something moved away under the walk and was not counted whole */
} TnLookUsage;

/*
 * Counts what is below the directory at path, by the formula of the charge. most: of each
 * list. Gives up with -ECANCELED soon after *cancel has become true.
 */
int tn_nest_look_usage(TnNest *nest, const char *path, size_t most, const atomic_bool *cancel,
		       TnLookUsage *ret);
void tn_look_usage_clear(TnLookUsage *usage);
