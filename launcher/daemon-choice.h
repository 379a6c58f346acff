/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which daemon is meant: the system's or the user's, and where it is.
 */
#pragma once

#include "paths.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct TnDaemonChoice {
	bool system, user;       /* --system, --user */
	const char *runtime_dir; /* --runtime-dir, --store-dir, or NULL */
	const char *store_dir;
} TnDaemonChoice;

#define TN_DAEMONS_MAX 2

/*
 * The daemons to try, in this order: with directories chosen (words or environment) only
 * the one that lives there; else the system's, then for a plain user the user's; --system
 * and --user leave only that one. How many, or -errno with one line in why.
 */
int tn_daemon_candidates(const TnDaemonChoice *choice, uid_t uid, TnPaths ret[TN_DAEMONS_MAX],
			 char *why, size_t why_size);

/* May a caller with this uid start that daemon by itself? */
bool tn_daemon_may_start(const TnDaemonChoice *choice, const TnPaths *paths, uid_t uid);
