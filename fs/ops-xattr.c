/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Extended attributes: user.* on files and directories, charged by name and value. Other
 * name spaces, POSIX ACLs included, are EOPNOTSUPP: nothing here would enforce them.
 *
 * In a nest without attributes they are ENOSYS: the kernel says EOPNOTSUPP from then on and
 * asks no more, in particular not for security.capability before the first write to a file.
 * Only the list is answered, by an empty one.
 */
#include "ops.h"

#include "journal.h"
#include "macros.h"
#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

TN_SYSCALLS = {
	{SYS_fgetxattr},
	{SYS_fsetxattr},
	{SYS_flistxattr},
	{SYS_fremovexattr},
};

/* Opens the node for fgetxattr() and its kin: these refuse O_PATH descriptors. */
static int open_node(TnRequest *request)
{
	TnNest *nest = request->nest;
	TN_PLACE place = {.dir = TN_FD_NONE};
	uint16_t type = tn_node_at(nest->table, request->node)->type;
	int r;

	if (type != S_IFREG && type != S_IFDIR)
		return -EOPNOTSUPP;
	pthread_rwlock_rdlock(&nest->tree);
	r = tn_resolve_place(nest, request->node, &place);
	if (r == 0) {
		r = place.at_flags & AT_EMPTY_PATH
			    ? tn_reopen(place.dir.fd, O_RDONLY)
			    : tn_open_beneath(place.dir.fd, place.name, O_RDONLY | O_NOFOLLOW, 0);
	}
	pthread_rwlock_unlock(&nest->tree);
	return r;
}

static bool is_user_name(const char *name)
{
	return strncmp(name, "user.", 5) == 0;
}

/* Replies with `size` bytes at hand, or with the size alone when the caller asked for that. */
static int reply_value(TnRequest *request, size_t room, ssize_t size)
{
	struct fuse_getxattr_out *out;

	if (room > 0) {
		request->reply_size = (size_t)size;
		return 0;
	}
	out = tn_reply_alloc(request, sizeof(*out));
	out->size = (uint32_t)size;
	return 0;
}

int tn_op_getxattr(TnRequest *request)
{
	const struct fuse_getxattr_in *in = (const void *)request->arg;
	size_t room = in->size < TN_MAX_WRITE ? in->size : TN_MAX_WRITE;
	TN_AUTOFD fd = -1;
	ssize_t n;

	if (request->nest->no_xattrs)
		return -ENOSYS;
	if (!is_user_name(request->name))
		return -EOPNOTSUPP;
	fd = open_node(request);
	if (fd < 0)
		return fd;
	n = fgetxattr(fd, request->name, room ? request->reply : NULL, room);
	return n < 0 ? -errno : reply_value(request, room, n);
}

/* Leaves only user.* in a NUL-separated list; returns its new size. */
static ssize_t keep_user_names(char *names, ssize_t size)
{
	ssize_t kept = 0;

	for (ssize_t at = 0; at < size;) {
		size_t length = strlen(names + at) + 1;

		if (is_user_name(names + at)) {
			memmove(names + kept, names + at, length);
			kept += (ssize_t)length;
		}
		at += (ssize_t)length;
	}
	return kept;
}

int tn_op_listxattr(TnRequest *request)
{
	const struct fuse_getxattr_in *in = (const void *)request->arg;
	TN_AUTOFD fd = -1;
	ssize_t n;

	fd = request->nest->no_xattrs ? -EOPNOTSUPP : open_node(request);
	if (fd == -EOPNOTSUPP)
		return reply_value(request, in->size, 0);
	if (fd < 0)
		return fd;
	n = flistxattr(fd, (char *)request->reply, XATTR_LIST_MAX);
	if (n < 0)
		return -errno;
	n = keep_user_names((char *)request->reply, n);
	if (in->size > 0 && (size_t)n > in->size)
		return -ERANGE;
	return reply_value(request, in->size, n);
}

/*
 * Bytes that the attribute is charged now; 0 when there is none (*ret_exists). What an
 * interrupted attempt had noted before it changed the store counts, not what it left.
 */
static uint64_t present_bytes(int fd, const char *name, bool *ret_exists)
{
	ssize_t value = fgetxattr(fd, name, NULL, 0);

	*ret_exists = value >= 0;
	if (tn_journal_interrupted())
		return tn_journal_interrupted()->attribute.before;
	return value < 0 ? 0 : (uint64_t)value + strlen(name);
}

/* ext4 leaves ctime where it is when an attribute is set to the value that it has. */
static void touch_ctime(int fd)
{
	struct timespec times[2] = {{0}, {.tv_nsec = UTIME_OMIT}};
	struct stat st;

	if (fstat(fd, &st) < 0)
		return;
	times[0] = st.st_atim;
	(void)futimens(fd, times);
}

static void begin(uint64_t before)
{
	TnNotes notes = {.attribute = {.before = before}};

	if (!tn_journal_interrupted())
		tn_journal_begin(&notes);
}

static int check_flags(int flags, bool exists)
{
	/* Begun means that this was looked at, and that the store may have changed since. */
	if (tn_journal_interrupted())
		return 0;
	if ((flags & XATTR_CREATE) && exists)
		return -EEXIST;
	return (flags & XATTR_REPLACE) && !exists ? -ENODATA : 0;
}

static int set(TnRequest *request, int fd, const void *value, size_t size, int flags)
{
	TN_RESERVATION reservation = {0};
	TnNest *nest = request->nest;
	bool exists;
	uint64_t before = present_bytes(fd, request->name, &exists);
	uint64_t after = strlen(request->name) + size;
	uint64_t more = after > before ? after - before : 0;
	TnChange change = {
		.bytes = (int64_t)after - (int64_t)before,
		.xattrs = (int64_t)after - (int64_t)before,
		.settles = true,
	};
	int r;

	if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	if (tn_journal_step() == TN_STEP_SETTLED)
		return 0;
	r = check_flags(flags, exists);
	if (r == 0 && more)
		r = tn_nest_reserve(nest, more, 0, &reservation);
	/* What an interrupted attempt had reserved may be taken by now: it is charged all the same.
	 */
	if (r < 0 && !tn_journal_interrupted())
		return r;
	begin(before);
	if (fsetxattr(fd, request->name, value, size, 0) < 0) {
		r = -errno;
		tn_journal_abandon();
		return r;
	}
	tn_kill_point();
	if (before == after)
		touch_ctime(fd);
	tn_journal_settle(nest, &reservation, &change);
	return 0;
}

int tn_op_setxattr(TnRequest *request)
{
	const struct fuse_setxattr_in *in = (const void *)request->arg;
	const char *value = request->name + strlen(request->name) + 1;
	size_t left = request->arg_size - (size_t)((const uint8_t *)value - request->arg);
	TN_AUTOFD fd = -1;
	int r = tn_check_change(request->nest, request->node);

	if (request->nest->no_xattrs)
		return -ENOSYS;
	if (r < 0)
		return r;
	if (!is_user_name(request->name))
		return -EOPNOTSUPP;
	if (in->size > left)
		return -EINVAL;
	fd = open_node(request);
	if (fd < 0)
		return fd;
	pthread_mutex_lock(tn_nest_node_lock(request->nest, request->node));
	r = set(request, fd, value, in->size, (int)in->flags);
	pthread_mutex_unlock(tn_nest_node_lock(request->nest, request->node));
	return r;
}

static int take(TnRequest *request, int fd)
{
	bool exists;
	uint64_t before = present_bytes(fd, request->name, &exists);
	TnChange change = {
		.bytes = -(int64_t)before,
		.xattrs = -(int64_t)before,
		.settles = true,
	};

	if (tn_journal_step() == TN_STEP_SETTLED)
		return 0;
	if (!exists && !tn_journal_interrupted())
		return -ENODATA;
	begin(before);
	if (exists && fremovexattr(fd, request->name) < 0) {
		int r = -errno;

		tn_journal_abandon();
		return r;
	}
	tn_kill_point();
	tn_journal_settle(request->nest, NULL, &change);
	return 0;
}

int tn_op_removexattr(TnRequest *request)
{
	TnNest *nest = request->nest;
	TN_AUTOFD fd = -1;
	int r = tn_check_change(nest, request->node);

	if (request->nest->no_xattrs)
		return -ENOSYS;
	if (r < 0)
		return r;
	if (!is_user_name(request->name))
		return -EOPNOTSUPP;
	fd = open_node(request);
	if (fd < 0)
		return fd;
	pthread_mutex_lock(tn_nest_node_lock(nest, request->node));
	r = take(request, fd);
	pthread_mutex_unlock(tn_nest_node_lock(nest, request->node));
	return r;
}
