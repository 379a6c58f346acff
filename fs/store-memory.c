/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The `memory` store: a tmpfs that is mounted nowhere; only the daemon has a descriptor
 * of it. st_blocks of a tmpfs file are exactly its pages, preallocated ones included; its
 * directories use none.
 */
#include "quota.h"
#include "store.h"

#include <errno.h>

static int64_t memory_pages(int fd, const struct stat *st)
{
	(void)fd;
	return (int64_t)((uint64_t)st->st_blocks * 512 / TN_PAGE_SIZE);
}

static int64_t memory_pages_in(int fd, uint64_t first, uint64_t count)
{
	(void)fd;
	(void)first;
	(void)count;
	/* SEEK_DATA does not see preallocated pages that were never written. */
	return -EOPNOTSUPP;
}

static uint64_t memory_directory_pages(const struct stat *st)
{
	(void)st;
	return 0;
}

const TnStoreOps tn_store_memory_ops = {
	.kind = TN_STORE_MEMORY,
	.name = "memory",
	.pages = memory_pages,
	.pages_in = memory_pages_in,
	.directory_pages = memory_directory_pages,
	.directories_grow = false,
};
