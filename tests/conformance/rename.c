/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "conformance.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#ifndef RENAME_WHITEOUT
#define RENAME_WHITEOUT (1 << 2)
#endif

static int rename_flags(const char *from, const char *to, unsigned flags)
{
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, flags);
}

/* What stands at `from` and at `to`, and what rename says. */
static void table_of_kinds(void)
{
	static const struct {
		char from, to; /* f file, d directory, D full directory, l symlink, p fifo, -
				  nothing */
		int error;
	} rows[] = {
		{'f', '-', 0},         {'d', '-', 0},         {'D', '-', 0},
		{'l', '-', 0},         {'p', '-', 0},         {'-', '-', ENOENT},
		{'-', 'f', ENOENT},    {'f', 'f', 0},         {'f', 'l', 0},
		{'f', 'p', 0},         {'l', 'f', 0},         {'p', 'f', 0},
		{'l', 'l', 0},         {'d', 'd', 0},         {'D', 'd', 0},
		{'d', 'D', ENOTEMPTY}, {'D', 'D', ENOTEMPTY}, {'f', 'd', EISDIR},
		{'f', 'D', EISDIR},    {'l', 'd', EISDIR},    {'p', 'd', EISDIR},
		{'d', 'f', ENOTDIR},   {'D', 'f', ENOTDIR},   {'d', 'l', ENOTDIR},
		{'d', 'p', ENOTDIR},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *names[] = {"from", "to"};
		char root[32];

		snprintf(root, sizeof(root), "%c%c", rows[i].from, rows[i].to);
		ok(mkdir(root, 0755));
		ok(chdir(root));
		for (int end = 0; end < 2; end++) {
			switch (end ? rows[i].to : rows[i].from) {
			case 'f':
				close(tc_make(names[end], 0644));
				break;
			case 'D':
			case 'd':
				ok(mkdir(names[end], 0755));
				if ((end ? rows[i].to : rows[i].from) == 'D')
					ok(chdir(names[end])), close(tc_make("in", 0644)),
						ok(chdir(".."));
				break;
			case 'l':
				ok(symlink("x", names[end]));
				break;
			case 'p':
				ok(mkfifo(names[end], 0644));
				break;
			}
		}
		struct stat st = rows[i].from == '-' ? (struct stat){0} : tc_stat("from");

		if (rows[i].error) {
			error(rename("from", "to"), rows[i].error);
			equal(tc_exists("from"), rows[i].from != '-');
			equal(tc_exists("to"), rows[i].to != '-');
		} else {
			ok(rename("from", "to"));
			check(!tc_exists("from"));
			equal(tc_stat("to").st_ino, st.st_ino);
			equal(tc_count("."), 1);
		}
		ok(chdir(".."));
	}
}

static void of_itself(void)
{
	close(tc_make("f", 0644));
	ok(link("f", "g"));
	ok(rename("f", "f"));
	ok(rename("f", "g")); /* two names of one file: nothing changes */
	check(tc_exists("f") && tc_exists("g"));
	equal(tc_stat("f").st_nlink, 2);
	ok(mkdir("d", 0755));
	ok(rename("d", "d"));
	ok(mkdir("d/e", 0755));
	error(rename("d", "d/x"), EINVAL);
	error(rename("d", "d/e/x"), EINVAL);
	error(rename("d/e", "d"), ENOTEMPTY);
	error(rename("d/e/.", "x"), EBUSY);
	error(rename("f", "missing/x"), ENOENT);
	error(rename("f/x", "g2"), ENOTDIR);
	error(rename("f", "d/"), ENOTDIR);
}

static void noreplace(void)
{
	close(tc_make("a", 0644));
	close(tc_make("b", 0644));
	error(rename_flags("a", "b", RENAME_NOREPLACE), EEXIST);
	error(rename_flags("a", "a", RENAME_NOREPLACE), EEXIST);
	error(rename_flags("x", "y", RENAME_NOREPLACE), ENOENT);
	ok(rename_flags("a", "c", RENAME_NOREPLACE));
	check(!tc_exists("a") && tc_exists("c"));
	error(rename_flags("b", "c", RENAME_NOREPLACE | RENAME_EXCHANGE), EINVAL);
	error(rename_flags("b", "c", 1U << 20), EINVAL);
}

static void exchange(void)
{
	ino_t a, b, d;

	tc_put("a", "first");
	tc_put("b", "second");
	ok(mkdir("d", 0755));
	ok(mkdir("d/in", 0755));
	a = tc_stat("a").st_ino;
	b = tc_stat("b").st_ino;
	d = tc_stat("d").st_ino;
	ok(rename_flags("a", "b", RENAME_EXCHANGE));
	equal(tc_stat("a").st_ino, b);
	equal(tc_stat("b").st_ino, a);
	tc_has("a", "second");
	ok(rename_flags("a", "d", RENAME_EXCHANGE)); /* file and full directory */
	equal(tc_stat("a").st_ino, d);
	check(tc_exists("a/in"));
	tc_has("d", "second");
	equal(tc_stat(".").st_nlink, 3);
	error(rename_flags("a", "missing", RENAME_EXCHANGE), ENOENT);
	error(rename_flags("missing", "a", RENAME_EXCHANGE), ENOENT);
	error(rename_flags("a", "a/in", RENAME_EXCHANGE), EINVAL);
	ok(mkdir("e", 0755));
	ok(rename_flags("e", "a/in", RENAME_EXCHANGE)); /* between directories: link counts move */
	equal(tc_stat("a").st_nlink, 3);
	ok(rename_flags("a/in", "b", RENAME_EXCHANGE));
	equal(tc_stat("a").st_nlink, 2);
	equal(tc_stat(".").st_nlink, 5);
	ok(rename_flags("b", "b", RENAME_EXCHANGE));
}

static void whiteout(void)
{
	close(tc_make("a", 0644));
	if (tc->view) {
		error(rename_flags("a", "b", RENAME_WHITEOUT), EINVAL);
		check(tc_exists("a") && !tc_exists("b"));
	} else if (rename_flags("a", "b", RENAME_WHITEOUT) < 0) {
		check(errno == EPERM || errno == EINVAL);
	}
}

static void replaced_is_freed(void)
{
	struct stat st;
	int fd = tc_make("b", 0644);

	tc_put("a", "new");
	ok(write(fd, "old", 3));
	ok(rename("a", "b"));
	tc_has("b", "new");
	st = tc_fstat(fd);
	equal(st.st_nlink, 0);
	equal(st.st_size, 3);
	ok(link("b", "c"));
	close(tc_make("d", 0644));
	ok(rename("d", "c")); /* over one of two names */
	equal(tc_stat("b").st_nlink, 1);
	tc_has("b", "new");
}

static void open_across(void)
{
	int fd = tc_make("a", 0644), dir;

	ok(mkdir("d", 0755));
	ok(mkdir("d/e", 0755));
	dir = (int)ok(open("d/e", O_RDONLY | O_DIRECTORY));
	ok(chdir("d/e"));
	tc_put("inside", "x");
	ok(rename("../../d", "../../moved"));
	tc_has("inside", "x");
	tc_put("more", "y");
	ok(close((int)ok(openat(dir, "inside", O_RDONLY))));
	ok(rename("../../a", "a"));
	tc_fill(fd, 0, 100, 'z');
	equal(tc_stat("a").st_size, 100);
	ok(chdir("../.."));
	tc_has("moved/e/more", "y");
	check(!tc_exists("d"));
}

static void times(void)
{
	struct stat file, from, to;

	ok(mkdir("d", 0755));
	ok(mkdir("e", 0755));
	close(tc_make("d/f", 0644));
	file = tc_stat("d/f");
	from = tc_stat("d");
	to = tc_stat("e");
	tc_tick();
	ok(rename("d/f", "e/f"));
	check(tc_same_time(file.st_mtim, tc_stat("e/f").st_mtim));
	check(tc_before(file.st_ctim, tc_stat("e/f").st_ctim));
	check(tc_before(from.st_mtim, tc_stat("d").st_mtim));
	check(tc_before(to.st_mtim, tc_stat("e").st_mtim));
	check(tc_before(to.st_ctim, tc_stat("e").st_ctim));
}

static void sockets_and_fifos(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "s"};
	int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);

	ok(bind(server, (struct sockaddr *)&address, sizeof(address)));
	ok(listen(server, 1));
	ok(rename("s", "t"));
	error(connect(client, (struct sockaddr *)&address, sizeof(address)), ENOENT);
	address.sun_path[0] = 't';
	ok(connect(client, (struct sockaddr *)&address, sizeof(address)));
	ok(mkfifo("p", 0644));
	int fd = (int)ok(open("p", O_RDWR));

	ok(rename("p", "q"));
	ok(write(fd, "x", 1));
	int other = (int)ok(open("q", O_RDWR | O_NONBLOCK));
	char byte;

	equal(read(other, &byte, 1), 1);
	ok(rename("q", "t")); /* a fifo over a socket */
	check(S_ISFIFO(tc_stat("t").st_mode));
}

static void replace_many(void *data)
{
	for (int i = 0; i < 600; i++) {
		char name[32], text[101];

		snprintf(name, sizeof(name), "new%d", (int)getpid());
		memset(text, 'a' + i % 26, 100);
		text[100] = '\0';
		tc_put(name, text);
		ok(rename(name, "target"));
	}
}

/* Each open finds the name, and each read a whole file of one writer. */
static void read_many(void *data)
{
	for (int i = 0; i < 1200; i++) {
		char text[200];
		int fd = (int)ok(open("target", O_RDONLY));
		ssize_t n = read(fd, text, sizeof(text));

		equal(n, 100);
		for (int k = 1; k < 100; k++)
			check(text[k] == text[0]);
		close(fd);
	}
}

static void readers_during_rename(void)
{
	pid_t children[4];

	replace_many(NULL);
	for (int i = 0; i < 4; i++)
		children[i] = tc_fork(i < 2 ? replace_many : read_many, NULL);
	for (int i = 0; i < 4; i++)
		tc_wait(children[i]);
	equal(tc_count("."), 1);
}

static void sticky(void)
{
	ok(mkdir("d", 0777));
	ok(chmod("d", 01777));
	tc_become(TC_UID, TC_GID);
	tc_put("d/one", "mine");
	ok(mkdir("d/dir", 0777));
	tc_back();
	tc_become(TC_UID2, TC_GID2);
	error(unlink("d/one"), EPERM);
	error(rename("d/one", "d/two"), EPERM);
	error(rmdir("d/dir"), EPERM);
	tc_put("d/three", "other");
	error(rename("d/three", "d/one"), EPERM);
	error(rename_flags("d/three", "d/one", RENAME_EXCHANGE), EPERM);
	ok(unlink("d/three"));
	tc_back();
	ok(unlink("d/one"));
}

/* A directory of another that moves to another parent changes its "..": it must be writable. */
static void unwritable_directory(void)
{
	ok(mkdir("a", 0777));
	ok(mkdir("b", 0777));
	ok(mkdir("a/d", 0777));
	ok(chmod("a/d", 0555));
	error(rename("a/d", "b/d"), EACCES);
	ok(rename("a/d", "a/e"));
	ok(chmod("a", 0555));
	error(rename("a/e", "b/e"), EACCES);
	ok(chmod("a", 0755));
}

const TcCase tc_rename[] = {
	{"each kind over each kind", table_of_kinds},
	{"onto itself, into itself, onto another name of itself", of_itself},
	{"NOREPLACE", noreplace},
	{"EXCHANGE", exchange},
	{"WHITEOUT is refused", whiteout},
	{"what is replaced lives on while open", replaced_is_freed},
	{"open files, open directories, a cwd inside", open_across},
	{"times of the file and both directories", times},
	{"sockets and fifos", sockets_and_fifos},
	{"readers never see a gap or a torn file", readers_during_rename},
	{"in a sticky directory", sticky, TC_IDS},
	{"directories without write permission", unwritable_directory, TC_PLAIN},
	{0},
};
