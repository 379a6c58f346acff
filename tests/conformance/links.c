/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Hard links and symbolic links. */
#include "conformance.h"

#include <limits.h>
#include <stdlib.h>

static void one_inode(void)
{
	int a = tc_make("a", 0644), b;

	ok(mkdir("d", 0755));
	ok(link("a", "b"));
	ok(link("a", "d/c"));
	equal(tc_stat("a").st_nlink, 3);
	equal(tc_stat("b").st_nlink, 3);
	equal(tc_fstat(a).st_nlink, 3);
	equal(tc_stat("b").st_ino, tc_stat("a").st_ino);
	equal(tc_stat("d/c").st_ino, tc_stat("a").st_ino);
	b = (int)ok(open("d/c", O_RDWR));
	tc_fill(a, 0, 5000, 'x');
	equal(tc_stat("d/c").st_size, 5000);
	check(tc_is_filled(b, 0, 5000, 'x'));
	ok(ftruncate(b, 7));
	equal(tc_stat("a").st_size, 7);
	ok(chmod("b", 0600));
	equal(tc_stat("d/c").st_mode, S_IFREG | 0600);
	ok(unlink("a"));
	equal(tc_stat("b").st_nlink, 2);
	equal(tc_fstat(a).st_nlink, 2);
	ok(unlink("b"));
	ok(unlink("d/c"));
	equal(tc_fstat(a).st_nlink, 0);
	check(tc_is_filled(a, 0, 7, 'x'));
}

static void link_errors(void)
{
	close(tc_make("f", 0644));
	close(tc_make("g", 0644));
	ok(mkdir("d", 0755));
	ok(symlink("f", "l"));
	error(link("f", "g"), EEXIST);
	error(link("f", "l"), EEXIST);
	error(link("d", "e"), EPERM);
	error(link("missing", "e"), ENOENT);
	error(link("f", "missing/e"), ENOENT);
	error(link("f/x", "e"), ENOTDIR);
	error(link("f", "g/e"), ENOTDIR);
	error(link("f", "."), EEXIST);
	equal(tc_stat("f").st_nlink, 1);
}

static void link_to_symlink(void)
{
	ok(symlink("missing", "l"));
	ok(link("l", "m"));
	check(S_ISLNK(tc_stat("m").st_mode));
	equal(tc_stat("m").st_ino, tc_stat("l").st_ino);
	equal(tc_stat("l").st_nlink, 2);
	close(tc_make("f", 0644));
	ok(symlink("f", "to-f"));
	ok(linkat(AT_FDCWD, "to-f", AT_FDCWD, "h", AT_SYMLINK_FOLLOW));
	equal(tc_stat("h").st_ino, tc_stat("f").st_ino);
}

static void link_times(void)
{
	struct stat file, directory;

	close(tc_make("f", 0644));
	ok(mkdir("d", 0755));
	file = tc_stat("f");
	directory = tc_stat("d");
	tc_tick();
	ok(link("f", "d/f"));
	check(tc_before(file.st_ctim, tc_stat("f").st_ctim));
	check(tc_same_time(file.st_mtim, tc_stat("f").st_mtim));
	check(tc_before(directory.st_mtim, tc_stat("d").st_mtim));
	file = tc_stat("f");
	tc_tick();
	ok(unlink("d/f"));
	check(tc_before(file.st_ctim, tc_stat("f").st_ctim));
	check(tc_same_time(file.st_mtim, tc_stat("f").st_mtim));
}

static void many_links(void)
{
	enum { MANY = 1000 };
	char name[32];

	close(tc_make("f", 0644));
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "link%d", i);
		ok(link("f", name));
	}
	equal(tc_stat("link500").st_nlink, MANY + 1);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "link%d", i);
		ok(unlink(name));
	}
	equal(tc_stat("f").st_nlink, 1);
}

static void special_links(void)
{
	ok(mkfifo("p", 0644));
	ok(link("p", "q"));
	equal(tc_stat("q").st_nlink, 2);
	check(S_ISFIFO(tc_stat("q").st_mode));
	ok(unlink("p"));
	equal(tc_stat("q").st_nlink, 1);
}

static void symlink_basics(void)
{
	char target[PATH_MAX];

	ok(symlink("some/where", "l"));
	equal(readlink("l", target, sizeof(target)), 10);
	check(memcmp(target, "some/where", 10) == 0);
	equal(readlink("l", target, 4), 4);
	equal(tc_stat("l").st_size, 10);
	equal(tc_stat("l").st_mode, S_IFLNK | 0777);
	error(symlink("x", "l"), EEXIST);
	error(symlink("", "e"), ENOENT);
	error(symlink("x", "missing/l"), ENOENT);
	close(tc_make("f", 0644));
	error(symlink("x", "f/l"), ENOTDIR);
	error(readlink("f", target, sizeof(target)), EINVAL);
	error(readlink("missing", target, sizeof(target)), ENOENT);
	error(open("l", O_RDONLY), ENOENT);
	error(open("l", O_RDONLY | O_NOFOLLOW), ELOOP);
	error(open("l", O_RDWR | O_CREAT | O_EXCL, 0644), EEXIST);
	ok(close((int)ok(open("l", O_PATH | O_NOFOLLOW))));
}

static void symlink_lengths(void)
{
	static char target[PATH_MAX + 2], read_back[PATH_MAX + 2];
	static const int lengths[] = {1, 59, 60, 127, 128, 255, 256, 4000, 4095};
	char name[32];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(target, 'a' + (int)i, (size_t)lengths[i]);
		target[lengths[i]] = '\0';
		snprintf(name, sizeof(name), "l%zu", i);
		ok(symlink(target, name));
		equal(tc_stat(name).st_size, lengths[i]);
		equal(readlink(name, read_back, sizeof(read_back)), lengths[i]);
		check(memcmp(target, read_back, (size_t)lengths[i]) == 0);
	}
	memset(target, 'x', 4096);
	target[4096] = '\0';
	error(symlink(target, "too-long"), ENAMETOOLONG);
}

static void symlink_follow(void)
{
	struct stat st;

	ok(symlink("b", "a"));
	ok(symlink("a", "b"));
	error(stat("a", &st), ELOOP);
	error(open("a", O_RDWR | O_CREAT, 0644), ELOOP);
	ok(symlink("made-through", "c"));
	tc_put("c", "through");
	tc_has("made-through", "through");
	ok(unlink("c"));
	tc_has("made-through", "through");
	ok(mkdir("d", 0755));
	ok(symlink("d", "to-d"));
	close(tc_make("to-d/f", 0644));
	check(tc_exists("d/f"));
	ok(symlink("../d/f", "d/up"));
	equal((stat("d/up", &st), st.st_ino), tc_stat("d/f").st_ino);
	error(unlink("to-d/"), ENOTDIR);
	/* a chain of 40 works, the next is one too many */
	close(tc_make("link0", 0644));
	for (int i = 1; i <= 41; i++) {
		char to[32], name[32];

		snprintf(to, sizeof(to), "link%d", i - 1);
		snprintf(name, sizeof(name), "link%d", i);
		ok(symlink(to, name));
	}
	ok(stat("link40", &st));
	error(stat("link41", &st), ELOOP);
}

static void symlink_attributes(void)
{
	struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 2000, .tv_nsec = 5}};

	close(tc_make("f", 0644));
	ok(symlink("f", "l"));
	ok(utimensat(AT_FDCWD, "l", times, AT_SYMLINK_NOFOLLOW));
	equal(tc_stat("l").st_mtim.tv_sec, 2000);
	equal(tc_stat("l").st_mtim.tv_nsec, 5);
	check(tc_stat("f").st_mtim.tv_sec > 2000);
	ok(lchown("l", geteuid(), getegid()));
	ok(chmod("l", 0600)); /* the file's */
	equal(tc_stat("f").st_mode, S_IFREG | 0600);
	equal(tc_stat("l").st_mode, S_IFLNK | 0777);
	error(fchmodat(AT_FDCWD, "l", 0600, AT_SYMLINK_NOFOLLOW), EOPNOTSUPP);
}

static void symlink_replaced(void)
{
	char target[64];

	/* a target that was read before must not stay when the name becomes another link */
	for (int i = 0; i < 50; i++) {
		char text[32];
		int n = snprintf(text, sizeof(text), "target%d", i);

		ok(symlink(text, "new"));
		ok(rename("new", "l"));
		equal(readlink("l", target, sizeof(target)), n);
		check(memcmp(target, text, (size_t)n) == 0);
	}
}

const TcCase tc_links[] = {
	{"all names are one inode, at once", one_inode},
	{"errors of link", link_errors},
	{"a link to a symlink, followed and not", link_to_symlink},
	{"ctime moves, mtime stays", link_times},
	{"a thousand links", many_links},
	{"links of a fifo", special_links},
	{"errors and results of symlink and readlink", symlink_basics},
	{"targets of every length up to 4,095", symlink_lengths},
	{"symlinks are followed; loops are ELOOP", symlink_follow},
	{"a symlink's own times, mode and owner", symlink_attributes},
	{"a replaced symlink shows its new target", symlink_replaced},
	{0},
};
