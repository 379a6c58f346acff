/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mount.h"

#include "log.h"
#include "macros.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

/*
 * A tmpfs made without a limit cannot be given one later, so "none" is a number: the
 * largest powers of two whose page and inode arithmetic the kernel accepts.
 */
#define NO_BYTES (UINT64_C(1) << 62)
#define NO_INODES (UINT64_C(1) << 40)

/* The kernel's explanations of a failed fsconfig(2), one message per read. */
static int explain(int context, const char *what, int error)
{
	char text[256], escaped[512];
	ssize_t n;

	while ((n = read(context, text, sizeof(text) - 1)) > 0) {
		text[n] = '\0';
		text[strcspn(text, "\n")] = '\0';
		tn_log(TN_LOG_WARNING, "%s: kernel says: %s", what,
		       tn_log_escape(text, escaped, sizeof(escaped)));
	}
	return error;
}

static int set_string(int context, const char *key, const char *value)
{
	return fsconfig(context, FSCONFIG_SET_STRING, key, value, 0) < 0 ? -errno : 0;
}

static int set_number(int context, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return set_string(context, key, text);
}

static int set_fd(int context, const char *key, int fd)
{
	char text[16];

	/* As a string: the one form that every kernel with fsopen("fuse") takes. */
	snprintf(text, sizeof(text), "%d", fd);
	return set_string(context, key, text);
}

static int set_flag(int context, const char *key)
{
	return fsconfig(context, FSCONFIG_SET_FLAG, key, NULL, 0) < 0 ? -errno : 0;
}

static int command(int context, unsigned int cmd)
{
	return fsconfig(context, cmd, NULL, NULL, 0) < 0 ? -errno : 0;
}

static int detached(int context)
{
	int mount = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);

	return mount < 0 ? -errno : mount;
}

static int configure_fuse(int context, int device, uid_t uid, gid_t gid, bool allow_other)
{
	int r;

	if ((r = set_string(context, "source", "tmpnest")) < 0 ||
	    (r = set_string(context, "subtype", "tmpnest")) < 0 ||
	    (r = set_fd(context, "fd", device)) < 0 ||
	    (r = set_string(context, "rootmode", "40000")) < 0 ||
	    (r = set_number(context, "user_id", uid)) < 0 ||
	    (r = set_number(context, "group_id", gid)) < 0 ||
	    (r = set_flag(context, "default_permissions")) < 0)
		return r;
	if (allow_other && (r = set_flag(context, "allow_other")) < 0)
		return r;
	return command(context, FSCONFIG_CMD_CREATE);
}

int tn_mount_fuse_again(int device, uid_t uid, gid_t gid, bool allow_other)
{
	TN_AUTOFD context = fsopen("fuse", FSOPEN_CLOEXEC);
	int r;

	if (context < 0)
		return -errno;
	r = configure_fuse(context, device, uid, gid, allow_other);
	if (r == -ENOTCONN)
		return r;
	if (r < 0)
		return explain(context, "mount of a view", r);
	return detached(context);
}

int tn_mount_fuse_new(uid_t uid, gid_t gid, bool allow_other, int *ret_device)
{
	/* Opened here, after the keeper has unshared: the kernel wants opener and
	 * superblock to be of one user namespace. */
	TN_AUTOFD device = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	int mount;

	if (device < 0)
		return -errno;
	mount = tn_mount_fuse_again(device, uid, gid, allow_other);
	if (mount >= 0)
		*ret_device = tn_steal_fd(&device);
	return mount;
}

int tn_mount_disk(const char *device)
{
	TN_AUTOFD context = fsopen("ext4", FSOPEN_CLOEXEC);
	int r;

	if (context < 0)
		return -errno;
	if ((r = set_string(context, "source", device)) < 0 ||
	    (r = command(context, FSCONFIG_CMD_CREATE)) < 0)
		return explain(context, "image store", r);
	return detached(context);
}

static int set_memory_limits(int context, uint64_t bytes, uint64_t inodes)
{
	int r = set_number(context, "size", bytes < NO_BYTES ? bytes : NO_BYTES);

	if (r < 0)
		return r;
	return set_number(context, "nr_inodes", inodes < NO_INODES ? inodes : NO_INODES);
}

int tn_mount_memory_new(uint64_t bytes, uint64_t inodes)
{
	TN_AUTOFD context = fsopen("tmpfs", FSOPEN_CLOEXEC);
	int r;

	if (context < 0)
		return -errno;
	/* Huge pages would make a file of one byte cost 2 MiB; a kernel without them
	 * does not know the option. */
	r = set_string(context, "huge", "never");
	if (r < 0 && r != -EINVAL)
		return r;
	if ((r = set_string(context, "source", "tmpnest-store")) < 0 ||
	    (r = set_string(context, "mode", "0700")) < 0 ||
	    (r = set_memory_limits(context, bytes, inodes)) < 0 ||
	    (r = command(context, FSCONFIG_CMD_CREATE)) < 0)
		return explain(context, "memory store", r);
	return detached(context);
}

/* Is this file system mounted anywhere? Those of stores never are: only descriptors lead there. */
static int is_attached(dev_t dev)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	unsigned major, minor;
	char line[512];
	bool start = true, found = false;

	if (!mounts)
		return -errno;
	while (!found && fgets(line, sizeof(line), mounts)) {
		found = start && sscanf(line, "%*u %*u %u:%u", &major, &minor) == 2 &&
			makedev(major, minor) == dev;
		start = strchr(line, '\n') != NULL;
	}
	fclose(mounts);
	return found;
}

int tn_mount_memory_resize(int mount, uint64_t bytes, uint64_t inodes)
{
	TN_AUTOFD context = -1;
	struct statfs fs;
	struct stat st;
	int r;

	if (fstatfs(mount, &fs) < 0 || fstat(mount, &st) < 0)
		return -errno;
	if (fs.f_type != TMPFS_MAGIC)
		return -EINVAL;
	/* A worker gone wrong must not resize the host's. */
	r = is_attached(st.st_dev);
	if (r)
		return r < 0 ? r : -EPERM;
	context = fspick(mount, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH);
	if (context < 0)
		return -errno;
	if ((r = set_memory_limits(context, bytes, inodes)) < 0 ||
	    (r = command(context, FSCONFIG_CMD_RECONFIGURE)) < 0)
		return explain(context, "limits of a memory store", r);
	return 0;
}
