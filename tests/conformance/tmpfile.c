/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* O_TMPFILE: files without a name. */
#include "conformance.h"

#include <stdlib.h>
#include <sys/mman.h>

static int unnamed(int flags, mode_t mode)
{
	return (int)ok(open(".", O_TMPFILE | O_RDWR | flags, mode));
}

static int link_by_proc(int fd, const char *name)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

static void use(void)
{
	int fd = unnamed(0, 0640);
	struct stat st = tc_fstat(fd);
	char *map;

	equal(st.st_mode, S_IFREG | 0640);
	equal(st.st_nlink, 0);
	equal(st.st_uid, geteuid());
	equal(tc_count("."), 0);
	tc_fill(fd, 0, 100000, 'x');
	check(tc_is_filled(fd, 0, 100000, 'x'));
	ok(ftruncate(fd, 5000));
	ok(fallocate(fd, 0, 0, 20000));
	ok(fchmod(fd, 0600));
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(map != MAP_FAILED && map[0] == 'x');
	map[0] = 'y';
	check(tc_is_filled(fd, 0, 1, 'y'));
	equal(tc_fstat(fd).st_mode, S_IFREG | 0600);
	struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 2}};

	ok(futimens(fd, times));
	equal(tc_fstat(fd).st_mtim.tv_sec, 2);
}

static void reopen(void)
{
	int fd = unnamed(0, 0644), other;
	char path[32];

	tc_fill(fd, 0, 10, 'x');
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = (int)ok(open(path, O_RDWR));
	check(tc_is_filled(other, 0, 10, 'x'));
	equal(tc_fstat(other).st_ino, tc_fstat(fd).st_ino);
	close(fd);
	tc_fill(other, 0, 10, 'z');
	check(tc_is_filled(other, 0, 10, 'z'));
}

static void given_a_name(void)
{
	int fd = unnamed(0, 0644), other;

	tc_fill(fd, 0, 5000, 'x');
	close(tc_make("taken", 0644));
	error(link_by_proc(fd, "taken"), EEXIST);
	ok(link_by_proc(fd, "name"));
	equal(tc_stat("name").st_ino, tc_fstat(fd).st_ino);
	equal(tc_stat("name").st_nlink, 1);
	equal(tc_stat("name").st_size, 5000);
	ok(link("name", "second"));
	equal(tc_fstat(fd).st_nlink, 2);
	tc_fill(fd, 5000, 5, 'y');
	other = (int)ok(open("second", O_RDWR));
	equal(tc_fstat(other).st_size, 5005);
	close(fd);
	close(other);
	equal(tc_stat("name").st_size, 5005);
	ok(unlink("name"));
	ok(rename("second", "taken"));
	equal(tc_stat("taken").st_size, 5005);
}

static void exclusive(void)
{
	int fd = unnamed(O_EXCL, 0644);

	tc_fill(fd, 0, 10, 'x');
	error(link_by_proc(fd, "name"), ENOENT); /* never to be linked */
	equal(tc_count("."), 0);
}

static void errors(void)
{
	close(tc_make("f", 0644));
	error(open("f", O_TMPFILE | O_RDWR, 0644), ENOTDIR);
	error(open("missing", O_TMPFILE | O_RDWR, 0644), ENOENT);
	error(open(".", O_TMPFILE | O_RDONLY, 0644), EINVAL);
	ok(close((int)ok(open(".", O_TMPFILE | O_WRONLY, 0644))));
}

static void not_writable(void)
{
	ok(mkdir("d", 0500));
	error(open("d", O_TMPFILE | O_RDWR, 0644), EACCES);
}

static void many(void)
{
	enum { MANY = 200 };
	int fds[MANY];

	for (int i = 0; i < MANY; i++) {
		fds[i] = unnamed(0, 0600);
		tc_fill(fds[i], 0, 100, (char)i);
	}
	for (int i = 0; i < MANY; i++)
		check(tc_is_filled(fds[i], 0, 100, (char)i));
}

static void in_removed_directory(void)
{
	int dir, fd;

	ok(mkdir("d", 0755));
	dir = (int)ok(open("d", O_RDONLY));
	fd = (int)ok(open("d", O_TMPFILE | O_RDWR, 0644));
	tc_fill(fd, 0, 10, 'x');
	ok(rmdir("d")); /* an unnamed file does not keep it */
	check(tc_is_filled(fd, 0, 10, 'x'));
	equal(tc_fstat(dir).st_nlink, 0);
	ok(link_by_proc(fd, "elsewhere"));
	equal(tc_stat("elsewhere").st_size, 10);
}

const TcCase tc_tmpfile[] = {
	{"a file without a name works", use},
	{"opened again through /proc", reopen},
	{"given a name by linkat", given_a_name},
	{"O_EXCL: never a name", exclusive},
	{"errors", errors},
	{"in a directory that is not writable", not_writable, TC_PLAIN},
	{"two hundred at once", many},
	{"in a directory that is removed", in_removed_directory},
	{0},
};
