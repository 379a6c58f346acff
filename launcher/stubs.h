/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stub keeper for the rest of tmpnest: the verb `tmpnest stubs`, and what the front
 * does for each sandbox before bwrap starts. What stubs are for: docs/stubs.md.
 */
#pragma once

#include "stub-hold.h"

/* The program tmpnest-stubs: argv[1] is the verb. Returns the exit status. */
int tn_stubs_main(int argc, char **argv);

/* A path that the command line of bwrap masks. */
typedef struct TnStubMask {
	const char *path; /* on the host, absolute */
	bool as_dir;      /* its source is a directory; false also when that is not known */
	bool vanished;    /* bound onto itself, and gone since it was planned */
} TnStubMask;

typedef struct TnStubLaunch {
	const char *ledger_path; /* NULL: the default */
	const char *runtime_dir; /* where stubs of unknown names are recorded */
	const char *lease;       /* FIFO whose writers are the sandbox; NULL: it has none */
	const char *reaper;      /* program tmpnest-stubs; NULL: start none */
	TnStubNote note;         /* may be NULL; what is skipped or wrong is told here */
	void *note_data;
} TnStubLaunch;

/*
 * Holds filled stubs for masks until the sandbox has ended, and starts the reaper that removes
 * them then. Call it before bwrap starts, with the write end of the lease open. What cannot be
 * made is skipped. 0, or -errno: nothing is held then, and bwrap has to manage as it would without.
 */
int tn_stubs_hold_for_launch(const TnStubLaunch *launch, const TnStubMask *masks, size_t n_masks);

/*
 * Starts the reaper for a ledger unless one runs. Forks twice, so that it is no child of the
 * caller. runtime_dir may be NULL. 0 or -errno.
 */
int tn_stubs_start_reaper(const char *program, const char *ledger_path, const char *runtime_dir);

/* Removes what ended sandboxes left until none is left, then returns 0; -errno. */
int tn_stubs_reap(const TnStubsOptions *options);
