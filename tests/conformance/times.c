/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* utimensat, and which operation moves which stamp. */
#include "conformance.h"

#include <sys/mman.h>
#include <time.h>

static void exact(void)
{
	static const struct timespec values[] = {
		{0, 0},
		{1, 1},
		{1700000000, 999999999},
		{1700000000, 123456789},
		{-1, 0},            /* 1969 */
		{-1000000000, 5},   /* 1938 */
		{-2147483648LL, 0}, /* 1901 */
		{2147483647, 0},    /* the last second of 2038's 32 bits */
		{2147483648LL, 7},  /* and the next */
		{4294967296LL, 8},  /* 2106 */
		{10000000000LL, 9}, /* 2286 */
	};

	close(tc_make("f", 0644));
	ok(mkdir("d", 0755));
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct timespec times[2] = {values[i], values[(i + 3) % 11]};

		for (int k = 0; k < 2; k++) {
			const char *name = k ? "d" : "f";

			ok(utimensat(AT_FDCWD, name, times, 0));
			check(tc_same_time(tc_stat(name).st_atim, times[0]));
			check(tc_same_time(tc_stat(name).st_mtim, times[1]));
		}
	}
}

static void omit_and_now(void)
{
	struct timespec times[2] = {{.tv_sec = 100, .tv_nsec = 1}, {.tv_sec = 200, .tv_nsec = 2}},
			now;

	close(tc_make("f", 0644));
	ok(utimensat(AT_FDCWD, "f", times, 0));
	times[0].tv_nsec = UTIME_OMIT;
	times[1] = (struct timespec){.tv_sec = 300, .tv_nsec = 3};
	ok(utimensat(AT_FDCWD, "f", times, 0));
	equal(tc_stat("f").st_atim.tv_sec, 100);
	equal(tc_stat("f").st_mtim.tv_sec, 300);
	times[0] = (struct timespec){.tv_sec = 400, .tv_nsec = 4};
	times[1].tv_nsec = UTIME_OMIT;
	ok(utimensat(AT_FDCWD, "f", times, 0));
	equal(tc_stat("f").st_atim.tv_sec, 400);
	equal(tc_stat("f").st_mtim.tv_sec, 300);
	struct stat before = tc_stat("f");

	tc_tick();
	times[0].tv_nsec = times[1].tv_nsec = UTIME_OMIT;
	ok(utimensat(AT_FDCWD, "f", times, 0)); /* both omitted: nothing happens */
	check(tc_same_time(tc_stat("f").st_ctim, before.st_ctim));
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	times[0].tv_nsec = UTIME_NOW;
	ok(utimensat(AT_FDCWD, "f", times, 0));
	check(!tc_before(tc_stat("f").st_atim, now));
	equal(tc_stat("f").st_mtim.tv_sec, 300);
	ok(utimensat(AT_FDCWD, "f", NULL, 0));
	check(!tc_before(tc_stat("f").st_mtim, now));
	times[0].tv_nsec = 1000000000;
	error(utimensat(AT_FDCWD, "f", times, 0), EINVAL);
	error(utimensat(AT_FDCWD, "missing", NULL, 0), ENOENT);
	int fd = (int)ok(open("f", O_RDONLY));

	times[0] = times[1] = (struct timespec){.tv_sec = 77};
	ok(futimens(fd, times));
	equal(tc_stat("f").st_mtim.tv_sec, 77);
	ok(unlink("f"));
	times[0] = times[1] = (struct timespec){.tv_sec = 78};
	ok(futimens(fd, times));
	equal(tc_fstat(fd).st_mtim.tv_sec, 78);
}

/* What an operation does to a file's stamps: '=' stays, '>' moves. */
static int scene_fd;

static void by_write(void)
{
	ok(write(scene_fd, "x", 1));
}
static void by_empty_write(void)
{
	equal(write(scene_fd, "x", 0), 0);
}
static void by_truncate(void)
{
	ok(truncate("f", 3));
}
static void by_same_truncate(void)
{
	ok(ftruncate(scene_fd, tc_fstat(scene_fd).st_size));
}
static void by_open_trunc(void)
{
	close((int)ok(open("f", O_WRONLY | O_TRUNC)));
}
static void by_open(void)
{
	close((int)ok(open("f", O_WRONLY)));
}
static void by_chmod(void)
{
	ok(chmod("f", 0600));
}
static void by_rename(void)
{
	ok(rename("f", "g")), ok(rename("g", "f"));
}
static void by_link(void)
{
	ok(link("f", "h"));
}
static void by_unlink(void)
{
	ok(unlink("h"));
}
static void by_fallocate(void)
{
	ok(fallocate(scene_fd, 0, 0, 20000));
}
static void by_punch(void)
{
	ok(fallocate(scene_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
}
static void by_stat(void)
{
	tc_stat("f");
}
static void by_fsync(void)
{
	ok(fsync(scene_fd));
}

static void which_moves(void)
{
	static const struct {
		const char *what;
		void (*act)(void);
		char mtime, ctime;
	} rows[] = {
		{"write", by_write, '>', '>'},
		{"a write of nothing", by_empty_write, '=', '='},
		{"truncate", by_truncate, '>', '>'},
		{"ftruncate to the same size", by_same_truncate, '>', '>'},
		{"open", by_open, '=', '='},
		{"open with O_TRUNC", by_open_trunc, '>', '>'},
		{"chmod", by_chmod, '=', '>'},
		{"rename", by_rename, '=', '>'},
		{"link", by_link, '=', '>'},
		{"unlink of another name", by_unlink, '=', '>'},
		{"fallocate", by_fallocate, '>', '>'},
		{"punch", by_punch, '>', '>'},
		{"stat", by_stat, '=', '='},
		{"fsync", by_fsync, '=', '='},
	};

	scene_fd = tc_make("f", 0644);
	tc_fill(scene_fd, 0, 10000, 'x');
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stat before = tc_stat("f"), after;

		tc_tick();
		rows[i].act();
		after = tc_stat("f");
		if (tc_before(before.st_mtim, after.st_mtim) != (rows[i].mtime == '>') ||
		    tc_before(before.st_ctim, after.st_ctim) != (rows[i].ctime == '>'))
			tc_fail(__FILE__, __LINE__, "%s: mtime %s, ctime %s", rows[i].what,
				tc_before(before.st_mtim, after.st_mtim) ? "moved" : "stayed",
				tc_before(before.st_ctim, after.st_ctim) ? "moved" : "stayed");
	}
}

static void shared_mapping_moves_mtime(void)
{
	int fd = tc_make("f", 0644);
	struct stat before;
	char *map;

	tc_fill(fd, 0, 8192, 'x');
	map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(map != MAP_FAILED);
	before = tc_fstat(fd);
	tc_tick();
	map[5000] = 'y';
	ok(msync(map, 8192, MS_SYNC));
	eventually(tc_before(before.st_mtim, tc_fstat(fd).st_mtim));
	check(tc_before(before.st_ctim, tc_fstat(fd).st_ctim));
}

static void kept_after_write(void)
{
	struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 6, .tv_nsec = 7}};
	int fd = tc_make("f", 0644);

	/* what tar and cp do: written, then stamped, then closed */
	tc_fill(fd, 0, 100000, 'x');
	ok(futimens(fd, times));
	close(fd);
	equal(tc_stat("f").st_mtim.tv_sec, 6);
	equal(tc_stat("f").st_mtim.tv_nsec, 7);
	usleep(50000);
	equal(tc_stat("f").st_mtim.tv_sec, 6);
}

static void permissions(void)
{
	struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 6}};

	close(tc_make("f", 0666));
	ok(chmod("f", 0666));
	tc_become(TC_UID, TC_GID);
	error(utimensat(AT_FDCWD, "f", times, 0), EPERM); /* only the owner may set them */
	ok(utimensat(AT_FDCWD, "f", NULL, 0));            /* who may write may set now */
	tc_back();
	ok(chmod("f", 0644));
	tc_become(TC_UID, TC_GID);
	error(utimensat(AT_FDCWD, "f", NULL, 0), EACCES);
	tc_back();
}

const TcCase tc_times[] = {
	{"nanoseconds, before 1970, after 2038", exact},
	{"OMIT, NOW and descriptors", omit_and_now},
	{"which operation moves which stamp", which_moves},
	{"a store through a shared mapping moves mtime", shared_mapping_moves_mtime},
	{"stamps set after a write stay", kept_after_write},
	{"who may set them", permissions, TC_IDS},
	{0},
};
