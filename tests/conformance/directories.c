/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mkdir, rmdir, and what a directory is. */
#include "conformance.h"

#include <dirent.h>

static void link_counts(void)
{
	equal(tc_stat(".").st_nlink, 2);
	ok(mkdir("a", 0755));
	equal(tc_stat("a").st_nlink, 2);
	equal(tc_stat(".").st_nlink, 3);
	ok(mkdir("a/b", 0755));
	ok(mkdir("a/c", 0755));
	close(tc_make("a/file", 0644));
	equal(tc_stat("a").st_nlink, 4);
	ok(rename("a/b", "b"));
	equal(tc_stat("a").st_nlink, 3);
	equal(tc_stat(".").st_nlink, 4);
	ok(rename("a/c", "b")); /* over an empty one */
	equal(tc_stat("a").st_nlink, 2);
	equal(tc_stat(".").st_nlink, 4);
	ok(rmdir("b"));
	equal(tc_stat(".").st_nlink, 3);
}

static void dots(void)
{
	ok(mkdir("a", 0755));
	ok(mkdir("a/b", 0755));
	ok(mkdir("c", 0755));
	equal(tc_stat("a/b/..").st_ino, tc_stat("a").st_ino);
	equal(tc_stat("a/b/.").st_ino, tc_stat("a/b").st_ino);
	ok(rename("a/b", "c/b"));
	equal(tc_stat("c/b/..").st_ino, tc_stat("c").st_ino);
	ok(chdir("c/b"));
	ok(rename("../../c", "../../a/c"));
	equal(tc_stat("../..").st_ino, tc_stat("../../../a").st_ino);
	ok(chdir("../../.."));
	equal(tc_stat("a/c/b/../../..").st_ino, tc_stat(".").st_ino);
}

static void mkdir_errors(void)
{
	close(tc_make("file", 0644));
	ok(symlink("nowhere", "dangling"));
	ok(mkdir("dir", 0755));
	error(mkdir("file", 0755), EEXIST);
	error(mkdir("dir", 0755), EEXIST);
	error(mkdir("dangling", 0755), EEXIST);
	error(mkdir("missing/x", 0755), ENOENT);
	error(mkdir("file/x", 0755), ENOTDIR);
	error(mkdir("", 0755), ENOENT);
}

static void modes_and_umask(void)
{
	ok(mkdir("a", 0777));
	equal(tc_stat("a").st_mode, S_IFDIR | 0755);
	umask(0);
	ok(mkdir("b", 0777));
	equal(tc_stat("b").st_mode, S_IFDIR | 0777);
	ok(mkdir("c", 01777));
	equal(tc_stat("c").st_mode, S_IFDIR | 01777);
	umask(0777);
	ok(mkdir("d", 0777));
	equal(tc_stat("d").st_mode, S_IFDIR);
	equal(tc_stat("d").st_uid, geteuid());
	equal(tc_stat("d").st_gid, getegid());
}

static void rmdir_errors(void)
{
	close(tc_make("file", 0644));
	ok(symlink("full", "link"));
	ok(mkdir("full", 0755));
	ok(mkdir("full/x", 0755));
	error(rmdir("full"), ENOTEMPTY);
	error(rmdir("file"), ENOTDIR);
	error(rmdir("link"), ENOTDIR);
	error(rmdir("missing"), ENOENT);
	error(rmdir("file/x"), ENOTDIR);
	error(unlink("full"), EISDIR);
	ok(symlink("gone", "full/dangling"));
	ok(rmdir("full/x"));
	error(rmdir("full"), ENOTEMPTY);
	ok(unlink("full/dangling"));
	ok(rmdir("full"));
}

static void removed_while_open(void)
{
	struct stat st;
	DIR *stream;
	int fd;

	ok(mkdir("a", 0755));
	fd = (int)ok(open("a", O_RDONLY | O_DIRECTORY));
	ok(chdir("a"));
	ok(rmdir("../a"));
	error(mkdir("x", 0755), ENOENT);
	error(open("x", O_RDWR | O_CREAT, 0644), ENOENT);
	error(openat(fd, "x", O_RDWR | O_CREAT, 0644), ENOENT);
	error(symlinkat("t", fd, "x"), ENOENT);
	error(stat("x", &st), ENOENT);
	equal(tc_fstat(fd).st_nlink, 0);
	stream = fdopendir(fd);
	check(stream);
	errno = 0;
	check(!readdir(stream)); /* not even . and .., as on a tmpfs, or these two alone */
	equal(errno, 0);
	closedir(stream);
}

static void recreated_under_a_cwd(void)
{
	ok(mkdir("a", 0755));
	ok(chdir("a"));
	ok(rmdir("../a"));
	ok(mkdir("../a", 0755));
	close(tc_make("../a/new", 0644));
	check(!tc_exists("new"));
}

static void times_move(void)
{
	struct stat before, after;

	before = tc_stat(".");
	tc_tick();
	ok(mkdir("a", 0755));
	after = tc_stat(".");
	check(tc_before(before.st_mtim, after.st_mtim));
	check(tc_before(before.st_ctim, after.st_ctim));
	before = after;
	tc_tick();
	close(tc_make("a/f", 0644)); /* not the grandparent's */
	after = tc_stat(".");
	check(tc_same_time(before.st_mtim, after.st_mtim));
	tc_tick();
	ok(unlink("a/f"));
	ok(rmdir("a"));
	after = tc_stat(".");
	check(tc_before(before.st_mtim, after.st_mtim));
	check(tc_before(before.st_ctim, after.st_ctim));
}

static void modes_hold(void)
{
	ok(mkdir("sub", 0755));
	ok(mkdir("sub/d", 0755));
	close(tc_make("sub/d/f", 0644));
	ok(chmod("sub/d", 0500)); /* no write */
	error(open("sub/d/x", O_RDWR | O_CREAT, 0644), EACCES);
	error(mkdir("sub/d/x", 0755), EACCES);
	error(unlink("sub/d/f"), EACCES);
	error(rename("sub/d/f", "sub/d/g"), EACCES);
	error(link("sub/d/f", "sub/d/g"), EACCES);
	error(symlink("t", "sub/d/g"), EACCES);
	error(mkfifo("sub/d/g", 0644), EACCES);
	ok(chmod("sub/d", 0600)); /* no search */
	error(open("sub/d/f", O_RDONLY), EACCES);
	error(access("sub/d/f", F_OK), EACCES);
	equal(tc_count("sub/d"), 1);
	ok(chmod("sub/d", 0300)); /* no read */
	error(open("sub/d", O_RDONLY), EACCES);
	error(opendir("sub/d") ? 0 : -1, EACCES);
	ok(close((int)ok(open("sub/d/f", O_RDONLY))));
	ok(chmod("sub/d", 0700));
	ok(chmod("sub", 0));
	error(chdir("sub/d"), EACCES);
	error(chdir("sub"), EACCES);
	error(open("sub/d/f", O_RDONLY), EACCES);
	ok(chmod("sub", 0700));
}

static void open_directory(void)
{
	ok(mkdir("d", 0755));
	close(tc_make("f", 0644));
	error(open("d", O_WRONLY), EISDIR);
	error(open("d", O_RDWR), EISDIR);
	error(open("d", O_RDWR | O_CREAT, 0644), EISDIR);
	error(open("f", O_RDONLY | O_DIRECTORY), ENOTDIR);
	int fd = (int)ok(open("d", O_RDONLY | O_DIRECTORY));
	char byte;

	error(read(fd, &byte, 1), EISDIR);
	error(write(fd, "x", 1), EBADF);
	error(ftruncate(fd, 0), EINVAL);
	error(truncate("d", 0), EISDIR);
	ok(fsync(fd));
	close(fd);
}

const TcCase tc_directories[] = {
	{"link counts", link_counts},
	{"dot and dot-dot lead right, also after a rename", dots},
	{"errors of mkdir", mkdir_errors},
	{"mode and umask of a new directory", modes_and_umask},
	{"errors of rmdir", rmdir_errors},
	{"removed while open and cwd", removed_while_open},
	{"a removed cwd is not the new directory of its name", recreated_under_a_cwd},
	{"mtime and ctime move with the entries", times_move},
	{"modes are enforced", modes_hold, TC_PLAIN},
	{"a directory opened as a file", open_directory},
	{0},
};
