/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The capacity policy as tmpnest.conf(5) and the environment give it: section [store], keys
 * quota, inodes, reserve, user_quota and so on; TMPNEST_STORE_QUOTA and so on win. A value that is
 * wrong is said and passed over: a daemon that does not start would be worse.
 */
#pragma once

#include "capacity.h"

#define TN_CONFIG_FILES 2U

/* Tells whether files have changed. */
typedef struct TnConfigStamp {
	bool known;
	int64_t changed_ns[TN_CONFIG_FILES]; /* 0: no such file */
	uint64_t ino[TN_CONFIG_FILES];
} TnConfigStamp;

/* True when the files (NULL: none) are not as they were; updates the stamp. */
bool tn_config_changed(TnConfigStamp *stamp, const char *const files[TN_CONFIG_FILES]);

/* Adds what one file's text says to *capacity; pure but for the log. */
void tn_capacity_parse(const char *text, const char *name, TnCapacity *capacity);

/* The defaults, then the files, then the environment. */
void tn_capacity_load(const char *const files[TN_CONFIG_FILES], TnCapacity *ret);
