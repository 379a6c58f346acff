/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "nest-roots.h"

#include "log.h"
#include "macros.h"
#include "nest-private.h"
#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

TN_SYSCALLS = {
	{SYS_fchmod},
	{SYS_fchown},
};

/* The kernel asks for the attributes again, also where a sandbox uses them. */
static void invalidate(TnNest *nest, uint64_t ino)
{
	struct fuse_notify_inval_inode_out inode = {.off = -1};
	struct fuse_out_header header = {
		.error = FUSE_NOTIFY_INVAL_INODE,
		.len = (uint32_t)(sizeof(header) + sizeof(inode)),
	};
	struct iovec parts[] = {{&header, sizeof(header)}, {&inode, sizeof(inode)}};
	uint32_t index;

	pthread_mutex_lock(&nest->table_lock);
	index = tn_node_by_ino(nest->table, ino);
	if (index)
		inode.ino = tn_node_at(nest->table, index)->id;
	pthread_mutex_unlock(&nest->table_lock);
	/* ENOENT: it does not know the directory. */
	if (index && writev(nest->device, parts, TN_ARRAY_LEN(parts)) < 0 && errno != ENOENT &&
	    errno != ENOTCONN && errno != ENODEV)
		tn_log(TN_LOG_DEBUG, "roots: invalidation: %s", strerror(errno));
}

static int restore(TnNest *nest, const char *name)
{
	TN_AUTOFD fd = tn_open_beneath(nest->store.data, name, O_RDONLY | O_DIRECTORY, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_mode & 07777) == 01777 && st.st_uid == nest->uid && st.st_gid == nest->gid)
		return 0;
	if (fchown(fd, nest->uid, nest->gid) < 0 || fchmod(fd, 01777) < 0)
		return -errno;
	if (nest->device >= 0)
		invalidate(nest, st.st_ino);
	return 0;
}

int tn_nest_restore_roots(TnNest *nest)
{
	int r = restore(nest, "tmp");

	return r < 0 ? r : restore(nest, "var-tmp");
}
