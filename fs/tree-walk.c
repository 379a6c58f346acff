/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tree-walk.h"

#include "macros.h"
#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

TN_SYSCALLS = {
	{SYS_getdents64},
};

#define DIRENT_BYTES 32768
#define DIRENT_BYTES_FIRST 512 /* one entry of 255 bytes fits */

/* As the kernel lays it out (getdents64(2)). */
typedef struct KernelEntry {
	uint64_t ino;
	int64_t next;
	uint16_t size;
	uint8_t type;
	char name[];
} KernelEntry;

/* A directory above the present one. */
typedef struct Level {
	uint64_t dev, ino;
	int64_t next;       /* where to go on in it */
	size_t path_length; /* of its own path */
} Level;

typedef struct Walk {
	TnTreeVisit visit;
	void *data;
	int dir;
	Level *levels;
	size_t depth, allocated;
	char path[TN_TREE_PATH_MAX + 1]; /* of the present directory, ends in "/" unless empty */
	size_t path_length;              /* may be past the end: then it is not told */
	uint8_t *buffer;
	size_t room; /* of the buffer, to be used by the next read */
	bool incomplete;
} Walk;

static bool fits(size_t length)
{
	return length <= TN_TREE_PATH_MAX;
}

/* Appends to the path, as far as it fits. Returns the length it would have. */
static size_t extend_path(Walk *walk, const char *name, const char *end)
{
	size_t name_length = strlen(name), end_length = strlen(end);
	size_t length = walk->path_length + name_length + end_length;

	if (fits(length)) {
		memcpy(walk->path + walk->path_length, name, name_length);
		memcpy(walk->path + walk->path_length + name_length, end, end_length + 1);
	}
	return length;
}

static int push_level(Walk *walk, const KernelEntry *entry)
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
	walk->levels[walk->depth++] = (Level){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.next = entry->next,
		.path_length = walk->path_length,
	};
	return 0;
}

/* 1: the entry is the present directory now; 0: it is no directory any more. */
static int go_down(Walk *walk, const KernelEntry *entry)
{
	TN_AUTOFD fd =
		tn_open_beneath(walk->dir, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r;

	if (fd == -ENOMEM || fd == -EMFILE || fd == -ENFILE)
		return fd;
	if (fd < 0) {
		walk->incomplete |= fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP;
		return 0;
	}
	r = push_level(walk, entry);
	if (r < 0)
		return r;
	walk->path_length = extend_path(walk, entry->name, "/");
	tn_close(&walk->dir);
	walk->dir = tn_steal_fd(&fd);
	return 1;
}

/* 1: in the directory above, behind the entry; 0: it is not where we came from. */
static int go_up(Walk *walk)
{
	const Level *level = &walk->levels[--walk->depth];
	/* openat2(RESOLVE_BENEATH) would refuse to leave; the inode says where it led. */
	TN_AUTOFD fd = openat(walk->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != level->ino || st.st_dev != level->dev ||
	    lseek(fd, level->next, SEEK_SET) < 0)
		return 0;
	tn_close(&walk->dir);
	walk->dir = tn_steal_fd(&fd);
	walk->path_length = level->path_length;
	if (fits(walk->path_length))
		walk->path[walk->path_length] = '\0';
	/* What is read past the next subdirectory is read again after it: little at first. */
	walk->room = DIRENT_BYTES_FIRST;
	return 1;
}

/* 1: went down into it. */
static int visit_entry(Walk *walk, const KernelEntry *kernel)
{
	struct stat st;
	TnTreeEntry entry = {
		.dir = walk->dir,
		.name = kernel->name,
		.depth = walk->depth,
		.stat = &st,
	};
	int r;

	if (fstatat(walk->dir, kernel->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == ESTALE ? 0 : -errno;
	if (fits(extend_path(walk, kernel->name, "")))
		entry.path = walk->path;
	r = walk->visit(&entry, walk->data);
	if (fits(walk->path_length))
		walk->path[walk->path_length] = '\0';
	if (r != 0)
		return r > 0 ? -EINTR : r;
	return S_ISDIR(st.st_mode) ? go_down(walk, kernel) : 0;
}

/* Entries of the present directory. 1: went down; 0: at its end. */
static int visit_some(Walk *walk)
{
	for (;;) {
		long n = syscall(SYS_getdents64, walk->dir, walk->buffer, walk->room);

		/* A directory that was removed under us has nothing left. */
		if (n <= 0)
			return n < 0 && errno != ENOENT ? -errno : 0;
		if (walk->room < DIRENT_BYTES)
			walk->room *= 2;
		for (long at = 0; at < n;) {
			const KernelEntry *entry = (const void *)(walk->buffer + at);
			int r = 0;

			at += entry->size;
			if (strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0)
				r = visit_entry(walk, entry);
			if (r != 0)
				return r;
		}
	}
}

static int walk_all(Walk *walk)
{
	for (;;) {
		int r = visit_some(walk);

		if (r < 0)
			return r;
		if (r > 0)
			continue; /* the new directory, from its start */
		if (walk->depth == 0)
			return 0;
		r = go_up(walk);
		if (r < 0)
			return r;
		if (r == 0) {
			walk->incomplete = true;
			return 0;
		}
	}
}

int tn_tree_walk(int dir, TnTreeVisit visit, void *data, bool *ret_complete)
{
	Walk *walk = calloc(1, sizeof(*walk));
	int r = -ENOMEM;

	if (!walk)
		return -ENOMEM;
	walk->visit = visit;
	walk->data = data;
	walk->room = DIRENT_BYTES;
	walk->buffer = malloc(DIRENT_BYTES);
	walk->dir = tn_open_beneath(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	if (walk->dir < 0)
		r = walk->dir;
	else if (walk->buffer)
		r = walk_all(walk);
	*ret_complete = !walk->incomplete;
	tn_close(&walk->dir);
	free(walk->buffer);
	free(walk->levels);
	free(walk);
	return r;
}
