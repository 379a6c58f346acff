/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "namespaces.h"

#include "macros.h"
#include "why.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int identity(const char *path, uint64_t *ret_dev, uint64_t *ret_ino)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	*ret_dev = st.st_dev;
	*ret_ino = st.st_ino;
	return 0;
}

int tn_namespaces_record(uint64_t *ret_dev, uint64_t *ret_ino)
{
	return identity("/proc/self/ns/user", ret_dev, ret_ino);
}

static int write_text(const char *path, const char *text)
{
	TN_AUTOFD fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int map_own_ids(uid_t uid, gid_t gid)
{
	char map[64];
	int r = write_text("/proc/self/setgroups", "deny");

	if (r < 0)
		return r;
	snprintf(map, sizeof(map), "%u %u 1\n", uid, uid);
	if ((r = write_text("/proc/self/uid_map", map)) < 0)
		return r;
	snprintf(map, sizeof(map), "%u %u 1\n", gid, gid);
	return write_text("/proc/self/gid_map", map);
}

static int enter_user_namespace(char *why, size_t why_size)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return tn_why(
			why, why_size, -errno,
			"user namespace: %s (this host restricts them: tmpnest doctor says how "
			"to allow them)",
			strerror(errno));
	r = map_own_ids(uid, gid);
	if (r < 0)
		return tn_why(why, why_size, r,
			      "ids of the user namespace: %s (this host restricts user namespaces: "
			      "tmpnest doctor says how to allow them)",
			      strerror(-r));
	return 0;
}

int tn_namespaces_hide(char *why, size_t why_size)
{
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return tn_why(why, why_size, -errno, "prctl: not dumpable: %s", strerror(errno));
	return 0;
}

int tn_namespaces_enter(char *why, size_t why_size)
{
	if (geteuid() != 0) {
		int r = enter_user_namespace(why, why_size);

		if (r < 0)
			return r;
	} else if (unshare(CLONE_NEWNS) < 0) {
		return tn_why(why, why_size, -errno,
			      "mount namespace: %s (a container needs CAP_SYS_ADMIN for this)",
			      strerror(errno));
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return tn_why(why, why_size, -errno, "propagation of mounts: /: %s",
			      strerror(errno));
	return tn_namespaces_hide(why, why_size);
}

static int pid_of(int pidfd)
{
	char path[40], line[128];
	FILE *info;
	int pid = -1;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	info = fopen(path, "re");
	if (!info)
		return -errno;
	while (fgets(line, sizeof(line), info))
		if (sscanf(line, "Pid: %d", &pid) == 1)
			break;
	fclose(info);
	return pid > 0 ? pid : -ESRCH;
}

int tn_namespaces_of_pidfd(int pidfd, uint64_t *ret_dev, uint64_t *ret_ino)
{
	uint64_t dev = 0, ino = 0;
	char path[40];
	int pid = pid_of(pidfd);
	int r;

	if (pid < 0)
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	r = identity(path, &dev, &ino);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	/* Still alive: so the number was its own all the time. */
	if (syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0 && errno != EPERM)
		return -errno;
	*ret_dev = dev;
	*ret_ino = ino;
	return 0;
}
