/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * O_TMPFILE (FUSE_TMPFILE): a file without a name, held by the descriptor that made it
 * until a LINK gives it one or its FORGET comes. The kernel decides who may link it
 * (O_EXCL), and sends no RELEASE once OPEN was answered ENOSYS.
 */
#include "ops.h"

#include "macros.h"

#include <errno.h>
#include <fcntl.h>

/* The unnamed file, opened by the caller's ids in the directory's file system. */
static int open_unnamed(TnRequest *request, mode_t mode)
{
	TnNest *nest = request->nest;
	TN_FD dir = TN_FD_NONE;
	int r, fd = -1;

	pthread_rwlock_rdlock(&nest->tree);
	r = tn_resolve_dir(nest, request->node, &dir);
	if (r == 0) {
		tn_request_become_caller(request);
		fd = openat(dir.fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode & 07777);
		if (fd < 0)
			r = -errno;
	}
	pthread_rwlock_unlock(&nest->tree);
	return r < 0 ? r : fd;
}

/* Enters the file into the node table, one reference of the kernel. 0 or -ENFILE. */
static int enter(TnRequest *request, const struct stat *st, uint32_t *ret, uint64_t *ret_id)
{
	TnNest *nest = request->nest;

	pthread_mutex_lock(&nest->table_lock);
	*ret = tn_node_enter_unnamed(nest->table, request->node, st->st_ino, st->st_mode);
	if (*ret) {
		TnNode *node = tn_node_at(nest->table, *ret);

		node->charge |= TN_CHARGE_KNOWN |
				(st->st_mode & (S_ISUID | S_ISGID) ? TN_CHARGE_SET_ID : 0);
		*ret_id = node->id;
	}
	pthread_mutex_unlock(&nest->table_lock);
	return *ret ? 0 : -ENFILE;
}

/* The kernel does not get to know the node after all. */
static void take_back(TnNest *nest, uint32_t index)
{
	TnReleased released = {.nest = nest};

	pthread_mutex_lock(&nest->table_lock);
	tn_node_forget(nest->table, index, 1, tn_released_collect, &released);
	pthread_mutex_unlock(&nest->table_lock);
	tn_released_finish(&released);
}

int tn_op_tmpfile(TnRequest *request)
{
	const struct fuse_create_in *in = (const void *)request->arg;
	TN_RESERVATION reservation = {0};
	TN_AUTOFD fd = -1;
	struct fuse_entry_out *entry;
	struct stat st;
	uint64_t id = 0;
	uint32_t index = 0;
	int r = tn_check_change(request->nest, request->node);

	if (r == 0)
		r = tn_nest_reserve(request->nest, 0, 1, &reservation);
	if (r < 0)
		return r;
	fd = open_unnamed(request, in->mode);
	if (fd < 0)
		return fd;
	r = fstat(fd, &st) < 0 ? -errno : enter(request, &st, &index, &id);
	if (r < 0)
		return r;
	r = tn_hold_unnamed(request->nest, index, fd);
	if (r < 0) {
		take_back(request->nest, index);
		return r;
	}
	if (r > 0)
		tn_steal_fd(&fd);
	tn_quota_settle(&reservation, 0, 1);
	entry = tn_reply_alloc(request, sizeof(*entry));
	entry->nodeid = id;
	entry->entry_valid = entry->attr_valid = TN_VALID_SECONDS;
	tn_fill_attr(&entry->attr, &st);
	/* No handle: the file is found by its node. */
	tn_reply_alloc(request, sizeof(struct fuse_open_out));
	return 0;
}
