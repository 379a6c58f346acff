/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens beneath a directory: each way out of it is closed by itself. */
#include "sys.h"

#include "macros.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "scratch.h"

static int setup(void **state)
{
	static TnScratch scratch;

	if (!tn_scratch_new(&scratch, NULL))
		return -1;
	*state = &scratch;
	return mkdirat(scratch.dir, "d", 0700) == 0 && mkdirat(scratch.dir, "d/e", 0700) == 0 &&
			       symlinkat("e", scratch.dir, "d/inside") == 0 &&
			       symlinkat("../..", scratch.dir, "d/outside") == 0 &&
			       symlinkat("/", scratch.dir, "d/root") == 0
		       ? 0
		       : -1;
}

static int teardown(void **state)
{
	tn_scratch_remove(*state);
	return 0;
}

static int try(int dir, const char *path)
{
	TN_AUTOFD fd = tn_open_beneath(dir, path, O_PATH, 0);

	return fd < 0 ? fd : 0;
}

/* RESOLVE_BENEATH. What comes back in the end has left it all the same. */
static void test_beneath(void **state)
{
	const TnScratch *scratch = *state;
	TN_AUTOFD dir = tn_open_beneath(scratch->dir, "d", O_PATH | O_DIRECTORY, 0);

	assert_true(dir >= 0);
	assert_int_equal(try(dir, "e"), 0);
	assert_int_equal(try(dir, "e/.."), 0);
	assert_int_equal(try(dir, ".."), -EXDEV);
	assert_int_equal(try(dir, "../d/e"), -EXDEV);
	assert_int_equal(try(dir, "e/../.."), -EXDEV);
	assert_int_equal(try(dir, "/"), -EXDEV);
}

/* RESOLVE_NO_SYMLINKS: not those that stay inside either. The last one is opened as itself. */
static void test_links(void **state)
{
	static const char *const through[] = {"inside/.", "inside/../e", "outside/.", "root/."};
	const TnScratch *scratch = *state;
	TN_AUTOFD dir = tn_open_beneath(scratch->dir, "d", O_PATH | O_DIRECTORY, 0);
	TN_AUTOFD link = tn_open_beneath(dir, "inside", O_PATH | O_NOFOLLOW, 0);
	struct stat st;

	for (size_t i = 0; i < TN_ARRAY_LEN(through); i++)
		assert_int_equal(try(dir, through[i]), -ELOOP);
	assert_int_equal(try(dir, "inside"), -ELOOP);
	assert_int_equal(fstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

/* RESOLVE_NO_MAGICLINKS, which the two above imply: this one fails when all three are gone. */
static void test_magic_links(void **state)
{
	TN_AUTOFD proc = open("/proc/thread-self", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_true(proc >= 0);
	assert_int_equal(try(proc, "status"), 0);
	assert_int_equal(try(proc, "cwd/."), -ELOOP);
	assert_int_equal(try(proc, "exe"), -ELOOP);
}

/* RESOLVE_NO_XDEV */
static void test_mounts(void **state)
{
	TN_AUTOFD root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_true(root >= 0);
	assert_int_equal(access("/proc/version", F_OK), 0);
	assert_int_equal(try(root, "proc/version"), -EXDEV);
	assert_int_equal(try(root, "proc"), -EXDEV);
}

/* Close-on-exec, asked for or not. */
static void test_close_on_exec(void **state)
{
	const TnScratch *scratch = *state;
	TN_AUTOFD fd = tn_open_beneath(scratch->dir, "f", O_RDWR | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beneath),       cmocka_unit_test(test_links),
		cmocka_unit_test(test_magic_links),   cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_close_on_exec),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
