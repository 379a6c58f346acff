/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recount.h"

#include "macros.h"
#include "quota.h"
#include "sys.h"
#include "tree-walk.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>

typedef struct Recount {
	const TnStore *store;
	TnUsage *usage;
	void *linked; /* tsearch(3) tree of inode numbers with several names */
} Recount;

static int compare_inodes(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return x < y ? -1 : x > y;
}

static void keep_inode(void *ino)
{
	(void)ino; /* the tree's keys are numbers, not pointers */
}

static int add_usage(const TnStore *store, int fd, const struct stat *st, TnUsage *usage)
{
	bool has_xattrs;
	int64_t bytes, xattrs;

	if (store->kernel_counts) {
		usage->bytes += (uint64_t)st->st_blocks * 512;
		usage->inodes++;
		return 0;
	}
	has_xattrs = S_ISREG(st->st_mode) || S_ISDIR(st->st_mode);
	bytes = tn_store_charge(store, fd, st, false);
	xattrs = bytes >= 0 && has_xattrs ? tn_store_xattr_bytes(fd) : 0;

	if (bytes < 0 || xattrs < 0)
		return (int)(bytes < 0 ? bytes : xattrs);
	usage->bytes += (uint64_t)bytes + (uint64_t)xattrs;
	usage->xattr_bytes += (uint64_t)xattrs;
	usage->inodes++;
	return 0;
}

/* True when the inode was met under another name already. */
static int seen_before(Recount *recount, const struct stat *st, bool *ret)
{
	void *key = (void *)(uintptr_t)st->st_ino;

	*ret = false;
	if (S_ISDIR(st->st_mode) || st->st_nlink < 2)
		return 0;
	if (tfind(key, &recount->linked, compare_inodes)) {
		*ret = true;
		return 0;
	}
	return tsearch(key, &recount->linked, compare_inodes) ? 0 : -ENOMEM;
}

static int count_entry(const TnTreeEntry *entry, void *data)
{
	Recount *recount = data;
	const struct stat *st = entry->stat;
	TN_AUTOFD fd = -1;
	bool seen;
	int r = seen_before(recount, st, &seen);

	if (r < 0 || seen)
		return r;
	if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)) {
		fd = tn_open_beneath(entry->dir, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
				     0);
		if (fd < 0)
			return fd;
	}
	return add_usage(recount->store, fd, st, recount->usage);
}

static int recount_tree(const TnStore *store, int dir, TnUsage *usage)
{
	Recount recount = {.store = store, .usage = usage};
	bool complete = true;
	int r = tn_tree_walk(dir, count_entry, &recount, &complete);

	tdestroy(recount.linked, keep_inode);
	return r == 0 && !complete ? -ESTALE : r;
}

/* The subtree's own directory costs no inode, but its growth and attributes count. */
static int recount_root(const TnStore *store, int parent, const char *name, TnUsage *usage)
{
	TN_AUTOFD fd = tn_open_beneath(parent, name, O_RDONLY | O_DIRECTORY, 0);
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	r = add_usage(store, fd, &st, usage);
	usage->inodes--;
	/* The first block of each was there before the nest was used. */
	if (store->kernel_counts && st.st_blocks > 0)
		usage->bytes -= TN_PAGE_SIZE;
	return r < 0 ? r : recount_tree(store, fd, usage);
}

static int recount_orphans(const TnStore *store, TnUsage *usage)
{
	TN_AUTOFD fd = tn_open_beneath(store->orphans, ".", O_RDONLY | O_DIRECTORY, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (store->kernel_counts && st.st_blocks > 0)
		usage->bytes += (uint64_t)st.st_blocks * 512 - TN_PAGE_SIZE;
	return recount_tree(store, fd, usage);
}

int tn_recount_store(const TnStore *store, TnUsage *usage)
{
	int r = recount_root(store, store->data, "tmp", usage);

	if (r == 0)
		r = recount_root(store, store->data, "var-tmp", usage);
	if (r == 0)
		r = recount_orphans(store, usage);
	return r;
}

int tn_recount_held(const TnStore *store, int fd, TnUsage *usage)
{
	TN_AUTOFD readable = -1;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode)) {
		readable = tn_reopen(fd, O_RDONLY);
		if (readable < 0)
			return readable;
		fd = readable;
	}
	return add_usage(store, fd, &st, usage);
}
