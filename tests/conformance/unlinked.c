/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files that are open and have no name any more. */
#include "conformance.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/xattr.h>

static void all_operations(void)
{
	struct timespec times[2] = {{.tv_sec = 3}, {.tv_sec = 4}};
	int fd = tc_make("f", 0644), reader;
	char path[32];

	tc_fill(fd, 0, 10000, 'x');
	ok(unlink("f"));
	equal(tc_count("."), 0); /* no hidden name either */
	equal(tc_fstat(fd).st_nlink, 0);
	check(tc_is_filled(fd, 0, 10000, 'x'));
	tc_fill(fd, 10000, 10000, 'y');
	equal(tc_fstat(fd).st_size, 20000);
	ok(ftruncate(fd, 15000));
	ok(fallocate(fd, 0, 0, 30000));
	ok(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
	equal(lseek(fd, 0, SEEK_DATA), 4096);
	ok(fchmod(fd, 0600));
	ok(fchown(fd, geteuid(), getegid()));
	ok(futimens(fd, times));
	equal(tc_fstat(fd).st_mtim.tv_sec, 4);
	equal(tc_fstat(fd).st_mode, S_IFREG | 0600);
	ok(fsync(fd));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reader = (int)ok(open(path, O_RDONLY));
	check(tc_is_filled(reader, 10000, 5000, 'y'));
	close(fd);
	check(tc_is_filled(reader, 10000, 5000, 'y'));
	equal(tc_fstat(reader).st_nlink, 0);
}

static void not_linked_again(void)
{
	int fd = tc_make("f", 0644);
	char path[32];

	ok(unlink("f"));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	error(linkat(AT_FDCWD, path, AT_FDCWD, "g", AT_SYMLINK_FOLLOW), ENOENT);
	equal(tc_count("."), 0);
}

static void name_used_again(void)
{
	int old = tc_make("f", 0644), new;

	tc_fill(old, 0, 100, 'o');
	ok(unlink("f"));
	new = tc_make("f", 0600);
	tc_fill(new, 0, 50, 'n');
	check(tc_is_filled(old, 0, 100, 'o'));
	equal(tc_fstat(old).st_size, 100);
	equal(tc_fstat(new).st_size, 50);
	check(tc_fstat(old).st_ino != tc_fstat(new).st_ino);
	equal(tc_stat("f").st_ino, tc_fstat(new).st_ino);
}

static void directory_goes(void)
{
	int fd, dir;

	ok(mkdir("d", 0755));
	ok(mkdir("d/e", 0755));
	fd = tc_make("d/e/f", 0644);
	dir = (int)ok(open("d/e", O_RDONLY));
	tc_fill(fd, 0, 5000, 'x');
	ok(unlink("d/e/f"));
	ok(rmdir("d/e"));
	ok(rmdir("d"));
	check(tc_is_filled(fd, 0, 5000, 'x'));
	equal(tc_fstat(dir).st_nlink, 0);
	tc_fill(fd, 5000, 5000, 'y');
	equal(tc_fstat(fd).st_size, 10000);
	/* many more come and go: the open one must stay itself */
	for (int i = 0; i < 300; i++) {
		close(tc_make("temp", 0644));
		ok(unlink("temp"));
	}
	check(tc_is_filled(fd, 0, 5000, 'x') && tc_is_filled(fd, 5000, 5000, 'y'));
}

static void more_than_can_be_held(void)
{
	enum { MANY = 900 }; /* of these, the daemon keeps some by descriptor, others by name */
	static int fds[MANY];
	char name[32];

	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		fds[i] = tc_make(name, 0644);
		ok(pwrite(fds[i], name, 8, 0));
		ok(unlink(name));
	}
	equal(tc_count("."), 0);
	for (int i = 0; i < MANY; i++) {
		char back[32] = "";

		snprintf(name, sizeof(name), "f%d", i);
		equal(pread(fds[i], back, 8, 0), 8);
		equal(strcmp(back, name), 0);
		equal(tc_fstat(fds[i]).st_nlink, 0);
		ok(ftruncate(fds[i], i));
		ok(fchmod(fds[i], 0600));
	}
	for (int i = 0; i < MANY; i++)
		equal(tc_fstat(fds[i]).st_size, i);
}

static void symlinks_and_fifos(void)
{
	int link_fd, fifo;
	char target[32];

	ok(symlink("target", "l"));
	link_fd = (int)ok(open("l", O_PATH | O_NOFOLLOW));
	ok(unlink("l"));
	equal(readlinkat(link_fd, "", target, sizeof(target)), 6);
	equal(tc_fstat(link_fd).st_nlink, 0);
	ok(mkfifo("p", 0600));
	fifo = (int)ok(open("p", O_RDWR));
	ok(unlink("p"));
	ok(write(fifo, "x", 1));
	equal(read(fifo, target, 1), 1);
	equal(tc_fstat(fifo).st_nlink, 0);
	ok(fchmod(fifo, 0644));
}

static void replaced_directory(void)
{
	int dir;

	ok(mkdir("a", 0755));
	ok(mkdir("b", 0700));
	dir = (int)ok(open("b", O_RDONLY));
	ok(chdir("b"));
	ok(rename("../a", "../b"));
	equal(tc_fstat(dir).st_nlink, 0);
	equal(tc_fstat(dir).st_mode & 07777, 0700);
	error(openat(dir, "x", O_RDWR | O_CREAT, 0644), ENOENT);
	ok(fchmod(dir, 0711));
	equal(tc_fstat(dir).st_mode & 07777, 0711);
}

const TcCase tc_unlinked[] = {
	{"everything still works on the descriptor", all_operations},
	{"it gets no name again", not_linked_again},
	{"its name can be used again", name_used_again},
	{"its directory can go", directory_goes},
	{"nine hundred of them", more_than_can_be_held},
	{"symlinks and fifos by descriptor", symlinks_and_fifos},
	{"a directory that another replaced", replaced_directory},
	{0},
};
