/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OPEN, CREATE, RELEASE, which only a nest on the passthrough path answers: the reply hands the
 * kernel the store's file, and what is done with the open file from then on is not seen here.
 * So this is where rules are looked at, and only here: see docs/semantics.md.
 */
#include "handles.h"
#include "ops.h"

#include "macros.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static bool is_writing(uint32_t open_flags)
{
	return (open_flags & O_ACCMODE) != O_RDONLY;
}

/*
 * What the kernel keeps of the file's attributes was said to stay true, and may now change
 * through a mapping. Nobody is waited for: offset -1 means no pages.
 */
static void drop_attributes(const TnNest *nest, uint64_t nodeid)
{
	/* It fails when the kernel has ended the connection, or knows no such inode. */
	(void)tn_notify_inode(nest->device, nodeid, -1);
}

int tn_reply_open(TnRequest *request, uint32_t index, uint32_t open_flags)
{
	TnNest *nest = request->nest;
	struct fuse_open_out *out;
	bool first_writer = false;
	int32_t backing = 0;
	uint64_t fh;
	int r;

	pthread_rwlock_rdlock(&nest->tree);
	r = tn_handle_take(nest, index, open_flags, &fh, &backing, &first_writer);
	pthread_rwlock_unlock(&nest->tree);
	if (r < 0)
		return r;
	if (first_writer && request->in->opcode == FUSE_OPEN)
		drop_attributes(nest, request->in->nodeid);
	out = tn_reply_alloc(request, sizeof(*out));
	out->fh = fh;
	out->open_flags = backing ? TN_FOPEN_PASSTHROUGH : 0;
	/* backing_id, which older headers call padding */
	memcpy((uint8_t *)out + offsetof(struct fuse_open_out, open_flags) + sizeof(uint32_t),
	       &backing, sizeof(backing));
	return 0;
}

int tn_op_open(TnRequest *request)
{
	const struct fuse_open_in *in = (const void *)request->arg;
	TnNest *nest = request->nest;
	int r = 0;

	if (nest->data_path != TN_PATH_PASSTHROUGH)
		return -ENOSYS;
	if (tn_node_at(nest->table, request->node)->type != S_IFREG)
		return -EINVAL;
	if (is_writing(in->flags)) {
		r = tn_check_change(nest, request->node);
		/* What is written next asks nobody. */
		tn_nest_await_room(nest, 0);
	}
	return r < 0 ? r : tn_reply_open(request, request->node, in->flags);
}

int tn_op_create(TnRequest *request)
{
	const struct fuse_create_in *in = (const void *)request->arg;
	TnNest *nest = request->nest;
	struct fuse_entry_out *entry;
	uint32_t index;
	int r;

	if (nest->data_path != TN_PATH_PASSTHROUGH)
		return -ENOSYS;
	r = tn_create_file(request, in->mode);
	if (r < 0)
		return r;
	entry = (void *)request->reply;
	pthread_mutex_lock(&nest->table_lock);
	index = tn_node_by_id(nest->table, entry->nodeid);
	pthread_mutex_unlock(&nest->table_lock);
	r = tn_reply_open(request, index, in->flags);
	if (r < 0)
		tn_take_back(nest, index);
	else
		entry->attr_valid = tn_attr_valid(nest, index);
	return r;
}

int tn_op_release(TnRequest *request)
{
	const struct fuse_release_in *in = (const void *)request->arg;

	if (request->nest->data_path == TN_PATH_PASSTHROUGH && request->arg_size >= sizeof(*in))
		tn_handle_release(request->nest, in->fh);
	return 0;
}
