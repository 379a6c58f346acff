/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The operations: how each is made from random numbers, and done. */
#include "model.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PAGE 4096U
#define MOST_DATA (256U * 1024)
#define MOST_SIZE (600U * 1024)
#define XATTR_MOST 24 /* small, so that all of them together stay below one page */

typedef struct Context {
	MdWorker *worker;
	const MdOperation *op;
	int side;
	MdOutcome *outcome;
} Context;

static int slot_fd(const Context *c)
{
	return c->worker->slots[c->op->slot][c->side];
}

static int64_t outcome_of(int64_t r)
{
	return r < 0 ? -errno : r;
}

static void keep_in_slot(Context *c, int fd)
{
	int *place = &c->worker->slots[c->op->slot][c->side];

	if (*place >= 0)
		close(*place);
	*place = fd;
}

/* --- names -------------------------------------------------------------------------------- */

static int64_t do_mkdir(Context *c)
{
	return mkdir(c->op->path, c->op->mode & 01777);
}

static int64_t do_rmdir(Context *c)
{
	return rmdir(c->op->path);
}

static int64_t do_unlink(Context *c)
{
	return unlink(c->op->path);
}

static int64_t do_rename(Context *c)
{
	return rename(c->op->path, c->op->path2);
}

static int64_t do_rename_flags(Context *c)
{
	static const unsigned flags[] = {RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_EXCHANGE,
					 RENAME_NOREPLACE | RENAME_EXCHANGE};

	return renameat2(AT_FDCWD, c->op->path, AT_FDCWD, c->op->path2, flags[c->op->flags % 4]);
}

static int64_t do_link(Context *c)
{
	return linkat(AT_FDCWD, c->op->path, AT_FDCWD, c->op->path2,
		      c->op->flags % 4 ? 0 : AT_SYMLINK_FOLLOW);
}

static int64_t do_symlink(Context *c)
{
	return symlink(c->op->path2, c->op->path);
}

static int64_t do_readlink(Context *c)
{
	char target[256];
	ssize_t n = readlink(c->op->path, target, sizeof(target));

	if (n > 0)
		c->outcome->data = md_hash(0, target, (size_t)n);
	return n;
}

static int64_t do_mknod(Context *c)
{
	static const mode_t types[] = {S_IFREG, S_IFIFO, S_IFSOCK, S_IFDIR};

	return mknod(c->op->path, types[c->op->flags % 4] | (c->op->mode & 0777), 0);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int64_t do_list(Context *c)
{
	char *names[512];
	struct dirent *entry;
	size_t n = 0;
	DIR *stream = opendir(c->op->path);

	if (!stream)
		return -1;
	while (n < 512 && (entry = readdir(stream))) {
		char text[300];

		snprintf(text, sizeof(text), "%s %d", entry->d_name, entry->d_type);
		names[n++] = strdup(text);
	}
	closedir(stream);
	qsort(names, n, sizeof(names[0]), compare_names);
	for (size_t i = 0; i < n; i++) {
		c->outcome->data = md_hash(c->outcome->data, names[i], strlen(names[i]) + 1);
		free(names[i]);
	}
	return (int64_t)n;
}

static int64_t do_chdir(Context *c)
{
	int fd = c->op->flags % 4 == 0 ? open(c->op->path, O_PATH | O_DIRECTORY | O_CLOEXEC)
				       : dup(c->worker->root[c->side]);

	if (fd < 0)
		return -1;
	if (fchdir(fd) < 0) {
		int saved = errno;

		close(fd);
		errno = saved;
		return -1;
	}
	close(c->worker->cwd[c->side]);
	c->worker->cwd[c->side] = fd;
	return 0;
}

/* --- attributes ----------------------------------------------------------------------------- */

static void hash_stat(Context *c, const struct stat *st)
{
	uint64_t values[] = {st->st_mode, st->st_uid, st->st_gid, st->st_nlink,
			     S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size};

	c->outcome->data = md_hash(0, values, sizeof(values));
}

static int64_t do_stat(Context *c)
{
	struct stat st;
	int r = c->op->flags % 2 ? stat(c->op->path, &st) : lstat(c->op->path, &st);

	if (r == 0)
		hash_stat(c, &st);
	return r;
}

static int64_t do_fstat(Context *c)
{
	struct stat st;
	int r = fstat(slot_fd(c), &st);

	if (r == 0)
		hash_stat(c, &st);
	return r;
}

static int64_t do_access(Context *c)
{
	return faccessat(AT_FDCWD, c->op->path, (int)(c->op->flags % 8), AT_EACCESS);
}

static int64_t do_chmod(Context *c)
{
	return chmod(c->op->path, c->op->mode & 07777);
}

static int64_t do_fchmod(Context *c)
{
	return fchmod(slot_fd(c), c->op->mode & 07777);
}

static int64_t do_chown(Context *c)
{
	static const uid_t uids[] = {(uid_t)-1, 0, 1234, 1235};
	static const gid_t gids[] = {(gid_t)-1, 0, 2345, 2346};
	/* A plain user's namespace has his own ids alone, and both sides say EINVAL for others. */
	uid_t uid = uids[c->op->flags % 4];
	gid_t gid = gids[c->op->flags / 4 % 4];
	struct stat st;

	/* Then a view clears set-id bits also for who is not the owner; the docs say so. */
	if (uid == (uid_t)-1 && gid == (gid_t)-1 && stat(c->op->path, &st) == 0 &&
	    (st.st_mode & (S_ISUID | S_ISGID)))
		return 0;
	return c->op->flags & 16 ? lchown(c->op->path, uid, gid) : chown(c->op->path, uid, gid);
}

static int64_t do_utimens(Context *c)
{
	/* Before 2000: md_trees_equal() knows explicit stamps by that. */
	time_t seconds = (time_t)(c->op->offset % 900000000);
	long nanoseconds = (long)(c->op->size % 1000000000);
	struct timespec times[2] = {{seconds, nanoseconds}, {900000000 - seconds, nanoseconds / 2}};
	int flags = c->op->flags & 128 ? AT_SYMLINK_NOFOLLOW : 0;
	struct stat st;

	if (c->op->flags % 8 == 0)
		times[0].tv_nsec = UTIME_NOW;
	if (c->op->flags / 8 % 4 == 0)
		times[1].tv_nsec = c->op->flags & 64 ? UTIME_NOW : UTIME_OMIT;
	if (utimensat(AT_FDCWD, c->op->path, times, flags) < 0 ||
	    fstatat(AT_FDCWD, c->op->path, &st, flags) < 0)
		return -1;
	if (c->op->flags % 8 != 0)
		c->outcome->data = md_hash(0, &st.st_atim, sizeof(st.st_atim));
	if (c->op->flags / 8 % 4 != 0)
		c->outcome->data = md_hash(c->outcome->data, &st.st_mtim, sizeof(st.st_mtim));
	return 0;
}

static void xattr_name(const Context *c, char name[16])
{
	snprintf(name, 16, "user.%c", "abc"[c->op->flags % 3]);
}

static int64_t do_setxattr(Context *c)
{
	char name[16];

	xattr_name(c, name);
	return setxattr(c->op->path, name, "0123456789abcdefghijklmn", c->op->size % XATTR_MOST,
			c->op->flags & 64    ? XATTR_CREATE
			: c->op->flags & 128 ? XATTR_REPLACE
					     : 0);
}

static int64_t do_getxattr(Context *c)
{
	char name[16], value[64];
	ssize_t n;

	xattr_name(c, name);
	n = getxattr(c->op->path, name, value, sizeof(value));
	if (n > 0)
		c->outcome->data = md_hash(0, value, (size_t)n);
	return n;
}

static int64_t do_removexattr(Context *c)
{
	char name[16];

	xattr_name(c, name);
	return removexattr(c->op->path, name);
}

static int64_t do_listxattr(Context *c)
{
	return listxattr(c->op->path, NULL, 0);
}

/* --- open files ---------------------------------------------------------------------------------
 */

static int64_t do_open(Context *c)
{
	static const int flags[] = {O_RDWR,
				    O_RDWR | O_CREAT,
				    O_RDWR | O_CREAT,
				    O_RDWR | O_CREAT | O_EXCL,
				    O_RDWR | O_CREAT | O_TRUNC,
				    O_RDONLY,
				    O_WRONLY | O_CREAT | O_APPEND,
				    O_RDWR | O_TRUNC,
				    O_RDONLY | O_DIRECTORY,
				    O_RDWR | O_NOFOLLOW};
	int fd = open(c->op->path, flags[c->op->flags % 10] | O_CLOEXEC | O_NONBLOCK,
		      c->op->mode & 07777);

	if (fd < 0)
		return -1;
	keep_in_slot(c, fd);
	return 0;
}

static int64_t do_tmpfile(Context *c)
{
	int fd = open(c->op->path, O_TMPFILE | O_RDWR | O_CLOEXEC | (c->op->flags % 4 ? 0 : O_EXCL),
		      c->op->mode & 0777);

	if (fd < 0)
		return -1;
	keep_in_slot(c, fd);
	return 0;
}

static int64_t do_link_slot(Context *c)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", slot_fd(c));
	if (slot_fd(c) < 0) {
		errno = EBADF;
		return -1;
	}
	return linkat(AT_FDCWD, path, AT_FDCWD, c->op->path, AT_SYMLINK_FOLLOW);
}

static int64_t do_close(Context *c)
{
	int *place = &c->worker->slots[c->op->slot][c->side], r;

	r = *place < 0 ? (errno = EBADF, -1) : close(*place);
	*place = -1;
	return r;
}

static char *pattern(uint64_t seed, size_t size)
{
	static char data[MOST_DATA];

	for (size_t i = 0; i < size; i++)
		data[i] = (char)((seed + i) * 2654435761U >> 16);
	return data;
}

static int64_t do_write(Context *c)
{
	size_t size = c->op->size % (c->op->flags % 2 ? 9000 : MOST_DATA);

	return pwrite(slot_fd(c), pattern(c->op->offset, size), size,
		      (off_t)(c->op->offset % MOST_SIZE));
}

static int64_t do_append(Context *c)
{
	int fd = open(c->op->path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
	size_t size = c->op->size % 6000;
	int64_t r;

	if (fd < 0)
		return -1;
	r = write(fd, pattern(c->op->offset, size), size);
	if (r < 0)
		r = -errno;
	close(fd);
	errno = r < 0 ? (int)-r : 0;
	return r < 0 ? -1 : r;
}

static int64_t do_read(Context *c)
{
	static char data[MOST_DATA];
	ssize_t n = pread(slot_fd(c), data, c->op->size % MOST_DATA,
			  (off_t)(c->op->offset % MOST_SIZE));

	if (n > 0)
		c->outcome->data = md_hash(0, data, (size_t)n);
	return n;
}

static int64_t do_truncate(Context *c)
{
	return truncate(c->op->path, (off_t)(c->op->size % MOST_SIZE));
}

static int64_t do_ftruncate(Context *c)
{
	struct stat st;
	off_t size = (off_t)(c->op->size % MOST_SIZE);

	if (c->op->flags % 4 == 0 && fstat(slot_fd(c), &st) == 0)
		size = st.st_size + (off_t)(c->op->flags / 4 % 3) * 100; /* near the present end */
	return ftruncate(slot_fd(c), size);
}

static int64_t do_fallocate(Context *c)
{
	static const int modes[] = {0, FALLOC_FL_KEEP_SIZE,
				    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE};
	uint64_t offset = c->op->offset % MOST_SIZE, size = c->op->size % MOST_DATA;
	struct stat st;

	/* On a view the set-id bits go before the space is asked for, on a tmpfs after. */
	if (fstat(slot_fd(c), &st) == 0 && (st.st_mode & (S_ISUID | S_ISGID)))
		return 0;
	if (c->op->flags & 4) { /* whole pages */
		offset = offset / PAGE * PAGE;
		size = size / PAGE * PAGE;
	}
	/*
	 * Beyond the end of a file ext4 punches nothing, so what was preallocated there stays
	 * until a truncate; docs/semantics.md says so.
	 */
	if ((c->op->flags & 2) && fstat(slot_fd(c), &st) == 0 && S_ISREG(st.st_mode)) {
		uint64_t end = (uint64_t)st.st_size;

		if (offset >= end)
			return 0;
		if (size > end - offset)
			size = end - offset;
	}
	return fallocate(slot_fd(c), modes[c->op->flags % 4], (off_t)offset, (off_t)size);
}

static bool reads_as_zero(int fd, off_t at, off_t end)
{
	static char data[65536];

	while (at < end) {
		ssize_t n = pread(fd, data, sizeof(data), at);

		if (n <= 0)
			return n == 0;
		for (ssize_t i = 0; i < n && at + i < end; i++) {
			if (data[i])
				return false;
		}
		at += n;
	}
	return true;
}

/*
 * A file system may call preallocated pages, or any hole, data (lseek(2)), so not the answer
 * is compared but whether it is true: there is no data before the next data.
 */
static int64_t do_seek(Context *c)
{
	off_t at = (off_t)(c->op->offset % MOST_SIZE), found;
	int fd = slot_fd(c), whence = c->op->flags % 2 ? SEEK_DATA : SEEK_HOLE;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode))
		return 0;
	found = lseek(fd, at, whence);
	if (at >= st.st_size)
		return found < 0 ? -1 : found;
	if (found < 0 && (whence == SEEK_HOLE || errno != ENXIO))
		return -1;
	if (found < 0)
		found = st.st_size;
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY)
		return 0;
	return found < at || (whence == SEEK_DATA && !reads_as_zero(fd, at, found));
}

static int64_t do_copy(Context *c)
{
	off_t at = (off_t)(c->op->offset % MOST_SIZE), into = (off_t)(c->op->size % MOST_SIZE);

	return copy_file_range(slot_fd(c), &at, c->worker->slots[c->op->slot2][c->side], &into,
			       c->op->mode * 16, 0);
}

static int64_t do_fsync(Context *c)
{
	return c->op->flags % 2 ? fsync(slot_fd(c)) : fdatasync(slot_fd(c));
}

static int64_t do_flock(Context *c)
{
	static const int kinds[] = {LOCK_SH, LOCK_EX, LOCK_UN};

	return flock(slot_fd(c), kinds[c->op->flags % 3] | LOCK_NB);
}

static int64_t do_lock(Context *c)
{
	struct flock lock = {
		.l_type = (short)(c->op->flags % 3), /* F_RDLCK, F_WRLCK, F_UNLCK */
		.l_whence = SEEK_SET,
		.l_start = (off_t)(c->op->offset % 8),
		.l_len = (off_t)(c->op->size % 4),
	};

	return fcntl(slot_fd(c), c->op->flags & 64 ? F_OFD_SETLK : F_SETLK, &lock);
}

static int64_t do_fchown(Context *c)
{
	static const gid_t gids[] = {0, 2345, 2346};

	return fchown(slot_fd(c), (uid_t)-1, gids[c->op->flags % 3]);
}

/* Also of a file that has no name any more. */
static int64_t do_reopen(Context *c)
{
	static const int flags[] = {O_RDONLY, O_RDWR, O_WRONLY | O_APPEND, O_RDWR | O_TRUNC};
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", slot_fd(c));
	fd = open(path, flags[c->op->flags % 4] | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -1;
	keep_in_slot(c, fd);
	return 0;
}

/* Not onto itself: the pages in the pipe are those of the file, so that has no one result. */
static int64_t do_send(Context *c)
{
	off_t at = (off_t)(c->op->offset % MOST_SIZE), into = (off_t)(c->op->size % MOST_SIZE);
	int from = slot_fd(c), to = c->worker->slots[c->op->slot2][c->side];
	off_t size = (off_t)c->op->mode * 8;
	struct stat a, b;

	if (fstat(from, &a) == 0 && fstat(to, &b) == 0 && a.st_ino == b.st_ino &&
	    at < into + size && into < at + size)
		return 0;
	if (lseek(to, into, SEEK_SET) < 0)
		return -1;
	return sendfile(to, from, &at, (size_t)size);
}

static int64_t do_write_flags(Context *c)
{
	static const int flags[] = {RWF_APPEND, RWF_APPEND, RWF_DSYNC, RWF_SYNC};
	size_t size = c->op->size % 5000;
	struct iovec parts[2] = {{pattern(c->op->offset, size), size / 3}, {0}};

	parts[1].iov_base = (char *)parts[0].iov_base + parts[0].iov_len;
	parts[1].iov_len = size - parts[0].iov_len;
	return pwritev2(slot_fd(c), parts, 2, (off_t)(c->op->offset % MOST_SIZE),
			flags[c->op->flags % 4]);
}

/* A hole by way of a mapping. */
static int64_t do_remove_pages(Context *c)
{
	struct stat st;
	size_t size, at;
	char *map;
	int64_t r;

	if (fstat(slot_fd(c), &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)PAGE ||
	    (st.st_mode & (S_ISUID | S_ISGID)))
		return 0;
	size = (size_t)st.st_size / PAGE * PAGE;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, slot_fd(c), 0);
	if (map == MAP_FAILED)
		return -1;
	at = c->op->offset % size / PAGE * PAGE;
	r = madvise(map + at, c->op->size % (size - at), MADV_REMOVE) < 0 ? -errno : 0;
	munmap(map, size);
	errno = (int)-r;
	return r < 0 ? -1 : 0;
}

/*
 * Stores through a shared mapping, in the file's present size. With little space left a
 * tmpfs sends SIGBUS for a hole and a view tells msync: not compared. (The tmpfs is asked for
 * both: a view shows what a close gave back a little later.)
 */
static int64_t do_map(Context *c)
{
	int fd = slot_fd(c);
	struct statvfs space;
	struct stat st;
	uint64_t at, size = c->op->size % 9000;
	char *map;
	int64_t r;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < 2)
		return 0;
	/* Written back by a plain user's daemon, whose writes take these bits. */
	if (st.st_mode & (S_ISUID | S_ISGID))
		return 0;
	if (fstatvfs(c->worker->cwd[MD_SIDES - 1], &space) < 0 || space.f_bfree < 40)
		return 0;
	at = c->op->offset % (uint64_t)(st.st_size - 1);
	if (size > (uint64_t)st.st_size - at)
		size = (uint64_t)st.st_size - at;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -1;
	memcpy(map + at, pattern(c->op->offset, size), size);
	r = msync(map, (size_t)st.st_size, MS_SYNC) < 0 ? -errno : 0;
	munmap(map, (size_t)st.st_size);
	errno = (int)-r;
	return r < 0 ? -1 : 0;
}

static int64_t do_statfs(Context *c)
{
	struct statvfs st;

	if (statvfs(c->op->path, &st) < 0)
		return -1;
	return (int64_t)st.f_namemax;
}

/* --- the table
 * -------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int64_t (*run)(Context *c);
	unsigned weight;
} kinds[] = {
	{"mkdir", do_mkdir, 6},
	{"rmdir", do_rmdir, 3},
	{"unlink", do_unlink, 6},
	{"rename", do_rename, 7},
	{"rename2", do_rename_flags, 4},
	{"link", do_link, 4},
	{"symlink", do_symlink, 3},
	{"readlink", do_readlink, 1},
	{"mknod", do_mknod, 3},
	{"list", do_list, 3},
	{"chdir", do_chdir, 2},
	{"stat", do_stat, 4},
	{"fstat", do_fstat, 3},
	{"access", do_access, 2},
	{"chmod", do_chmod, 3},
	{"fchmod", do_fchmod, 2},
	{"chown", do_chown, 2},
	{"utimens", do_utimens, 3},
	{"setxattr", do_setxattr, 2},
	{"getxattr", do_getxattr, 1},
	{"removexattr", do_removexattr, 1},
	{"listxattr", do_listxattr, 1},
	{"open", do_open, 16},
	{"tmpfile", do_tmpfile, 3},
	{"link-fd", do_link_slot, 3},
	{"close", do_close, 5},
	{"write", do_write, 14},
	{"append", do_append, 5},
	{"read", do_read, 6},
	{"truncate", do_truncate, 3},
	{"ftruncate", do_ftruncate, 5},
	{"fallocate", do_fallocate, 8},
	{"seek", do_seek, 3},
	{"copy", do_copy, 4},
	{"fsync", do_fsync, 1},
	{"flock", do_flock, 2},
	{"map", do_map, 4},
	{"statfs", do_statfs, 1},
	{"lock", do_lock, 2},
	{"fchown", do_fchown, 1},
	{"reopen", do_reopen, 2},
	{"send", do_send, 2},
	{"write-flags", do_write_flags, 2},
	{"remove-pages", do_remove_pages, 2},
};

uint32_t md_kinds(void)
{
	return sizeof(kinds) / sizeof(kinds[0]);
}

const char *md_kind_name(uint32_t kind)
{
	return kinds[kind].name;
}

static uint32_t choose_kind(uint64_t *random)
{
	unsigned sum = 0, at;

	for (uint32_t i = 0; i < md_kinds(); i++)
		sum += kinds[i].weight;
	at = (unsigned)(md_random(random) % sum);
	for (uint32_t i = 0;; i++) {
		if (at < kinds[i].weight)
			return i;
		at -= kinds[i].weight;
	}
}

/* Few names, the same for files and directories, so that they meet. */
static void add_part(char path[MD_PATH], uint64_t *random)
{
	uint64_t r = md_random(random);
	char part[4] = "a";

	part[0] = (char)('a' + r % 7);
	if (r / 7 % 60 == 0)
		strcpy(part, "..");
	else if (r / 7 % 60 == 1)
		strcpy(part, ".");
	if (path[0])
		strcat(path, "/");
	strcat(path, part);
}

/* One that exists, in `known` of 100 cases; else a new one, mostly in a known directory. */
static void make_path(char path[MD_PATH], const MdKnown *all, unsigned known, uint64_t *random)
{
	uint64_t r = md_random(random);
	const char *old = all->paths[r / 1000 % 24];

	path[0] = '\0';
	if (r % 100 < known && old[0]) {
		strcpy(path, old);
		return;
	}
	if (r / 100 % 10 < 6 && strlen(old) < 8)
		strcpy(path, old);
	add_part(path, random);
	if (r / 100 % 10 == 9)
		add_part(path, random);
}

/* Above the root of a side the two are not alike. */
static bool leaves_root(const char *path)
{
	int depth = 0;

	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (strncmp(at, "..", 2) == 0)
			depth--;
		else if (*at != '.')
			depth++;
		if (depth < 0)
			return true;
	}
	return strstr(path, "..") != NULL && depth <= 0;
}

/* An open file of the worker, if it has one. */
static uint32_t choose_slot(const MdKnown *known, uint32_t worker, uint64_t *random)
{
	uint32_t slot = (uint32_t)(md_random(random) % MD_SLOTS);

	for (uint32_t i = 0; i < MD_SLOTS; i++) {
		if (known->open[worker][(slot + i) % MD_SLOTS])
			return (slot + i) % MD_SLOTS;
	}
	return slot;
}

void md_operation_make(MdOperation *ret, const MdKnown *known, uint64_t *random)
{
	*ret = (MdOperation){.kind = choose_kind(random)};
	ret->worker =
		(uint32_t)(md_random(random) % (2 * MD_WORKERS)); /* the first is root, if any */
	if (ret->worker >= MD_WORKERS)
		ret->worker = 0;
	ret->slot = choose_slot(known, ret->worker, random);
	ret->slot2 = choose_slot(known, ret->worker, random);
	if (kinds[ret->kind].run == do_open || kinds[ret->kind].run == do_tmpfile)
		ret->slot = (uint32_t)(md_random(random) % MD_SLOTS);
	ret->flags = (uint32_t)md_random(random);
	ret->mode = (uint32_t)(md_random(random) % 010000);
	if (md_random(random) % 4) /* mostly usable, by all */
		ret->mode |= 0777;
	/* Set-gid without group execution: a view does not see supplementary groups (the docs say
	 * so). */
	if (ret->mode & S_ISGID)
		ret->mode |= S_IXGRP;
	ret->offset = md_random(random);
	ret->size = md_random(random);
	do
		make_path(ret->path, known, 65, random);
	while (leaves_root(ret->path));
	do
		make_path(ret->path2, known, 35, random);
	while (leaves_root(ret->path2));
	/* After a chdir the same path is another file. */
	ret->tick = md_random(random) % 8 == 0 && kinds[ret->kind].run != do_chdir;
}

void md_learn(MdKnown *known, const MdOperation *op, int64_t result, uint64_t *random)
{
	int64_t (*run)(Context *) = kinds[op->kind].run;
	char *place = known->paths[md_random(random) % 24];

	if (result < 0)
		return;
	if (run == do_open || run == do_tmpfile)
		known->open[op->worker][op->slot] = true;
	if (run == do_close)
		known->open[op->worker][op->slot] = false;
	if (run == do_mkdir || run == do_open || run == do_mknod || run == do_symlink ||
	    run == do_link_slot)
		strcpy(place, op->path);
	else if (run == do_rename || run == do_link)
		strcpy(place, op->path2);
}

void md_operation_print(const MdOperation *op)
{
	printf("%s worker %u slot %u,%u flags %u mode %04o offset %llu size %llu path %s path2 "
	       "%s%s\n",
	       md_kind_name(op->kind), op->worker, op->slot, op->slot2, op->flags, op->mode,
	       (unsigned long long)op->offset, (unsigned long long)op->size, op->path, op->path2,
	       op->tick ? " tick" : "");
}

void md_operation_run(MdWorker *worker, const MdOperation *operation, int side, MdOutcome *ret)
{
	Context context = {.worker = worker, .op = operation, .side = side, .outcome = ret};

	*ret = (MdOutcome){0};
	if (fchdir(worker->cwd[side]) < 0) {
		ret->result = -errno;
		return;
	}
	errno = 0;
	ret->result = outcome_of(kinds[operation->kind].run(&context));
}
