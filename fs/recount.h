/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts a store by the formula of the charge (store.h), from the store alone. Any thread.
 * Names must not go or move meanwhile. 0 or -errno.
 */
#pragma once

#include "store.h"

typedef struct TnUsage {
	uint64_t bytes, inodes;
	uint64_t xattr_bytes; /* of bytes: for extended attributes */
} TnUsage;

/* data/ without its two subtree roots, and orphans/; adds to *usage. */
int tn_recount_store(const TnStore *store, TnUsage *usage);

/* One unlinked inode that a descriptor holds (O_PATH, or a directory's). */
int tn_recount_held(const TnStore *store, int fd, TnUsage *usage);
