/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The connection itself: INIT negotiates what the kernel may do by itself, STATFS shows
 * the account.
 */
#include "ops.h"

#include "log.h"
#include "macros.h"
#include "syscalls.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/uio.h>

TN_SYSCALLS = {
	{SYS_fstatfs},
};

/*
 * What we ask for, if the kernel offers it (linux/fuse.h, flags of INIT):
 * - lookups and listings of one directory in parallel; listings with attributes when useful
 * - open, opendir without a round trip: they are answered ENOSYS, once (dispatch.c)
 * - symlink targets cached, data kept until we say otherwise: nobody else changes the store
 * - set-id bits cleared here, on a flag of the request, instead of a GETXATTR per write
 * Only for a nest that was asked to: writeback cache (it moves ENOSPC from write(2) to nowhere).
 * On a store whose limit the kernel keeps: passthrough of open files, which OPEN is answered for.
 * Not asked for: ATOMIC_O_TRUNC
 * (lost without OPEN), POSIX_LOCKS and FLOCK_LOCKS (the kernel's own locks do), splice.
 */
#define WANTED \
	(FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO | \
	 FUSE_ASYNC_DIO | FUSE_NO_OPEN_SUPPORT | FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES | \
	 FUSE_CACHE_SYMLINKS | FUSE_NO_OPENDIR_SUPPORT | FUSE_EXPLICIT_INVAL_DATA | \
	 FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT | FUSE_INIT_EXT)

#define NEEDED (FUSE_NO_OPEN_SUPPORT | FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT)

#define TN_FUSE_MINOR 39 /* the newest protocol that this file was written against: STATX */
#define MAX_BACKGROUND 64
#define MAX_READAHEAD (128U * 1024)

/* Behind flags2, where older headers have unused space: max_stack_depth, the depth of the view. */
#define STACK_DEPTH_OFFSET (offsetof(struct fuse_init_out, flags2) + sizeof(uint32_t))

static bool offers_passthrough(const TnRequest *request)
{
	const struct fuse_init_in *in = (const void *)request->arg;
	size_t end = offsetof(struct fuse_init_in, flags2) + sizeof(in->flags2);

	return request->nest->probe_passthrough && request->arg_size >= end &&
	       (in->flags & FUSE_INIT_EXT) && ((uint64_t)in->flags2 << 32 & TN_FUSE_PASSTHROUGH);
}

static void negotiate_passthrough(TnRequest *request, struct fuse_init_out *out)
{
	static const uint32_t depth = 1;
	TnNest *nest = request->nest;

	/* From one superblock to the next the kernel may be another: the daemon was moved along. */
	if (nest->data_path != TN_PATH_PASSTHROUGH && nest->data_path != TN_PATH_KERNEL)
		return;
	nest->data_path = offers_passthrough(request) ? TN_PATH_PASSTHROUGH : TN_PATH_KERNEL;
	atomic_store(&nest->arena.header->data_path, nest->data_path);
	if (nest->data_path == TN_PATH_PASSTHROUGH) {
		out->flags2 |= (uint32_t)(TN_FUSE_PASSTHROUGH >> 32);
		memcpy((uint8_t *)out + STACK_DEPTH_OFFSET, &depth, sizeof(depth));
	} else {
		tn_log(TN_LOG_INFO, "nest %s: mediated: %s", nest->name,
		       tn_data_path_reason(nest->data_path));
	}
}

int tn_op_init(TnRequest *request)
{
	const struct fuse_init_in *in = (const void *)request->arg;
	struct fuse_init_out *out;

	if (in->major != FUSE_KERNEL_VERSION || (in->flags & NEEDED) != NEEDED) {
		tn_log(TN_LOG_ERROR,
		       "init: kernel's FUSE %u.%u lacks what is needed (kernel 6.1 or later)",
		       in->major, in->minor);
		return -EPROTO;
	}
	out = tn_reply_alloc(request, sizeof(*out));
	out->major = FUSE_KERNEL_VERSION;
	out->minor = in->minor < TN_FUSE_MINOR ? in->minor : TN_FUSE_MINOR;
	out->max_readahead = in->max_readahead < MAX_READAHEAD ? in->max_readahead : MAX_READAHEAD;
	out->flags = in->flags & (uint32_t)WANTED;
	out->max_background = MAX_BACKGROUND;
	out->congestion_threshold = MAX_BACKGROUND * 3 / 4;
	out->max_write = TN_MAX_WRITE;
	out->time_gran = 1;
	out->max_pages = TN_MAX_WRITE / TN_PAGE_SIZE;
	if (request->nest->writeback)
		out->flags |= in->flags & FUSE_WRITEBACK_CACHE;
	negotiate_passthrough(request, out);
	return 0;
}

int tn_op_destroy(TnRequest *request)
{
	(void)request;
	return 0;
}

/* Without a limit the store's own figures show. */
static int backing_statvfs(TnNest *nest, struct statvfs *ret)
{
	return fstatvfs(nest->store.data, ret) < 0 ? -errno : 0;
}

int tn_op_statfs(TnRequest *request)
{
	TnNest *nest = request->nest;
	const TnAccount *account = nest->account;
	uint64_t bytes = atomic_load(&account->bytes_limit);
	uint64_t inodes = atomic_load(&account->inodes_limit);
	struct fuse_kstatfs *st;
	struct statvfs backing;
	uint64_t free = tn_quota_bytes_free(account);
	int r = backing_statvfs(nest, &backing);

	if (r < 0)
		return r;
	if (nest->store.kernel_counts) {
		free = (uint64_t)backing.f_bavail * backing.f_frsize;
		free = free < bytes ? free : bytes;
	}
	st = &((struct fuse_statfs_out *)tn_reply_alloc(request, sizeof(struct fuse_statfs_out)))
		      ->st;
	st->bsize = st->frsize = TN_PAGE_SIZE;
	st->namelen = 255;
	if (bytes == TN_UNLIMITED) {
		st->blocks = backing.f_blocks * backing.f_frsize / TN_PAGE_SIZE;
		st->bfree = backing.f_bavail * backing.f_frsize / TN_PAGE_SIZE;
	} else {
		st->blocks = bytes / TN_PAGE_SIZE;
		st->bfree = free / TN_PAGE_SIZE;
	}
	st->bavail = st->bfree;
	st->files = inodes == TN_UNLIMITED ? backing.f_files : inodes;
	st->ffree = inodes == TN_UNLIMITED ? backing.f_favail : tn_quota_inodes_free(account);
	return 0;
}

int tn_notify_inode(int device, uint64_t nodeid, int64_t offset)
{
	struct fuse_notify_inval_inode_out inode = {.ino = nodeid, .off = offset};
	struct fuse_out_header header = {
		.len = sizeof(header) + sizeof(inode),
		.error = FUSE_NOTIFY_INVAL_INODE,
	};
	struct iovec parts[] = {
		{.iov_base = &header, .iov_len = sizeof(header)},
		{.iov_base = &inode, .iov_len = sizeof(inode)},
	};

	return writev(device, parts, TN_ARRAY_LEN(parts)) < 0 ? -errno : 0;
}
