/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "dispatch.h"

#include "handles.h"
#include "journal.h"
#include "log.h"
#include "macros.h"
#include "observe.h"
#include "ops.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/fsuid.h>

/* How an opcode's request is made, and who serves it. */
typedef struct Row {
	const char *name;
	TnOperation operation; /* NULL: answered with `error` */
	int error;         /* without operation: the errno; ENOSYS makes the kernel stop asking */
	uint16_t arg_size; /* bytes of fixed arguments after the header, at least */
	uint8_t names;     /* NUL-terminated strings after them */
	bool no_node;      /* nodeid means nothing, or need not be known */
	bool any_second;   /* the second string is no name (a symlink's target) */
	bool silent;       /* the kernel expects no reply, not even an error */
} Row;

#define ARG(type) .arg_size = sizeof(struct type)

/*
 * OPENDIR, FLUSH and ACCESS are ENOSYS on purpose, and on the mediated path OPEN and CREATE are:
 * open and close of a known file then cost no round trip, files are made by MKNOD, and the
 * kernel checks permissions itself. Locks are the kernel's own.
 */
static const Row rows[TN_OPCODES] = {
	[FUSE_LOOKUP] = {"LOOKUP", tn_op_lookup, .names = 1},
	[FUSE_FORGET] = {"FORGET", tn_op_forget, ARG(fuse_forget_in), .no_node = true,
			 .silent = true},
	[FUSE_GETATTR] = {"GETATTR", tn_op_getattr, ARG(fuse_getattr_in)},
	[FUSE_SETATTR] = {"SETATTR", tn_op_setattr, ARG(fuse_setattr_in)},
	[FUSE_READLINK] = {"READLINK", tn_op_readlink},
	[FUSE_SYMLINK] = {"SYMLINK", tn_op_symlink, .names = 2, .any_second = true},
	[FUSE_MKNOD] = {"MKNOD", tn_op_mknod, ARG(fuse_mknod_in), .names = 1},
	[FUSE_MKDIR] = {"MKDIR", tn_op_mkdir, ARG(fuse_mkdir_in), .names = 1},
	[FUSE_UNLINK] = {"UNLINK", tn_op_unlink, .names = 1},
	[FUSE_RMDIR] = {"RMDIR", tn_op_rmdir, .names = 1},
	[FUSE_RENAME] = {"RENAME", tn_op_rename, ARG(fuse_rename_in), .names = 2},
	[FUSE_LINK] = {"LINK", tn_op_link, ARG(fuse_link_in), .names = 1},
	[FUSE_OPEN] = {"OPEN", tn_op_open, ARG(fuse_open_in)},
	[FUSE_READ] = {"READ", tn_op_read, ARG(fuse_read_in)},
	[FUSE_WRITE] = {"WRITE", tn_op_write, ARG(fuse_write_in)},
	[FUSE_STATFS] = {"STATFS", tn_op_statfs, .no_node = true},
	[FUSE_RELEASE] = {"RELEASE", tn_op_release, .no_node = true},
	[FUSE_FSYNC] = {"FSYNC", tn_op_fsync, ARG(fuse_fsync_in)},
	[FUSE_SETXATTR] = {"SETXATTR", tn_op_setxattr, ARG(fuse_setxattr_in), .names = 1},
	[FUSE_GETXATTR] = {"GETXATTR", tn_op_getxattr, ARG(fuse_getxattr_in), .names = 1},
	[FUSE_LISTXATTR] = {"LISTXATTR", tn_op_listxattr, ARG(fuse_getxattr_in)},
	[FUSE_REMOVEXATTR] = {"REMOVEXATTR", tn_op_removexattr, .names = 1},
	[FUSE_FLUSH] = {"FLUSH", .error = ENOSYS},
	[FUSE_INIT] = {"INIT", tn_op_init, .arg_size = 16, .no_node = true},
	[FUSE_OPENDIR] = {"OPENDIR", .error = ENOSYS},
	[FUSE_READDIR] = {"READDIR", tn_op_readdir, ARG(fuse_read_in)},
	[FUSE_RELEASEDIR] = {"RELEASEDIR", .error = 0, .no_node = true},
	[FUSE_FSYNCDIR] = {"FSYNCDIR", tn_op_fsyncdir, ARG(fuse_fsync_in)},
	[FUSE_GETLK] = {"GETLK", .error = ENOSYS},
	[FUSE_SETLK] = {"SETLK", .error = ENOSYS},
	[FUSE_SETLKW] = {"SETLKW", .error = ENOSYS},
	[FUSE_ACCESS] = {"ACCESS", .error = ENOSYS},
	[FUSE_CREATE] = {"CREATE", tn_op_create, ARG(fuse_create_in), .names = 1},
	[FUSE_INTERRUPT] = {"INTERRUPT", .no_node = true, .silent = true},
	[FUSE_BMAP] = {"BMAP", .error = ENOSYS},
	[FUSE_DESTROY] = {"DESTROY", tn_op_destroy, .no_node = true},
	[FUSE_IOCTL] = {"IOCTL", .error = ENOSYS},
	[FUSE_POLL] = {"POLL", .error = ENOSYS},
	[FUSE_NOTIFY_REPLY] = {"NOTIFY_REPLY", .no_node = true, .silent = true},
	[FUSE_BATCH_FORGET] = {"BATCH_FORGET", tn_op_batch_forget, ARG(fuse_batch_forget_in),
			       .no_node = true, .silent = true},
	[FUSE_FALLOCATE] = {"FALLOCATE", tn_op_fallocate, ARG(fuse_fallocate_in)},
	[FUSE_READDIRPLUS] = {"READDIRPLUS", tn_op_readdirplus, ARG(fuse_read_in)},
	[FUSE_RENAME2] = {"RENAME2", tn_op_rename2, ARG(fuse_rename2_in), .names = 2},
	[FUSE_LSEEK] = {"LSEEK", tn_op_lseek, ARG(fuse_lseek_in)},
	[FUSE_COPY_FILE_RANGE] = {"COPY_FILE_RANGE", .error = ENOSYS},
	[FUSE_SYNCFS] = {"SYNCFS", .error = ENOSYS},
	[FUSE_TMPFILE] = {"TMPFILE", tn_op_tmpfile, ARG(fuse_create_in)},
	[TN_FUSE_STATX] = {"STATX", tn_op_statx, .arg_size = sizeof(TnStatxIn)},
};

const char *tn_opcode_name(uint32_t opcode)
{
	return opcode < TN_OPCODES ? rows[opcode].name : NULL;
}

/* --- checking -------------------------------------------------------------------------- */

/* One NUL-terminated string at *at; moves *at behind it. NULL when it does not end. */
static const char *take_string(const TnRequest *request, size_t *at)
{
	const char *text = (const char *)request->arg + *at;
	size_t left = request->arg_size - *at, length = strnlen(text, left);

	if (length == left)
		return NULL;
	*at += length + 1;
	return text;
}

static bool is_entry_name(const char *name)
{
	return name[0] && strlen(name) <= NAME_MAX && !strchr(name, '/') &&
	       strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Fixed arguments and strings are there. 0, -EINVAL or -ENAMETOOLONG. */
static int check_form(TnRequest *request, const Row *row)
{
	size_t at = row->arg_size;

	if (request->arg_size < row->arg_size)
		return -EINVAL;
	if (row->names >= 1 && !(request->name = take_string(request, &at)))
		return -EINVAL;
	if (row->names >= 2 && !(request->name2 = take_string(request, &at)))
		return -EINVAL;
	/* The first string of SYMLINK is the name, the second the target. An xattr's name
	 * may hold anything. */
	if (row->operation == tn_op_setxattr || row->operation == tn_op_getxattr ||
	    row->operation == tn_op_removexattr)
		return strlen(request->name) <= 255 ? 0 : -ERANGE;
	if (request->name && strlen(request->name) > NAME_MAX)
		return -ENAMETOOLONG;
	if (request->name && !is_entry_name(request->name))
		return -EINVAL;
	if (request->name2 && !row->any_second && !is_entry_name(request->name2))
		return strlen(request->name2) > NAME_MAX ? -ENAMETOOLONG : -EINVAL;
	return 0;
}

static int find_node(TnRequest *request)
{
	TnNest *nest = request->nest;

	pthread_mutex_lock(&nest->table_lock);
	request->node = tn_node_by_id(nest->table, request->in->nodeid);
	pthread_mutex_unlock(&nest->table_lock);
	return request->node ? 0 : -ESTALE;
}

/* --- serving --------------------------------------------------------------------------- */

void tn_request_become_caller(TnRequest *request)
{
	TnIdentity *identity = request->identity;

	/* A user's daemon serves one uid and gid: its own. */
	if (!request->nest->many_owners)
		return;
	if (identity->gid != request->in->gid) {
		setfsgid(request->in->gid);
		identity->gid = request->in->gid;
	}
	if (identity->uid != request->in->uid) {
		setfsuid(request->in->uid);
		identity->uid = request->in->uid;
	}
}

static int serve(TnRequest *request, const Row *row)
{
	int r = check_form(request, row);

	if (r == 0 && !row->no_node)
		r = find_node(request);
	if (r == 0 && !row->no_node && !row->silent)
		r = tn_check_revoked(request->nest, request->node);
	if (r < 0)
		return r;
	if (!row->operation)
		return row->silent ? TN_NO_REPLY : -row->error;
	return row->operation(request);
}

size_t tn_dispatch(TnNest *nest, TnIdentity *identity, const uint8_t *message, size_t size,
		   uint8_t *reply_buffer)
{
	static const Row unknown = {.name = "unknown", .error = ENOSYS, .no_node = true};
	const struct fuse_in_header *in = (const void *)message;
	struct fuse_out_header *out = (void *)reply_buffer;
	TnRequest request = {
		.nest = nest,
		.in = in,
		.arg = message + sizeof(*in),
		.reply = reply_buffer + sizeof(*out),
		.identity = identity,
	};
	const Row *row = &unknown;
	int64_t begun;
	uint64_t refusals;
	int r;

	if (size < sizeof(*in))
		return 0;
	request.arg_size = size - sizeof(*in);
	request.again = tn_journal_is_again() || (in->unique & TN_FUSE_UNIQUE_RESEND);
	if (in->opcode < TN_OPCODES && rows[in->opcode].name)
		row = &rows[in->opcode];
	if (in->opcode < TN_OPCODES)
		atomic_fetch_add_explicit(&nest->arena.header->requests[in->opcode], 1,
					  memory_order_relaxed);
	refusals = atomic_load_explicit(&nest->account->refusals, memory_order_relaxed);
	begun = tn_observe_begin(&request);
	r = in->len == size ? serve(&request, row) : -EINVAL;
	tn_observe_end(&request, begun);
	if (r == -ENOSPC || r == -EDQUOT)
		r = tn_nest_store_answer(nest, r, refusals);
	if (r == TN_NO_REPLY || row->silent)
		return 0;
	if (r < 0)
		request.reply_size = 0;
	*out = (struct fuse_out_header){
		.len = (uint32_t)(sizeof(*out) + request.reply_size),
		.error = r,
		.unique = in->unique,
	};
	return out->len;
}

/* --- replies that did not arrive ---------------------------------------------------------- */

static void take_back(TnNest *nest, uint64_t nodeid)
{
	uint32_t index;

	if (nodeid == 0)
		return;
	pthread_mutex_lock(&nest->table_lock);
	index = tn_node_by_id(nest->table, nodeid);
	pthread_mutex_unlock(&nest->table_lock);
	if (index)
		tn_take_back(nest, index);
}

static void close_again(TnNest *nest, const uint8_t *open_out)
{
	tn_handle_release(nest, ((const struct fuse_open_out *)(const void *)open_out)->fh);
}

void tn_dispatch_undelivered(TnNest *nest, const uint8_t *message, const uint8_t *reply)
{
	const struct fuse_in_header *in = (const void *)message;
	const struct fuse_out_header *out = (const void *)reply;
	const uint8_t *payload = reply + sizeof(*out);
	size_t size = out->len - sizeof(*out);

	if (out->error)
		return;
	switch (in->opcode) {
	case FUSE_LOOKUP:
	case FUSE_MKNOD:
	case FUSE_MKDIR:
	case FUSE_SYMLINK:
	case FUSE_LINK:
		take_back(nest, ((const struct fuse_entry_out *)(const void *)payload)->nodeid);
		break;
	case FUSE_CREATE:
	case FUSE_TMPFILE:
		close_again(nest, payload + sizeof(struct fuse_entry_out));
		take_back(nest, ((const struct fuse_entry_out *)(const void *)payload)->nodeid);
		break;
	case FUSE_OPEN:
		close_again(nest, payload);
		break;
	case FUSE_READDIRPLUS:
		for (size_t at = 0; at + FUSE_NAME_OFFSET_DIRENTPLUS <= size;) {
			const struct fuse_direntplus *entry = (const void *)(payload + at);

			take_back(nest, entry->entry_out.nodeid);
			at += FUSE_DIRENTPLUS_SIZE(entry);
		}
		break;
	default:
		break;
	}
}
