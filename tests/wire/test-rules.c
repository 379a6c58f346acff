/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Deny and read-only rules on every operation that takes a name or changes a node. */
#include "harness.h"

#include "macros.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

typedef struct Fixture {
	TnWire wire;
	uint64_t d, f;           /* /tmp/d, /tmp/f */
	uint64_t ro, ro_f, ro_d; /* /tmp/ro, and in it f and d: made before the rule held */
} Fixture;

/*
 * The rules come after the tree, as for a nest that was made before: the policy object is
 * replaced between two requests.
 */
static int set_up(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));
	TnWire *w = &f->wire;
	TnPolicy *policy = tn_policy_new();

	tn_wire_open(w, &(TnWireSpec){.bytes = 1 << 20});
	assert_int_equal(tn_wire_mkdir(w, w->tmp, "d", 0755), 0);
	f->d = w->entry.nodeid;
	assert_int_equal(tn_wire_mknod(w, w->tmp, "f", S_IFREG | 0644), 0);
	f->f = w->entry.nodeid;
	assert_int_equal(tn_wire_mkdir(w, w->tmp, "ro", 0755), 0);
	f->ro = w->entry.nodeid;
	assert_int_equal(tn_wire_mknod(w, f->ro, "f", S_IFREG | 0644), 0);
	f->ro_f = w->entry.nodeid;
	assert_int_equal(tn_wire_write(w, f->ro_f, 0, "old", 3), 3);
	assert_int_equal(tn_wire_setxattr(w, f->ro_f, "user.x", "v", 1, 0), 0);
	assert_int_equal(tn_wire_mkdir(w, f->ro, "d", 0755), 0);
	f->ro_d = w->entry.nodeid;
	assert_int_equal(tn_wire_mkdir(w, w->tmp, "secret", 0755), 0);
	assert_int_equal(tn_wire_mknod(w, w->entry.nodeid, "inside", S_IFREG | 0644), 0);
	assert_int_equal(tn_policy_add(policy, "secret", true), 0);
	assert_int_equal(tn_policy_add(policy, "*.key", true), 0);
	assert_int_equal(tn_policy_add(policy, "d/sub/hidden", true), 0);
	assert_int_equal(tn_policy_add(policy, "g/*/deep", true), 0);
	assert_int_equal(tn_policy_add(policy, "h/fixed", false), 0);
	assert_int_equal(tn_policy_add(policy, "/var/tmp/v", true), 0);
	assert_int_equal(tn_policy_add(policy, "ro", false), 0);
	tn_policy_free(w->nest->policy);
	w->nest->policy = policy;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	tn_wire_close(&f->wire);
	free(f);
	return 0;
}

static uint64_t denied(Fixture *f)
{
	return atomic_load(&f->wire.nest->arena.header->denied);
}

static void test_built_in(void **state)
{
	Fixture *f = *state;
	TnWire *w = &f->wire;
	uint64_t before = denied(f);

	assert_int_equal(tn_wire_lookup(w, w->tmp, "claude"), -ENOENT);
	assert_int_equal(tn_wire_mkdir(w, w->tmp, "claude", 0755), -EACCES);
	assert_int_equal(tn_wire_mknod(w, w->tmp, "claude", S_IFREG | 0644), -EACCES);
	assert_int_equal(tn_wire_mknod(w, w->tmp, "claude", S_IFSOCK | 0644), -EACCES);
	assert_int_equal(tn_wire_symlink(w, w->tmp, "claude", "d"), -EACCES);
	assert_int_equal(tn_wire_link(w, f->f, w->tmp, "claude"), -EACCES);
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->tmp, "claude", 0), -EACCES);
	assert_int_equal(tn_wire_rename(w, w->tmp, "d", w->tmp, "claude", RENAME_NOREPLACE),
			 -EACCES);
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->tmp, "claude", RENAME_EXCHANGE),
			 -ENOENT);
	assert_int_equal(tn_wire_rename(w, w->tmp, "claude", w->tmp, "x", 0), -ENOENT);
	assert_int_equal(tn_wire_unlink(w, w->tmp, "claude"), -ENOENT);
	assert_int_equal(tn_wire_rmdir(w, w->tmp, "claude"), -ENOENT);
	assert_int_equal(denied(f), before + 12);
	assert_int_equal(tn_wire_mkdir(w, w->tmp, "claudette", 0755), 0);
	assert_int_equal(tn_wire_mkdir(w, f->d, "claude", 0755), 0);
	assert_int_equal(tn_wire_mkdir(w, w->var, "claude", 0755), 0);
	assert_int_equal(denied(f), before + 12);
	tn_wire_check_account(w);
}

static void test_patterns(void **state)
{
	Fixture *f = *state;
	TnWire *w = &f->wire;

	assert_int_equal(tn_wire_mknod(w, w->tmp, "x.key", S_IFREG | 0644), -EACCES);
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->tmp, ".key", 0), -EACCES);
	assert_int_equal(tn_wire_mknod(w, f->d, "x.key", S_IFREG | 0644), 0);
	assert_int_equal(tn_wire_mkdir(w, w->var, "v", 0755), -EACCES);
	assert_int_equal(tn_wire_mkdir(w, w->tmp, "v", 0755), 0);
}

/* What is there is not: neither by name nor in a listing. */
static void test_existing(void **state)
{
	Fixture *f = *state;
	TnWire *w = &f->wire;

	assert_int_equal(tn_wire_lookup(w, w->tmp, "secret"), -ENOENT);
	assert_int_equal(tn_wire_mkdir(w, w->tmp, "secret", 0755), -EACCES);
	assert_int_equal(tn_wire_rename(w, w->tmp, "secret", w->tmp, "x", 0), -ENOENT);
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->tmp, "secret", RENAME_EXCHANGE),
			 -ENOENT);
	assert_int_equal(tn_wire_rmdir(w, w->tmp, "secret"), -ENOENT);
	assert_int_equal(tn_wire_readdir(w, FUSE_READDIR, w->tmp, 0, 65536), 0);
	assert_null(memmem(w->out, w->out_size, "secret", 6));
	assert_non_null(memmem(w->out, w->out_size, "ro", 2));
	assert_int_equal(tn_wire_readdir(w, FUSE_READDIRPLUS, w->tmp, 0, 65536), 0);
	assert_null(memmem(w->out, w->out_size, "secret", 6));
}

/* A folder prepared elsewhere and moved in place. */
static void test_prepared_folder(void **state)
{
	Fixture *f = *state;
	TnWire *w = &f->wire;
	uint64_t prepared, deeper;

	assert_int_equal(tn_wire_mkdir(w, w->tmp, "p", 0755), 0);
	prepared = w->entry.nodeid;
	assert_int_equal(tn_wire_mkdir(w, prepared, "hidden", 0755), 0);
	assert_int_equal(tn_wire_rename(w, w->tmp, "p", f->d, "sub", 0), -EACCES);
	assert_int_equal(tn_wire_mkdir(w, f->d, "sub", 0755), 0);
	assert_int_equal(tn_wire_mkdir(w, w->entry.nodeid, "hidden", 0755), -EACCES);
	assert_int_equal(tn_wire_rename(w, w->tmp, "p", f->d, "sub", RENAME_EXCHANGE), -EACCES);
	assert_int_equal(tn_wire_rename(w, f->d, "sub", w->tmp, "p", RENAME_EXCHANGE), -EACCES);
	/* Two levels above it. */
	assert_int_equal(tn_wire_mkdir(w, w->tmp, "q", 0755), 0);
	deeper = w->entry.nodeid;
	assert_int_equal(tn_wire_rename(w, w->tmp, "p", deeper, "sub", 0), 0);
	assert_int_equal(tn_wire_rename(w, w->tmp, "d", w->tmp, "old", 0), 0);
	assert_int_equal(tn_wire_rename(w, w->tmp, "q", w->tmp, "d", 0), -EACCES);
	/* By a pattern in the middle, in a directory that nobody may read. */
	assert_int_equal(tn_wire_mkdir(w, w->tmp, "r", 0755), 0);
	prepared = w->entry.nodeid;
	assert_int_equal(tn_wire_mkdir(w, prepared, "any", 0755), 0);
	deeper = w->entry.nodeid;
	assert_int_equal(tn_wire_mknod(w, deeper, "deep", S_IFREG | 0644), 0);
	assert_int_equal(tn_wire_setattr(w, deeper, &(struct fuse_setattr_in){.valid = FATTR_MODE}),
			 0);
	assert_int_equal(tn_wire_rename(w, w->tmp, "r", w->tmp, "g", 0), -EACCES);
	assert_int_equal(tn_wire_unlink(w, deeper, "deep"), 0);
	assert_int_equal(tn_wire_rename(w, w->tmp, "r", w->tmp, "g", 0), 0);
	assert_int_equal(tn_wire_mknod(w, deeper, "deep", S_IFREG | 0644), -EACCES);
	tn_wire_check_account(w);
}

/* A rule for what lies inside binds the directory to its place. */
static void test_moved_away(void **state)
{
	Fixture *f = *state;
	TnWire *w = &f->wire;
	uint64_t h;

	assert_int_equal(tn_wire_mkdir(w, w->tmp, "i", 0755), 0);
	assert_int_equal(tn_wire_mknod(w, w->entry.nodeid, "fixed", S_IFREG | 0644), 0);
	assert_int_equal(tn_wire_rename(w, w->tmp, "i", w->tmp, "h", 0), -EROFS);
	assert_int_equal(tn_wire_mkdir(w, w->tmp, "h", 0755), 0);
	h = w->entry.nodeid;
	assert_int_equal(tn_wire_mknod(w, h, "fixed", S_IFREG | 0644), -EROFS);
	assert_int_equal(tn_wire_mknod(w, h, "free", S_IFREG | 0644), 0);
	assert_int_equal(tn_wire_rename(w, w->tmp, "h", w->tmp, "j", 0), 0); /* nothing inside */
	(void)f;
}

static void test_read_only(void **state)
{
	Fixture *f = *state;
	TnWire *w = &f->wire;
	struct fuse_setattr_in mode = {.valid = FATTR_MODE, .mode = 0600};
	struct fuse_create_in tmpfile = {.mode = S_IFREG | 0600};
	uint64_t before = denied(f), bytes = tn_wire_bytes(w);
	struct fuse_attr attr;
	char data[4];
	const int changes[] = {
		tn_wire_mkdir(w, f->ro, "x", 0755),
		tn_wire_mknod(w, f->ro, "x", S_IFREG | 0644),
		tn_wire_symlink(w, f->ro, "x", "t"),
		tn_wire_link(w, f->f, f->ro, "x"),
		tn_wire_link(w, f->ro_f, w->tmp, "x"),
		tn_wire_unlink(w, f->ro, "f"),
		tn_wire_rmdir(w, f->ro, "d"),
		tn_wire_rmdir(w, w->tmp, "ro"),
		tn_wire_rename(w, f->ro, "f", w->tmp, "x", 0),
		tn_wire_rename(w, w->tmp, "f", f->ro, "f", 0),
		tn_wire_rename(w, w->tmp, "f", f->ro, "f", RENAME_EXCHANGE),
		tn_wire_rename(w, w->tmp, "ro", w->tmp, "x", 0),
		tn_wire_rename(w, w->tmp, "d", w->tmp, "ro", RENAME_EXCHANGE),
		tn_wire_rename(w, w->tmp, "d", w->tmp, "ro", 0),
		tn_wire_setattr(w, f->ro_f, &mode),
		tn_wire_setattr(w, f->ro, &mode),
		tn_wire_setattr(w, f->ro_d, &mode),
		tn_wire_truncate(w, f->ro_f, 0),
		(int)tn_wire_write(w, f->ro_f, 0, "new", 3),
		tn_wire_fallocate(w, f->ro_f, 0, 0, 8192),
		tn_wire_setxattr(w, f->ro_f, "user.y", "v", 1, 0),
		tn_wire_setxattr(w, f->ro_d, "user.y", "v", 1, 0),
		tn_wire_removexattr(w, f->ro_f, "user.x"),
		tn_wire_call(w, FUSE_TMPFILE, f->ro, &tmpfile, sizeof(tmpfile), "x", 2),
		tn_wire_mkdir(w, f->ro_d, "below", 0755),
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(changes); i++)
		if (changes[i] != -EROFS)
			fail_msg("change %zu: %d", i, changes[i]);
	assert_int_equal(denied(f), before + TN_ARRAY_LEN(changes));
	assert_int_equal(tn_wire_bytes(w), bytes);
	/* Reading is free. */
	assert_int_equal(tn_wire_lookup(w, f->ro, "f"), 0);
	assert_int_equal(tn_wire_getattr(w, f->ro_f, &attr), 0);
	assert_int_equal(attr.mode, S_IFREG | 0644);
	assert_int_equal(attr.size, 3);
	assert_int_equal(tn_wire_read(w, f->ro_f, 0, data, 4), 3);
	assert_memory_equal(data, "old", 3);
	assert_int_equal(tn_wire_getxattr(w, f->ro_f, "user.x", 16), 0);
	assert_int_equal(tn_wire_listxattr(w, f->ro_f, 64), 0);
	assert_int_equal(tn_wire_readdir(w, FUSE_READDIR, f->ro, 0, 4096), 0);
	tn_wire_check_account(w);
}

/* No node of the rest is touched. */
static void test_frozen(void **state)
{
	Fixture *f = *state;
	TnWire *w = &f->wire;
	char data[1];

	w->nest->frozen = true;
	assert_int_equal(tn_wire_mknod(w, w->tmp, "x", S_IFREG | 0644), -EROFS);
	assert_int_equal(tn_wire_unlink(w, w->tmp, "f"), -EROFS);
	assert_int_equal(tn_wire_write(w, f->f, 0, "x", 1), -EROFS);
	assert_int_equal(tn_wire_truncate(w, f->f, 5), -EROFS);
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->tmp, "g", 0), -EROFS);
	assert_int_equal(tn_wire_setxattr(w, f->f, "user.y", "v", 1, 0), -EROFS);
	assert_int_equal(tn_wire_read(w, f->f, 0, data, 1), 0);
	w->nest->frozen = false;
	assert_int_equal(tn_wire_write(w, f->f, 0, "x", 1), 1);
	tn_wire_check_account(w);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_built_in),        TEST(test_patterns),   TEST(test_existing),
		TEST(test_prepared_folder), TEST(test_moved_away), TEST(test_read_only),
		TEST(test_frozen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
