/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Listing a directory, also while it changes. */
#include "conformance.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

static void make_many(const char *directory, int n)
{
	char name[64];

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s/f%d", directory, i);
		close(tc_make(name, 0644));
	}
}

static void types_and_inodes(void)
{
	struct dirent *entry;
	int n = 0;
	DIR *stream;

	close(tc_make("file", 0644));
	ok(link("file", "link"));
	ok(mkdir("dir", 0755));
	ok(symlink("dir", "symlink"));
	ok(mkfifo("fifo", 0644));
	ok(mknod("socket", S_IFSOCK | 0644, 0));
	for (int round = 0; round < 3; round++) { /* from the store, then from the cache */
		stream = opendir(".");
		while ((entry = readdir(stream))) {
			struct stat st = tc_stat(entry->d_name);

			equal(entry->d_type, IFTODT(st.st_mode));
			if (strcmp(entry->d_name, "..") != 0)
				equal(entry->d_ino, st.st_ino);
			n++;
		}
		closedir(stream);
	}
	equal(n, 3 * 8);
}

/* Lists with small steps; counts how often each of "f0".."fN" was seen. */
static void list_in_steps(int fd, int *seen, int most, void (*between)(int step))
{
	char buffer[512];
	long n;

	for (int step = 0;; step++) {
		n = syscall(SYS_getdents64, fd, buffer, sizeof(buffer));
		ok(n);
		if (n == 0)
			return;
		for (long at = 0; at < n;) {
			struct dirent64 *entry = (void *)(buffer + at);

			if (entry->d_name[0] == 'f') {
				int number = atoi(entry->d_name + 1);

				check(number < most);
				seen[number]++;
			}
			at += entry->d_reclen;
		}
		if (between)
			between(step);
	}
}

static void add_and_remove(int step)
{
	char name[64];

	snprintf(name, sizeof(name), "d/new%d", step);
	close(tc_make(name, 0644));
	snprintf(name, sizeof(name), "d/gone%d", step);
	unlink(name);
}

static void each_lasting_name_once(void)
{
	enum { MANY = 1000 };
	int seen[MANY] = {0}, fd;
	char name[64];

	ok(mkdir("d", 0755));
	make_many("d", MANY);
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "d/gone%d", i);
		close(tc_make(name, 0644));
	}
	fd = (int)ok(open("d", O_RDONLY | O_DIRECTORY));
	list_in_steps(fd, seen, MANY, add_and_remove);
	for (int i = 0; i < MANY; i++)
		equal(seen[i], 1);
}

static void removed_while_listing(void)
{
	enum { MANY = 5000 };
	struct timespec start, end;
	struct dirent *entry;
	DIR *stream;

	ok(mkdir("d", 0755));
	make_many("d", MANY);
	clock_gettime(CLOCK_MONOTONIC, &start);
	stream = opendir("d");
	while ((entry = readdir(stream))) {
		if (entry->d_name[0] == 'f')
			ok(unlinkat(dirfd(stream), entry->d_name, 0));
	}
	closedir(stream);
	clock_gettime(CLOCK_MONOTONIC, &end);
	equal(tc_count("d"), 0);
	ok(rmdir("d"));
	/* a second, but the machine may be busy; quadratic work would take minutes */
	check(end.tv_sec - start.tv_sec < 40);
}

static void seek_and_rewind(void)
{
	char names[600][256];
	long places[600];
	struct dirent *entry;
	int n = 0;
	DIR *stream;

	ok(mkdir("d", 0755));
	make_many("d", 500);
	stream = opendir("d");
	for (;;) {
		places[n] = telldir(stream);
		entry = readdir(stream);
		if (!entry)
			break;
		snprintf(names[n++], sizeof(names[0]), "%s", entry->d_name);
	}
	equal(n, 502);
	for (int i = n - 1; i >= 0; i -= 7) {
		seekdir(stream, places[i]);
		entry = readdir(stream);
		check(entry && strcmp(entry->d_name, names[i]) == 0);
	}
	close(tc_make("d/later", 0644));
	rewinddir(stream);
	for (n = 0; readdir(stream); n++)
		;
	equal(n, 503);
	closedir(stream);
}

static void two_readers(void)
{
	DIR *a, *b;
	int n = 0;

	ok(mkdir("d", 0755));
	make_many("d", 300);
	a = opendir("d");
	b = opendir("d");
	for (int more = 1; more;) { /* in turns: each has its own place */
		more = 0;
		if (readdir(a))
			n++, more = 1;
		if (readdir(b))
			n++, more = 1;
	}
	equal(n, 2 * 302);
}

static void sees_changes_at_once(void)
{
	for (int i = 0; i < 30; i++) {
		char name[32];

		snprintf(name, sizeof(name), "f%d", i);
		close(tc_make(name, 0644));
		equal(tc_count("."), i + 1);
	}
	for (int i = 0; i < 30; i++) {
		char name[32];

		snprintf(name, sizeof(name), "f%d", i);
		ok(unlink(name));
		equal(tc_count("."), 29 - i);
	}
}

static void long_names(void)
{
	char name[256];

	for (int i = 0; i < 100; i++) {
		memset(name, 'a' + i % 26, 255);
		name[255] = '\0';
		name[0] = (char)('0' + i % 10);
		name[1] = (char)('0' + i / 10);
		close(tc_make(name, 0644));
	}
	equal(tc_count("."), 100);
}

static void errors(void)
{
	char buffer[16];
	int fd = tc_make("f", 0644), dir = (int)ok(open(".", O_RDONLY));

	error(syscall(SYS_getdents64, fd, buffer, sizeof(buffer)), ENOTDIR);
	error(syscall(SYS_getdents64, dir, buffer, 1), EINVAL);
	error(opendir("f") ? 0 : -1, ENOTDIR);
	error(opendir("missing") ? 0 : -1, ENOENT);
}

const TcCase tc_listing[] = {
	{"d_type and d_ino equal stat", types_and_inodes},
	{"each lasting name exactly once while others come and go", each_lasting_name_once},
	{"5,000 entries removed while they are listed", removed_while_listing},
	{"telldir, seekdir, rewinddir", seek_and_rewind},
	{"two readers of one directory", two_readers},
	{"changes show at once", sees_changes_at_once},
	{"entries with the longest names", long_names},
	{"errors", errors},
	{0},
};
