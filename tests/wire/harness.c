/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "harness.h"

#include "macros.h"
#include "sys.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

/* --- life ---------------------------------------------------------------------------------- */

static TnPolicy *build_policy(const TnWireSpec *spec)
{
	TnPolicy *policy = tn_policy_new();

	for (size_t i = 0; i < 8 && spec->deny[i]; i++)
		assert_int_equal(tn_policy_add(policy, spec->deny[i], true), 0);
	for (size_t i = 0; i < 8 && spec->read_only[i]; i++)
		assert_int_equal(tn_policy_add(policy, spec->read_only[i], false), 0);
	return policy;
}

static void build_nest(TnWire *wire, const TnWireSpec *spec)
{
	TnRegistryConfig config = {.many_owners = spec->many_owners};
	TnNestParts parts = {
		.config = &config,
		.id = 42,
		.name = "wire",
		.uid = geteuid(),
		.gid = getegid(),
		.durable = spec->durable,
		.bytes = spec->bytes ? spec->bytes : UINT64_MAX,
		.inodes = spec->inodes ? spec->inodes : UINT64_MAX,
		.created_ns = tn_now(),
		.from = {.fd = -1},
		.dirs = wire->dirs,
		.files = wire->files,
		.policy = build_policy(spec),
	};

	parts.home = tn_open_dir_make(wire->scratch.dir, "home", 0700);
	assert_true(parts.home >= 0);
	assert_int_equal(
		tn_store_open(&parts.store, TN_STORE_DIR, parts.home, parts.uid, parts.gid), 0);
	if (spec->kind)
		parts.store.ops = tn_store_ops(spec->kind);
	assert_int_equal(tn_nest_new(&wire->nest, &parts), 0);
}

void tn_wire_open(TnWire *wire, const TnWireSpec *spec)
{
	*wire = (TnWire){
		.identity = {geteuid(), getegid()},
		.uid = geteuid(),
		.gid = getegid(),
		.fds = tn_count_fds(),
	};
	umask(0);
	assert_true(tn_scratch_new(&wire->scratch, spec->base));
	assert_int_equal(tn_fdcache_new(&wire->dirs, 16), 0);
	assert_int_equal(tn_fdcache_new(&wire->files, 16), 0);
	wire->borrows_reply = spec->reply;
	wire->reply = spec->reply ? spec->reply : malloc(TN_REPLY_SIZE);
	build_nest(wire, spec);
	assert_int_equal(tn_wire_lookup(wire, 1, "tmp"), 0);
	wire->tmp = wire->entry.nodeid;
	assert_int_equal(tn_wire_lookup(wire, 1, "var-tmp"), 0);
	wire->var = wire->entry.nodeid;
}

/* What a superblock's end does in the daemon. */
static void forget_everything(TnWire *wire)
{
	TnNodeTable *table = wire->nest->table;
	uint32_t index;

	while ((index = tn_node_next(table, TN_ROOT_INDEX)))
		for (; index; index = tn_node_next(table, index))
			tn_wire_forget(wire, tn_node_at(table, index)->id,
				       tn_node_at(table, index)->lookups);
}

void tn_wire_close(TnWire *wire)
{
	forget_everything(wire);
	assert_int_equal(tn_node_count(wire->nest->table), 1);
	assert_int_equal(tn_node_at(wire->nest->table, TN_ROOT_INDEX)->children, 0);
	assert_int_equal(atomic_load(&wire->nest->arena.header->orphans), 0);
	tn_wire_check_account(wire);
	tn_nest_unref(wire->nest);
	tn_fdcache_free(wire->dirs);
	tn_fdcache_free(wire->files);
	tn_scratch_remove(&wire->scratch);
	if (!wire->borrows_reply)
		free(wire->reply);
	assert_int_equal(tn_count_fds(), wire->fds);
}

void tn_wire_join(TnWire *wire, const TnWire *of)
{
	*wire = *of;
	wire->reply = malloc(TN_REPLY_SIZE);
}

void tn_wire_leave(TnWire *wire)
{
	free(wire->reply);
}

/* --- the account --------------------------------------------------------------------------- */

uint64_t tn_wire_bytes(TnWire *wire)
{
	return atomic_load(&wire->nest->account->bytes_used);
}

uint64_t tn_wire_inodes(TnWire *wire)
{
	return atomic_load(&wire->nest->account->inodes_used);
}

void tn_wire_check_account(TnWire *wire)
{
	uint64_t bytes = 0, inodes = 0;

	assert_int_equal(tn_nest_recount(wire->nest, &bytes, &inodes), 0);
	assert_int_equal(tn_wire_bytes(wire), bytes);
	assert_int_equal(tn_wire_inodes(wire), inodes);
	assert_int_equal(atomic_load(&wire->nest->account->underflows), 0);
}

/* --- requests ------------------------------------------------------------------------------- */

size_t tn_wire_raw(TnWire *wire, const void *message, size_t size)
{
	/* A copy of just this size, so that the address sanitizer sees a read past its end. */
	TN_AUTOFREE uint8_t *copy = malloc(size ? size : 1);
	size_t n;

	memcpy(copy, message, size);
	n = tn_dispatch(wire->nest, &wire->identity, copy, size, wire->reply);
	assert_true(n <= TN_REPLY_SIZE);
	return n;
}

static int check_reply(TnWire *wire, size_t size, uint64_t unique)
{
	const struct fuse_out_header *out = (const void *)wire->reply;

	if (size == 0)
		return TN_WIRE_SILENT;
	assert_true(size >= sizeof(*out));
	assert_int_equal(out->len, size);
	assert_int_equal(out->unique, unique);
	assert_true(out->error <= 0 && out->error > -512); /* what the kernel takes */
	wire->out = wire->reply + sizeof(*out);
	wire->out_size = size - sizeof(*out);
	if (out->error)
		assert_int_equal(wire->out_size, 0);
	return out->error;
}

int tn_wire_call(TnWire *wire, uint32_t opcode, uint64_t node, const void *arg, size_t arg_size,
		 const void *more, size_t more_size)
{
	size_t size = sizeof(struct fuse_in_header) + arg_size + more_size;
	TN_AUTOFREE uint8_t *message = malloc(size);
	struct fuse_in_header header = {
		.len = (uint32_t)size,
		.opcode = opcode,
		.unique = wire->unique += 2,
		.nodeid = node,
		.uid = wire->uid,
		.gid = wire->gid,
		.pid = 1,
	};

	memcpy(message, &header, sizeof(header));
	if (arg_size)
		memcpy(message + sizeof(header), arg, arg_size);
	if (more_size)
		memcpy(message + sizeof(header) + arg_size, more, more_size);
	return check_reply(wire, tn_wire_raw(wire, message, size), header.unique);
}

/* With one name after the arguments. */
static int call_name(TnWire *wire, uint32_t opcode, uint64_t node, const void *arg, size_t arg_size,
		     const char *name)
{
	return tn_wire_call(wire, opcode, node, arg, arg_size, name, strlen(name) + 1);
}

/* With two. */
static int call_names(TnWire *wire, uint32_t opcode, uint64_t node, const void *arg,
		      size_t arg_size, const char *name, const char *name2)
{
	size_t first = strlen(name) + 1, second = strlen(name2) + 1;
	TN_AUTOFREE char *both = malloc(first + second);

	memcpy(both, name, first);
	memcpy(both + first, name2, second);
	return tn_wire_call(wire, opcode, node, arg, arg_size, both, first + second);
}

static int take_entry(TnWire *wire, int r)
{
	if (r)
		return r;
	assert_int_equal(wire->out_size, sizeof(wire->entry));
	memcpy(&wire->entry, wire->out, sizeof(wire->entry));
	if (wire->entry.nodeid == 0)
		return -ENOENT;
	assert_true(wire->entry.attr.ino != 0 && wire->entry.attr.nlink > 0);
	return 0;
}

int tn_wire_lookup(TnWire *wire, uint64_t dir, const char *name)
{
	return take_entry(wire, call_name(wire, FUSE_LOOKUP, dir, NULL, 0, name));
}

void tn_wire_forget(TnWire *wire, uint64_t node, uint64_t count)
{
	struct fuse_forget_in in = {.nlookup = count};

	assert_int_equal(tn_wire_call(wire, FUSE_FORGET, node, &in, sizeof(in), NULL, 0),
			 TN_WIRE_SILENT);
}

int tn_wire_mknod(TnWire *wire, uint64_t dir, const char *name, uint32_t mode)
{
	struct fuse_mknod_in in = {.mode = mode};

	return take_entry(wire, call_name(wire, FUSE_MKNOD, dir, &in, sizeof(in), name));
}

int tn_wire_mkdir(TnWire *wire, uint64_t dir, const char *name, uint32_t mode)
{
	struct fuse_mkdir_in in = {.mode = mode};

	return take_entry(wire, call_name(wire, FUSE_MKDIR, dir, &in, sizeof(in), name));
}

int tn_wire_symlink(TnWire *wire, uint64_t dir, const char *name, const char *target)
{
	return take_entry(wire, call_names(wire, FUSE_SYMLINK, dir, NULL, 0, name, target));
}

int tn_wire_link(TnWire *wire, uint64_t node, uint64_t dir, const char *name)
{
	struct fuse_link_in in = {.oldnodeid = node};

	return take_entry(wire, call_name(wire, FUSE_LINK, dir, &in, sizeof(in), name));
}

int tn_wire_unlink(TnWire *wire, uint64_t dir, const char *name)
{
	return call_name(wire, FUSE_UNLINK, dir, NULL, 0, name);
}

int tn_wire_rmdir(TnWire *wire, uint64_t dir, const char *name)
{
	return call_name(wire, FUSE_RMDIR, dir, NULL, 0, name);
}

int tn_wire_rename(TnWire *wire, uint64_t from, const char *name, uint64_t to, const char *name2,
		   uint32_t flags)
{
	struct fuse_rename2_in in = {.newdir = to, .flags = flags};

	return call_names(wire, FUSE_RENAME2, from, &in, sizeof(in), name, name2);
}

static int take_attr(TnWire *wire, int r, struct fuse_attr *ret)
{
	const struct fuse_attr_out *out = (const void *)wire->out;

	if (r)
		return r;
	assert_int_equal(wire->out_size, sizeof(*out));
	*ret = out->attr;
	return 0;
}

int tn_wire_getattr(TnWire *wire, uint64_t node, struct fuse_attr *ret)
{
	struct fuse_getattr_in in = {.getattr_flags = 0};

	return take_attr(wire, tn_wire_call(wire, FUSE_GETATTR, node, &in, sizeof(in), NULL, 0),
			 ret);
}

int tn_wire_setattr(TnWire *wire, uint64_t node, const struct fuse_setattr_in *in)
{
	struct fuse_attr attr;

	return take_attr(wire, tn_wire_call(wire, FUSE_SETATTR, node, in, sizeof(*in), NULL, 0),
			 &attr);
}

int tn_wire_truncate(TnWire *wire, uint64_t node, uint64_t size)
{
	struct fuse_setattr_in in = {.valid = FATTR_SIZE, .size = size};

	return tn_wire_setattr(wire, node, &in);
}

int64_t tn_wire_write(TnWire *wire, uint64_t node, uint64_t offset, const void *data, size_t size)
{
	struct fuse_write_in in = {.offset = offset, .size = (uint32_t)size};
	int r = tn_wire_call(wire, FUSE_WRITE, node, &in, sizeof(in), data, size);

	if (r)
		return r;
	assert_int_equal(wire->out_size, sizeof(struct fuse_write_out));
	return ((const struct fuse_write_out *)(const void *)wire->out)->size;
}

int64_t tn_wire_read(TnWire *wire, uint64_t node, uint64_t offset, void *data, size_t size)
{
	struct fuse_read_in in = {.offset = offset, .size = (uint32_t)size};
	int r = tn_wire_call(wire, FUSE_READ, node, &in, sizeof(in), NULL, 0);

	if (r)
		return r;
	assert_true(wire->out_size <= size);
	memcpy(data, wire->out, wire->out_size);
	return (int64_t)wire->out_size;
}

int tn_wire_fallocate(TnWire *wire, uint64_t node, uint32_t mode, uint64_t offset, uint64_t size)
{
	struct fuse_fallocate_in in = {.mode = mode, .offset = offset, .length = size};

	return tn_wire_call(wire, FUSE_FALLOCATE, node, &in, sizeof(in), NULL, 0);
}

int tn_wire_setxattr(TnWire *wire, uint64_t node, const char *name, const void *value, size_t size,
		     uint32_t flags)
{
	struct fuse_setxattr_in in = {.size = (uint32_t)size, .flags = flags};
	size_t length = strlen(name) + 1;
	TN_AUTOFREE uint8_t *both = malloc(length + size);

	memcpy(both, name, length);
	if (size)
		memcpy(both + length, value, size);
	return tn_wire_call(wire, FUSE_SETXATTR, node, &in, sizeof(in), both, length + size);
}

int tn_wire_getxattr(TnWire *wire, uint64_t node, const char *name, uint32_t room)
{
	struct fuse_getxattr_in in = {.size = room};

	return call_name(wire, FUSE_GETXATTR, node, &in, sizeof(in), name);
}

int tn_wire_listxattr(TnWire *wire, uint64_t node, uint32_t room)
{
	struct fuse_getxattr_in in = {.size = room};

	return tn_wire_call(wire, FUSE_LISTXATTR, node, &in, sizeof(in), NULL, 0);
}

int tn_wire_removexattr(TnWire *wire, uint64_t node, const char *name)
{
	return call_name(wire, FUSE_REMOVEXATTR, node, NULL, 0, name);
}

int tn_wire_readdir(TnWire *wire, uint32_t opcode, uint64_t node, uint64_t offset, uint32_t size)
{
	struct fuse_read_in in = {.offset = offset, .size = size};

	return tn_wire_call(wire, opcode, node, &in, sizeof(in), NULL, 0);
}
