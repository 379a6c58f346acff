/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The `dir` store: a directory on the host's disk. st_blocks cannot be trusted for the
 * charge, since it holds the file system's own metadata (ext4 adds extent blocks late),
 * so allocated pages come from FIEMAP (Documentation/filesystems/fiemap.rst).
 */
#include "quota.h"
#include "store.h"
#include "syscalls.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>

TN_SYSCALLS = {
	{SYS_ioctl, TN_ARG_IS(1, FS_IOC_FIEMAP)},
};

#define EXTENTS_PER_CALL 64

static int64_t pages_by_blocks(const struct stat *st)
{
	return (int64_t)(((uint64_t)st->st_blocks * 512 + TN_PAGE_SIZE - 1) / TN_PAGE_SIZE);
}

/*
 * Adds the pages that the extent touches within [first, end) and that were not counted
 * yet: blocks smaller than a page can put two extents into one.
 */
static uint64_t add_extent(const struct fiemap_extent *extent, uint64_t first, uint64_t end,
			   uint64_t *next_uncounted)
{
	uint64_t from = extent->fe_logical / TN_PAGE_SIZE;
	uint64_t to = (extent->fe_logical + extent->fe_length + TN_PAGE_SIZE - 1) / TN_PAGE_SIZE;

	if (from < first)
		from = first;
	if (from < *next_uncounted)
		from = *next_uncounted;
	if (to > end)
		to = end;
	if (to <= from)
		return 0;
	*next_uncounted = to;
	return to - from;
}

static int64_t count_extents(int fd, uint64_t first, uint64_t end)
{
	union {
		struct fiemap map;
		char space[sizeof(struct fiemap) + EXTENTS_PER_CALL * sizeof(struct fiemap_extent)];
	} u;
	uint64_t start = first * TN_PAGE_SIZE, next_uncounted = first, pages = 0;

	for (;;) {
		const struct fiemap_extent *last = NULL;

		memset(&u.map, 0, sizeof(u.map));
		u.map.fm_start = start;
		u.map.fm_length =
			end == UINT64_MAX ? FIEMAP_MAX_OFFSET - start : end * TN_PAGE_SIZE - start;
		u.map.fm_extent_count = EXTENTS_PER_CALL;
		if (ioctl(fd, FS_IOC_FIEMAP, &u.map) < 0)
			return -errno;
		for (uint32_t i = 0; i < u.map.fm_mapped_extents; i++) {
			last = &u.map.fm_extents[i];
			pages += add_extent(last, first, end, &next_uncounted);
		}
		if (!last || (last->fe_flags & FIEMAP_EXTENT_LAST) ||
		    u.map.fm_mapped_extents < EXTENTS_PER_CALL)
			return (int64_t)pages;
		start = last->fe_logical + last->fe_length;
		if (end != UINT64_MAX && start >= end * TN_PAGE_SIZE)
			return (int64_t)pages;
	}
}

static int64_t dir_pages(int fd, const struct stat *st)
{
	int64_t pages;

	if (st->st_blocks == 0 && st->st_size == 0)
		return 0;
	pages = count_extents(fd, 0, UINT64_MAX);
	/* A store on a file system without extents (a tmpfs, say): its blocks are its pages. */
	return pages == -EOPNOTSUPP || pages == -ENOTTY ? pages_by_blocks(st) : pages;
}

static int64_t dir_pages_in(int fd, uint64_t first, uint64_t count)
{
	int64_t pages = count == 0 ? 0 : count_extents(fd, first, first + count);

	return pages == -ENOTTY ? -EOPNOTSUPP : pages;
}

static uint64_t dir_directory_pages(const struct stat *st)
{
	uint64_t pages = ((uint64_t)st->st_size + TN_PAGE_SIZE - 1) / TN_PAGE_SIZE;

	return pages > 1 ? pages - 1 : 0;
}

const TnStoreOps tn_store_dir_ops = {
	.kind = TN_STORE_DIR,
	.name = "dir",
	.pages = dir_pages,
	.pages_in = dir_pages_in,
	.directory_pages = dir_directory_pages,
	.directories_grow = true,
};
