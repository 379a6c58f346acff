/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * O_TMPFILE (FUSE_TMPFILE): a file without a name, held by the descriptor that made it
 * until a LINK gives it one or its FORGET comes. The kernel decides who may link it
 * (O_EXCL), and sends no RELEASE once OPEN was answered ENOSYS.
 */
#include "ops.h"

#include "handles.h"
#include "journal.h"
#include "macros.h"
#include "sys.h"

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
		fd = tn_open_beneath(dir.fd, ".", O_TMPFILE | O_RDWR, mode & 07777);
		r = fd < 0 ? fd : 0;
	}
	pthread_rwlock_unlock(&nest->tree);
	return r < 0 ? r : fd;
}

/* The file comes to be, and into the account. 0 or -errno; *ret is its node. */
static int make_unnamed(TnRequest *request, mode_t mode, TnReservation *reservation, uint32_t *ret)
{
	TnNest *nest = request->nest;
	TN_AUTOFD fd = open_unnamed(request, mode);
	TnChange change = {.inodes = 1, .settles = true};
	TnNotes notes = {0};
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	tn_kill_point();
	r = fstat(fd, &st) < 0 ? -errno : tn_hold_unnamed(nest, request->node, &st, &fd, ret);
	if (r < 0) {
		if (*ret)
			tn_take_back(nest, *ret);
		return r;
	}
	notes.unnamed.node = *ret;
	tn_journal_begin(&notes);
	change.node = *ret;
	change.charge = tn_node_at(nest->table, *ret)->charge & (uint8_t)~TN_CHARGE_NONE;
	tn_journal_settle(nest, reservation, &change);
	return 0;
}

/* An earlier attempt has made it and nobody was told: its node waits for the reference. */
static int give_again(TnNest *nest, uint32_t index)
{
	bool given;

	if (index >= nest->arena.header->nodes_end || !tn_node_at(nest->table, index)->id)
		return -EIO;
	pthread_mutex_lock(&nest->table_lock);
	given = tn_journal_give(tn_node_at(nest->table, index), index);
	pthread_mutex_unlock(&nest->table_lock);
	return given ? 0 : -ENFILE;
}

static int reply_unnamed(TnRequest *request, uint32_t index)
{
	const struct fuse_create_in *in = (const void *)request->arg;
	struct fuse_entry_out *entry;
	struct stat st;
	int r = tn_resolve_stat(request->nest, index, &st);

	if (r < 0) {
		tn_take_back(request->nest, index);
		return r;
	}
	entry = tn_reply_alloc(request, sizeof(*entry));
	entry->nodeid = tn_node_at(request->nest->table, index)->id;
	entry->entry_valid = TN_VALID_SECONDS;
	tn_fill_attr(&entry->attr, &st);
	entry->attr_valid = tn_attr_valid(request->nest, index);
	/* No handle on the mediated path: the file is found by its node. */
	if (request->nest->data_path != TN_PATH_PASSTHROUGH) {
		tn_reply_alloc(request, sizeof(struct fuse_open_out));
		return 0;
	}
	r = tn_reply_open(request, index, in->flags);
	if (r < 0)
		tn_take_back(request->nest, index);
	return r;
}

int tn_op_tmpfile(TnRequest *request)
{
	const struct fuse_create_in *in = (const void *)request->arg;
	TN_RESERVATION reservation = {0};
	TnNest *nest = request->nest;
	uint32_t index = 0;
	int r;

	if (tn_journal_step() == TN_STEP_SETTLED) {
		index = tn_journal_current()->notes.unnamed.node;
		r = give_again(nest, index);
	} else {
		r = tn_check_change(nest, request->node);
		if (r == 0)
			r = tn_nest_reserve(nest, 0, 1, &reservation);
		if (r == 0)
			r = make_unnamed(request, in->mode, &reservation, &index);
	}
	return r < 0 ? r : reply_unnamed(request, index);
}
