/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stores on a tmpfs: `memory`, one that is mounted nowhere, of which only the daemon has a
 * descriptor, and a `dir` store that somebody has put on one. st_blocks of a tmpfs file are
 * exactly its pages, preallocated ones included; its directories use none.
 */
#include "quota.h"
#include "store.h"
#include "syscalls.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static int64_t memory_pages(int fd, const struct stat *st)
{
	(void)fd;
	return (int64_t)((uint64_t)st->st_blocks * 512 / TN_PAGE_SIZE);
}

/* linux/mman.h has these since Linux 6.5. */
typedef struct CacheRange {
	uint64_t offset, length;
} CacheRange;

typedef struct CacheCounts {
	uint64_t present, dirty, writeback, evicted, recently_evicted;
} CacheCounts;

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

TN_SYSCALLS = {
	{SYS_cachestat},
};

/*
 * A tmpfs file's pages are its page cache, and those swapped out count as evicted, so
 * cachestat(2) sees exactly what is charged. SEEK_DATA would not do: to it a page that was
 * preallocated and never written is a hole.
 */
static int64_t memory_pages_in(int fd, uint64_t first, uint64_t count)
{
	CacheRange range = {first * TN_PAGE_SIZE, count * TN_PAGE_SIZE};
	CacheCounts counts;

	if (count == 0)
		return 0; /* a length of 0 would mean the whole file */
	if (syscall(SYS_cachestat, fd, &range, &counts, 0) < 0)
		return errno == ENOSYS || errno == EPERM ? -EOPNOTSUPP : -errno;
	return (int64_t)(counts.present + counts.evicted);
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

const TnStoreOps tn_store_dir_on_tmpfs_ops = {
	.kind = TN_STORE_DIR,
	.name = "dir",
	.pages = memory_pages,
	.pages_in = memory_pages_in,
	.directory_pages = memory_directory_pages,
	.directories_grow = false,
};
