/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The n-th call of a serving thread to the store fails, as the file in TMPNEST_KILL_FILE says.
 * Linked with --wrap into the same tmpnestd as kill-point.c.
 */
#include "journal.h"

#include "kill-file.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

KillFile *tn_kill_file(void);

/* Is it this call's turn? Only requests count: what the daemon does by itself is not tested here.
 */
static bool fails(void)
{
	KillFile *file = tn_journal_current() ? tn_kill_file() : NULL;

	if (!file || atomic_load(&file->fail_in) <= 0)
		return false;
	atomic_fetch_add(&file->calls, 1);
	if (atomic_fetch_sub(&file->fail_in, 1) != 1)
		return false;
	atomic_fetch_add(&file->failed, 1);
	errno = (int)atomic_load(&file->error);
	return true;
}

/* TYPE NAME(PARAMETERS), called with ARGUMENTS. */
#define WRAP(type, name, parameters, arguments) \
	type __real_##name parameters; \
	type __wrap_##name parameters; \
	type __wrap_##name parameters \
	{ \
		return fails() ? -1 : __real_##name arguments; \
	}

WRAP(int, mkdirat, (int dir, const char *name, mode_t mode), (dir, name, mode))
WRAP(int, mknodat, (int dir, const char *name, mode_t mode, dev_t dev), (dir, name, mode, dev))
WRAP(int, symlinkat, (const char *target, int dir, const char *name), (target, dir, name))
WRAP(int, linkat, (int from, const char *old, int to, const char *new, int flags),
     (from, old, to, new, flags))
WRAP(int, unlinkat, (int dir, const char *name, int flags), (dir, name, flags))
WRAP(int, renameat, (int from, const char *old, int to, const char *new), (from, old, to, new))
WRAP(int, renameat2, (int from, const char *old, int to, const char *new, unsigned flags),
     (from, old, to, new, flags))
WRAP(ssize_t, pwrite64, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
WRAP(ssize_t, pread64, (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
WRAP(int, ftruncate64, (int fd, off_t size), (fd, size))
WRAP(int, fallocate64, (int fd, int mode, off_t at, off_t size), (fd, mode, at, size))
WRAP(int, fstatat64, (int dir, const char *name, struct stat *st, int flags),
     (dir, name, st, flags))
WRAP(int, fstat64, (int fd, struct stat *st), (fd, st))
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(int, fchmodat, (int dir, const char *name, mode_t mode, int flags), (dir, name, mode, flags))
WRAP(int, utimensat, (int dir, const char *name, const struct timespec times[2], int flags),
     (dir, name, times, flags))
WRAP(int, fsetxattr, (int fd, const char *name, const void *value, size_t size, int flags),
     (fd, name, value, size, flags))
WRAP(int, fremovexattr, (int fd, const char *name), (fd, name))

/* Its errors are those of openat2(2). */
int __real_tn_open_beneath(int dir, const char *path, int flags, mode_t mode);
int __wrap_tn_open_beneath(int dir, const char *path, int flags, mode_t mode);
int __wrap_tn_open_beneath(int dir, const char *path, int flags, mode_t mode)
{
	return fails() ? -errno : __real_tn_open_beneath(dir, path, flags, mode);
}
