/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Real detached mounts, made in namespaces of this process's own. */
#include "macros.h"
#include "mount.h"
#include "namespaces.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <cmocka.h>

#define PAGE 4096

static bool entered;
static char reason[256] = "";

static int enter(void **state)
{
	entered = tn_namespaces_enter(reason, sizeof(reason)) == 0;
	return 0;
}

static void need_namespaces(void)
{
	if (!entered) {
		print_message("%s\n", reason);
		skip();
	}
}

static void need_fuse(void)
{
	TN_AUTOFD device = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	need_namespaces();
	if (device < 0) {
		print_message("/dev/fuse: %s\n", strerror(errno));
		skip();
	}
}

static char *read_mounts(void)
{
	char *text = calloc(1, 65536);
	FILE *file = fopen("/proc/self/mountinfo", "re");

	assert_non_null(text);
	assert_non_null(file);
	assert_true(fread(text, 1, 65535, file) > 0);
	fclose(file);
	return text;
}

static void test_memory_limits(void **state)
{
	TN_AUTOFD mount = -1;
	struct statvfs fs;
	struct stat st;

	need_namespaces();
	mount = tn_mount_memory_new(16 * PAGE, 10);
	assert_true(mount >= 0);
	assert_int_equal(fcntl(mount, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fstatvfs(mount, &fs), 0);
	assert_int_equal(fs.f_blocks, 16);
	assert_int_equal(fs.f_files, 10);
	assert_true(fs.f_flag & ST_NOSUID);
	assert_true(fs.f_flag & ST_NODEV);
	assert_int_equal(fstat(mount, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_int_equal(st.st_uid, geteuid());
}

static void test_memory_is_full_at_its_limit(void **state)
{
	static const char page[PAGE];
	TN_AUTOFD mount = -1, file = -1;
	int pages = 0;

	need_namespaces();
	mount = tn_mount_memory_new(16 * PAGE, 10);
	file = openat(mount, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	while (write(file, page, PAGE) == PAGE)
		pages++;
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(pages, 16);
	/* Grown while it is in use. */
	assert_int_equal(tn_mount_memory_resize(mount, 20 * PAGE, 10), 0);
	while (write(file, page, PAGE) == PAGE)
		pages++;
	assert_int_equal(pages, 20);
	/* Not below what is in use. */
	assert_int_equal(tn_mount_memory_resize(mount, PAGE, 10), -EINVAL);
	/* From no limit to one and back. */
	assert_int_equal(tn_mount_memory_resize(mount, TN_UNLIMITED, TN_UNLIMITED), 0);
	assert_int_equal(write(file, page, PAGE), PAGE);
	assert_int_equal(tn_mount_memory_resize(mount, 100 * PAGE, 10), 0);
}

static void test_resize_of_something_else(void **state)
{
	TN_AUTOFD proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	need_namespaces();
	assert_int_equal(tn_mount_memory_resize(proc, PAGE, 10), -EINVAL);
	assert_int_equal(tn_mount_memory_resize(-1, PAGE, 10), -EBADF);
}

/* The worker chooses the descriptor: it must not lead to a tmpfs of the host. */
static void test_resize_of_the_hosts(void **state)
{
	static const char *const places[] = {"/dev/shm", "/run", "/dev"};
	struct statvfs before, after;
	struct statfs fs;
	bool tried = false;

	need_namespaces();
	for (size_t i = 0; i < TN_ARRAY_LEN(places); i++) {
		TN_AUTOFD dir = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (dir < 0 || fstatfs(dir, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
			continue;
		tried = true;
		assert_int_equal(fstatvfs(dir, &before), 0);
		/* As it is: should it get through, no harm is done. */
		assert_int_equal(tn_mount_memory_resize(dir, before.f_blocks * before.f_frsize,
							before.f_files),
				 -EPERM);
		assert_int_equal(fstatvfs(dir, &after), 0);
		assert_int_equal(after.f_blocks, before.f_blocks);
	}
	if (!tried) {
		print_message("no tmpfs is mounted here\n");
		skip();
	}
}

static void test_mounts_are_attached_nowhere(void **state)
{
	TN_AUTOFREE char *before = NULL;
	TN_AUTOFREE char *after = NULL;
	TN_AUTOFD memory = -1, device = -1, view = -1;

	need_fuse();
	before = read_mounts();
	memory = tn_mount_memory_new(PAGE, 10);
	view = tn_mount_fuse_new(geteuid(), getegid(), geteuid() == 0, &device);
	assert_true(memory >= 0);
	assert_true(view >= 0);
	after = read_mounts();
	assert_string_equal(before, after);
}

static void test_view_and_a_second_mount(void **state)
{
	TN_AUTOFD device = -1, first = -1, second = -1;
	char request[FUSE_MIN_READ_BUFFER];

	need_fuse();
	first = tn_mount_fuse_new(geteuid(), getegid(), geteuid() == 0, &device);
	assert_true(first >= 0);
	assert_true(device >= 0);
	assert_int_equal(fcntl(device, F_GETFD), FD_CLOEXEC);
	assert_true(fcntl(device, F_GETFL) & O_NONBLOCK);
	assert_int_equal(fcntl(first, F_GETFD), FD_CLOEXEC);
	/* The kernel speaks first. */
	assert_true(read(device, request, sizeof(request)) > 0);
	assert_int_equal(((struct fuse_in_header *)request)->opcode, FUSE_INIT);

	second = tn_mount_fuse_again(device, geteuid(), getegid(), geteuid() == 0);
	assert_true(second >= 0);
	/* No second superblock: nothing more was asked. */
	assert_true(read(device, request, sizeof(request)) < 0);
	assert_int_equal(errno, EAGAIN);

	/* Alive with one of the two. */
	tn_close(&first);
	assert_true(read(device, request, sizeof(request)) < 0);
	assert_int_equal(errno, EAGAIN);
	tn_close(&second);
	/* Ended with the last. */
	assert_true(read(device, request, sizeof(request)) < 0);
	assert_int_equal(errno, ENODEV);
	assert_int_equal(tn_mount_fuse_again(device, geteuid(), getegid(), geteuid() == 0),
			 -ENOTCONN);

	/* A closed device ends its view. */
	tn_close(&device);
	first = tn_mount_fuse_new(geteuid(), getegid(), geteuid() == 0, &device);
	assert_true(first >= 0);
	tn_close(&device);
	assert_true(openat(first, "x", O_RDONLY | O_CLOEXEC) < 0);
	assert_int_equal(errno, ENOTCONN);
}

static void test_no_device(void **state)
{
	TN_AUTOFD null = open("/dev/null", O_RDWR | O_CLOEXEC);

	need_namespaces();
	assert_int_equal(tn_mount_fuse_again(null, geteuid(), getegid(), false), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_limits),
		cmocka_unit_test(test_memory_is_full_at_its_limit),
		cmocka_unit_test(test_resize_of_something_else),
		cmocka_unit_test(test_resize_of_the_hosts),
		cmocka_unit_test(test_mounts_are_attached_nowhere),
		cmocka_unit_test(test_view_and_a_second_mount),
		cmocka_unit_test(test_no_device),
	};

	return cmocka_run_group_tests(tests, enter, NULL);
}
