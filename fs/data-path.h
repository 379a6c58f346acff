/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the bytes of a nest's files get to its store: through the worker (mediated), or, once a
 * file is open, through the kernel alone (passthrough, Linux 6.9: include/uapi/linux/fuse.h,
 * FUSE_PASSTHROUGH). Decided when a nest is made, and once more when the kernel says what it
 * can; what speaks against passthrough is what operators are told.
 */
#pragma once

#include <stdbool.h>

typedef enum TnDataPath {
	/* mediated, because: */
	TN_PATH_OFF = 0,   /* it was switched off */
	TN_PATH_STORE,     /* its store has no limit that the kernel keeps */
	TN_PATH_USER,      /* a user's daemon has no right to it */
	TN_PATH_NO_RIGHT,  /* nor has this one */
	TN_PATH_RULES,     /* read-only rules */
	TN_PATH_WRITEBACK, /* the nest was asked to write back */
	TN_PATH_KERNEL,    /* the kernel does not offer it */
	TN_PATH_PASSTHROUGH,
} TnDataPath;

/* What TMPNEST_PASSTHROUGH says. */
typedef enum TnHidePassthrough {
	TN_HIDE_NOTHING,
	TN_HIDE_ALL,    /* not set, or "0": no nest gets it */
	TN_HIDE_KERNEL, /* "kernel": as if the kernel did not offer it, for tests */
} TnHidePassthrough;

TnHidePassthrough tn_hide_passthrough(const char *value); /* takes NULL */

/* The best path that this process, as a keeper with its capabilities, can give. */
TnDataPath tn_data_path_of_daemon(TnHidePassthrough hide);

/* Why a nest has it: for `show`; static. "" for passthrough. */
const char *tn_data_path_reason(TnDataPath path);
