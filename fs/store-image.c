/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The `image` store: an ext4 file system without a journal in a file, whose blocks are taken from
 * the disk when the nest is made, so that what happens to the disk later cannot hurt the nest.
 *
 * The file system is made larger than the limit, many times, and a file in it that nobody sees,
 * the ballast, takes what is too much: what is available is the limit to the block. The blocks
 * of the ballast are holes of the image: they cost nothing on the disk. A new limit takes ballast
 * away, once the disk has given its blocks, or adds some, and the disk gets them back. Only a
 * limit beyond the file system's size has it grow, which takes CAP_SYS_RESOURCE.
 */
#include "macros.h"
#include "quota.h"
#include "store.h"
#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>

TN_SYSCALLS = {
	{SYS_openat},    {SYS_fstat},     {SYS_fstatfs},
	{SYS_fallocate}, {SYS_ftruncate}, {SYS_ioctl, TN_ARG_IS(1, FS_IOC_FIEMAP)},
};

#define IMAGE_NAME "image"
#define BALLAST_NAME "ballast"
#define INODE_SIZE 256U
#define SPARE_BYTES (32ULL << 20) /* bitmaps, descriptors, what ext4 reserves; beyond 1/32 */
#define SPARE_INODES 64U
#define LARGEST (8ULL << 40)
#define TIMES_LARGER 16U /* the file system than the limit it is made for */
#define FIT_TRIES 8
#define EXTENTS_PER_CALL 64

static int64_t image_pages(int fd, const struct stat *st)
{
	(void)fd;
	return (int64_t)((uint64_t)st->st_blocks * 512 / TN_PAGE_SIZE);
}

static int64_t image_pages_in(int fd, uint64_t first, uint64_t count)
{
	(void)fd;
	(void)first;
	(void)count;
	return -EOPNOTSUPP;
}

static uint64_t image_directory_pages(const struct stat *st)
{
	(void)st;
	return 0;
}

const TnStoreOps tn_store_image_ops = {
	.kind = TN_STORE_IMAGE,
	.name = "image",
	.pages = image_pages,
	.pages_in = image_pages_in,
	.directory_pages = image_directory_pages,
	.directories_grow = false,
};

/* --- making it ------------------------------------------------------------------------------ */

static uint64_t with_spare(uint64_t bytes)
{
	return (bytes + bytes / 32 + SPARE_BYTES) & ~(TN_PAGE_SIZE - 1);
}

static int make_image(TnKeeperLink *keeper, int home, const TnStoreLimits *limits)
{
	TN_AUTOFD image = -1;
	uint64_t inodes, size;
	int r;

	if (tn_add_overflows(limits->inodes == TN_UNLIMITED ? limits->bytes / (16U * 1024)
							    : limits->inodes,
			     SPARE_INODES, &inodes) ||
	    inodes > UINT32_MAX || limits->bytes > LARGEST)
		return -EFBIG;
	size = limits->bytes < LARGEST / TIMES_LARGER ? limits->bytes * TIMES_LARGER : LARGEST;
	size = with_spare(size) + inodes * INODE_SIZE;
	image = openat(home, IMAGE_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (image < 0)
		return -errno;
	if (ftruncate(image, (off_t)size) < 0)
		return -errno;
	r = tn_keeper_image_format(keeper, image, inodes);
	return r < 0 ? r : tn_steal_fd(&image);
}

/* --- its limit ------------------------------------------------------------------------------- */

static int open_ballast(const TnStore *store)
{
	/* Beside data/: below the root that no view reaches. */
	int fd =
		openat(store->mount, BALLAST_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 ? -errno : fd;
}

static int look(const TnStore *store, int ballast, uint64_t *ret_free, uint64_t *ret_used,
		struct stat *ret_ballast)
{
	struct statvfs fs;
	uint64_t used;

	if (fstatvfs(store->data, &fs) < 0 || fstat(ballast, ret_ballast) < 0)
		return -errno;
	used = (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize;
	used -= (uint64_t)ret_ballast->st_blocks * 512;
	*ret_free = (uint64_t)fs.f_bavail * fs.f_frsize;
	*ret_used = used > store->base ? used - store->base : 0;
	return 0;
}

int tn_store_image_room(const TnStore *store, uint64_t *ret_free, uint64_t *ret_used)
{
	TN_AUTOFD ballast = open_ballast(store);
	struct stat st;

	return ballast < 0 ? ballast : look(store, ballast, ret_free, ret_used, &st);
}

/* --- the disk below: the image's blocks, as the ballast has them or not -------------------------
 */

typedef int (*RangeCall)(void *data, uint64_t at, uint64_t size);

static int take_blocks(void *image, uint64_t at, uint64_t size)
{
	return fallocate(*(const int *)image, FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)size) < 0
		       ? -errno
		       : 0;
}

static int give_blocks(void *image, uint64_t at, uint64_t size)
{
	return fallocate(*(const int *)image, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, (off_t)at,
			 (off_t)size) < 0
		       ? -errno
		       : 0;
}

/* Calls for each range of the image that holds the ballast from byte `from` on. */
static int each_range(int ballast, uint64_t from, RangeCall call, void *data)
{
	union {
		struct fiemap map;
		char space[sizeof(struct fiemap) + EXTENTS_PER_CALL * sizeof(struct fiemap_extent)];
	} u;
	int r = 0;

	do {
		memset(&u, 0, sizeof(u));
		u.map.fm_start = from;
		u.map.fm_length = FIEMAP_MAX_OFFSET - from;
		u.map.fm_flags = FIEMAP_FLAG_SYNC;
		u.map.fm_extent_count = EXTENTS_PER_CALL;
		if (ioctl(ballast, FS_IOC_FIEMAP, &u.map) < 0)
			return -errno;
		for (uint32_t i = 0; i < u.map.fm_mapped_extents && r == 0; i++) {
			const struct fiemap_extent *extent = &u.map.fm_extents[i];
			uint64_t end = extent->fe_logical + extent->fe_length;
			uint64_t at = from > extent->fe_logical ? from : extent->fe_logical;

			r = call(data, extent->fe_physical + (at - extent->fe_logical), end - at);
			from = end;
		}
	} while (r == 0 && u.map.fm_mapped_extents == EXTENTS_PER_CALL);
	return r;
}

/* --- at the start: all that is no ballast is taken from the disk, be it in use or not ------------
 */

typedef struct Range {
	uint64_t at, size;
} Range;

typedef struct Ranges {
	Range *list;
	size_t n;
} Ranges;

static int compare_ranges(const void *a, const void *b)
{
	const Range *left = a, *right = b;

	return (left->at > right->at) - (left->at < right->at);
}

static int collect(void *data, uint64_t at, uint64_t size)
{
	Ranges *ranges = data;
	Range *grown = reallocarray(ranges->list, ranges->n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	ranges->list = grown;
	grown[ranges->n++] = (Range){at, size};
	return 0;
}

static int take_gaps(const TnStore *store, const Ranges *ranges, uint64_t size)
{
	int image = store->image, r = 0;
	uint64_t at = 0;

	for (size_t i = 0; i < ranges->n && r == 0; i++) {
		if (ranges->list[i].at > at)
			r = take_blocks(&image, at, ranges->list[i].at - at);
		at = ranges->list[i].at + ranges->list[i].size;
	}
	return r == 0 && size > at ? take_blocks(&image, at, size - at) : r;
}

static int take_all(const TnStore *store)
{
	TN_AUTOFD ballast = open_ballast(store);
	Ranges ranges = {NULL, 0};
	struct stat st;
	int r;

	if (ballast < 0)
		return ballast;
	if (fstat(store->image, &st) < 0)
		return -errno;
	r = each_range(ballast, 0, collect, &ranges);
	if (r == 0 && ranges.n > 0)
		qsort(ranges.list, ranges.n, sizeof(Range), compare_ranges);
	if (r == 0)
		r = take_gaps(store, &ranges, (uint64_t)st.st_size);
	free(ranges.list);
	return r;
}

/* --- its limit, again --------------------------------------------------------------------------
 */

static int add_ballast(const TnStore *store, int ballast, uint64_t size, uint64_t more)
{
	int image = store->image;

	if (fallocate(ballast, 0, (off_t)size, (off_t)more) < 0)
		return -errno;
	return each_range(ballast, size, give_blocks, &image);
}

static int drop_ballast(const TnStore *store, int ballast, uint64_t size)
{
	int image = store->image;
	int r = each_range(ballast, size, take_blocks, &image);

	if (r < 0) {
		/* The disk is full: what it had given goes back. */
		(void)each_range(ballast, size, give_blocks, &image);
		return r;
	}
	return ftruncate(ballast, (off_t)size) < 0 ? -errno : 0;
}

/* One step towards it. 0 it fits, -EAGAIN a step was made, -EBUSY, -ENOTUNIQ (the file system is
 * too small) or -errno. */
static int fit_step(const TnStore *store, int ballast, uint64_t bytes)
{
	uint64_t free, used, wanted, more;
	struct stat st;
	int r = look(store, ballast, &free, &used, &st);

	if (r < 0)
		return r;
	wanted = used < bytes ? bytes - used : 0;
	if (free == wanted)
		return used > bytes ? -EBUSY : 0;
	if (free > wanted) {
		r = add_ballast(store, ballast, (uint64_t)st.st_size, free - wanted);
	} else if (st.st_size == 0) {
		return -ENOTUNIQ;
	} else {
		more = wanted - free < (uint64_t)st.st_size ? wanted - free : (uint64_t)st.st_size;
		r = drop_ballast(store, ballast, (uint64_t)st.st_size - more);
	}
	return r < 0 ? r : -EAGAIN;
}

static int fit(const TnStore *store, uint64_t bytes)
{
	TN_AUTOFD ballast = open_ballast(store);
	int r = ballast < 0 ? ballast : -EAGAIN;

	bytes &= ~(TN_PAGE_SIZE - 1);
	for (int i = 0; i < FIT_TRIES && r == -EAGAIN; i++)
		r = fit_step(store, ballast, bytes);
	/* Others write meanwhile: as near as it stands still. */
	return r == -EAGAIN ? 0 : r;
}

/* The file system becomes as much larger as the limit lies beyond what it has. */
static int grow(const TnStore *store, TnKeeperLink *keeper, uint64_t bytes)
{
	uint64_t free, used, more;
	struct stat st;
	int r = tn_store_image_room(store, &free, &used);

	if (r < 0)
		return r;
	if (used + free >= bytes)
		return 0;
	if (fstat(store->image, &st) < 0)
		return -errno;
	more = with_spare(bytes - used - free);
	if (fallocate(store->image, 0, st.st_size, (off_t)more) < 0)
		return -errno;
	r = tn_keeper_image_grown(keeper, store->mount);
	if (r < 0 && ftruncate(store->image, st.st_size) < 0)
		return -errno;
	return r;
}

int tn_store_fit_image(const TnStore *store, TnKeeperLink *keeper, uint64_t bytes, uint64_t inodes)
{
	struct statvfs fs;
	int r;

	if (fstatvfs(store->data, &fs) < 0)
		return -errno;
	if (bytes == TN_UNLIMITED || bytes > LARGEST)
		return -EINVAL;
	/* Their number was set for good when it was made. */
	if (inodes != TN_UNLIMITED && fs.f_files < inodes)
		return -EOPNOTSUPP;
	r = fit(store, bytes);
	if (r != -ENOTUNIQ)
		return r;
	r = grow(store, keeper, bytes);
	return r < 0 ? r : fit(store, bytes);
}

static int open_mounted(TnStore *ret, int mount, uid_t uid, gid_t gid)
{
	TN_AUTOFD root = openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return root < 0 ? -errno : tn_store_open(ret, TN_STORE_IMAGE, root, uid, gid);
}

int tn_store_open_image(TnStore *ret, TnKeeperLink *keeper, int home, const TnStoreLimits *limits,
			uid_t uid, gid_t gid)
{
	TN_AUTOFD image = make_image(keeper, home, limits);
	TN_AUTOFD mount = -1;
	TnStore store;
	uint64_t free;
	int r;

	if (image < 0)
		return image;
	mount = tn_keeper_image_mount(keeper, image);
	if (mount < 0)
		return mount;
	r = open_mounted(&store, mount, uid, gid);
	if (r < 0)
		return r;
	store.mount = tn_steal_fd(&mount);
	store.image = tn_steal_fd(&image);
	store.kernel_counts = true;
	store.base = 0;
	r = tn_store_image_room(&store, &free, &store.base);
	if (r == 0)
		r = fit(&store, limits->bytes);
	if (r == 0)
		r = take_all(&store);
	if (r < 0)
		tn_store_clear(&store);
	else
		*ret = store;
	return r;
}
