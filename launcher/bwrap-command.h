/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bwrap command line of `tmpnest run`. Pure.
 *
 * The host's root is read-only, /dev and /proc are the sandbox's own, the view lies at
 * /tmp and /var/tmp, then come workspaces and binds in the order given. The words of
 * --bwrap-arg follow, so that they win; after them nothing but the covers of the runtime
 * directory, through which the view could be reached past the mounts in it.
 */
#pragma once

#include "cover.h"
#include "run-options.h"
#include "run-plan.h"
#include "words.h"

typedef struct TnBwrapInput {
	const char *bwrap;
	const TnRunOptions *options;
	const TnRunPlan *plan;
	const TnPlace *place;
	bool is_root;         /* payload would keep root's capabilities */
	bool die_with_parent; /* somebody waits for the sandbox */
	int lease;            /* descriptors that bwrap inherits; -1: none */
	int seccomp;
	int status;  /* where bwrap reports how it went, for --report */
	int started; /* where the shim reports that the sandbox stands, likewise */
	int shim;    /* -1: the command is started by bwrap itself */
} TnBwrapInput;

void tn_bwrap_command(const TnBwrapInput *input, TnWords *ret);

/*
 * Where the directory `hidden` shows inside after these mounts, in order: once for each
 * bind of a directory that holds it, unless a later mount lies on top. Into ret.
 */
void tn_shown_at(const TnShown *mounts, size_t n, const char *hidden, TnWords *ret);
