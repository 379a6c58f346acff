/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys.h"

#include "macros.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>

TN_SYSCALLS = {
	{SYS_openat2}, {SYS_mkdirat}, {SYS_unlinkat}, TN_CALL_RENAMEAT, {SYS_fsync}, {SYS_fstat},
};

int tn_open_beneath(int dir, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.mode = flags & (O_CREAT | __O_TMPFILE) ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV,
	};
	long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

int tn_reopen(int fd, int flags)
{
	char path[32];
	int opened;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	opened = open(path, flags | O_CLOEXEC);
	return opened < 0 ? -errno : opened;
}

int tn_open_dir_make(int dir, const char *path, mode_t mode)
{
	if (mkdirat(dir, path, mode) < 0 && errno != EEXIST)
		return -errno;
	return tn_open_beneath(dir, path, O_RDONLY | O_DIRECTORY, 0);
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

int tn_replace_file(int dir, const char *name, const void *data, size_t size, mode_t mode,
		    bool sync)
{
	TN_AUTOFD fd = -1;
	char temporary[64];
	int r;

	snprintf(temporary, sizeof(temporary), ".%.40s.new", name);
	fd = tn_open_beneath(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC, mode);
	if (fd < 0)
		return fd;
	r = write_all(fd, data, size);
	if (r == 0 && sync && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dir, temporary, dir, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir, temporary, 0);
	return r;
}

/* Room for more of a text of max bytes at most, and a NUL. 0 or -ENOMEM. */
static int make_room(char **text, size_t *room, size_t max)
{
	size_t more = *room ? *room * 2 : 4096;
	char *bigger;

	if (more > max)
		more = max;
	bigger = realloc(*text, more + 1);
	if (!bigger)
		return -ENOMEM;
	*text = bigger;
	*room = more;
	return 0;
}

ssize_t tn_read_file(int dir, const char *name, size_t max, char **ret)
{
	TN_AUTOFREE char *text = NULL;
	TN_AUTOFD fd = tn_open_beneath(dir, name, O_RDONLY, 0);
	size_t used = 0, room = 0;

	if (fd < 0)
		return fd;
	if (make_room(&text, &room, max) < 0)
		return -ENOMEM;
	while (used < max) {
		ssize_t n;

		if (used == room && make_room(&text, &room, max) < 0)
			return -ENOMEM;
		n = read(fd, text + used, room - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	text[used] = '\0';
	*ret = text;
	text = NULL;
	return (ssize_t)used;
}

uint64_t tn_random(void)
{
	uint64_t value = 0;

	while (getrandom(&value, sizeof(value), 0) != sizeof(value))
		;
	return value;
}

static int64_t now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t tn_now(void)
{
	return now(CLOCK_REALTIME);
}

int64_t tn_monotonic(void)
{
	return now(CLOCK_MONOTONIC);
}

bool tn_cond_wait_for(pthread_cond_t *cond, pthread_mutex_t *lock, long ns)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ns;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	return pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &until) == 0;
}
