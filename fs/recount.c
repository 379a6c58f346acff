/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A walk without recursion and with one open directory: it goes down by name and up by
 * "..", so that a tree of any depth costs two descriptors.
 */
#include "recount.h"

#include "macros.h"
#include "quota.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define DIRENT_BYTES 32768
#define DIRENT_BYTES_FIRST 512 /* one entry of 255 bytes fits */

typedef struct StoreEntry {
	uint64_t ino;
	int64_t next;
	uint16_t size;
	uint8_t type;
	char name[];
} StoreEntry;

/* A directory above the present one: where to go on in it. */
typedef struct Level {
	uint64_t ino;
	int64_t next;
} Level;

typedef struct Walk {
	const TnStore *store;
	TnUsage *usage;
	int dir;
	Level *levels;
	size_t depth, allocated;
	void *linked; /* tsearch(3) tree of inode numbers with several names */
	uint8_t *buffer;
	size_t room; /* of the buffer, to be used by the next read */
} Walk;

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
	bool has_xattrs = S_ISREG(st->st_mode) || S_ISDIR(st->st_mode);
	int64_t bytes = tn_store_charge(store, fd, st, false);
	int64_t xattrs = bytes >= 0 && has_xattrs ? tn_store_xattr_bytes(fd) : 0;

	if (bytes < 0 || xattrs < 0)
		return (int)(bytes < 0 ? bytes : xattrs);
	usage->bytes += (uint64_t)bytes + (uint64_t)xattrs;
	usage->xattr_bytes += (uint64_t)xattrs;
	usage->inodes++;
	return 0;
}

/* True when the inode was met under another name already. */
static int seen_before(Walk *walk, const struct stat *st, bool *ret)
{
	void *key = (void *)(uintptr_t)st->st_ino;

	*ret = false;
	if (S_ISDIR(st->st_mode) || st->st_nlink < 2)
		return 0;
	if (tfind(key, &walk->linked, compare_inodes)) {
		*ret = true;
		return 0;
	}
	return tsearch(key, &walk->linked, compare_inodes) ? 0 : -ENOMEM;
}

static int go_down(Walk *walk, const StoreEntry *entry, int fd)
{
	struct stat st;

	if (walk->depth == walk->allocated) {
		size_t wanted = walk->allocated ? 2 * walk->allocated : 64;
		Level *grown = reallocarray(walk->levels, wanted, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		walk->levels = grown;
		walk->allocated = wanted;
	}
	if (fstat(walk->dir, &st) < 0)
		return -errno;
	walk->levels[walk->depth++] = (Level){.ino = st.st_ino, .next = entry->next};
	close(walk->dir);
	walk->dir = fd;
	return 0;
}

static int go_up(Walk *walk, int64_t *ret_next)
{
	const Level *level = &walk->levels[--walk->depth];
	/* ".." leaves the directory on purpose, which openat2(RESOLVE_BENEATH) would refuse;
	 * the inode number says whether it led where we came from. */
	int fd = openat(walk->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	close(walk->dir);
	walk->dir = fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_next = level->next;
	/* What is read past the next subdirectory is read again after it: little at first. */
	walk->room = DIRENT_BYTES_FIRST;
	return st.st_ino == level->ino && lseek(fd, level->next, SEEK_SET) >= 0 ? 0 : -ESTALE;
}

/* Counts one entry. 1: it is a directory, now the present one. */
static int count_entry(Walk *walk, const StoreEntry *entry)
{
	TN_AUTOFD fd = -1;
	struct stat st;
	bool seen;
	int r;

	if (fstatat(walk->dir, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	r = seen_before(walk, &st, &seen);
	if (r < 0 || seen)
		return r;
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) {
		fd = tn_open_beneath(walk->dir, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
		if (fd < 0)
			return fd;
	}
	r = add_usage(walk->store, fd, &st, walk->usage);
	if (r < 0 || !S_ISDIR(st.st_mode))
		return r;
	r = go_down(walk, entry, fd);
	if (r == 0)
		tn_steal_fd(&fd);
	return r < 0 ? r : 1;
}

/* Counts entries of the present directory. 1: went down; 0: at its end. */
static int count_some(Walk *walk)
{
	for (;;) {
		long n = syscall(SYS_getdents64, walk->dir, walk->buffer, walk->room);

		if (n <= 0)
			return n < 0 ? -errno : 0;
		if (walk->room < DIRENT_BYTES)
			walk->room *= 2;
		for (long at = 0; at < n;) {
			const StoreEntry *entry = (const void *)(walk->buffer + at);
			int r = 0;

			at += entry->size;
			if (strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0)
				r = count_entry(walk, entry);
			if (r != 0)
				return r;
		}
	}
}

static int walk_tree(Walk *walk)
{
	for (;;) {
		int64_t next;
		int r = count_some(walk);

		if (r < 0)
			return r;
		if (r > 0)
			continue; /* the new directory, from its start */
		if (walk->depth == 0)
			return 0;
		r = go_up(walk, &next);
		if (r < 0)
			return r;
	}
}

static int recount_tree(const TnStore *store, int parent, const char *name, TnUsage *usage)
{
	Walk walk = {
		.store = store,
		.usage = usage,
		.dir = tn_open_beneath(parent, name, O_RDONLY | O_DIRECTORY, 0),
		.buffer = malloc(DIRENT_BYTES),
		.room = DIRENT_BYTES,
	};
	int r = walk.dir < 0 ? walk.dir : walk.buffer ? walk_tree(&walk) : -ENOMEM;

	tn_close(&walk.dir);
	free(walk.buffer);
	free(walk.levels);
	tdestroy(walk.linked, keep_inode);
	return r;
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
	return r < 0 ? r : recount_tree(store, parent, name, usage);
}

int tn_recount_store(const TnStore *store, TnUsage *usage)
{
	int r = recount_root(store, store->data, "tmp", usage);

	if (r == 0)
		r = recount_root(store, store->data, "var-tmp", usage);
	if (r == 0)
		r = recount_tree(store, store->orphans, ".", usage);
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
