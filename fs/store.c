/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store.h"

#include "macros.h"
#include "quota.h"
#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

TN_SYSCALLS = {
	{SYS_fchmod},
	{SYS_fchown},
	{SYS_fgetxattr},
	{SYS_flistxattr},
	{SYS_fstatfs}, /* what is left of a store that counts itself */
};

/* The tmpfs below a memory store refuses later than the account: it counts other things. */
#define MEMORY_SPARE_BYTES (16ULL * 1024 * 1024)
#define MEMORY_SPARE_INODES 1024ULL

const TnStoreOps *tn_store_ops(TnStoreKind kind)
{
	switch (kind) {
	case TN_STORE_DIR:
		return &tn_store_dir_ops;
	case TN_STORE_MEMORY:
		return &tn_store_memory_ops;
	case TN_STORE_IMAGE:
		return &tn_store_image_ops;
	default:
		return NULL;
	}
}

static int make_subtree(int data, const char *name, mode_t mode, uid_t uid, gid_t gid)
{
	TN_AUTOFD fd = tn_open_dir_make(data, name, mode);

	if (fd < 0)
		return fd;
	if (fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0)
		return -errno;
	return 0;
}

static bool is_tmpfs(int fd)
{
	struct statfs st;

	return fstatfs(fd, &st) == 0 && st.f_type == TMPFS_MAGIC;
}

int tn_store_open(TnStore *ret, TnStoreKind kind, int root, uid_t uid, gid_t gid)
{
	TnStore store = {
		.ops = tn_store_ops(kind), .data = -1, .orphans = -1, .mount = -1, .image = -1};
	int r;

	if (!store.ops)
		return -ENOTSUP;
	if (kind == TN_STORE_DIR && is_tmpfs(root))
		store.ops = &tn_store_dir_on_tmpfs_ops;
	r = make_subtree(root, "data", 0755, uid, gid);
	if (r < 0)
		return r;
	store.data = tn_open_beneath(root, "data", O_RDONLY | O_DIRECTORY, 0);
	store.orphans = tn_open_dir_make(root, "orphans", 0700);
	if (store.data < 0 || store.orphans < 0) {
		r = store.data < 0 ? store.data : store.orphans;
	} else {
		r = make_subtree(store.data, "tmp", 01777, uid, gid);
		if (r == 0)
			r = make_subtree(store.data, "var-tmp", 01777, uid, gid);
	}
	if (r < 0)
		tn_store_clear(&store);
	else
		*ret = store;
	return r;
}

static uint64_t spare(uint64_t limit, uint64_t extra)
{
	uint64_t sum;

	return tn_add_overflows(limit, extra, &sum) ? TN_UNLIMITED : sum;
}

/* Size of the tmpfs: whole pages, since it rounds up, and not 0, which means no limit. */
static uint64_t memory_size(const TnStoreLimits *limits)
{
	uint64_t pages = limits->bytes & ~(TN_PAGE_SIZE - 1);

	if (!limits->kernel_counts)
		return spare(limits->bytes, MEMORY_SPARE_BYTES);
	return limits->bytes == TN_UNLIMITED ? TN_UNLIMITED : pages ? pages : TN_PAGE_SIZE;
}

int tn_store_open_memory(TnStore *ret, TnKeeperLink *keeper, const TnStoreLimits *limits, uid_t uid,
			 gid_t gid)
{
	TN_AUTOFD mount = tn_keeper_memory_new(keeper, memory_size(limits),
					       spare(limits->inodes, MEMORY_SPARE_INODES));
	TN_AUTOFD root = -1;
	int r;

	if (mount < 0)
		return mount;
	root = tn_open_beneath(mount, ".", O_RDONLY | O_DIRECTORY, 0);
	if (root < 0)
		return root;
	r = tn_store_open(ret, TN_STORE_MEMORY, root, uid, gid);
	if (r < 0)
		return r;
	ret->mount = tn_steal_fd(&mount);
	ret->kernel_counts = limits->kernel_counts;
	return 0;
}

void tn_store_clear(TnStore *store)
{
	tn_close(&store->data);
	tn_close(&store->orphans);
	tn_close(&store->mount);
	tn_close(&store->image);
}

#define FIT_TRIES 10

/* A tmpfs takes no limit below its use: then it gets its use, as near as that stands still. */
static int fit_memory(const TnStore *store, TnKeeperLink *keeper, const TnStoreLimits *limits)
{
	uint64_t wanted = memory_size(limits), inodes = spare(limits->inodes, MEMORY_SPARE_INODES);
	int r = -EINVAL;

	for (int i = 0; i < FIT_TRIES && r == -EINVAL; i++) {
		uint64_t free, used = 0, size;
		struct statvfs fs;

		if (fstatvfs(store->data, &fs) < 0)
			return -errno;
		r = tn_store_room(store, &free, &used);
		if (r < 0)
			return r;
		size = used > wanted ? used : wanted;
		if (fs.f_files - fs.f_ffree > inodes)
			inodes = fs.f_files - fs.f_ffree + MEMORY_SPARE_INODES;
		r = tn_keeper_memory_resize(keeper, store->mount, size, inodes);
		if (r == 0 && size > wanted)
			return -EBUSY;
	}
	return r;
}

int tn_store_resize(const TnStore *store, TnKeeperLink *keeper, uint64_t bytes, uint64_t inodes)
{
	TnStoreLimits limits = {bytes, inodes, store->kernel_counts};

	if (store->mount < 0)
		return 0;
	if (store->image >= 0)
		return tn_store_fit_image(store, keeper, bytes, inodes);
	return store->kernel_counts
		       ? fit_memory(store, keeper, &limits)
		       : tn_keeper_memory_resize(keeper, store->mount, memory_size(&limits),
						 spare(inodes, MEMORY_SPARE_INODES));
}

int tn_store_room(const TnStore *store, uint64_t *ret_free, uint64_t *ret_used)
{
	struct statvfs fs;

	if (store->image >= 0)
		return tn_store_image_room(store, ret_free, ret_used);
	if (fstatvfs(store->data, &fs) < 0)
		return -errno;
	*ret_free = (uint64_t)fs.f_bavail * fs.f_frsize;
	*ret_used = (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize;
	return 0;
}

int64_t tn_store_xattr_bytes(int fd)
{
	ssize_t size = flistxattr(fd, NULL, 0);
	TN_AUTOFREE char *names = NULL;
	int64_t sum = 0;

	if (size <= 0)
		return size == 0 || errno == EOPNOTSUPP ? 0 : -errno;
	names = malloc((size_t)size);
	if (!names)
		return -ENOMEM;
	size = flistxattr(fd, names, (size_t)size);
	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1) {
		ssize_t value;

		if (strncmp(names + at, "user.", 5) != 0)
			continue;
		value = fgetxattr(fd, names + at, NULL, 0);
		if (value >= 0)
			sum += value + (int64_t)strlen(names + at);
	}
	return sum;
}

int64_t tn_store_charge(const TnStore *store, int fd, const struct stat *st, bool with_xattrs)
{
	int64_t bytes = 0, xattrs = 0;

	if (store->kernel_counts)
		return (int64_t)st->st_blocks * 512;
	if (S_ISREG(st->st_mode)) {
		bytes = store->ops->pages(fd, st);
		if (bytes > 0)
			bytes *= (int64_t)TN_PAGE_SIZE;
	} else if (S_ISDIR(st->st_mode)) {
		bytes = (int64_t)(store->ops->directory_pages(st) * TN_PAGE_SIZE);
	} else if (S_ISLNK(st->st_mode)) {
		return st->st_size;
	} else {
		return 0;
	}
	if (bytes >= 0 && with_xattrs)
		xattrs = tn_store_xattr_bytes(fd);
	return bytes < 0 ? bytes : xattrs < 0 ? xattrs : bytes + xattrs;
}
