/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "conformance.h"

#include <dirent.h>
#include <grp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

static const char *base_of(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash ? slash + 1 : file;
}

void tc_fail(const char *file, int line, const char *format, ...)
{
	va_list arguments;

	printf("# %s:%d: ", base_of(file), line);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
	_exit(1);
}

void tc_skip(const char *format, ...)
{
	va_list arguments;

	printf("# ");
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
	_exit(77);
}

void tc_check_value(const char *file, int line, const char *text, long long got, long long wanted)
{
	if (got != wanted)
		tc_fail(file, line, "%s: got %lld, wanted %lld", text, got, wanted);
}

void tc_check_error(const char *file, int line, const char *text, long long got, int wanted)
{
	int number = errno;

	if (got != -1)
		tc_fail(file, line, "%s: got %lld, wanted %s", text, got, strerrorname_np(wanted));
	if (number != wanted)
		tc_fail(file, line, "%s: got %s, wanted %s", text, strerrorname_np(number),
			strerrorname_np(wanted));
}

long long tc_check_ok(const char *file, int line, const char *text, long long got)
{
	if (got < 0)
		tc_fail(file, line, "%s: %s", text, strerrorname_np(errno));
	return got;
}

int tc_make(const char *name, mode_t mode)
{
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	if (fd < 0)
		tc_fail(__FILE__, __LINE__, "cannot make %s: %s", name, strerror(errno));
	return fd;
}

void tc_put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	size_t size = strlen(text);

	if (fd < 0 || write(fd, text, size) != (ssize_t)size || close(fd) < 0)
		tc_fail(__FILE__, __LINE__, "cannot write %s: %s", name, strerror(errno));
}

void tc_has(const char *name, const char *text)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	size_t size = strlen(text);
	char buffer[4096];
	ssize_t n = fd < 0 ? -1 : read(fd, buffer, sizeof(buffer));

	if (n != (ssize_t)size || memcmp(buffer, text, size) != 0)
		tc_fail(__FILE__, __LINE__, "%s holds '%.*s', wanted '%s'", name,
			n < 0 ? 0 : (int)n, buffer, text);
	close(fd);
}

struct stat tc_stat(const char *name)
{
	struct stat st;

	if (lstat(name, &st) < 0)
		tc_fail(__FILE__, __LINE__, "cannot stat %s: %s", name, strerror(errno));
	return st;
}

struct stat tc_fstat(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		tc_fail(__FILE__, __LINE__, "cannot fstat: %s", strerror(errno));
	return st;
}

bool tc_exists(const char *name)
{
	return faccessat(AT_FDCWD, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int tc_count(const char *directory)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	int n = 0;

	if (!stream)
		tc_fail(__FILE__, __LINE__, "cannot list %s: %s", directory, strerror(errno));
	while ((entry = readdir(stream)))
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(stream);
	return n;
}

void tc_fill(int fd, off_t offset, size_t size, char byte)
{
	static char buffer[65536];

	memset(buffer, byte, sizeof(buffer));
	for (size_t done = 0; done < size;) {
		size_t part = size - done < sizeof(buffer) ? size - done : sizeof(buffer);
		ssize_t n = pwrite(fd, buffer, part, offset + (off_t)done);

		if (n <= 0)
			tc_fail(__FILE__, __LINE__, "pwrite: %s", strerror(errno));
		done += (size_t)n;
	}
}

bool tc_is_filled(int fd, off_t offset, size_t size, char byte)
{
	char buffer[65536];

	for (size_t done = 0; done < size;) {
		size_t part = size - done < sizeof(buffer) ? size - done : sizeof(buffer);
		ssize_t n = pread(fd, buffer, part, offset + (off_t)done);

		if (n <= 0)
			return false;
		for (ssize_t i = 0; i < n; i++) {
			if (buffer[i] != byte)
				return false;
		}
		done += (size_t)n;
	}
	return true;
}

void tc_become(uid_t uid, gid_t gid)
{
	ok(setgroups(0, NULL));
	ok(setegid(gid));
	ok(seteuid(uid));
}

void tc_back(void)
{
	ok(seteuid(0));
	ok(setegid(0));
}

pid_t tc_fork(void (*function)(void *), void *data)
{
	pid_t child = fork();

	if (child < 0)
		tc_fail(__FILE__, __LINE__, "fork: %s", strerror(errno));
	if (child == 0) {
		function(data);
		_exit(0);
	}
	return child;
}

void tc_wait(pid_t child)
{
	int status;

	ok(waitpid(child, &status, 0));
	if (status != 0)
		tc_fail(__FILE__, __LINE__, "a process of the case failed (status %#x)", status);
}

bool tc_before(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

bool tc_same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

void tc_tick(void)
{
	struct timespec start, now;

	/*
	 * The coarse clock moves once in a timer interrupt, at most 10 ms; since Linux 6.13 a stamp
	 * may be finer, so it has to be past the present time.
	 */
	clock_gettime(CLOCK_REALTIME, &start);
	do {
		usleep(2000);
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	} while (!tc_before(start, now));
}
