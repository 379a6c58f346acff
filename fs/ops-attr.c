/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GETATTR, SETATTR, READLINK. The kernel has checked permissions (default_permissions) and
 * turned set-id clearing into FATTR_KILL_SUIDGID (FUSE_HANDLE_KILLPRIV_V2); what is left
 * is to do it.
 */
#include "charge.h"
#include "handles.h"
#include "journal.h"
#include "ops.h"

#include "macros.h"
#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

TN_SYSCALLS = {
	{SYS_fchmod},    {SYS_fchmodat},  {SYS_fchownat},   {SYS_ftruncate},
	{SYS_fallocate}, {SYS_utimensat}, TN_CALL_READLINK, {SYS_statx},
};

static int reply_attr(TnRequest *request)
{
	struct fuse_attr_out *out;
	struct stat st;
	int r;

	tn_opened_look(request->nest, request->node);
	r = tn_resolve_stat(request->nest, request->node, &st);
	if (r < 0)
		return r;
	out = tn_reply_alloc(request, sizeof(*out));
	out->attr_valid = tn_attr_valid(request->nest, request->node);
	tn_fill_attr(&out->attr, &st);
	return 0;
}

int tn_op_getattr(TnRequest *request)
{
	return reply_attr(request);
}

/* The last name of such a node is ours, in orphans/. */
static bool is_in_orphans(TnNest *nest, uint32_t index)
{
	bool result;

	pthread_mutex_lock(&nest->table_lock);
	result = tn_node_at(nest->table, index)->flags & TN_NODE_IN_ORPHANS;
	pthread_mutex_unlock(&nest->table_lock);
	return result;
}

static TnStatxTime statx_time(struct statx_timestamp time)
{
	return (TnStatxTime){.sec = time.tv_sec, .nsec = time.tv_nsec};
}

/* What GETATTR lacks: the birth time. */
int tn_op_statx(TnRequest *request)
{
	TnNest *nest = request->nest;
	TN_PLACE place = {.dir = TN_FD_NONE};
	TnStatxOut *out;
	struct statx st;
	int r;

	tn_opened_look(nest, request->node);
	pthread_rwlock_rdlock(&nest->tree);
	r = tn_resolve_place(nest, request->node, &place);
	if (r == 0 && statx(place.dir.fd, place.name, place.at_flags,
			    STATX_BASIC_STATS | STATX_BTIME, &st) < 0)
		r = -errno;
	pthread_rwlock_unlock(&nest->tree);
	if (r < 0)
		return r;
	out = tn_reply_alloc(request, sizeof(*out));
	out->attr_valid = tn_attr_valid(nest, request->node);
	out->stat.mask = st.stx_mask;
	out->stat.blksize = TN_PAGE_SIZE;
	out->stat.nlink = is_in_orphans(nest, request->node) ? 0 : st.stx_nlink;
	out->stat.uid = st.stx_uid;
	out->stat.gid = st.stx_gid;
	out->stat.mode = st.stx_mode;
	out->stat.ino = st.stx_ino;
	out->stat.size = st.stx_size;
	out->stat.blocks = st.stx_blocks;
	out->stat.atime = statx_time(st.stx_atime);
	out->stat.btime = statx_time(st.stx_btime);
	out->stat.ctime = statx_time(st.stx_ctime);
	out->stat.mtime = statx_time(st.stx_mtime);
	return 0;
}

int tn_op_readlink(TnRequest *request)
{
	TnNest *nest = request->nest;
	TN_PLACE place = {.dir = TN_FD_NONE};
	ssize_t length = -1;
	int r;

	pthread_rwlock_rdlock(&nest->tree);
	r = tn_resolve_place(nest, request->node, &place);
	if (r == 0) {
		length = readlinkat(place.dir.fd, place.name, (char *)request->reply, PATH_MAX);
		if (length < 0)
			r = -errno;
	}
	pthread_rwlock_unlock(&nest->tree);
	if (r == 0)
		request->reply_size = (size_t)length;
	return r;
}

/* --- SETATTR ----------------------------------------------------------------------------- */

/*
 * The mode without set-uid and set-gid. Where the group may not execute the file, set-gid
 * stays for root and members of the group; of other groups than its first one the request
 * says nothing.
 */
static mode_t without_set_id(const TnRequest *request, const struct stat *st)
{
	mode_t mode = st->st_mode & 07777 & ~(mode_t)S_ISUID;
	bool member = request->in->uid == 0 || request->in->gid == st->st_gid;

	return (st->st_mode & S_IXGRP) || !member ? mode & ~(mode_t)S_ISGID : mode;
}

static int clear_set_id(const TnRequest *request, int fd)
{
	struct stat st;
	mode_t mode;

	if (fstat(fd, &st) < 0)
		return -errno;
	mode = without_set_id(request, &st);
	if (mode != (st.st_mode & 07777) && fchmod(fd, mode) < 0)
		return -errno;
	return 0;
}

static int set_size(TnRequest *request, uint64_t size, bool clear_ids)
{
	TnNest *nest = request->nest;
	TnNode *node = tn_node_at(nest->table, request->node);
	TN_FD file = TN_FD_NONE;
	int r;

	if (size > INT64_MAX)
		return -EFBIG;
	r = tn_resolve_file(nest, request->node, &file);
	if (r < 0)
		return r;
	pthread_mutex_lock(tn_nest_node_lock(nest, request->node));
	r = tn_charge_load(nest, node, file.fd);
	tn_kill_point();
	if (r == 0 && ftruncate(file.fd, (off_t)size) < 0)
		r = -errno;
	tn_kill_point();
	if (r == 0)
		r = tn_charge_truncated(nest, node, file.fd, size);
	pthread_mutex_unlock(tn_nest_node_lock(nest, request->node));
	if (r == 0 && clear_ids)
		r = clear_set_id(request, file.fd);
	return r;
}

static int change_mode(const TnPlace *place, mode_t mode)
{
	char path[32];
	int r;

	if (place->at_flags & AT_EMPTY_PATH) {
		/* fchmod(2) refuses O_PATH descriptors; the way through /proc does not. */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", place->dir.fd);
		r = fchmodat(AT_FDCWD, path, mode, 0);
	} else {
		r = fchmodat(place->dir.fd, place->name, mode, 0);
	}
	return r < 0 ? -errno : 0;
}

static int set_owner(const TnRequest *request, const TnPlace *place,
		     const struct fuse_setattr_in *in)
{
	uid_t uid = in->valid & FATTR_UID ? in->uid : (uid_t)-1;
	gid_t gid = in->valid & FATTR_GID ? in->gid : (gid_t)-1;
	struct stat st;
	mode_t mode;

	if (fstatat(place->dir.fd, place->name, &st, place->at_flags) < 0 ||
	    fchownat(place->dir.fd, place->name, uid, gid, place->at_flags) < 0)
		return -errno;
	/* The store has cleared what it clears for anybody; this process, as root, keeps more. */
	mode = without_set_id(request, &st);
	if (!S_ISDIR(st.st_mode) && (st.st_mode & S_ISGID) && !(st.st_mode & S_IXGRP) &&
	    !(mode & S_ISGID))
		return change_mode(place, mode);
	return 0;
}

static int set_mode(TnNest *nest, uint32_t index, const TnPlace *place, mode_t mode)
{
	int r = change_mode(place, mode);

	if (r < 0)
		return r;
	if (mode & (S_ISUID | S_ISGID)) {
		pthread_mutex_lock(tn_nest_node_lock(nest, index));
		tn_node_at(nest->table, index)->charge |= TN_CHARGE_SET_ID;
		pthread_mutex_unlock(tn_nest_node_lock(nest, index));
	}
	return 0;
}

static struct timespec time_to_set(uint32_t valid, uint32_t set, uint32_t now, uint64_t seconds,
				   uint32_t nanoseconds)
{
	if (valid & now)
		return (struct timespec){.tv_nsec = UTIME_NOW};
	if (valid & set)
		return (struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = nanoseconds};
	return (struct timespec){.tv_nsec = UTIME_OMIT};
}

static int set_times(const TnPlace *place, const struct fuse_setattr_in *in)
{
	struct timespec times[2] = {
		time_to_set(in->valid, FATTR_ATIME, FATTR_ATIME_NOW, in->atime, in->atimensec),
		time_to_set(in->valid, FATTR_MTIME, FATTR_MTIME_NOW, in->mtime, in->mtimensec),
	};
	char path[32];
	int r;

	if (place->at_flags & AT_EMPTY_PATH) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", place->dir.fd);
		r = utimensat(AT_FDCWD, path, times, 0);
	} else {
		r = utimensat(place->dir.fd, place->name, times, AT_SYMLINK_NOFOLLOW);
	}
	return r < 0 ? -errno : 0;
}

/*
 * Neither size nor any attribute: the kernel asks for what only the file system does, which
 * is to move ctime (chown of -1, -1) and to clear set-id bits (before a write or fallocate
 * of one who may not keep them). chown(2) of -1, -1 in the store does just this.
 */
static bool changes_nothing(const struct fuse_setattr_in *in)
{
	return !(in->valid & ~(uint32_t)(FATTR_FH | FATTR_LOCKOWNER | FATTR_KILL_SUIDGID));
}

/* Owner before mode: chown(2) clears the set-id bits that the mode may want to set. */
static int set_by_place(TnRequest *request, const struct fuse_setattr_in *in)
{
	TnNest *nest = request->nest;
	TN_PLACE place = {.dir = TN_FD_NONE};
	int r;

	pthread_rwlock_rdlock(&nest->tree);
	r = tn_resolve_place(nest, request->node, &place);
	if (r == 0 && ((in->valid & (FATTR_UID | FATTR_GID)) || changes_nothing(in)))
		r = set_owner(request, &place, in);
	if (r == 0 && (in->valid & FATTR_MODE)) {
		/* The VFS refuses to change a symlink's mode; fchmodat() would follow it. */
		if (tn_node_at(nest->table, request->node)->type == S_IFLNK)
			r = -EOPNOTSUPP;
		else
			r = set_mode(nest, request->node, &place, in->mode & 07777);
	}
	if (r == 0 && (in->valid & (FATTR_ATIME | FATTR_MTIME | FATTR_ATIME_NOW | FATTR_MTIME_NOW)))
		r = set_times(&place, in);
	pthread_rwlock_unlock(&nest->tree);
	return r;
}

int tn_op_setattr(TnRequest *request)
{
	const struct fuse_setattr_in *in = (const void *)request->arg;
	int r = tn_check_change(request->nest, request->node);

	if (r == 0 && (in->valid & FATTR_SIZE))
		r = set_size(request, in->size, in->valid & FATTR_KILL_SUIDGID);
	if (r == 0 &&
	    (changes_nothing(in) || (in->valid & ~(uint32_t)(FATTR_SIZE | FATTR_KILL_SUIDGID |
							     FATTR_FH | FATTR_LOCKOWNER))))
		r = set_by_place(request, in);
	return r < 0 ? r : reply_attr(request);
}
