/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bytes and inodes up to the last one. Runs alone in a file system of small known limits. */
#include "conformance.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#define PAGE 4096ULL

static uint64_t bytes_free(void)
{
	struct statvfs st;

	ok(statvfs(".", &st));
	check(st.f_bfree <= st.f_blocks && st.f_bavail <= st.f_blocks && st.f_ffree <= st.f_files);
	return st.f_bavail * st.f_frsize;
}

static uint64_t inodes_free(void)
{
	struct statvfs st;

	ok(statvfs(".", &st));
	return st.f_ffree;
}

static void totals(void)
{
	struct statvfs st;

	ok(statvfs(".", &st));
	equal(st.f_blocks * st.f_frsize, tc->bytes);
	equal(st.f_files, tc->inodes);
}

static void to_the_last_byte(void)
{
	uint64_t free_before = bytes_free();
	int fd = tc_make("f", 0644);
	char *data = calloc(1, 1 << 20);
	uint64_t written = 0;
	ssize_t n;

	memset(data, 'x', 1 << 20);
	while ((n = write(fd, data, 1 << 20)) > 0)
		written += (uint64_t)n;
	equal(errno, ENOSPC);
	equal(written, free_before);
	equal(tc_fstat(fd).st_size, written);
	equal(bytes_free(), 0);
	check(tc_is_filled(fd, 0, written, 'x')); /* all that was accepted is there */
	error(write(fd, "y", 1), ENOSPC);
	equal(tc_fstat(fd).st_size, written);
	equal(pwrite(fd, "y", 1, 100), 1); /* what is there can be overwritten */
	ok(ftruncate(fd, (off_t)(written - PAGE)));
	equal(bytes_free(), PAGE);
	equal(pwrite(fd, data, 2 * PAGE, (off_t)(written - PAGE)), PAGE); /* short */
	ok(unlink("f"));
	equal(bytes_free(), 0); /* while open */
	close(fd);
	eventually(bytes_free() == free_before);
}

static void short_and_refused(void)
{
	int filler = tc_make("filler", 0644), fd = tc_make("f", 0644);
	char *data = calloc(1, 1 << 20);

	ok(fallocate(filler, 0, 0, (off_t)(bytes_free() - 3 * PAGE)));
	equal(write(fd, data, 10), 10);     /* the first of three pages */
	equal(write(fd, data, 5000), 5000); /* and the second */
	equal(write(fd, data, 10000), 3 * (ssize_t)PAGE - 5010);
	error(write(fd, data, 1), ENOSPC);
	equal(tc_fstat(fd).st_size, 3 * PAGE);
	int other = tc_make("g", 0644); /* an empty file needs no bytes */

	error(write(other, data, 1), ENOSPC);
	equal(tc_fstat(other).st_size, 0);
	error(pwrite(other, data, 1, 100000), ENOSPC);
	equal(tc_fstat(other).st_size, 0);
	ok(ftruncate(other, 1 << 30)); /* a hole needs none either */
	error(pwrite(other, data, 1, 100000), ENOSPC);
	ok(unlink("filler"));
	close(filler);
	eventually(bytes_free() > 0);
	equal(pwrite(other, data, 1, 100000), 1);
}

static void allocate_all_or_nothing(void)
{
	int fd = tc_make("f", 0644), other = tc_make("g", 0644);
	uint64_t room = bytes_free();

	error(fallocate(fd, 0, 0, (off_t)(room + 1)), ENOSPC);
	equal(bytes_free(), room);
	equal(tc_fstat(fd).st_size, 0);
	ok(fallocate(fd, 0, 0, (off_t)room));
	equal(bytes_free(), 0);
	error(write(other, "x", 1), ENOSPC);
	ok(pwrite(fd, "x", 1, (off_t)(room - 1)));
	error(fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)room, 1), ENOSPC);
	ok(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2 * PAGE));
	equal(bytes_free(), 2 * PAGE);
	ok(write(other, "x", 1));
	equal(bytes_free(), PAGE);
	ok(pwrite(fd, "x", 1, 10)); /* one of the punched pages */
	equal(bytes_free(), 0);
	error(pwrite(fd, "x", 1, PAGE), ENOSPC);
	equal(tc_fstat(fd).st_size, room);
}

/* What is there already costs nothing, wherever it lies. */
static void allocate_between(void)
{
	int fd = tc_make("f", 0644), filler = tc_make("filler", 0644);

	for (int i = 0; i < 8; i += 2)
		tc_fill(fd, i * (off_t)PAGE, PAGE, 'x');
	ok(fallocate(fd, FALLOC_FL_KEEP_SIZE, 5 * (off_t)PAGE, PAGE)); /* there, never written */
	ok(fallocate(filler, 0, 0, (off_t)(bytes_free() - 3 * PAGE)));
	ok(fallocate(fd, 0, 0, 8 * (off_t)PAGE)); /* pages 1, 3 and 7 */
	equal(bytes_free(), 0);
	ok(fallocate(fd, 0, 0, 8 * (off_t)PAGE));
	error(fallocate(fd, 0, 0, 9 * (off_t)PAGE), ENOSPC);
	check(tc_is_filled(fd, 2 * (off_t)PAGE, PAGE, 'x') &&
	      tc_is_filled(fd, 3 * (off_t)PAGE, PAGE, 0));
	equal(tc_fstat(fd).st_blocks, 64);
}

static void holes(void)
{
	uint64_t room = bytes_free();
	int fd = tc_make("f", 0644);

	ok(ftruncate(fd, 20LL << 30));
	equal(bytes_free(), room);
	ok(pwrite(fd, "x", 1, 10LL << 30));
	equal(bytes_free(), room - PAGE);
	ok(pwrite(fd, "xy", 2, (5LL << 30) - 1)); /* across two pages */
	equal(bytes_free(), room - 3 * PAGE);
	ok(pwrite(fd, "x", 1, (5LL << 30) + 5));
	equal(bytes_free(), room - 3 * PAGE);
	ok(ftruncate(fd, 10LL << 30));
	equal(bytes_free(), room - 2 * PAGE);
	ok(ftruncate(fd, 0));
	equal(bytes_free(), room);
}

static void freed_at_once(void)
{
	uint64_t room = bytes_free();
	int fd;

	for (int i = 0; i < 60; i++) { /* each time nearly all of it */
		fd = tc_make("f", 0644);
		ok(fallocate(fd, 0, 0, (off_t)(room - 10 * PAGE)));
		close(fd);
		ok(unlink("f"));
	}
	for (int i = 0; i < 60; i++) {
		fd = tc_make("new", 0644);
		ok(fallocate(fd, 0, 0, (off_t)(room / 2 - 10 * PAGE)));
		close(fd);
		ok(rename("new", "f")); /* over the one before */
	}
	for (int i = 0; i < 60; i++) {
		fd = (int)ok(open("f", O_WRONLY | O_TRUNC));
		ok(fallocate(fd, 0, 0, (off_t)(room - 10 * PAGE)));
		close(fd);
	}
	ok(unlink("f"));
	eventually(bytes_free() == room);
}

/* The close and the write that needs its space follow each other at once. */
static void closed_then_written(void)
{
	int fd = tc_make("f", 0644);
	uint64_t room = bytes_free();

	for (int i = 0; i < 150; i++) {
		int unnamed = (int)ok(open(".", O_TMPFILE | O_RDWR, 0600));

		ok(fallocate(unnamed, 0, 0, (off_t)room));
		close(unnamed);
		equal(pwrite(fd, "x", 1, 0), 1);
		ok(ftruncate(fd, 0));
	}
}

static void links_count_once(void)
{
	uint64_t room = bytes_free(), inodes = inodes_free();
	int fd = tc_make("f", 0644);

	tc_fill(fd, 0, 8 * PAGE, 'x');
	close(fd);
	ok(link("f", "g"));
	ok(link("f", "h"));
	equal(bytes_free(), room - 8 * PAGE);
	if (tc->view)
		equal(inodes_free(), inodes - 1); /* a tmpfs takes one for each name */
	ok(unlink("f"));
	ok(unlink("g"));
	equal(bytes_free(), room - 8 * PAGE);
	ok(unlink("h"));
	eventually(bytes_free() == room && inodes_free() == inodes);
}

static void inodes_to_the_last(void)
{
	uint64_t room = inodes_free();
	char name[32];

	for (uint64_t i = 0; i < room; i++) {
		snprintf(name, sizeof(name), "f%d", (int)i);
		switch (i % 5) {
		case 0:
			close(tc_make(name, 0644));
			break;
		case 1:
			ok(mkdir(name, 0755));
			break;
		case 2:
			ok(symlink("x", name));
			break;
		case 3:
			ok(mkfifo(name, 0644));
			break;
		case 4:
			ok(mknod(name, S_IFSOCK | 0644, 0));
			break;
		}
	}
	equal(inodes_free(), 0);
	error(open("more", O_RDWR | O_CREAT, 0644), ENOSPC);
	error(mkdir("more", 0755), ENOSPC);
	error(symlink("x", "more"), ENOSPC);
	error(mkfifo("more", 0644), ENOSPC);
	error(open(".", O_TMPFILE | O_RDWR, 0644), ENOSPC);
	equal(tc_count("."), room);
	ok(unlink("f0"));
	close(tc_make("more", 0644)); /* there is room at once */
	error(open("again", O_RDWR | O_CREAT, 0644), ENOSPC);
	ok(rename("more", "f5"));
	close(tc_make("more", 0644)); /* what was replaced has left its inode */
	ok(rmdir("f1"));
	ok(symlink("x", "f1"));
}

static void open_and_unnamed_count(void)
{
	uint64_t inodes = inodes_free(), room = bytes_free();
	int fd = (int)ok(open(".", O_TMPFILE | O_RDWR, 0644));

	tc_fill(fd, 0, 3 * PAGE, 'x');
	equal(inodes_free(), inodes - 1);
	equal(bytes_free(), room - 3 * PAGE);
	close(fd);
	eventually(inodes_free() == inodes && bytes_free() == room);
}

static void copies_stop_at_the_limit(void)
{
	int from = tc_make("a", 0644), to = tc_make("b", 0644);
	uint64_t room = bytes_free(), size = room / 2 + 4 * PAGE;
	off_t at = 0, into = 0;
	ssize_t n;

	size = size / PAGE * PAGE;
	ok(fallocate(from, 0, 0, (off_t)size));
	while ((n = copy_file_range(from, &at, to, &into, size, 0)) > 0)
		;
	equal(errno, ENOSPC);
	equal(into, room - size);
	equal(tc_fstat(to).st_size, room - size);
	equal(bytes_free(), 0);
}

/* A store into a hole when all is used: the kernel finds out when it writes the page. */
static void mapped_store_at_the_limit(void)
{
	int fd = tc_make("f", 0644), filler = tc_make("filler", 0644);
	char *map;

	if (!tc->view)
		tc_skip("a tmpfs sends SIGBUS here");
	ok(ftruncate(fd, 16 * PAGE));
	ok(fallocate(filler, 0, 0, (off_t)bytes_free()));
	map = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(map != MAP_FAILED);
	map[5 * PAGE] = 'x';
	error(msync(map, 16 * PAGE, MS_SYNC), ENOSPC);
	equal(bytes_free(), 0);
	equal(tc_fstat(fd).st_blocks, 0);
	ok(munmap(map, 16 * PAGE));
}

static void attributes_and_targets_count(void)
{
	static char value[1000], target[1001];
	uint64_t room;

	if (!tc->view)
		tc_skip("a tmpfs charges these otherwise");
	int fd = tc_make("f", 0644);

	room = bytes_free();
	memset(target, 't', 1000);
	for (int i = 0; i < 4; i++) {
		char name[32];

		snprintf(name, sizeof(name), "l%d", i);
		ok(symlink(target, name));
	}
	equal(bytes_free(), room - PAGE); /* 4,000 bytes: free blocks are whole ones */
	ok(symlink("97 more bytes will not fit into the block of which 96 are left: this target "
		   "has to be long enough!!",
		   "l4"));
	equal(bytes_free(), room - 2 * PAGE);
	for (int i = 0; i < 5; i++) {
		char name[32];

		snprintf(name, sizeof(name), "l%d", i);
		ok(unlink(name));
	}
	eventually(bytes_free() == room);
	ok(setxattr("f", "user.a", value, 1000, 0));
	ok(setxattr("f", "user.b", value, 1000, 0));
	equal(bytes_free(), room - PAGE);
	ok(setxattr("f", "user.a", value, 10, 0));
	ok(removexattr("f", "user.b"));
	ok(removexattr("f", "user.a"));
	equal(bytes_free(), room);
	/* and are refused when full */
	ok(fallocate(fd, 0, 0, (off_t)bytes_free()));
	error(setxattr("f", "user.a", value, 1000, 0), ENOSPC);
	error(getxattr("f", "user.a", value, 1000), ENODATA);
	error(symlink(target, "l"), ENOSPC);
	check(!tc_exists("l"));
}

static void empty_files_when_full(void)
{
	int fd = tc_make("f", 0644);

	ok(fallocate(fd, 0, 0, (off_t)bytes_free()));
	close(tc_make("empty", 0644));
	ok(mkdir("d", 0755));
	ok(rename("empty", "d/x"));
	ok(link("d/x", "y"));
	ok(unlink("y"));
	ok(chmod("f", 0600));
	ok(mkfifo("p", 0600));
}

static void random_order(void)
{
	uint64_t room = bytes_free(), inodes = inodes_free();
	unsigned seed = 4711;
	char name[32], other[32];

	for (int i = 0; i < 3000; i++) {
		int fd;

		snprintf(name, sizeof(name), "f%d", rand_r(&seed) % 40);
		snprintf(other, sizeof(other), "f%d", rand_r(&seed) % 40);
		switch (rand_r(&seed) % 7) {
		case 0:
		case 1:
			fd = open(name, O_RDWR | O_CREAT, 0644);
			if (fd >= 0 && pwrite(fd, name, 4, rand_r(&seed) % 200000) < 0)
				equal(errno, ENOSPC);
			close(fd);
			break;
		case 2:
			if (truncate(name, rand_r(&seed) % 200000) < 0)
				check(errno == ENOENT || errno == ENOSPC);
			break;
		case 3:
			fd = open(name, O_RDWR);
			if (fd >= 0)
				fallocate(fd,
					  rand_r(&seed) % 2
						  ? 0
						  : FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					  rand_r(&seed) % 100000, 1 + rand_r(&seed) % 100000);
			close(fd);
			break;
		case 4:
			unlink(name);
			break;
		case 5:
			rename(name, other);
			break;
		case 6:
			if (link(name, other) < 0)
				check(errno == ENOENT || errno == EEXIST);
			break;
		}
		check(bytes_free() <= room && inodes_free() <= inodes);
	}
	/* df and du agree: every inode once */
	uint64_t used = 0;
	ino_t seen[40];
	int n = 0;

	for (int i = 0; i < 40; i++) {
		struct stat st;
		bool again = false;

		snprintf(name, sizeof(name), "f%d", i);
		if (lstat(name, &st) < 0)
			continue;
		for (int k = 0; k < n; k++)
			again = again || seen[k] == st.st_ino;
		if (!again)
			used += (uint64_t)st.st_blocks * 512, seen[n++] = st.st_ino;
	}
	/* a disk file system may count a block of its own for a file in many pieces */
	uint64_t most = tc->view ? (uint64_t)n * PAGE : 0;

	eventually(room - bytes_free() <= used && room - bytes_free() + most >= used);
	if (tc->view)
		eventually(inodes_free() == inodes - (uint64_t)n);
}

const TcCase tc_limits[] = {
	{"statfs shows the limits", totals, TC_LIMITS},
	{"a file grows to the last byte and no further", to_the_last_byte, TC_LIMITS},
	{"short writes, refused writes, unchanged sizes", short_and_refused, TC_LIMITS},
	{"fallocate: all or nothing", allocate_all_or_nothing, TC_LIMITS},
	{"fallocate needs only what is missing", allocate_between, TC_LIMITS},
	{"holes are free until filled", holes, TC_LIMITS},
	{"unlink, rename and O_TRUNC free at once", freed_at_once, TC_LIMITS},
	{"a close makes room for the very next write", closed_then_written, TC_LIMITS},
	{"hard links count once", links_count_once, TC_LIMITS},
	{"inodes to the last one", inodes_to_the_last, TC_LIMITS},
	{"open and unnamed files count until closed", open_and_unnamed_count, TC_LIMITS},
	{"copy_file_range stops at the limit", copies_stop_at_the_limit, TC_LIMITS},
	{"a mapped store at the limit: msync says ENOSPC", mapped_store_at_the_limit, TC_LIMITS},
	{"symlink targets and attributes count", attributes_and_targets_count, TC_LIMITS},
	{"what needs no bytes works when full", empty_files_when_full, TC_LIMITS},
	{"df and du agree after any order of changes", random_order, TC_LIMITS},
	{0},
};
