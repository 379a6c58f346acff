/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * /proc/self/mountinfo, and where else a directory shows. Pure: works on its text.
 */
#pragma once

#include "words.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TnMountEntry {
	uint64_t id;           /* as statx(2) says with STATX_MNT_ID */
	uint32_t major, minor; /* of the file system */
	char *root;            /* the directory of the file system that is mounted, decoded */
	char *point;           /* where, decoded */
} TnMountEntry;

typedef struct TnMountTable {
	TnMountEntry *entries;
	size_t n;
} TnMountTable;

/*
 * Reads the whole text (it is changed on the way). 0, or -EINVAL when a line is not of the
 * form that proc(5) gives: who cannot read the table cannot say what a directory's other
 * names are. *ret is to be cleared either way.
 */
int tn_mountinfo_parse(char *text, TnMountTable *ret);
void tn_mount_table_clear(TnMountTable *table);

/*
 * The other paths at which the directory `path`, found through mount `id`, may show: each
 * mount of the same file system whose root is the directory, lies above it (the path below
 * its point) or below it (its point). Candidates only: other mounts may lie on top. False
 * when the mount is not in the table or a path does not fit.
 */
bool tn_mount_aliases(const TnMountTable *table, uint64_t id, const char *path, TnWords *ret);
