/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What files are charged, on a disk and on a tmpfs: holes, preallocated and punched pages. */
#include "store.h"

#include "macros.h"
#include "quota.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/xattr.h>

#include <cmocka.h>

#include "scratch.h"

#define PAGE ((off_t)TN_PAGE_SIZE)

/* The tests run once per pair of file system and kind of store. */
typedef struct Place {
	const char *base;
	TnStoreKind kind;
	bool counts_ranges; /* pages_in() works there */
} Place;

typedef struct Fixture {
	TnScratch scratch;
	TnStore store;
	bool counts_ranges;
	int fd; /* a file to work on */
	size_t fds;
} Fixture;

static int set_up_at(void **state, const Place *place)
{
	Fixture *f = calloc(1, sizeof(*f));

	f->fds = tn_count_fds();
	assert_true(tn_scratch_new(&f->scratch, place->base));
	assert_int_equal(
		tn_store_open(&f->store, TN_STORE_DIR, f->scratch.dir, geteuid(), getegid()), 0);
	f->store.ops = tn_store_ops(place->kind);
	f->counts_ranges = place->counts_ranges;
	f->fd = openat(f->store.data, "tmp/f", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	assert_true(f->fd >= 0);
	*state = f;
	return 0;
}

static int set_up_disk(void **state)
{
	return set_up_at(state, &(Place){.kind = TN_STORE_DIR, .counts_ranges = true});
}

/* Without a tmpfs these run on the disk's file system, where st_blocks is as good a guide. */
static int set_up_tmpfs(void **state)
{
	return set_up_at(state, &(Place){.base = tn_scratch_tmpfs(), .kind = TN_STORE_DIR});
}

/* Since Linux 6.5 (cachestat), and on a tmpfs alone. */
static bool memory_counts_ranges(void)
{
	int fd = tn_scratch_tmpfs() ? memfd_create("probe", MFD_CLOEXEC) : -1;
	bool works = fd >= 0 && tn_store_ops(TN_STORE_MEMORY)->pages_in(fd, 0, 1) == 0;

	if (fd >= 0)
		close(fd);
	return works;
}

static int set_up_memory(void **state)
{
	return set_up_at(state, &(Place){.base = tn_scratch_tmpfs(),
					 .kind = TN_STORE_MEMORY,
					 .counts_ranges = memory_counts_ranges()});
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	close(f->fd);
	tn_store_clear(&f->store);
	tn_scratch_remove(&f->scratch);
	assert_int_equal(tn_count_fds(), f->fds);
	free(f);
	return 0;
}

static int64_t pages(Fixture *f)
{
	struct stat st;

	assert_int_equal(fstat(f->fd, &st), 0);
	return f->store.ops->pages(f->fd, &st);
}

static void write_at(Fixture *f, off_t offset, size_t size)
{
	TN_AUTOFREE char *data = malloc(size);

	memset(data, 'x', size);
	assert_int_equal(pwrite(f->fd, data, size, offset), size);
}

#define assert_pages_in(f, first, count, expected) \
	assert_int_equal((f)->store.ops->pages_in((f)->fd, first, count), \
			 (f)->counts_ranges ? (expected) : -EOPNOTSUPP)

static void test_written(void **state)
{
	Fixture *f = *state;

	assert_int_equal(pages(f), 0);
	write_at(f, 0, 1);
	assert_int_equal(pages(f), 1);
	write_at(f, 1, TN_PAGE_SIZE);
	assert_int_equal(pages(f), 2);
	write_at(f, 0, 100 * TN_PAGE_SIZE);
	assert_int_equal(pages(f), 100);
	fsync(f->fd); /* once it is on the disk, too */
	assert_int_equal(pages(f), 100);
	assert_pages_in(f, 0, 100, 100);
	assert_pages_in(f, 99, 100, 1);
	assert_pages_in(f, 100, 1000, 0);
	assert_int_equal(ftruncate(f->fd, PAGE + 1), 0);
	assert_int_equal(pages(f), 2);
	assert_int_equal(ftruncate(f->fd, 0), 0);
	assert_int_equal(pages(f), 0);
}

static void test_holes(void **state)
{
	Fixture *f = *state;

	assert_int_equal(ftruncate(f->fd, 1LL << 34), 0);
	assert_int_equal(pages(f), 0);
	write_at(f, 10 * PAGE, TN_PAGE_SIZE);
	write_at(f, 1000 * PAGE - 1, 2); /* two pages for two bytes */
	assert_int_equal(pages(f), 3);
	assert_pages_in(f, 0, 10, 0);
	assert_pages_in(f, 10, 1, 1);
	assert_pages_in(f, 0, 1000, 2);
	assert_pages_in(f, 11, 988, 0);
	assert_pages_in(f, 999, 2, 2);
}

/* Far more extents than one call returns. */
static void test_many_extents(void **state)
{
	Fixture *f = *state;

	for (off_t i = 0; i < 500; i++)
		write_at(f, 2 * i * PAGE, 1);
	assert_int_equal(pages(f), 500);
	fsync(f->fd);
	assert_int_equal(pages(f), 500);
	assert_pages_in(f, 0, 1000, 500);
	assert_pages_in(f, 1, 998, 499);
	assert_pages_in(f, 501, 200, 100);
}

static void test_preallocated(void **state)
{
	Fixture *f = *state;

	assert_int_equal(fallocate(f->fd, 0, 5 * PAGE, 10 * PAGE), 0);
	assert_int_equal(pages(f), 10);
	assert_pages_in(f, 0, 100, 10);
	write_at(f, 6 * PAGE, TN_PAGE_SIZE);
	assert_int_equal(pages(f), 10);
	assert_int_equal(fallocate(f->fd, FALLOC_FL_KEEP_SIZE, 100 * PAGE, 4 * PAGE), 0);
	assert_int_equal(pages(f), 14); /* past the end */
	assert_pages_in(f, 50, 100, 4);
	fsync(f->fd);
	assert_int_equal(pages(f), 14);
}

static void test_punched(void **state)
{
	Fixture *f = *state;
	const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	write_at(f, 0, 20 * TN_PAGE_SIZE);
	assert_int_equal(fallocate(f->fd, punch, 5 * PAGE, 10 * PAGE), 0);
	assert_int_equal(pages(f), 10);
	assert_pages_in(f, 0, 10, 5);
	assert_int_equal(fallocate(f->fd, punch, 16 * PAGE + 1, PAGE), 0); /* no whole page */
	assert_int_equal(pages(f), 10);
	assert_int_equal(fallocate(f->fd, punch, 0, 20 * PAGE), 0);
	assert_int_equal(pages(f), 0);
}

static int64_t charge(Fixture *f, const char *name, bool with_xattrs)
{
	TN_AUTOFD fd = openat(f->store.data, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	assert_int_equal(fstatat(f->store.data, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return tn_store_charge(&f->store, fd, &st, with_xattrs);
}

static void test_charge(void **state)
{
	Fixture *f = *state;
	int64_t grown;
	char name[300];

	write_at(f, 0, 5000);
	assert_int_equal(charge(f, "tmp/f", true), 8192);
	assert_int_equal(symlinkat("a/target", f->store.data, "tmp/l"), 0);
	assert_int_equal(charge(f, "tmp/l", true), 8);
	assert_int_equal(mkfifoat(f->store.data, "tmp/p", 0644), 0);
	assert_int_equal(charge(f, "tmp/p", true), 0);
	assert_int_equal(mkdirat(f->store.data, "tmp/d", 0755), 0);
	assert_int_equal(charge(f, "tmp/d", true), 0); /* the first block is free */
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "tmp/d/%0200d", i);
		assert_int_equal(mknodat(f->store.data, name, S_IFREG | 0644, 0), 0);
	}
	grown = charge(f, "tmp/d", true);
	if (f->store.ops->directories_grow)
		assert_true(grown > 0 && grown % PAGE == 0);
	else
		assert_int_equal(grown, 0);
}

static void test_xattrs(void **state)
{
	Fixture *f = *state;

	if (fsetxattr(f->fd, "user.probe", "", 0, 0) < 0 && errno == EOPNOTSUPP) {
		print_message("this file system has no user.* attributes\n");
		skip();
	}
	assert_int_equal(fremovexattr(f->fd, "user.probe"), 0);
	assert_int_equal(tn_store_xattr_bytes(f->fd), 0);
	assert_int_equal(fsetxattr(f->fd, "user.key", "value", 5, 0), 0);
	assert_int_equal(fsetxattr(f->fd, "user.k", "", 0, 0), 0);
	assert_int_equal(tn_store_xattr_bytes(f->fd), 8 + 5 + 6);
	assert_int_equal(charge(f, "tmp/f", true), 19);
	assert_int_equal(charge(f, "tmp/f", false), 0);
}

static void test_layout(void **state)
{
	Fixture *f = *state;
	TnStore again;
	struct stat st;

	assert_int_equal(fstatat(f->store.data, "tmp", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 01777);
	assert_int_equal(fstatat(f->store.data, "var-tmp", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 01777);
	assert_int_equal(fstat(f->store.data, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	/* At every start, whatever became of it. */
	assert_int_equal(fchmodat(f->store.data, "tmp", 0700, 0), 0);
	assert_int_equal(tn_store_open(&again, TN_STORE_DIR, f->scratch.dir, geteuid(), getegid()),
			 0);
	assert_int_equal(fstatat(again.data, "tmp", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 01777);
	assert_int_equal(faccessat(again.data, "tmp/f", F_OK, 0), 0);
	tn_store_clear(&again);
	tn_store_clear(&again);
	/* A symlink in its place is not followed. */
	assert_int_equal(renameat(f->store.data, "tmp", f->store.data, "moved"), 0);
	assert_int_equal(symlinkat("moved", f->store.data, "tmp"), 0);
	assert_true(tn_store_open(&again, TN_STORE_DIR, f->scratch.dir, geteuid(), getegid()) < 0);
	assert_int_equal(
		tn_store_open(&again, (TnStoreKind)99, f->scratch.dir, geteuid(), getegid()),
		-ENOTSUP);
}

int main(void)
{
#define TEST(name) \
	{#name " on disk", name, set_up_disk, tear_down, NULL}, \
		{#name " on tmpfs", name, set_up_tmpfs, tear_down, NULL}, \
	{ \
#name " in memory", name, set_up_memory, tear_down, NULL \
	}
	const struct CMUnitTest tests[] = {
		TEST(test_written),      TEST(test_holes),   TEST(test_many_extents),
		TEST(test_preallocated), TEST(test_punched), TEST(test_charge),
		TEST(test_xattrs),       TEST(test_layout),
	};

	if (!tn_scratch_tmpfs())
		print_message("no tmpfs to write to (/dev/shm or /run): the disk stands in\n");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
