/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tmpnest-bwrap's way from a parsed line to the real bwrap: plan, attach, namespaces,
 * covers, splice, exec. Single-threaded; errors before any side effect where possible.
 */
#pragma once

#include "attach-client.h"
#include "bwrap-args.h"
#include "front-nest.h"
#include "front-options.h"
#include "splice.h"

#include <limits.h>

typedef struct TnFront {
	TnBwrapLine line;
	char **blocks; /* what was read from --args descriptors; the line borrows from it */
	size_t n_blocks;

	TnFrontOptions options;
	char bwrap[PATH_MAX];
	char cwd[PATH_MAX]; /* "" when it has none */
	char host_tmp[PATH_MAX], host_var_tmp[PATH_MAX];
	TnWords covered;
	TnSpliceFacts facts;
	TnSplice splice;
	bool planned;
	TnFrontNest nest;
	TnAttached attached;
	bool is_attached;
	TnMountPoint *points;
	TnMountPointState *states;
} TnFront;

void tn_front_init(TnFront *front);
void tn_front_clear(TnFront *front);

/* TnBwrapLoad with the front as data; closes the descriptor, as bwrap does. */
int tn_front_load(void *data, int fd, const char **ret_block, size_t *ret_size);

/* Starts the sandbox of front->line; argv is the program's own. Returns only on failure, said. */
void tn_front_start(TnFront *front, char **argv);
