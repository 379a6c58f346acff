/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two trees that must be alike. */
#include "model.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define YEAR_2000 946684800 /* stamps before were set, not taken from the clock */

uint64_t md_random(uint64_t *state)
{
	/* splitmix64 */
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

uint64_t md_hash(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	hash ^= 0xcbf29ce484222325ULL;
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
	return hash;
}

static bool differ(const char *path, const char *what, long long view, long long tmpfs)
{
	printf("# %s: %s: %lld on the view, %lld on the tmpfs\n", path, what, view, tmpfs);
	return false;
}

static bool same_times(const struct stat st[MD_SIDES], const char *path)
{
	const struct timespec *a = &st[0].st_mtim, *b = &st[1].st_mtim;

	/* A write that was refused for want of space moves it on a tmpfs alone. */
	if (a->tv_sec >= YEAR_2000 || b->tv_sec >= YEAR_2000)
		return true;
	if (a->tv_sec != b->tv_sec)
		return differ(path, "mtime", a->tv_sec, b->tv_sec);
	if (a->tv_nsec != b->tv_nsec)
		return differ(path, "nanoseconds of mtime", a->tv_nsec, b->tv_nsec);
	return true;
}

static bool same_stat(const struct stat st[MD_SIDES], const char *path)
{
	if (st[0].st_mode != st[1].st_mode)
		return differ(path, "mode", st[0].st_mode, st[1].st_mode);
	if (st[0].st_nlink != st[1].st_nlink)
		return differ(path, "links", (long long)st[0].st_nlink, (long long)st[1].st_nlink);
	if (st[0].st_uid != st[1].st_uid)
		return differ(path, "uid", st[0].st_uid, st[1].st_uid);
	if (st[0].st_gid != st[1].st_gid)
		return differ(path, "gid", st[0].st_gid, st[1].st_gid);
	if (!S_ISDIR(st[0].st_mode) && st[0].st_size != st[1].st_size)
		return differ(path, "size", st[0].st_size, st[1].st_size);
	return same_times(st, path);
}

static bool same_content(const int fd[MD_SIDES], off_t size, const char *path)
{
	static char data[MD_SIDES][65536];

	for (off_t at = 0; at < size; at += (off_t)sizeof(data[0])) {
		ssize_t a = pread(fd[0], data[0], sizeof(data[0]), at);
		ssize_t b = pread(fd[1], data[1], sizeof(data[1]), at);

		if (a != b)
			return differ(path, "bytes read", a, b);
		for (ssize_t i = 0; i < a; i++) {
			if (data[0][i] != data[1][i])
				return differ(path, "content differs at", at + i, at + i);
		}
	}
	return true;
}

static bool same_xattrs(const int fd[MD_SIDES], const char *path)
{
	for (int i = 0; i < 3; i++) {
		char name[] = "user.x", value[MD_SIDES][64];
		ssize_t n[MD_SIDES];

		name[5] = "abc"[i];
		for (int side = 0; side < MD_SIDES; side++) {
			n[side] = fgetxattr(fd[side], name, value[side], sizeof(value[side]));
			if (n[side] < 0)
				n[side] = -errno;
		}
		if (n[0] != n[1] || (n[0] > 0 && memcmp(value[0], value[1], (size_t)n[0]) != 0))
			return differ(path, "extended attribute", n[0], n[1]);
	}
	return true;
}

bool md_files_equal(const int fd[MD_SIDES], const char *what)
{
	struct stat st[MD_SIDES];
	char path[32];
	int again[MD_SIDES];
	bool same;

	if ((fd[0] < 0) != (fd[1] < 0))
		return differ(what, "descriptor", fd[0], fd[1]);
	if (fd[0] < 0)
		return true;
	if (fstat(fd[0], &st[0]) < 0 || fstat(fd[1], &st[1]) < 0)
		return differ(what, "fstat", errno, errno);
	if (!same_stat(st, what))
		return false;
	if (!S_ISREG(st[0].st_mode))
		return true;
	for (int side = 0; side < MD_SIDES; side++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd[side]);
		again[side] = open(path, O_RDONLY | O_CLOEXEC);
	}
	same = (again[0] < 0) == (again[1] < 0) || differ(what, "opened", again[0], again[1]);
	if (same && again[0] >= 0)
		same = same_content(again, st[0].st_size, what) && same_xattrs(again, what);
	for (int side = 0; side < MD_SIDES; side++) {
		if (again[side] >= 0)
			close(again[side]);
	}
	return same;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t list(int fd, char *names[], size_t most)
{
	DIR *stream = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;
	size_t n = 0;

	if (!stream)
		return 0;
	while (n < most && (entry = readdir(stream))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			names[n++] = strdup(entry->d_name);
	}
	closedir(stream);
	qsort(names, n, sizeof(names[0]), compare_names);
	return n;
}

static bool same_entry(const int dir[MD_SIDES], const char *name, const char *path);

static bool same_directory(const int fd[MD_SIDES], const char *path)
{
	char *names[MD_SIDES][64];
	size_t n[MD_SIDES];
	bool same = true;

	for (int side = 0; side < MD_SIDES; side++)
		n[side] = list(fd[side], names[side], 64);
	if (n[0] != n[1])
		same = differ(path, "entries", (long long)n[0], (long long)n[1]);
	for (size_t i = 0; same && i < n[0]; i++) {
		if (strcmp(names[0][i], names[1][i]) != 0) {
			printf("# %s: %s on the view, %s on the tmpfs\n", path, names[0][i],
			       names[1][i]);
			same = false;
		}
	}
	for (size_t i = 0; same && i < n[0]; i++)
		same = same_entry(fd, names[0][i], path);
	for (int side = 0; side < MD_SIDES; side++)
		for (size_t i = 0; i < n[side]; i++)
			free(names[side][i]);
	return same;
}

static bool same_target(const int dir[MD_SIDES], const char *name, const char *path)
{
	char target[MD_SIDES][256];
	ssize_t n[MD_SIDES];

	for (int side = 0; side < MD_SIDES; side++)
		n[side] = readlinkat(dir[side], name, target[side], sizeof(target[side]));
	if (n[0] != n[1] || (n[0] > 0 && memcmp(target[0], target[1], (size_t)n[0]) != 0))
		return differ(path, "target", n[0], n[1]);
	return true;
}

static bool same_entry(const int dir[MD_SIDES], const char *name, const char *path)
{
	struct stat st[MD_SIDES];
	char below[4096];
	int fd[MD_SIDES];
	bool same;

	snprintf(below, sizeof(below), "%s/%s", path, name);
	for (int side = 0; side < MD_SIDES; side++) {
		if (fstatat(dir[side], name, &st[side], AT_SYMLINK_NOFOLLOW) < 0)
			return differ(below, "stat on side", side, errno);
	}
	if (!same_stat(st, below))
		return false;
	if (S_ISLNK(st[0].st_mode))
		return same_target(dir, name, below);
	if (!S_ISREG(st[0].st_mode) && !S_ISDIR(st[0].st_mode))
		return true;
	for (int side = 0; side < MD_SIDES; side++)
		fd[side] = openat(dir[side], name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	same = (fd[0] < 0) == (fd[1] < 0) || differ(below, "opened", fd[0], fd[1]);
	if (same && fd[0] >= 0) {
		same = same_xattrs(fd, below);
		if (same && S_ISREG(st[0].st_mode))
			same = same_content(fd, st[0].st_size, below);
		else if (same)
			same = same_directory(fd, below);
	}
	for (int side = 0; side < MD_SIDES; side++) {
		if (fd[side] >= 0)
			close(fd[side]);
	}
	return same;
}

bool md_trees_equal(const int root[MD_SIDES])
{
	return same_directory(root, ".");
}

/*
 * Free blocks agree. What links, symlink targets and attributes cost is set apart by the
 * sizes that were chosen (see run.sh), which says as well where they cannot agree. The kernel tells
 * of closed files a little later.
 */
bool md_free_equal(const int root[MD_SIDES])
{
	struct statvfs st[MD_SIDES];

	if (getenv("MODEL_ANY_SPACE"))
		return true;
	for (int tries = 0; tries < 300; tries++) {
		for (int side = 0; side < MD_SIDES; side++) {
			if (fstatvfs(root[side], &st[side]) < 0)
				return differ("statfs", "errno", errno, errno);
		}
		if (st[0].f_bfree == st[1].f_bfree)
			return true;
		usleep(10000);
	}
	return differ("statfs", "free blocks", (long long)st[0].f_bfree, (long long)st[1].f_bfree);
}
