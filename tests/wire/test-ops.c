/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every operation: its good case, its documented errors, and what it costs the account. */
#include "harness.h"

#include "macros.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/securebits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cmocka.h>

#define PAGE 4096

static int set_up(void **state)
{
	TnWire *wire = calloc(1, sizeof(*wire));

	tn_wire_open(wire, &(TnWireSpec){.bytes = 1 << 20, .inodes = 2000});
	*state = wire;
	return 0;
}

static int tear_down(void **state)
{
	tn_wire_close(*state);
	free(*state);
	return 0;
}

/* Nodeid of a new entry, which must succeed. */
static uint64_t make(TnWire *w, uint64_t dir, const char *name, uint32_t mode)
{
	int r = S_ISDIR(mode) ? tn_wire_mkdir(w, dir, name, mode & 07777)
			      : tn_wire_mknod(w, dir, name, mode);

	assert_int_equal(r, 0);
	return w->entry.nodeid;
}

static uint64_t make_file(TnWire *w, uint64_t dir, const char *name)
{
	return make(w, dir, name, S_IFREG | 0644);
}

static uint64_t make_dir(TnWire *w, uint64_t dir, const char *name)
{
	return make(w, dir, name, S_IFDIR | 0755);
}

static uint64_t look(TnWire *w, uint64_t dir, const char *name)
{
	assert_int_equal(tn_wire_lookup(w, dir, name), 0);
	return w->entry.nodeid;
}

/* Writes `size` bytes of a fixed pattern. */
static void fill(TnWire *w, uint64_t node, uint64_t offset, size_t size)
{
	TN_AUTOFREE uint8_t *data = malloc(size);

	memset(data, 'x', size);
	assert_int_equal(tn_wire_write(w, node, offset, data, size), size);
}

/* --- session -------------------------------------------------------------------------------- */

#define INIT_NEEDED (FUSE_NO_OPEN_SUPPORT | FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT)

static void test_init(void **state)
{
	TnWire *w = *state;
	struct fuse_init_in in = {
		.major = FUSE_KERNEL_VERSION,
		.minor = 39,
		.max_readahead = 1 << 20,
		.flags = UINT32_MAX,
	};
	const struct fuse_init_out *out;

	assert_int_equal(tn_wire_call(w, FUSE_INIT, 0, &in, sizeof(in), NULL, 0), 0);
	out = (const void *)w->out;
	assert_int_equal(w->out_size, sizeof(*out));
	assert_int_equal(out->major, FUSE_KERNEL_VERSION);
	assert_int_equal(out->flags & INIT_NEEDED, INIT_NEEDED);
	assert_int_equal(out->max_write, TN_MAX_WRITE);
	/* These would lose data or errors. */
	assert_int_equal(out->flags & (FUSE_WRITEBACK_CACHE | FUSE_ATOMIC_O_TRUNC |
				       FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS | FUSE_DONT_MASK),
			 0);
	/* Only what was offered. */
	in.flags = INIT_NEEDED;
	assert_int_equal(tn_wire_call(w, FUSE_INIT, 0, &in, sizeof(in), NULL, 0), 0);
	assert_int_equal(((const struct fuse_init_out *)(const void *)w->out)->flags, INIT_NEEDED);
	in.flags = INIT_NEEDED & ~(uint32_t)FUSE_NO_OPEN_SUPPORT;
	assert_int_equal(tn_wire_call(w, FUSE_INIT, 0, &in, sizeof(in), NULL, 0), -EPROTO);
	in.flags = UINT32_MAX;
	in.major = 6;
	assert_int_equal(tn_wire_call(w, FUSE_INIT, 0, &in, sizeof(in), NULL, 0), -EPROTO);
	assert_int_equal(tn_wire_call(w, FUSE_DESTROY, 0, NULL, 0, NULL, 0), 0);
}

static struct fuse_kstatfs statfs_of(TnWire *w)
{
	assert_int_equal(tn_wire_call(w, FUSE_STATFS, 1, NULL, 0, NULL, 0), 0);
	assert_int_equal(w->out_size, sizeof(struct fuse_statfs_out));
	return ((const struct fuse_statfs_out *)(const void *)w->out)->st;
}

static void test_statfs(void **state)
{
	TnWire *w = *state;
	struct fuse_kstatfs st = statfs_of(w);

	assert_int_equal(st.bsize, PAGE);
	assert_int_equal(st.namelen, 255);
	assert_int_equal(st.blocks, (1 << 20) / PAGE);
	assert_int_equal(st.bfree, st.blocks);
	assert_int_equal(st.files, 2000);
	assert_int_equal(st.ffree, 2000);
	fill(w, make_file(w, w->tmp, "f"), 0, 3 * PAGE + 1);
	st = statfs_of(w);
	assert_int_equal(st.bfree, st.blocks - 4);
	assert_int_equal(st.bavail, st.bfree);
	assert_int_equal(st.ffree, 1999);
	assert_int_equal(tn_nest_set_limits(w->nest, PAGE, 1, 0, 0), 0); /* below the use */
	st = statfs_of(w);
	assert_int_equal(st.blocks, 1);
	assert_int_equal(st.bfree, 0);
	assert_int_equal(st.files, 1);
	assert_int_equal(st.ffree, 0);
}

/* --- names ----------------------------------------------------------------------------------- */

static void test_lookup(void **state)
{
	TnWire *w = *state;
	uint64_t dir = make_dir(w, w->tmp, "d"), file = make_file(w, dir, "f");

	assert_int_equal(look(w, dir, "f"), file);
	assert_int_equal(w->entry.attr.mode, S_IFREG | 0644);
	assert_true(w->entry.entry_valid > 0 && w->entry.attr_valid > 0);
	assert_int_equal(tn_wire_lookup(w, dir, "missing"), -ENOENT);
	assert_int_equal(((const struct fuse_entry_out *)(const void *)w->out)->entry_valid,
			 TN_VALID_SECONDS); /* the kernel may remember that it is missing */
	assert_int_equal(tn_wire_lookup(w, file, "x"), -ENOTDIR);
	assert_int_equal(tn_wire_lookup(w, 1, "other"), -ENOENT);
	assert_int_equal(look(w, 1, "tmp"), w->tmp);
	assert_int_equal(w->entry.attr.mode, S_IFDIR | 01777);
}

static void test_make(void **state)
{
	TnWire *w = *state;
	static const struct {
		uint32_t mode;
		int error;
	} rows[] = {
		{S_IFREG | 0600, 0},      {S_IFREG | 0, 0},          {S_IFREG | 04755, 0},
		{S_IFIFO | 0644, 0},      {S_IFSOCK | 0777, 0},      {S_IFCHR | 0666, -EPERM},
		{S_IFBLK | 0666, -EPERM}, {S_IFDIR | 0755, -EINVAL}, {S_IFLNK | 0777, -EINVAL},
		{0644, -EINVAL},          {S_IFMT | 0644, -EINVAL},
	};
	char name[16];
	uint64_t inodes = tn_wire_inodes(w);

	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		snprintf(name, sizeof(name), "n%zu", i);
		assert_int_equal(tn_wire_mknod(w, w->tmp, name, rows[i].mode), rows[i].error);
		if (rows[i].error == 0)
			assert_int_equal(w->entry.attr.mode, rows[i].mode);
		inodes += rows[i].error == 0;
		assert_int_equal(tn_wire_inodes(w), inodes);
		tn_wire_check_account(w);
	}
	assert_int_equal(tn_wire_mknod(w, w->tmp, "n0", S_IFREG | 0644), -EEXIST);
	assert_int_equal(tn_wire_mkdir(w, w->tmp, "n0", 0755), -EEXIST);
	assert_int_equal(tn_wire_symlink(w, w->tmp, "n0", "t"), -EEXIST);
	assert_int_equal(tn_wire_inodes(w), inodes);
	assert_int_equal(tn_wire_mkdir(w, look(w, w->tmp, "n0"), "x", 0755), -ENOTDIR);
	make(w, w->var, "d", S_IFDIR | 01775);
	assert_int_equal(w->entry.attr.mode, S_IFDIR | 01775);
	assert_int_equal(w->entry.attr.nlink, 2);
}

static void test_names(void **state)
{
	TnWire *w = *state;
	char name[257];
	uint64_t node;
	static const char *const odd[] = {"\x01", "\xff\xfe", "a b", "\\", "*", "...", "..x", " "};

	memset(name, 'n', 256);
	name[256] = '\0';
	assert_int_equal(tn_wire_mknod(w, w->tmp, name, S_IFREG | 0644), -ENAMETOOLONG);
	assert_int_equal(tn_wire_lookup(w, w->tmp, name), -ENAMETOOLONG);
	name[255] = '\0';
	node = make_file(w, w->tmp, name);
	assert_int_equal(look(w, w->tmp, name), node);
	for (size_t i = 0; i < TN_ARRAY_LEN(odd); i++) {
		node = make_file(w, w->tmp, odd[i]);
		assert_int_equal(look(w, w->tmp, odd[i]), node);
	}
}

static void test_root(void **state)
{
	TnWire *w = *state;
	uint64_t file = make_file(w, w->tmp, "f");
	struct fuse_setattr_in in = {.valid = FATTR_MODE, .mode = 0777};
	struct fuse_attr attr;

	assert_int_equal(tn_wire_mknod(w, 1, "x", S_IFREG | 0644), -EPERM);
	assert_int_equal(tn_wire_mkdir(w, 1, "x", 0755), -EPERM);
	assert_int_equal(tn_wire_symlink(w, 1, "x", "t"), -EPERM);
	assert_int_equal(tn_wire_link(w, file, 1, "x"), -EPERM);
	assert_int_equal(tn_wire_unlink(w, 1, "tmp"), -EPERM);
	assert_int_equal(tn_wire_rmdir(w, 1, "tmp"), -EPERM);
	assert_int_equal(tn_wire_rename(w, 1, "tmp", 1, "t", 0), -EPERM);
	assert_int_equal(tn_wire_rename(w, 1, "tmp", 1, "var-tmp", RENAME_EXCHANGE), -EPERM);
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", 1, "f", 0), -EPERM);
	assert_int_equal(tn_wire_rename(w, 1, "var-tmp", w->tmp, "f", 0), -EPERM);
	assert_int_equal(tn_wire_setattr(w, 1, &in), -EPERM);
	assert_int_equal(tn_wire_setxattr(w, 1, "user.a", "v", 1, 0), -EPERM);
	assert_int_equal(tn_wire_getattr(w, 1, &attr), 0);
	assert_int_equal(attr.mode, S_IFDIR | 0755);
	assert_int_equal(tn_wire_readdir(w, FUSE_READDIR, 1, 0, 4096), 0);
}

static void test_symlink(void **state)
{
	TnWire *w = *state;
	char target[PATH_MAX];
	uint64_t node;

	assert_int_equal(tn_wire_symlink(w, w->tmp, "l", "../any/where"), 0);
	node = w->entry.nodeid;
	assert_int_equal(w->entry.attr.size, 12);
	assert_int_equal(tn_wire_bytes(w), 12);
	assert_int_equal(tn_wire_call(w, FUSE_READLINK, node, NULL, 0, NULL, 0), 0);
	assert_int_equal(w->out_size, 12);
	assert_memory_equal(w->out, "../any/where", 12);
	memset(target, 't', sizeof(target));
	target[PATH_MAX - 1] = '\0';
	assert_int_equal(tn_wire_symlink(w, w->tmp, "long", target), 0);
	assert_int_equal(tn_wire_bytes(w), 12 + PATH_MAX - 1);
	assert_int_equal(tn_wire_call(w, FUSE_READLINK, w->entry.nodeid, NULL, 0, NULL, 0), 0);
	assert_int_equal(w->out_size, PATH_MAX - 1);
	assert_int_equal(tn_wire_symlink(w, w->tmp, "empty", ""), -ENOENT);
	assert_int_equal(tn_wire_call(w, FUSE_READLINK, w->tmp, NULL, 0, NULL, 0), -EINVAL);
	tn_wire_check_account(w);
	assert_int_equal(tn_wire_unlink(w, w->tmp, "l"), 0);
	assert_int_equal(tn_wire_call(w, FUSE_READLINK, node, NULL, 0, NULL, 0), 0); /* in use */
	tn_wire_check_account(w);
	tn_wire_forget(w, node, 1);
	assert_int_equal(tn_wire_bytes(w), PATH_MAX - 1);
}

static void test_link(void **state)
{
	TnWire *w = *state;
	uint64_t dir = make_dir(w, w->tmp, "d"), file = make_file(w, w->tmp, "f");
	struct fuse_attr attr;

	fill(w, file, 0, 10);
	assert_int_equal(tn_wire_link(w, file, dir, "g"), 0);
	assert_int_equal(w->entry.nodeid, file); /* one node, however many names */
	assert_int_equal(w->entry.attr.nlink, 2);
	assert_int_equal(tn_wire_inodes(w), 2);
	assert_int_equal(tn_wire_link(w, file, dir, "g"), -EEXIST);
	assert_int_equal(tn_wire_link(w, dir, w->tmp, "x"), -EPERM);
	assert_int_equal(tn_wire_link(w, 999999, dir, "x"), -ENOENT);
	assert_int_equal(tn_wire_link(w, file, w->var, "x"), -EXDEV);
	assert_int_equal(tn_wire_link(w, file, file, "x"), -ENOTDIR);
	tn_wire_check_account(w);
	assert_int_equal(tn_wire_unlink(w, w->tmp, "f"), 0);
	assert_int_equal(tn_wire_getattr(w, file, &attr), 0);
	assert_int_equal(attr.nlink, 1);
	assert_int_equal(tn_wire_bytes(w), PAGE);
	assert_int_equal(tn_wire_unlink(w, dir, "g"), 0);
	assert_int_equal(tn_wire_getattr(w, file, &attr), 0);
	assert_int_equal(attr.nlink, 0);
	assert_int_equal(tn_wire_link(w, file, dir, "back"), -ENOENT); /* no way back */
	tn_wire_check_account(w);
	tn_wire_forget(w, file, 2);
	assert_int_equal(tn_wire_bytes(w), 0);
	assert_int_equal(tn_wire_inodes(w), 1);
}

static void test_link_symlink(void **state)
{
	TnWire *w = *state;
	uint64_t node;

	assert_int_equal(tn_wire_symlink(w, w->tmp, "l", "target"), 0);
	node = w->entry.nodeid;
	assert_int_equal(tn_wire_link(w, node, w->tmp, "m"), 0);
	assert_int_equal(w->entry.nodeid, node);
	assert_true(S_ISLNK(w->entry.attr.mode));
	tn_wire_check_account(w);
}

/* The one name that the kernel knows goes; another, unknown one, remains. */
static void test_unlink_only_known_name(void **state)
{
	TnWire *w = *state;
	uint64_t file = make_file(w, w->tmp, "one");
	struct fuse_attr attr;
	char byte;

	fill(w, file, 0, 1);
	assert_int_equal(tn_wire_link(w, file, w->tmp, "two"), 0);
	tn_wire_forget(w, file, 2); /* as under memory pressure */
	file = look(w, w->tmp, "one");
	assert_int_equal(tn_wire_unlink(w, w->tmp, "one"), 0);
	/* The file is still open. */
	assert_int_equal(tn_wire_getattr(w, file, &attr), 0);
	assert_int_equal(attr.nlink, 1);
	assert_int_equal(tn_wire_read(w, file, 0, &byte, 1), 1);
	tn_wire_check_account(w);
	assert_int_equal(look(w, w->tmp, "two"), file);
	assert_int_equal(tn_wire_unlink(w, w->tmp, "two"), 0);
	assert_int_equal(tn_wire_getattr(w, file, &attr), 0);
	assert_int_equal(attr.nlink, 0);
	tn_wire_check_account(w);
	tn_wire_forget(w, file, 2);
	assert_int_equal(tn_wire_inodes(w), 0);
	tn_wire_check_account(w);
}

static void test_unlink_rmdir(void **state)
{
	TnWire *w = *state;
	uint64_t dir = make_dir(w, w->tmp, "d"), file = make_file(w, dir, "f");
	struct fuse_attr attr;

	assert_int_equal(tn_wire_unlink(w, w->tmp, "missing"), -ENOENT);
	assert_int_equal(tn_wire_rmdir(w, w->tmp, "missing"), -ENOENT);
	assert_int_equal(tn_wire_unlink(w, w->tmp, "d"), -EISDIR);
	assert_int_equal(tn_wire_rmdir(w, dir, "f"), -ENOTDIR);
	assert_int_equal(tn_wire_rmdir(w, w->tmp, "d"), -ENOTEMPTY);
	assert_int_equal(tn_wire_unlink(w, file, "x"), -ENOTDIR);
	tn_wire_check_account(w);
	assert_int_equal(tn_wire_unlink(w, dir, "f"), 0);
	assert_int_equal(tn_wire_unlink(w, dir, "f"), -ENOENT);
	assert_int_equal(tn_wire_lookup(w, dir, "f"), -ENOENT);
	assert_int_equal(tn_wire_rmdir(w, w->tmp, "d"), 0);
	tn_wire_check_account(w);
	/* The removed directory is somebody's cwd. */
	assert_int_equal(tn_wire_getattr(w, dir, &attr), 0);
	assert_int_equal(attr.nlink, 0);
	assert_int_equal(tn_wire_lookup(w, dir, "x"), -ENOENT);
	assert_int_equal(tn_wire_mkdir(w, dir, "x", 0755), -ENOENT);
	assert_int_equal(tn_wire_readdir(w, FUSE_READDIR, dir, 0, 4096), -ENOENT);
	tn_wire_check_account(w);
	assert_int_equal(tn_wire_inodes(w), 2); /* both are still referenced */
	tn_wire_forget(w, file, 1);
	assert_int_equal(tn_wire_inodes(w), 1);
	tn_wire_forget(w, dir, 1);
	assert_int_equal(tn_wire_inodes(w), 0);
	assert_int_equal(tn_wire_getattr(w, dir, &attr), -ESTALE);
}

/* Known to nobody: everything goes at once. */
static void test_unlink_unknown(void **state)
{
	TnWire *w = *state;
	uint64_t dir = make_dir(w, w->tmp, "d"), file = make_file(w, dir, "f");

	fill(w, file, 0, 2 * PAGE);
	assert_int_equal(tn_wire_setxattr(w, file, "user.k", "value", 5, 0), 0);
	tn_wire_forget(w, file, 1);
	assert_int_equal(tn_wire_unlink(w, dir, "f"), 0);
	assert_int_equal(tn_wire_bytes(w), 0);
	assert_int_equal(tn_wire_inodes(w), 1);
	tn_wire_forget(w, dir, 1);
	assert_int_equal(tn_wire_rmdir(w, w->tmp, "d"), 0);
	assert_int_equal(tn_wire_inodes(w), 0);
}

static void test_unlinked_in_use(void **state)
{
	TnWire *w = *state;
	uint64_t file = make_file(w, w->tmp, "f");
	struct fuse_setattr_in in = {.valid = FATTR_MODE | FATTR_MTIME, .mode = 0600, .mtime = 5};
	struct fuse_attr attr;
	char data[8];

	fill(w, file, 0, PAGE);
	assert_int_equal(tn_wire_unlink(w, w->tmp, "f"), 0);
	fill(w, file, PAGE, PAGE);
	tn_wire_check_account(w);
	assert_int_equal(tn_wire_bytes(w), 2 * PAGE);
	assert_int_equal(tn_wire_read(w, file, PAGE, data, 8), 8);
	assert_int_equal(tn_wire_setattr(w, file, &in), 0);
	assert_int_equal(tn_wire_setxattr(w, file, "user.k", "v", 1, 0), 0);
	assert_int_equal(tn_wire_truncate(w, file, 10), 0);
	assert_int_equal(tn_wire_getattr(w, file, &attr), 0);
	assert_int_equal(attr.nlink, 0);
	assert_int_equal(attr.size, 10);
	assert_int_equal(attr.mode, S_IFREG | 0600);
	tn_wire_check_account(w);
	/* The name is free for another file, which is another node. */
	assert_int_not_equal(make_file(w, w->tmp, "f"), file);
	tn_wire_forget(w, file, 1);
	assert_int_equal(tn_wire_bytes(w), 0);
	assert_int_equal(tn_wire_inodes(w), 1);
}

/* --- rename ------------------------------------------------------------------------------------
 */

static void test_rename(void **state)
{
	TnWire *w = *state;
	uint64_t d = make_dir(w, w->tmp, "d"), e = make_dir(w, w->tmp, "e");
	uint64_t f = make_file(w, d, "f"), g = make_file(w, e, "g");

	assert_int_equal(tn_wire_rename(w, d, "f", e, "f", 0), 0);
	assert_int_equal(tn_wire_lookup(w, d, "f"), -ENOENT);
	assert_int_equal(look(w, e, "f"), f);
	assert_int_equal(tn_wire_rename(w, e, "f", e, "g", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(tn_wire_rename(w, e, "f", e, "g", RENAME_EXCHANGE), 0);
	assert_int_equal(look(w, e, "g"), f);
	assert_int_equal(look(w, e, "f"), g);
	fill(w, g, 0, PAGE);
	assert_int_equal(tn_wire_rename(w, e, "g", e, "f", 0), 0); /* g's file is still open */
	assert_int_equal(look(w, e, "f"), f);
	assert_int_equal(tn_wire_bytes(w), PAGE);
	tn_wire_check_account(w);
	tn_wire_forget(w, g, 2);
	assert_int_equal(tn_wire_bytes(w), 0);
	/* With its directory: the place of what is inside changes. */
	assert_int_equal(tn_wire_rename(w, w->tmp, "e", d, "sub", 0), 0);
	fill(w, f, 0, 1);
	assert_int_equal(look(w, look(w, d, "sub"), "f"), f);
	tn_wire_check_account(w);
}

static void test_rename_errors(void **state)
{
	TnWire *w = *state;
	uint64_t d = make_dir(w, w->tmp, "d"), e = make_dir(w, d, "e");
	uint64_t f = make_file(w, w->tmp, "f");

	make_file(w, e, "inside");
	assert_int_equal(tn_wire_rename(w, w->tmp, "x", w->tmp, "y", 0), -ENOENT);
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->tmp, "y", RENAME_EXCHANGE), -ENOENT);
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->tmp, "y", RENAME_WHITEOUT), -EINVAL);
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->tmp, "y", 1U << 31), -EINVAL);
	assert_int_equal(
		tn_wire_rename(w, w->tmp, "f", w->tmp, "d", RENAME_EXCHANGE | RENAME_NOREPLACE),
		-EINVAL);
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", 999999, "y", 0), -ENOENT);
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->var, "f", 0), -EXDEV);
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", f, "y", 0), -ENOTDIR);
	assert_int_equal(tn_wire_rename(w, w->tmp, "d", e, "y", 0), -EINVAL); /* into itself */
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", d, "e", 0), -EISDIR);
	assert_int_equal(tn_wire_rename(w, d, "e", w->tmp, "f", 0), -ENOTDIR);
	make_dir(w, w->tmp, "other");
	assert_int_equal(tn_wire_rename(w, w->tmp, "other", d, "e", 0), -ENOTEMPTY);
	assert_int_equal(look(w, w->tmp, "f"), f);
	assert_int_equal(look(w, d, "e"), e);
	tn_wire_check_account(w);
	assert_int_equal(tn_wire_unlink(w, e, "inside"), 0);
	assert_int_equal(tn_wire_rename(w, w->tmp, "other", d, "e", 0), 0); /* over an empty one */
	tn_wire_check_account(w);
}

/* Two names of one file: nothing changes, and both remain. */
static void test_rename_same_file(void **state)
{
	TnWire *w = *state;
	uint64_t f = make_file(w, w->tmp, "f"), d = make_dir(w, w->tmp, "d");
	static const uint32_t flags[] = {0, RENAME_EXCHANGE};
	struct fuse_attr attr;

	assert_int_equal(tn_wire_link(w, f, w->tmp, "g"), 0);
	for (size_t i = 0; i < TN_ARRAY_LEN(flags); i++) {
		assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->tmp, "g", flags[i]), 0);
		assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->tmp, "f", flags[i]), 0);
		assert_int_equal(tn_wire_rename(w, w->tmp, "d", w->tmp, "d", flags[i]), 0);
	}
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->tmp, "g", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(tn_wire_unlink(w, w->tmp, "g"), 0);
	assert_int_equal(tn_wire_getattr(w, f, &attr), 0);
	assert_int_equal(attr.nlink, 1);
	assert_int_equal(tn_wire_getattr(w, d, &attr), 0);
	assert_int_equal(look(w, w->tmp, "f"), f);
	assert_int_equal(look(w, w->tmp, "d"), d);
	tn_wire_check_account(w);
}

static void test_exchange_kinds(void **state)
{
	TnWire *w = *state;
	uint64_t d = make_dir(w, w->tmp, "d"), e = make_dir(w, w->tmp, "e");
	uint64_t f = make_file(w, e, "f"), inside = make_file(w, d, "inside");
	struct fuse_attr attr;

	assert_int_equal(tn_wire_rename(w, w->tmp, "d", e, "f", RENAME_EXCHANGE), 0);
	assert_int_equal(look(w, w->tmp, "d"), f);
	assert_int_equal(look(w, e, "f"), d);
	assert_int_equal(look(w, d, "inside"), inside);
	assert_int_equal(tn_wire_getattr(w, inside, &attr), 0);
	tn_wire_check_account(w);
}

/* --- O_TMPFILE -----------------------------------------------------------------------------------
 */

static uint64_t make_unnamed(TnWire *w, uint64_t dir)
{
	struct fuse_create_in in = {.mode = S_IFREG | 0600};
	const struct fuse_entry_out *entry;

	assert_int_equal(tn_wire_call(w, FUSE_TMPFILE, dir, &in, sizeof(in), "x", 2), 0);
	assert_int_equal(w->out_size, sizeof(*entry) + sizeof(struct fuse_open_out));
	entry = (const void *)w->out;
	assert_int_equal(entry->attr.nlink, 0);
	assert_true(entry->nodeid != 0);
	return entry->nodeid;
}

/* More of them than the budget of held descriptors: the last ones lie in orphans/. */
static void test_tmpfile(void **state)
{
	TnWire *w = *state;
	static uint64_t files[520];
	size_t fds = tn_count_fds();
	struct fuse_attr attr;
	uint64_t node = 0;
	char name[16];

	for (size_t i = 0; i < TN_ARRAY_LEN(files); i++)
		files[i] = make_unnamed(w, w->tmp);
	assert_true(tn_count_fds() < fds + 515);
	assert_int_equal(tn_wire_inodes(w), TN_ARRAY_LEN(files));
	for (size_t i = 0; i < TN_ARRAY_LEN(files); i += 519) { /* one of either kind */
		node = files[i];
		fill(w, node, 0, PAGE);
		assert_int_equal(tn_wire_getattr(w, node, &attr), 0);
		assert_int_equal(attr.nlink, 0);
		snprintf(name, sizeof(name), "n%zu", i);
		make_file(w, w->tmp, "taken");
		assert_int_equal(tn_wire_link(w, node, w->tmp, "taken"), -EEXIST);
		assert_int_equal(tn_wire_link(w, node, w->tmp, name), 0);
		assert_int_equal(w->entry.nodeid, node);
		assert_int_equal(w->entry.attr.nlink, 1);
		assert_int_equal(tn_wire_link(w, node, w->tmp, "second"), 0);
		assert_int_equal(w->entry.attr.nlink, 2);
		tn_wire_check_account(w);
		assert_int_equal(tn_wire_unlink(w, w->tmp, "second"), 0);
		assert_int_equal(tn_wire_unlink(w, w->tmp, name), 0);
		assert_int_equal(tn_wire_unlink(w, w->tmp, "taken"), 0);
		assert_int_equal(tn_wire_getattr(w, node, &attr), 0);
		assert_int_equal(attr.nlink, 0);
		assert_int_equal(tn_wire_link(w, node, w->tmp, name), -ENOENT);
		tn_wire_check_account(w);
	}
	for (size_t i = 0; i < TN_ARRAY_LEN(files); i++)
		tn_wire_forget(w, files[i], 3);
	tn_wire_check_account(w);
	assert_int_equal(tn_wire_bytes(w), 0);
	assert_int_equal(tn_wire_call(w, FUSE_TMPFILE, 1, &(struct fuse_create_in){.mode = 0600},
				      sizeof(struct fuse_create_in), "x", 2),
			 -EPERM);
	node = make_unnamed(w, w->tmp);
	{
		struct fuse_in_header in = {.opcode = FUSE_TMPFILE};

		tn_dispatch_undelivered(w->nest, (const void *)&in, w->reply);
	}
	assert_int_equal(tn_wire_getattr(w, node, &attr), -ESTALE);
	tn_wire_check_account(w);
}

/* --- more unlinked files than descriptors -------------------------------------------------------
 */

#define ORPHANS 600 /* more than the budget of held descriptors */

static void test_many_orphans(void **state)
{
	TnWire *w = *state;
	static uint64_t files[ORPHANS], dirs[ORPHANS];
	size_t fds = tn_count_fds();
	struct fuse_attr attr;
	char name[16];

	for (size_t i = 0; i < ORPHANS; i++) {
		snprintf(name, sizeof(name), "f%zu", i);
		files[i] = make_file(w, w->tmp, name);
		if (i % 100 == 0 || i == ORPHANS - 1)
			fill(w, files[i], 0, PAGE);
		assert_int_equal(tn_wire_unlink(w, w->tmp, name), 0);
		snprintf(name, sizeof(name), "d%zu", i);
		dirs[i] = make_dir(w, w->tmp, name);
		assert_int_equal(tn_wire_rmdir(w, w->tmp, name), 0);
	}
	assert_true(tn_count_fds() < fds + 600);
	tn_wire_check_account(w);
	for (size_t i = 0; i < ORPHANS; i++) {
		if (tn_wire_getattr(w, files[i], &attr) != 0 || attr.nlink != 0)
			fail_msg("file %zu", i);
		if (tn_wire_getattr(w, dirs[i], &attr) != 0 || attr.nlink != 0)
			fail_msg("directory %zu", i);
	}
	fill(w, files[ORPHANS - 1], PAGE, 10);
	assert_int_equal(tn_wire_link(w, files[ORPHANS - 1], w->tmp, "back"), -ENOENT);
	assert_int_equal(tn_wire_mkdir(w, dirs[ORPHANS - 1], "x", 0755), -ENOENT);
	assert_int_equal(tn_wire_lookup(w, dirs[ORPHANS - 1], "x"), -ENOENT);
	/* None of them may be taken for a new file that gets its inode number. */
	for (size_t i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "new%zu", i);
		assert_true(make_file(w, w->tmp, name) > dirs[ORPHANS - 1]);
		assert_true(S_ISREG(w->entry.attr.mode));
	}
	tn_wire_check_account(w);
	for (size_t i = 0; i < ORPHANS; i++) {
		tn_wire_forget(w, files[i], 1);
		tn_wire_forget(w, dirs[i], 1);
	}
	assert_int_equal(tn_wire_bytes(w), 0);
	assert_int_equal(tn_wire_inodes(w), 100);
	tn_wire_check_account(w);
}

/* Beyond the budget a file is moved before the rename that replaces it, which may fail. */
static void test_replace_beyond_budget(void **state)
{
	TnWire *w = *state;
	uint64_t keep, dir, empty;
	char name[16];

	for (size_t i = 0; i < ORPHANS; i++) {
		snprintf(name, sizeof(name), "f%zu", i);
		make_file(w, w->tmp, name);
		assert_int_equal(tn_wire_unlink(w, w->tmp, name), 0);
	}
	keep = make_file(w, w->tmp, "keep");
	dir = make_dir(w, w->tmp, "dir");
	empty = make_dir(w, w->tmp, "empty");
	make_file(w, dir, "inside");
	assert_int_equal(tn_wire_rename(w, w->tmp, "dir", w->tmp, "keep", 0), -ENOTDIR);
	assert_int_equal(tn_wire_rename(w, w->tmp, "keep", w->tmp, "empty", 0), -EISDIR);
	assert_int_equal(tn_wire_rename(w, w->tmp, "empty", w->tmp, "dir", 0), -ENOTEMPTY);
	assert_int_equal(tn_wire_rmdir(w, w->tmp, "dir"), -ENOTEMPTY);
	assert_int_equal(tn_wire_rename(w, w->tmp, "empty", dir, "x/y", 0), -EINVAL);
	assert_int_equal(look(w, w->tmp, "keep"), keep);
	assert_int_equal(look(w, w->tmp, "dir"), dir);
	assert_int_equal(look(w, w->tmp, "empty"), empty);
	tn_wire_check_account(w);
	assert_int_equal(tn_wire_rename(w, w->tmp, "dir", w->tmp, "empty", 0), 0);
	make_file(w, w->tmp, "other");
	assert_int_equal(tn_wire_rename(w, w->tmp, "other", w->tmp, "keep", 0), 0);
	fill(w, keep, 0, PAGE);
	tn_wire_check_account(w);
}

/* --- attributes ---------------------------------------------------------------------------------
 */

static void test_setattr(void **state)
{
	TnWire *w = *state;
	uint64_t file = make_file(w, w->tmp, "f"), link;
	struct fuse_setattr_in in = {.valid = FATTR_MODE, .mode = S_IFREG | 04711};
	struct fuse_attr attr;

	assert_int_equal(tn_wire_setattr(w, file, &in), 0);
	assert_int_equal(tn_wire_getattr(w, file, &attr), 0);
	assert_int_equal(attr.mode, S_IFREG | 04711);
	/* A write by somebody who may not keep the bits. */
	assert_int_equal(tn_wire_call(w, FUSE_WRITE, file,
				      &(struct fuse_write_in){
					      .size = 1, .write_flags = FUSE_WRITE_KILL_SUIDGID},
				      sizeof(struct fuse_write_in), "x", 1),
			 0);
	assert_int_equal(tn_wire_getattr(w, file, &attr), 0);
	assert_int_equal(attr.mode, S_IFREG | 0711);
	in.mode = S_IFREG | 06755;
	assert_int_equal(tn_wire_setattr(w, file, &in), 0);
	in = (struct fuse_setattr_in){.valid = FATTR_SIZE | FATTR_KILL_SUIDGID, .size = 0};
	assert_int_equal(tn_wire_setattr(w, file, &in), 0);
	assert_int_equal(tn_wire_getattr(w, file, &attr), 0);
	assert_int_equal(attr.mode, S_IFREG | 0755);
	/* Times before 1970 and after 2038, to the nanosecond. */
	in = (struct fuse_setattr_in){.valid = FATTR_ATIME | FATTR_MTIME,
				      .atime = (uint64_t)-1000000000,
				      .atimensec = 1,
				      .mtime = 6000000000,
				      .mtimensec = 999999999};
	assert_int_equal(tn_wire_setattr(w, file, &in), 0);
	assert_int_equal(tn_wire_getattr(w, file, &attr), 0);
	assert_int_equal(attr.atime, (uint64_t)-1000000000);
	assert_int_equal(attr.atimensec, 1);
	assert_int_equal(attr.mtime, 6000000000);
	assert_int_equal(attr.mtimensec, 999999999);
	in = (struct fuse_setattr_in){.valid = FATTR_ATIME | FATTR_ATIME_NOW};
	assert_int_equal(tn_wire_setattr(w, file, &in), 0);
	assert_int_equal(tn_wire_getattr(w, file, &attr), 0);
	assert_true(attr.atime > 1600000000 && attr.atime < 6000000000);
	assert_int_equal(attr.mtime, 6000000000);
	/* Of a symlink itself. */
	assert_int_equal(tn_wire_symlink(w, w->tmp, "l", "f"), 0);
	link = w->entry.nodeid;
	in = (struct fuse_setattr_in){.valid = FATTR_MODE, .mode = 0600};
	assert_int_equal(tn_wire_setattr(w, link, &in), -EOPNOTSUPP);
	in = (struct fuse_setattr_in){.valid = FATTR_MTIME, .mtime = 7};
	assert_int_equal(tn_wire_setattr(w, link, &in), 0);
	assert_int_equal(tn_wire_getattr(w, link, &attr), 0);
	assert_int_equal(attr.mtime, 7);
	assert_int_equal(tn_wire_getattr(w, file, &attr), 0);
	assert_int_equal(attr.mtime, 6000000000);
	tn_wire_check_account(w);
}

static void test_truncate(void **state)
{
	TnWire *w = *state;
	uint64_t file = make_file(w, w->tmp, "f");
	struct fuse_attr attr;

	fill(w, file, 0, 10 * PAGE);
	assert_int_equal(tn_wire_truncate(w, file, 4 * PAGE + 1), 0);
	assert_int_equal(tn_wire_bytes(w), 5 * PAGE);
	assert_int_equal(tn_wire_truncate(w, file, 1ULL << 40), 0); /* a hole costs nothing */
	assert_int_equal(tn_wire_bytes(w), 5 * PAGE);
	tn_wire_check_account(w);
	fill(w, file, 100 * PAGE, 1);
	assert_int_equal(tn_wire_bytes(w), 6 * PAGE);
	assert_int_equal(tn_wire_truncate(w, file, 50 * PAGE), 0);
	assert_int_equal(tn_wire_bytes(w), 5 * PAGE);
	assert_int_equal(tn_wire_truncate(w, file, 0), 0);
	assert_int_equal(tn_wire_bytes(w), 0);
	assert_int_equal(tn_wire_truncate(w, file, UINT64_MAX), -EFBIG);
	assert_int_equal(tn_wire_truncate(w, w->tmp, 0), -EISDIR);
	assert_int_equal(tn_wire_truncate(w, make(w, w->tmp, "p", S_IFIFO | 0644), 0), -EINVAL);
	assert_int_equal(tn_wire_getattr(w, file, &attr), 0);
	assert_int_equal(attr.size, 0);
	tn_wire_check_account(w);
}

/* --- data ----------------------------------------------------------------------------------------
 */

static void test_read_write(void **state)
{
	TnWire *w = *state;
	uint64_t file = make_file(w, w->tmp, "f");
	char data[16] = "";

	assert_int_equal(tn_wire_write(w, file, 3, "hello", 5), 5);
	assert_int_equal(tn_wire_read(w, file, 0, data, 16), 8);
	assert_memory_equal(data, "\0\0\0hello", 8);
	assert_int_equal(tn_wire_read(w, file, 8, data, 16), 0);
	assert_int_equal(tn_wire_read(w, file, 1ULL << 40, data, 16), 0);
	assert_int_equal(tn_wire_read(w, file, UINT64_MAX, data, 16), -EINVAL);
	assert_int_equal(tn_wire_write(w, file, 0, "", 0), 0);
	assert_int_equal(tn_wire_write(w, file, INT64_MAX, "x", 1), -EFBIG);
	assert_int_equal(tn_wire_write(w, file, UINT64_MAX, "x", 1), -EFBIG);
	assert_int_equal(tn_wire_write(w, w->tmp, 0, "x", 1), -EISDIR);
	assert_int_equal(tn_wire_read(w, w->tmp, 0, data, 1), -EISDIR);
	assert_int_equal(tn_wire_bytes(w), PAGE);
	tn_wire_check_account(w);
}

static void test_holes(void **state)
{
	TnWire *w = *state;
	uint64_t file = make_file(w, w->tmp, "f");
	struct fuse_lseek_in in = {.offset = 0, .whence = SEEK_DATA};

	fill(w, file, 10 * PAGE, PAGE);
	assert_int_equal(tn_wire_bytes(w), PAGE);
	fill(w, file, 0, 1);
	fill(w, file, 5 * PAGE - 1, 2); /* two pages for two bytes */
	assert_int_equal(tn_wire_bytes(w), 4 * PAGE);
	fill(w, file, 0, 11 * PAGE);
	assert_int_equal(tn_wire_bytes(w), 11 * PAGE);
	tn_wire_check_account(w);
	assert_int_equal(tn_wire_truncate(w, file, 0), 0);
	fill(w, file, 8 * PAGE, PAGE);
	assert_int_equal(tn_wire_call(w, FUSE_LSEEK, file, &in, sizeof(in), NULL, 0), 0);
	assert_int_equal(((const struct fuse_lseek_out *)(const void *)w->out)->offset, 8 * PAGE);
	in.whence = SEEK_HOLE;
	assert_int_equal(tn_wire_call(w, FUSE_LSEEK, file, &in, sizeof(in), NULL, 0), 0);
	assert_int_equal(((const struct fuse_lseek_out *)(const void *)w->out)->offset, 0);
	in = (struct fuse_lseek_in){.offset = 9 * PAGE, .whence = SEEK_DATA};
	assert_int_equal(tn_wire_call(w, FUSE_LSEEK, file, &in, sizeof(in), NULL, 0), -ENXIO);
	in.whence = SEEK_END;
	assert_int_equal(tn_wire_call(w, FUSE_LSEEK, file, &in, sizeof(in), NULL, 0), -EINVAL);
}

static void test_fallocate(void **state)
{
	TnWire *w = *state;
	uint64_t file = make_file(w, w->tmp, "f");
	struct fuse_attr attr;

	assert_int_equal(tn_wire_fallocate(w, file, 0, 0, 4 * PAGE), 0);
	assert_int_equal(tn_wire_bytes(w), 4 * PAGE);
	fill(w, file, 0, 4 * PAGE); /* into what is there */
	assert_int_equal(tn_wire_bytes(w), 4 * PAGE);
	assert_int_equal(tn_wire_fallocate(w, file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					   PAGE, 2 * PAGE),
			 0);
	assert_int_equal(tn_wire_bytes(w), 2 * PAGE);
	tn_wire_check_account(w);
	fill(w, file, PAGE, 1);
	assert_int_equal(tn_wire_bytes(w), 3 * PAGE);
	assert_int_equal(tn_wire_fallocate(w, file, 0, 0, 0), -EINVAL);
	assert_int_equal(tn_wire_fallocate(w, file, 0, INT64_MAX, 1), -EINVAL);
	assert_int_equal(tn_wire_fallocate(w, file, 0, UINT64_MAX, UINT64_MAX), -EINVAL);
	assert_int_equal(tn_wire_fallocate(w, file, 0x8000, 0, PAGE), -EOPNOTSUPP);
	assert_int_equal(tn_wire_fallocate(w, w->tmp, 0, 0, PAGE), -EISDIR);
	/* All or nothing. */
	assert_int_equal(tn_wire_fallocate(w, file, 0, 0, 2 << 20), -ENOSPC);
	assert_int_equal(tn_wire_getattr(w, file, &attr), 0);
	assert_int_equal(attr.size, 4 * PAGE);
	tn_wire_check_account(w);
}

/* Storage beyond the end of the file, which a longer file keeps and a shorter one loses. */
static void test_keep_size(void **state)
{
	TnWire *w = *state;
	uint64_t file = make_file(w, w->tmp, "f");

	assert_int_equal(tn_wire_fallocate(w, file, FALLOC_FL_KEEP_SIZE, 0, 10 * PAGE), 0);
	assert_int_equal(tn_wire_bytes(w), 10 * PAGE);
	tn_wire_check_account(w);
	assert_int_equal(tn_wire_truncate(w, file, PAGE), 0);
	tn_wire_check_account(w);
	fill(w, file, 0, 10);
	tn_wire_check_account(w);
	assert_int_equal(tn_wire_truncate(w, file, 10), 0);
	tn_wire_check_account(w);
	fill(w, file, 3 * PAGE, 10);
	tn_wire_check_account(w);
}

static void test_fallocate_modes(void **state)
{
	TnWire *w = *state;
	uint64_t file = make_file(w, w->tmp, "f");
	static const uint32_t modes[] = {
		FALLOC_FL_ZERO_RANGE,
		FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_COLLAPSE_RANGE,
		FALLOC_FL_INSERT_RANGE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE,
		FALLOC_FL_UNSHARE_RANGE,
		FALLOC_FL_KEEP_SIZE,
	};

	fill(w, file, 0, 8 * PAGE);
	for (size_t i = 0; i < TN_ARRAY_LEN(modes); i++) {
		(void)tn_wire_fallocate(w, file, modes[i], 2 * PAGE, 2 * PAGE);
		tn_wire_check_account(w);
		(void)tn_wire_fallocate(w, file, modes[i], 20 * PAGE, 3 * PAGE);
		tn_wire_check_account(w);
		(void)tn_wire_fallocate(w, file, modes[i], 100, 3 * PAGE);
		tn_wire_check_account(w);
	}
}

static void test_quota(void **state)
{
	TnWire *w = *state;
	uint64_t file = make_file(w, w->tmp, "f"), other = make_file(w, w->tmp, "g");
	TN_AUTOFREE char *data = calloc(1, TN_MAX_WRITE);
	struct fuse_attr attr;

	fill(w, file, 0, (1 << 20) - 3 * PAGE);
	/* Not all of it fits: a short write to the page, then ENOSPC. */
	assert_int_equal(tn_wire_write(w, other, 100, data, 10 * PAGE), 3 * PAGE - 100);
	assert_int_equal(tn_wire_bytes(w), 1 << 20);
	assert_int_equal(tn_wire_write(w, other, 3 * PAGE, data, 1), -ENOSPC);
	assert_int_equal(tn_wire_write(w, other, 3 * PAGE - 100, data, 200), 100);
	assert_int_equal(tn_wire_getattr(w, other, &attr), 0);
	assert_int_equal(attr.size, 3 * PAGE);
	assert_int_equal(tn_wire_write(w, other, 0, data, 3 * PAGE), 3 * PAGE); /* over old data */
	assert_int_equal(tn_wire_setxattr(w, other, "user.x", "v", 1, 0), -ENOSPC);
	assert_int_equal(tn_wire_symlink(w, w->tmp, "l", "t"), -ENOSPC);
	assert_int_equal(tn_wire_mknod(w, w->tmp, "h", S_IFREG | 0644), 0); /* costs no bytes */
	tn_wire_check_account(w);
	assert_true(atomic_load(&w->nest->account->refusals) > 0);
	assert_int_equal(tn_wire_truncate(w, file, PAGE), 0);
	assert_int_equal(tn_wire_write(w, other, 3 * PAGE, data, PAGE), PAGE);
	tn_wire_check_account(w);
	/* Into a hole with a page left. */
	assert_int_equal(tn_wire_truncate(w, other, 0), 0);
	fill(w, other, 10 * PAGE, PAGE);
	fill(w, file, PAGE, (1 << 20) - 3 * PAGE);
	assert_int_equal(tn_wire_bytes(w), (1 << 20) - PAGE);
	assert_int_equal(tn_wire_write(w, other, 9 * PAGE, data, 3 * PAGE), 2 * PAGE);
	tn_wire_check_account(w);
}

static void test_inodes(void **state)
{
	TnWire *w = *state;
	char name[16];

	assert_int_equal(tn_nest_set_limits(w->nest, 0, 10, 0, 0), 0);
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		make(w, w->tmp, name, i % 2 ? S_IFDIR | 0755 : S_IFREG | 0644);
	}
	assert_int_equal(tn_wire_mknod(w, w->tmp, "x", S_IFREG | 0644), -ENOSPC);
	assert_int_equal(tn_wire_mkdir(w, w->tmp, "x", 0755), -ENOSPC);
	assert_int_equal(tn_wire_symlink(w, w->tmp, "x", "t"), -ENOSPC);
	assert_int_equal(tn_wire_lookup(w, w->tmp, "x"), -ENOENT);
	assert_int_equal(tn_wire_link(w, look(w, w->tmp, "f0"), w->tmp, "x"), 0); /* no inode */
	tn_wire_check_account(w);
}

static void test_scratch_sync(void **state)
{
	TnWire *w = *state;
	struct fuse_fsync_in in = {.fsync_flags = 0};
	struct fuse_open_in open_in = {.flags = O_RDONLY};
	static const uint32_t unanswered[] = {FUSE_OPENDIR, FUSE_FLUSH,  FUSE_ACCESS, FUSE_GETLK,
					      FUSE_SETLK,   FUSE_SETLKW, FUSE_BMAP,   FUSE_IOCTL,
					      FUSE_POLL,    63,          100,         4096};

	assert_int_equal(
		tn_wire_call(w, FUSE_FSYNC, make_file(w, w->tmp, "f"), &in, sizeof(in), NULL, 0),
		-ENOSYS);
	assert_int_equal(tn_wire_call(w, FUSE_FSYNCDIR, w->tmp, &in, sizeof(in), NULL, 0), -ENOSYS);
	assert_int_equal(tn_wire_call(w, FUSE_OPEN, w->tmp, &open_in, sizeof(open_in), NULL, 0),
			 -ENOSYS);
	for (size_t i = 0; i < TN_ARRAY_LEN(unanswered); i++)
		assert_int_equal(tn_wire_call(w, unanswered[i], w->tmp, NULL, 0, NULL, 0), -ENOSYS);
	assert_int_equal(tn_wire_call(w, FUSE_RELEASE, w->tmp, NULL, 0, NULL, 0), 0);
	assert_int_equal(tn_wire_call(w, FUSE_INTERRUPT, 0, NULL, 0, NULL, 0), TN_WIRE_SILENT);
}

/* --- listings
 * -------------------------------------------------------------------------------------- */

typedef struct Seen {
	size_t n;
	uint8_t names[1000]; /* how often e<number> was met */
	uint64_t last;       /* offset to go on at */
	bool at_end;
} Seen;

static void take_dirent(const struct fuse_dirent *entry, Seen *seen)
{
	char name[NAME_MAX + 1];
	unsigned number;

	memcpy(name, entry->name, entry->namelen);
	name[entry->namelen] = '\0';
	seen->last = entry->off;
	if (sscanf(name, "e%u", &number) == 1) {
		assert_in_range(number, 0, 999);
		seen->names[number]++;
		seen->n++;
	} else {
		assert_true(strcmp(name, ".") == 0 || strcmp(name, "..") == 0);
	}
}

/* One READDIR or READDIRPLUS of `size` bytes at most. */
static void list_some(TnWire *w, uint64_t dir, bool plus, uint32_t size, Seen *seen)
{
	size_t at = 0;

	assert_int_equal(
		tn_wire_readdir(w, plus ? FUSE_READDIRPLUS : FUSE_READDIR, dir, seen->last, size),
		0);
	assert_true(w->out_size <= size);
	seen->at_end = w->out_size == 0;
	while (at < w->out_size) {
		const struct fuse_direntplus *entry_plus = (const void *)(w->out + at);
		const struct fuse_dirent *entry =
			plus ? &entry_plus->dirent : (const void *)(w->out + at);

		take_dirent(entry, seen);
		if (plus && entry_plus->entry_out.nodeid) {
			assert_int_equal(entry_plus->entry_out.attr.ino, entry->ino);
			assert_int_equal((entry_plus->entry_out.attr.mode & S_IFMT) >> 12,
					 entry->type);
		}
		at += plus ? FUSE_DIRENTPLUS_SIZE(entry_plus) : FUSE_DIRENT_SIZE(entry);
	}
	assert_int_equal(at, w->out_size);
}

static void test_readdir(void **state)
{
	TnWire *w = *state;
	uint64_t dir = make_dir(w, w->tmp, "d");
	char name[16];

	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "e%u", i);
		make(w, dir, name, i % 3 ? S_IFREG | 0644 : S_IFDIR | 0755);
	}
	for (int plus = 0; plus < 2; plus++) {
		for (uint32_t size = 512; size <= 65536; size *= 8) {
			Seen seen = {.n = 0};

			while (!seen.at_end)
				list_some(w, dir, plus, size, &seen);
			assert_int_equal(seen.n, 1000);
			for (unsigned i = 0; i < 1000; i++)
				assert_int_equal(seen.names[i], 1);
		}
	}
	/* Names go while they are listed: each that stays is met once. */
	{
		Seen seen = {.n = 0};
		unsigned gone = 0;

		while (!seen.at_end) {
			list_some(w, dir, false, 2048, &seen);
			for (unsigned i = 0; i < 20 && gone < 500; i++, gone++) {
				snprintf(name, sizeof(name), "e%u", gone * 2);
				assert_int_equal((gone * 2) % 3 ? tn_wire_unlink(w, dir, name)
								: tn_wire_rmdir(w, dir, name),
						 0);
			}
		}
		for (unsigned i = 1; i < 1000; i += 2)
			assert_int_equal(seen.names[i], 1);
	}
	tn_wire_check_account(w);
	assert_int_equal(tn_wire_readdir(w, FUSE_READDIR, make_file(w, w->tmp, "f"), 0, 4096),
			 -ENOTDIR);
	assert_int_equal(tn_wire_readdir(w, FUSE_READDIR, dir, UINT64_MAX, 4096), -EINVAL);
	assert_int_equal(tn_wire_readdir(w, FUSE_READDIR, dir, 0, 0), 0);
	assert_int_equal(w->out_size, 0);
	assert_int_equal(tn_wire_readdir(w, FUSE_READDIRPLUS, dir, 0, UINT32_MAX), 0);
}

/* A big directory that is removed while open: its size was charged, and is given back. */
static void test_grown_directory(void **state)
{
	TnWire *w = *state;
	uint64_t dir = make_dir(w, w->tmp, "d"), bytes;
	char name[200];

	memset(name, 'n', sizeof(name));
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name + 190, 10, "%u", i);
		make_file(w, dir, name);
		tn_wire_forget(w, w->entry.nodeid, 1);
	}
	bytes = tn_wire_bytes(w);
	assert_true(bytes > 0); /* 100 names of 190 bytes are more than a block */
	tn_wire_check_account(w);
	tn_wire_forget(w, dir, 1);
	dir = look(w, w->tmp, "d"); /* a node that has not been charged in this life */
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name + 190, 10, "%u", i);
		assert_int_equal(tn_wire_unlink(w, dir, name), 0);
	}
	tn_wire_check_account(w);
	assert_int_equal(tn_wire_rmdir(w, w->tmp, "d"), 0);
	tn_wire_check_account(w);
	tn_wire_forget(w, dir, 1);
	assert_int_equal(tn_wire_bytes(w), 0);
	tn_wire_check_account(w);
}

/* --- extended attributes
 * ----------------------------------------------------------------------------- */

static void test_xattr(void **state)
{
	TnWire *w = *state;
	uint64_t file = make_file(w, w->tmp, "f"), pipe = make(w, w->tmp, "p", S_IFIFO | 0644);
	char name[300];

	assert_int_equal(tn_wire_setxattr(w, file, "user.key", "value", 5, 0), 0);
	assert_int_equal(tn_wire_bytes(w), 8 + 5);
	assert_int_equal(tn_wire_getxattr(w, file, "user.key", 0), 0);
	assert_int_equal(((const struct fuse_getxattr_out *)(const void *)w->out)->size, 5);
	assert_int_equal(tn_wire_getxattr(w, file, "user.key", 64), 0);
	assert_int_equal(w->out_size, 5);
	assert_memory_equal(w->out, "value", 5);
	assert_int_equal(tn_wire_getxattr(w, file, "user.key", 4), -ERANGE);
	assert_int_equal(tn_wire_getxattr(w, file, "user.none", 64), -ENODATA);
	assert_int_equal(tn_wire_setxattr(w, file, "user.key", "v", 1, XATTR_CREATE), -EEXIST);
	assert_int_equal(tn_wire_setxattr(w, file, "user.new", "v", 1, XATTR_REPLACE), -ENODATA);
	assert_int_equal(tn_wire_setxattr(w, file, "user.key", "longer than it was", 18, 0), 0);
	assert_int_equal(tn_wire_bytes(w), 8 + 18);
	assert_int_equal(tn_wire_setxattr(w, file, "user.key", "", 0, 0), 0);
	assert_int_equal(tn_wire_bytes(w), 8);
	assert_int_equal(tn_wire_setxattr(w, w->tmp, "user.dir", "d", 1, 0), 0);
	tn_wire_check_account(w);
	assert_int_equal(tn_wire_listxattr(w, file, 0), 0);
	assert_int_equal(((const struct fuse_getxattr_out *)(const void *)w->out)->size, 9);
	assert_int_equal(tn_wire_listxattr(w, file, 64), 0);
	assert_int_equal(w->out_size, 9);
	assert_memory_equal(w->out, "user.key", 9);
	assert_int_equal(tn_wire_listxattr(w, file, 3), -ERANGE);
	assert_int_equal(tn_wire_listxattr(w, pipe, 64), 0);
	assert_int_equal(w->out_size, 0);
	/* Nothing that would look as if it were enforced. */
	assert_int_equal(tn_wire_setxattr(w, file, "security.x", "v", 1, 0), -EOPNOTSUPP);
	assert_int_equal(tn_wire_setxattr(w, file, "trusted.x", "v", 1, 0), -EOPNOTSUPP);
	assert_int_equal(tn_wire_setxattr(w, file, "system.posix_acl_access", "v", 1, 0),
			 -EOPNOTSUPP);
	assert_int_equal(tn_wire_getxattr(w, file, "system.posix_acl_access", 64), -EOPNOTSUPP);
	assert_int_equal(tn_wire_removexattr(w, file, "security.x"), -EOPNOTSUPP);
	assert_int_equal(tn_wire_setxattr(w, pipe, "user.x", "v", 1, 0), -EOPNOTSUPP);
	strcpy(name, "user.");
	memset(name + 5, 'n', sizeof(name) - 5);
	name[256] = '\0';
	assert_int_equal(tn_wire_setxattr(w, file, name, "v", 1, 0), -ERANGE);
	name[255] = '\0';
	assert_int_equal(tn_wire_setxattr(w, file, name, "v", 1, 0), 0);
	assert_int_equal(tn_wire_removexattr(w, file, name), 0);
	assert_int_equal(tn_wire_removexattr(w, file, "user.key"), 0);
	assert_int_equal(tn_wire_removexattr(w, file, "user.key"), -ENODATA);
	assert_int_equal(tn_wire_removexattr(w, w->tmp, "user.dir"), 0);
	assert_int_equal(tn_wire_bytes(w), 0);
	assert_int_equal(atomic_load(&w->nest->arena.header->xattr_bytes), 0);
	tn_wire_check_account(w);
}

/* --- replies that did not arrive
 * ------------------------------------------------------------------------ */

static void undelivered(TnWire *w, uint32_t opcode)
{
	struct fuse_in_header in = {.opcode = opcode};

	tn_dispatch_undelivered(w->nest, (const void *)&in, w->reply);
}

static uint64_t lookups_of(TnWire *w, uint64_t id)
{
	uint32_t index = tn_node_by_id(w->nest->table, id);

	return index ? tn_node_at(w->nest->table, index)->lookups : 0;
}

static void test_undelivered(void **state)
{
	TnWire *w = *state;
	uint64_t file = make_file(w, w->tmp, "f");
	size_t nodes = tn_node_count(w->nest->table);

	look(w, w->tmp, "f");
	assert_int_equal(lookups_of(w, file), 2);
	undelivered(w, FUSE_LOOKUP);
	assert_int_equal(lookups_of(w, file), 1);
	assert_int_equal(tn_wire_link(w, file, w->tmp, "g"), 0);
	undelivered(w, FUSE_LINK);
	assert_int_equal(lookups_of(w, file), 1);
	assert_int_equal(tn_wire_lookup(w, w->tmp, "missing"), -ENOENT);
	undelivered(w, FUSE_LOOKUP);
	assert_int_equal(tn_wire_mkdir(w, w->tmp, "d", 0755), 0);
	undelivered(w, FUSE_MKDIR);
	assert_int_equal(tn_wire_mknod(w, w->tmp, "n", S_IFREG | 0644), 0);
	undelivered(w, FUSE_MKNOD);
	assert_int_equal(tn_wire_symlink(w, w->tmp, "s", "t"), 0);
	undelivered(w, FUSE_SYMLINK);
	assert_int_equal(tn_node_count(w->nest->table), nodes);
	assert_int_equal(tn_wire_readdir(w, FUSE_READDIRPLUS, w->tmp, 0, 65536), 0);
	assert_int_equal(tn_node_count(w->nest->table), nodes + 3);
	undelivered(w, FUSE_READDIRPLUS);
	assert_int_equal(tn_node_count(w->nest->table), nodes);
	assert_int_equal(lookups_of(w, file), 1);
	assert_int_equal(tn_wire_mknod(w, w->tmp, "f", S_IFREG | 0644), -EEXIST);
	undelivered(w, FUSE_MKNOD); /* an error gave nothing */
	assert_int_equal(lookups_of(w, file), 1);
	tn_wire_check_account(w);
}

/* --- FORGET
 * ---------------------------------------------------------------------------------------------- */

static void test_forget(void **state)
{
	TnWire *w = *state;
	uint64_t a = make_file(w, w->tmp, "a"), b = make_file(w, w->tmp, "b");
	struct {
		struct fuse_batch_forget_in in;
		struct fuse_forget_one one[3];
	} batch = {{.count = 3}, {{a, 1}, {b, 1}, {999999, 5}}};

	tn_wire_forget(w, 1, UINT64_MAX);
	tn_wire_forget(w, 999999, 1);
	assert_int_equal(tn_wire_call(w, FUSE_BATCH_FORGET, 0, &batch, sizeof(batch), NULL, 0),
			 TN_WIRE_SILENT);
	assert_int_equal(tn_node_count(w->nest->table), 3);
	a = look(w, w->tmp, "a");
	tn_wire_forget(w, a, UINT64_MAX); /* more than was given */
	assert_int_equal(tn_node_count(w->nest->table), 3);
	a = look(w, w->tmp, "a");
	batch.in.count = UINT32_MAX; /* more than are there */
	batch.one[0].nodeid = a;
	assert_int_equal(tn_wire_call(w, FUSE_BATCH_FORGET, 0, &batch,
				      sizeof(batch.in) + sizeof(batch.one[0]) + 5, NULL, 0),
			 TN_WIRE_SILENT);
	assert_int_equal(tn_node_count(w->nest->table), 3);
	assert_int_equal(tn_wire_inodes(w), 2);
}

/* --- owners
 * ------------------------------------------------------------------------------------------------
 */

static void *make_as_others(void *data)
{
	TnWire *w = data;

	/* As the daemon's threads, whose capabilities outlast setfsuid(2). */
	assert_int_equal(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP), 0);
	w->identity = (TnIdentity){0, 0};
	w->uid = 1234;
	w->gid = 5678;
	make_dir(w, w->tmp, "d");
	assert_int_equal(w->entry.attr.uid, 1234);
	assert_int_equal(w->entry.attr.gid, 5678);
	w->uid = 4321;
	make_file(w, w->entry.nodeid, "f");
	assert_int_equal(w->entry.attr.uid, 4321);
	assert_int_equal(tn_wire_symlink(w, w->tmp, "l", "t"), 0);
	assert_int_equal(w->entry.attr.uid, 4321);
	w->uid = w->gid = 0;
	make_file(w, w->tmp, "g");
	assert_int_equal(w->entry.attr.uid, 0);
	assert_int_equal(w->entry.attr.gid, 0);
	return NULL;
}

static void test_owners(void **state)
{
	TnWire wire;
	pthread_t thread;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root: a daemon of many owners is root's\n");
		skip();
	}
	tn_wire_open(&wire, &(TnWireSpec){.many_owners = true});
	assert_int_equal(pthread_create(&thread, NULL, make_as_others, &wire), 0);
	pthread_join(thread, NULL);
	tn_wire_check_account(&wire);
	tn_wire_close(&wire);
}

static void test_durable(void **state)
{
	struct fuse_fsync_in in = {.fsync_flags = 0};
	TnWire wire;
	uint64_t file;

	(void)state;
	tn_wire_open(&wire, &(TnWireSpec){.durable = true});
	file = make_file(&wire, wire.tmp, "f");
	fill(&wire, file, 0, 100);
	assert_int_equal(tn_wire_call(&wire, FUSE_FSYNC, file, &in, sizeof(in), NULL, 0), 0);
	assert_int_equal(tn_wire_call(&wire, FUSE_FSYNCDIR, wire.tmp, &in, sizeof(in), NULL, 0), 0);
	tn_wire_close(&wire);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_init),
		TEST(test_statfs),
		TEST(test_lookup),
		TEST(test_make),
		TEST(test_names),
		TEST(test_root),
		TEST(test_symlink),
		TEST(test_link),
		TEST(test_link_symlink),
		TEST(test_unlink_only_known_name),
		TEST(test_unlink_rmdir),
		TEST(test_unlink_unknown),
		TEST(test_unlinked_in_use),
		TEST(test_rename),
		TEST(test_rename_errors),
		TEST(test_rename_same_file),
		TEST(test_exchange_kinds),
		TEST(test_tmpfile),
		TEST(test_many_orphans),
		TEST(test_replace_beyond_budget),
		TEST(test_setattr),
		TEST(test_truncate),
		TEST(test_read_write),
		TEST(test_holes),
		TEST(test_fallocate),
		TEST(test_keep_size),
		TEST(test_fallocate_modes),
		TEST(test_quota),
		TEST(test_inodes),
		TEST(test_scratch_sync),
		TEST(test_readdir),
		TEST(test_grown_directory),
		TEST(test_xattr),
		TEST(test_undelivered),
		TEST(test_forget),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_durable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
