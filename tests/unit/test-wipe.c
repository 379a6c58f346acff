/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The wipe: whatever a sandbox leaves behind goes, and nothing else. */
#include "wipe.h"

#include "macros.h"
#include "sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "scratch.h"

typedef struct Fixture {
	TnScratch scratch;
	int trash, outside;
	TnWipe wipe;
	size_t fds;
} Fixture;

static int set_up(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));

	f->fds = tn_count_fds();
	assert_true(tn_scratch_new(&f->scratch, NULL));
	f->trash = tn_open_dir_make(f->scratch.dir, "trash", 0700);
	f->outside = tn_open_dir_make(f->scratch.dir, "outside", 0700);
	assert_true(f->trash >= 0 && f->outside >= 0);
	f->wipe = (TnWipe){.trash = f->trash};
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	close(f->trash);
	close(f->outside);
	tn_scratch_remove(&f->scratch);
	assert_int_equal(tn_count_fds(), f->fds);
	free(f);
	return 0;
}

static void make_file(int dir, const char *name)
{
	int fd = openat(dir, name, O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

static int make_dir(int dir, const char *name)
{
	int fd;

	assert_int_equal(mkdirat(dir, name, 0700), 0);
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static size_t count_names(int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fdopendir(copy);
	struct dirent *item;
	size_t n = 0;

	while ((item = readdir(stream)))
		n += strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0;
	closedir(stream);
	return n;
}

/* Runs it to its end; fails when it makes no progress or never ends. */
static void wipe_all(Fixture *f, unsigned steps)
{
	for (int i = 0; i < 100000; i++) {
		int r = tn_wipe_some(&f->wipe, steps);

		assert_in_range(r, 0, 1);
		if (r == 0)
			return;
	}
	fail_msg("the wipe goes on for ever");
}

static void test_empty(void **state)
{
	Fixture *f = *state;

	assert_int_equal(tn_wipe_some(&f->wipe, 10), 0);
	assert_int_equal(f->wipe.removed, 0);
}

static void test_kinds(void **state)
{
	Fixture *f = *state;
	TN_AUTOFD dir = make_dir(f->trash, "nest"), below = make_dir(dir, "below");

	make_file(f->trash, "file-at-the-top");
	make_file(dir, "file");
	make_file(below, "file");
	assert_int_equal(linkat(below, "file", dir, "link", 0), 0);
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
	assert_int_equal(mknodat(dir, "socket", S_IFSOCK | 0600, 0), 0);
	assert_int_equal(symlinkat("nowhere", dir, "dangling"), 0);
	tn_close(&below);
	below = make_dir(dir, "empty");
	wipe_all(f, 1000);
	assert_int_equal(count_names(f->trash), 0);
	assert_int_equal(f->wipe.removed, 10);
	assert_int_equal(f->wipe.stuck, 0);
}

static void test_links_are_not_followed(void **state)
{
	Fixture *f = *state;
	TN_AUTOFD dir = make_dir(f->trash, "nest"), kept = make_dir(f->outside, "kept");
	char path[300];

	make_file(kept, "precious");
	snprintf(path, sizeof(path), "%s/outside/kept", f->scratch.path);
	assert_int_equal(symlinkat(path, dir, "absolute"), 0);
	assert_int_equal(symlinkat("../../outside/kept", dir, "relative"), 0);
	assert_int_equal(symlinkat("..", dir, "up"), 0);
	assert_int_equal(symlinkat(".", dir, "self"), 0);
	assert_int_equal(symlinkat(path, f->trash, "at-the-top"), 0);
	assert_int_equal(linkat(kept, "precious", dir, "hard", 0), 0);
	wipe_all(f, 1000);
	assert_int_equal(count_names(f->trash), 0);
	assert_int_equal(faccessat(kept, "precious", F_OK, 0), 0);
	assert_int_equal(count_names(f->outside), 1);
}

static void test_deep(void **state)
{
	Fixture *f = *state;
	int at = make_dir(f->trash, "nest");

	for (int i = 0; i < 1200; i++) {
		int below =
			make_dir(at, "a-directory-of-some-length-so-that-its-path-exceeds-4096");

		if (i % 100 == 0)
			make_file(at, "file");
		close(at);
		at = below;
	}
	close(at);
	wipe_all(f, 50);
	assert_int_equal(count_names(f->trash), 0);
	assert_int_equal(f->wipe.removed, 1213);
}

static void test_names(void **state)
{
	Fixture *f = *state;
	TN_AUTOFD dir = make_dir(f->trash, "nest");
	char name[256] = {0};

	for (int byte = 1; byte < 256; byte++) {
		name[0] = (char)byte;
		if (byte != '/' && byte != '.')
			make_file(dir, name);
	}
	memset(name, '\xff', 255);
	close(make_dir(dir, name));
	make_file(dir, "..x");
	make_file(dir, "...");
	make_file(dir, "stuck-in-the-nest"); /* only the trash's own names mean something */
	close(make_dir(dir, "deep-0"));
	close(make_dir(f->trash, "deep-0"));
	make_file(f->trash, "deep-1");
	wipe_all(f, 1000);
	assert_int_equal(count_names(f->trash), 0);
}

static void test_steps(void **state)
{
	Fixture *f = *state;
	TN_AUTOFD dir = make_dir(f->trash, "nest");
	char name[16];

	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "%d", i);
		make_file(dir, name);
	}
	assert_int_equal(tn_wipe_some(&f->wipe, 100), 1);
	assert_in_range(f->wipe.removed, 1, 100); /* bounded */
	assert_int_equal(count_names(dir), 500 - f->wipe.removed);
	wipe_all(f, 100);
	assert_int_equal(count_names(f->trash), 0);
	assert_int_equal(f->wipe.removed, 501);
}

static void plant(int dir, int depth, TnDice *dice)
{
	char name[16];

	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "%d", i);
		if (depth > 0 && tn_dice(dice, 3)) {
			int below = make_dir(dir, name);

			plant(below, depth - 1, dice);
			close(below);
		} else {
			make_file(dir, name);
		}
	}
}

/* Cut short anywhere, by a successor that knows nothing of the work so far. */
static void test_resumes(void **state)
{
	Fixture *f = *state;
	TnDice dice = {tn_test_seed()};
	TN_AUTOFD dir = make_dir(f->trash, "nest");

	plant(dir, 5, &dice);
	for (int i = 0; i < 10000; i++) {
		TnWipe fresh = {.trash = f->trash};

		if (tn_wipe_some(&fresh, 1 + (unsigned)tn_dice(&dice, 7)) == 0)
			break;
		assert_int_equal(fresh.stuck, 0);
	}
	assert_int_equal(count_names(f->trash), 0);
}

static void close_modes(int dir, int depth)
{
	for (int i = 0; i < 3; i++) {
		static const mode_t modes[] = {0, 0500, 0300};
		int below = make_dir(dir, i == 0 ? "a" : i == 1 ? "b" : "c");

		if (depth > 0)
			close_modes(below, depth - 1);
		make_file(below, "file");
		assert_int_equal(fchmod(below, modes[i]), 0);
		close(below);
	}
}

/* As a process without any capability: only chmod(2) opens such trees. */
static void test_modes(void **state)
{
	Fixture *f = *state;
	TN_AUTOFD dir = make_dir(f->trash, "nest");
	int status;
	pid_t child;

	if (getuid() == 0) {
		assert_int_equal(fchown(f->trash, 65534, 65534), 0);
		assert_int_equal(fchown(dir, 65534, 65534), 0);
	}
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (getuid() == 0 &&
		    (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0))
			_exit(2);
		close_modes(dir, 2);
		close_modes(f->trash, 1);
		wipe_all(f, 1000);
		_exit(f->wipe.stuck ? 3 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(count_names(f->trash), 0);
}

static int set_immutable(int dir, const char *name, bool on)
{
	TN_AUTOFD fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	int flags;

	if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return -errno;
	flags = on ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
	return ioctl(fd, FS_IOC_SETFLAGS, &flags) < 0 ? -errno : 0;
}

/* Where an immutable file is found at the top of the trash: "DIRECTORY/name". */
static bool find_immutable(int trash, const char *name, char *ret, size_t size)
{
	int copy = openat(trash, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fdopendir(copy);
	struct dirent *item;
	bool found = false;

	while (!found && (item = readdir(stream))) {
		snprintf(ret, size, "%s/%s", item->d_name, name);
		found = item->d_name[0] != '.' && faccessat(trash, ret, F_OK, 0) == 0;
	}
	closedir(stream);
	return found;
}

/* What cannot go is set aside once, and the rest goes. */
static void test_stuck(void **state)
{
	Fixture *f = *state;
	TN_AUTOFD dir = make_dir(f->trash, "nest"), below = make_dir(dir, "below");
	char path[300];
	uint64_t stuck;

	make_file(below, "fixed");
	make_file(below, "other");
	make_file(dir, "another");
	if (set_immutable(below, "fixed", true) < 0)
		skip(); /* needs root, and a file system with attributes */
	wipe_all(f, 1000);
	assert_true(f->wipe.stuck > 0);
	stuck = f->wipe.stuck;
	assert_int_equal(tn_wipe_some(&f->wipe, 1000), 0);
	assert_int_equal(f->wipe.stuck, stuck); /* not again and again */
	assert_int_equal(count_names(f->trash), 1);
	assert_true(find_immutable(f->trash, "fixed", path, sizeof(path)));
	assert_int_equal(strncmp(path, "stuck-", 6), 0);
	assert_int_equal(set_immutable(f->trash, path, false), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_empty),   TEST(test_kinds), TEST(test_links_are_not_followed),
		TEST(test_deep),    TEST(test_names), TEST(test_steps),
		TEST(test_resumes), TEST(test_modes), TEST(test_stuck),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
