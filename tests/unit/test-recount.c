/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The recount: each inode once, every byte of the formula, and nothing outside the store. */
#include "recount.h"

#include "macros.h"
#include "quota.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>

#include <cmocka.h>

#include "scratch.h"

#define PAGE TN_PAGE_SIZE

typedef struct Fixture {
	TnScratch scratch;
	TnStore store;
	size_t fds;
} Fixture;

static int set_up(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));

	f->fds = tn_count_fds();
	assert_true(tn_scratch_new(&f->scratch, NULL));
	assert_int_equal(
		tn_store_open(&f->store, TN_STORE_DIR, f->scratch.dir, geteuid(), getegid()), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	tn_store_clear(&f->store);
	tn_scratch_remove(&f->scratch);
	assert_int_equal(tn_count_fds(), f->fds);
	free(f);
	return 0;
}

static void make(Fixture *f, const char *name, size_t size)
{
	TN_AUTOFD fd = openat(f->store.data, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	TN_AUTOFREE char *data = calloc(1, size + 1);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
}

static void check(Fixture *f, uint64_t bytes, uint64_t inodes)
{
	TnUsage usage = {0};

	assert_int_equal(tn_recount_store(&f->store, &usage), 0);
	assert_int_equal(usage.bytes, bytes);
	assert_int_equal(usage.inodes, inodes);
}

static void test_empty(void **state)
{
	check(*state, 0, 0); /* the subtrees themselves are not charged */
}

static void test_kinds(void **state)
{
	Fixture *f = *state;
	int data = f->store.data;

	make(f, "tmp/a", 1);
	make(f, "var-tmp/b", PAGE + 1);
	assert_int_equal(mkdirat(data, "tmp/d", 0755), 0);
	assert_int_equal(mkdirat(data, "tmp/d/e", 0755), 0);
	make(f, "tmp/d/e/c", 0);
	assert_int_equal(symlinkat("12345", data, "tmp/d/l"), 0);
	assert_int_equal(mkfifoat(data, "tmp/p", 0600), 0);
	assert_int_equal(mknodat(data, "tmp/s", S_IFSOCK | 0600, 0), 0);
	check(f, 3 * PAGE + 5, 8);
	make(f, "tmp/d/orphan", 2 * PAGE);
	assert_int_equal(renameat(data, "tmp/d/orphan", f->store.orphans, "17"), 0);
	assert_int_equal(mkdirat(f->store.orphans, "18", 0700), 0);
	check(f, 5 * PAGE + 5, 10);
}

static void test_links(void **state)
{
	Fixture *f = *state;
	int data = f->store.data;

	make(f, "tmp/a", 1);
	assert_int_equal(mkdirat(data, "tmp/d", 0755), 0);
	assert_int_equal(linkat(data, "tmp/a", data, "tmp/b", 0), 0);
	assert_int_equal(linkat(data, "tmp/a", data, "tmp/d/c", 0), 0);
	check(f, PAGE, 2);
	/* Nothing is followed. */
	assert_int_equal(symlinkat("/", data, "tmp/d/root"), 0);
	assert_int_equal(symlinkat("..", data, "tmp/d/up"), 0);
	check(f, PAGE + 3, 4);
}

static void test_xattrs(void **state)
{
	Fixture *f = *state;
	TN_AUTOFD tmp = openat(f->store.data, "tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	TN_AUTOFD file = -1;
	TnUsage usage = {0};

	if (fsetxattr(tmp, "user.a", "12", 2, 0) < 0) {
		print_message("this file system has no user.* attributes\n");
		skip();
	}
	make(f, "tmp/f", 0);
	file = openat(tmp, "f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fsetxattr(file, "user.bc", "345", 3, 0), 0);
	check(f, 8 + 10, 1);
	assert_int_equal(tn_recount_store(&f->store, &usage), 0);
	assert_int_equal(usage.xattr_bytes, 18);
}

static void test_held(void **state)
{
	Fixture *f = *state;
	TN_AUTOFD file = -1, dir = -1, link = -1;
	TnUsage usage = {0};

	make(f, "tmp/f", 3 * PAGE);
	file = openat(f->store.data, "tmp/f", O_PATH | O_CLOEXEC);
	assert_int_equal(mkdirat(f->store.data, "tmp/d", 0755), 0);
	dir = openat(f->store.data, "tmp/d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(symlinkat("1234", f->store.data, "tmp/l"), 0);
	link = openat(f->store.data, "tmp/l", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	assert_int_equal(unlinkat(f->store.data, "tmp/f", 0), 0);
	assert_int_equal(unlinkat(f->store.data, "tmp/l", 0), 0);
	assert_int_equal(unlinkat(f->store.data, "tmp/d", AT_REMOVEDIR), 0);
	check(f, 0, 0);
	assert_int_equal(tn_recount_held(&f->store, file, &usage), 0);
	assert_int_equal(tn_recount_held(&f->store, dir, &usage), 0);
	assert_int_equal(tn_recount_held(&f->store, link, &usage), 0);
	assert_int_equal(usage.bytes, 3 * PAGE + 4);
	assert_int_equal(usage.inodes, 3);
	assert_true(tn_recount_held(&f->store, -1, &usage) < 0);
}

static void test_deep(void **state)
{
	Fixture *f = *state;
	TN_AUTOFD at = openat(f->store.data, "tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < 1000; i++) {
		int below;

		assert_int_equal(mkdirat(at, "a-directory-of-some-length", 0700), 0);
		assert_int_equal(mknodat(at, "z", S_IFREG | 0600, 0), 0);
		below = openat(at, "a-directory-of-some-length",
			       O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = below;
	}
	check(f, 0, 2000);
}

/* Many directories in one: going back into it must not read it anew for each. */
static void test_wide(void **state)
{
	Fixture *f = *state;
	struct timespec start, end;
	uint64_t grown;
	TnUsage usage = {0};
	struct stat st;
	char name[32];
	double seconds;

	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "tmp/%d", i);
		assert_int_equal(mkdirat(f->store.data, name, 0700), 0);
	}
	assert_int_equal(fstatat(f->store.data, "tmp", &st, 0), 0);
	grown = f->store.ops->directory_pages(&st) * PAGE;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	assert_int_equal(tn_recount_store(&f->store, &usage), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
	printf("%.0f us per directory\n", seconds / 2000 * 1e6);
	assert_int_equal(usage.inodes, 2000);
	assert_int_equal(usage.bytes, grown);
	assert_true(seconds / 2000 < 200e-6);
}

static void test_broken(void **state)
{
	Fixture *f = *state;
	TnUsage usage = {0};

	assert_int_equal(unlinkat(f->store.data, "var-tmp", AT_REMOVEDIR), 0);
	assert_int_equal(tn_recount_store(&f->store, &usage), -ENOENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_empty), TEST(test_kinds), TEST(test_links), TEST(test_xattrs),
		TEST(test_held),  TEST(test_deep),  TEST(test_wide),  TEST(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
