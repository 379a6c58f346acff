/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * READ, WRITE, FALLOCATE, FSYNC, LSEEK: file data on the mediated path.
 *
 * Every change of data is done under the node's lock, so that what is charged and what
 * the store holds cannot part: the kernel's own inode lock does not cover writeback of
 * shared mappings.
 */
#include "charge.h"
#include "journal.h"
#include "ops.h"

#include "macros.h"
#include "observe.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>

TN_SYSCALLS = {
	{SYS_pread64}, {SYS_pwrite64},  {SYS_fallocate}, {SYS_ftruncate},
	{SYS_fsync},   {SYS_fdatasync}, {SYS_fchmod},
};

int tn_op_read(TnRequest *request)
{
	const struct fuse_read_in *in = (const void *)request->arg;
	size_t size = in->size < TN_MAX_WRITE ? in->size : TN_MAX_WRITE;
	TN_FD file = TN_FD_NONE;
	ssize_t n;
	int r = tn_resolve_file(request->nest, request->node, &file);

	if (r < 0)
		return r;
	n = pread(file.fd, request->reply, size, (off_t)in->offset);
	if (n < 0)
		return -errno;
	request->reply_size = (size_t)n;
	return 0;
}

/* --- WRITE --------------------------------------------------------------------------------- */

/*
 * The part of [offset, offset + size) that the account can take: cuts size back to a page
 * boundary when not all of the missing pages fit. Nothing may fit: then 0.
 */
static uint64_t cut_to_fit(TnNest *nest, TnNode *node, int fd, uint64_t offset, uint64_t size,
			   uint64_t missing, TnReservation *reservation)
{
	uint64_t got =
		tn_nest_reserve_some(nest, missing * TN_PAGE_SIZE, reservation) / TN_PAGE_SIZE;
	uint64_t end = offset + size, at = offset;

	if (got == missing)
		return size;
	while (at < end) {
		uint64_t next = (at / TN_PAGE_SIZE + 1) * TN_PAGE_SIZE, absent;
		bool exact;

		if (next > end)
			next = end;
		if (tn_charge_missing(nest, node, fd, at, next - at, &absent, &exact) < 0 ||
		    absent > got)
			break;
		/* As long as a prefix is being filled, each page counts from the present end. */
		if (!(node->charge & TN_CHARGE_SPARSE) && at / TN_PAGE_SIZE >= node->pages)
			absent = 1;
		if (absent > got)
			break;
		got -= absent;
		at = next;
	}
	return at - offset;
}

/*
 * A store that cannot tell which pages are there reserves for all of them; when that is
 * too much, page by page: a page that turns out new and does not fit is taken out again.
 */
static ssize_t write_page_by_page(TnNest *nest, TnNode *node, int fd, const uint8_t *data,
				  uint64_t offset, uint64_t size)
{
	uint64_t at = offset, end = offset + size;
	struct stat before, after;

	while (at < end) {
		TN_RESERVATION reservation = {0};
		uint64_t page = at / TN_PAGE_SIZE * TN_PAGE_SIZE;
		uint64_t next = page + TN_PAGE_SIZE < end ? page + TN_PAGE_SIZE : end;
		ssize_t n;

		if (fstat(fd, &before) < 0)
			return -errno;
		n = pwrite(fd, data + (at - offset), next - at, (off_t)at);
		if (n <= 0)
			return at > offset ? (ssize_t)(at - offset) : -errno;
		if (fstat(fd, &after) < 0)
			return -errno;
		if (after.st_blocks > before.st_blocks &&
		    tn_quota_reserve(nest->account, TN_PAGE_SIZE, 0, &reservation) < 0) {
			tn_observe_quota(nest);
			fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)page,
				  TN_PAGE_SIZE);
			if (after.st_size > before.st_size && ftruncate(fd, before.st_size) < 0)
				return -errno;
			/* That also dropped what was preallocated past the end. */
			tn_charge_recount(nest, node, fd, &reservation);
			return at > offset ? (ssize_t)(at - offset) : -ENOSPC;
		}
		tn_charge_recount(nest, node, fd, &reservation);
		at += (uint64_t)n;
	}
	return (ssize_t)size;
}

static ssize_t write_data(TnNest *nest, TnNode *node, int fd, const uint8_t *data, uint64_t offset,
			  uint64_t size)
{
	TN_RESERVATION reservation = {0};
	uint64_t missing, fits = size;
	bool exact;
	ssize_t n;
	int r = tn_charge_load(nest, node, fd);

	if (r == 0)
		r = tn_charge_missing(nest, node, fd, offset, size, &missing, &exact);
	if (r < 0)
		return r;
	if (missing > 0 && tn_nest_reserve(nest, missing * TN_PAGE_SIZE, 0, &reservation) < 0) {
		if (!exact)
			return write_page_by_page(nest, node, fd, data, offset, size);
		fits = cut_to_fit(nest, node, fd, offset, size, missing, &reservation);
		if (fits == 0)
			return -ENOSPC;
		r = tn_charge_missing(nest, node, fd, offset, fits, &missing, &exact);
		if (r < 0)
			return r;
	}
	tn_kill_point();
	n = pwrite(fd, data, fits, (off_t)offset);
	if (n < 0)
		n = -errno;
	tn_kill_point();
	if (n == (ssize_t)fits)
		r = tn_charge_grown(nest, node, fd, offset, (uint64_t)n, missing, exact,
				    &reservation);
	else
		r = tn_charge_recount(nest, node, fd, &reservation);
	return r < 0 ? r : n;
}

/* The set-id bits go with a write by a process that may not keep them (killpriv, version 2). */
static void drop_set_id(TnNode *node, int fd)
{
	struct stat st;
	mode_t mode;

	if (!(node->charge & TN_CHARGE_SET_ID) || fstat(fd, &st) < 0)
		return;
	mode = st.st_mode & 07777 & ~(mode_t)S_ISUID;
	if (st.st_mode & S_IXGRP)
		mode &= ~(mode_t)S_ISGID;
	if (mode == (st.st_mode & 07777) || fchmod(fd, mode) == 0)
		node->charge &= (uint8_t)~TN_CHARGE_SET_ID;
}

int tn_op_write(TnRequest *request)
{
	const struct fuse_write_in *in = (const void *)request->arg;
	const uint8_t *data = request->arg + sizeof(*in);
	TnNest *nest = request->nest;
	TnNode *node = tn_node_at(nest->table, request->node);
	TN_FD file = TN_FD_NONE;
	struct fuse_write_out *out;
	ssize_t n;
	int r;

	if (in->size > request->arg_size - sizeof(*in))
		return -EINVAL;
	if (in->offset > (uint64_t)INT64_MAX - in->size)
		return -EFBIG;
	r = tn_check_change(nest, request->node);
	if (r == 0)
		r = tn_resolve_file(nest, request->node, &file);
	if (r < 0)
		return r;
	pthread_mutex_lock(tn_nest_node_lock(nest, request->node));
	n = write_data(nest, node, file.fd, data, in->offset, in->size);
	if (n > 0 && (in->write_flags & FUSE_WRITE_KILL_SUIDGID))
		drop_set_id(node, file.fd);
	/* Newer kernels send an FSYNC besides; that costs little then. */
	if (n > 0 && nest->durable && (in->flags & O_DSYNC) && fdatasync(file.fd) < 0)
		n = -errno;
	pthread_mutex_unlock(tn_nest_node_lock(nest, request->node));
	if (n < 0)
		return (int)n;
	out = tn_reply_alloc(request, sizeof(*out));
	out->size = (uint32_t)n;
	return 0;
}

/* --- FALLOCATE, FSYNC, LSEEK ----------------------------------------------------------------- */

#define MOVES_DATA (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)

/*
 * Collapsing and inserting a range are the calls that must not be done twice: the size
 * tells whether an interrupted attempt had come to it.
 */
static int call_store(int fd, const struct fuse_fallocate_in *in)
{
	const TnNotes *before = tn_journal_interrupted();
	TnNotes notes = {0};
	struct stat st;
	int r = 0;

	if (!(in->mode & MOVES_DATA)) {
		/* A tmpfs stops at any signal, and undoes what it has done so far. */
		do
			r = fallocate(fd, (int)in->mode, (off_t)in->offset, (off_t)in->length);
		while (r < 0 && errno == EINTR);
		return r < 0 ? -errno : 0;
	}
	if (fstat(fd, &st) < 0)
		return -errno;
	if (before && (uint64_t)st.st_size != before->allocated.size)
		return 0;
	notes.allocated.size = (uint64_t)st.st_size;
	tn_journal_begin(&notes);
	do
		r = fallocate(fd, (int)in->mode, (off_t)in->offset, (off_t)in->length);
	while (r < 0 && errno == EINTR); /* a kick, not a client's signal */
	if (r < 0) {
		r = -errno;
		tn_journal_abandon();
	}
	return r;
}

static int allocate(TnNest *nest, TnNode *node, int fd, const struct fuse_fallocate_in *in)
{
	TN_RESERVATION reservation = {0};
	bool grows = !(in->mode &
		       (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE));
	/* Storage past the end of the file makes it sparse: a truncation may keep or drop it. */
	bool plain = in->mode == 0, exact = true;
	uint64_t missing = 0;
	int r = tn_charge_load(nest, node, fd);

	if (r == 0 && grows)
		r = tn_charge_missing(nest, node, fd, in->offset, in->length, &missing, &exact);
	if (r == 0 && missing > 0)
		r = tn_nest_reserve(nest, missing * TN_PAGE_SIZE, 0, &reservation);
	if (r < 0)
		return r;
	tn_kill_point();
	r = call_store(fd, in);
	tn_kill_point();
	if (r == 0 && plain)
		return tn_charge_grown(nest, node, fd, in->offset, in->length, missing, exact,
				       &reservation);
	/* Also after a failure: a store may have done a part. */
	tn_charge_recount(nest, node, fd, &reservation);
	return r;
}

int tn_op_fallocate(TnRequest *request)
{
	const struct fuse_fallocate_in *in = (const void *)request->arg;
	TnNest *nest = request->nest;
	TN_FD file = TN_FD_NONE;
	int r;

	if (in->length == 0 || in->offset > INT64_MAX || in->length > INT64_MAX - in->offset)
		return -EINVAL;
	r = tn_check_change(nest, request->node);
	if (r == 0)
		r = tn_resolve_file(nest, request->node, &file);
	if (r < 0)
		return r;
	pthread_mutex_lock(tn_nest_node_lock(nest, request->node));
	r = allocate(nest, tn_node_at(nest->table, request->node), file.fd, in);
	pthread_mutex_unlock(tn_nest_node_lock(nest, request->node));
	return r;
}

int tn_op_fsync(TnRequest *request)
{
	TN_FD file = TN_FD_NONE;
	int r;

	/* A nest is scratch space, as a tmpfs is: ENOSYS makes the kernel answer by itself. */
	if (!request->nest->durable)
		return -ENOSYS;
	r = tn_resolve_file(request->nest, request->node, &file);
	if (r < 0)
		return r;
	return fsync(file.fd) < 0 ? -errno : 0;
}

int tn_op_lseek(TnRequest *request)
{
	const struct fuse_lseek_in *in = (const void *)request->arg;
	struct fuse_lseek_out *out;
	TN_FD file = TN_FD_NONE;
	off_t found;
	int r;

	if (in->whence != SEEK_DATA && in->whence != SEEK_HOLE)
		return -EINVAL;
	r = tn_resolve_file(request->nest, request->node, &file);
	if (r < 0)
		return r;
	/* Moves the position of a shared descriptor, which nobody uses. */
	found = lseek(file.fd, (off_t)in->offset, (int)in->whence);
	if (found < 0)
		return -errno;
	out = tn_reply_alloc(request, sizeof(*out));
	out->offset = (uint64_t)found;
	return 0;
}
