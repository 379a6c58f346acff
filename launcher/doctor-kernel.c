/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "doctor.h"

#include "kernel.h"
#include "macros.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static gboolean has_openat2(void)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
	TN_AUTOFD fd = (int)syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof(how));

	return fd >= 0 || errno != ENOSYS;
}

/* Without rights the call says EPERM where it exists. */
static gboolean has_fsopen(void)
{
	TN_AUTOFD fd = (int)syscall(SYS_fsopen, "tmpfs", 1U /* FSOPEN_CLOEXEC */);

	return fd >= 0 || errno != ENOSYS;
}

static gboolean has_peer_pidfd(void)
{
	TN_AUTOFD a = -1;
	TN_AUTOFD b = -1;
	TN_AUTOFD pidfd = -1;
	socklen_t length = sizeof(pidfd);
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return FALSE;
	a = pair[0];
	b = pair[1];
	return getsockopt(a, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0;
}

void tn_doctor_kernel(GPtrArray *checks)
{
	struct utsname name = {.release = "unknown"};
	gboolean recent;

	uname(&name);
	recent = tn_release_at_least(name.release, 6, 1);
	tn_doctor_add(checks, "kernel", recent ? TN_CHECK_OK : TN_CHECK_MISSING,
		      g_strdup_printf("Linux %s", name.release),
		      recent ? NULL : g_strdup("tmpnest needs Linux 6.1 or later"));
	tn_doctor_add(checks, "mount API", has_fsopen() ? TN_CHECK_OK : TN_CHECK_MISSING,
		      g_strdup(has_fsopen() ? "fsopen(2) is there" : "no fsopen(2)"),
		      has_fsopen() ? NULL
				   : g_strdup("a kernel from 5.2 on that no filter hides it from"));
	tn_doctor_add(checks, "openat2", has_openat2() ? TN_CHECK_OK : TN_CHECK_MISSING,
		      g_strdup(has_openat2() ? "openat2(2) is there" : "no openat2(2)"),
		      has_openat2()
			      ? NULL
			      : g_strdup("a kernel from 5.6 on that no filter hides it from"));
}

void tn_doctor_fuse_device(GPtrArray *checks, gboolean by_system)
{
	TN_AUTOFD fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	int error = errno;
	TnCheckStatus status = by_system ? TN_CHECK_WARNING : TN_CHECK_MISSING;
	const char *note = by_system ? " (only a daemon of your own needs it)" : "";
	struct stat st;

	if (fd >= 0) {
		tn_doctor_add(checks, "/dev/fuse", TN_CHECK_OK,
			      g_strdup("opens for reading and writing"), NULL);
	} else if (error == EACCES || error == EPERM) {
		unsigned mode = stat("/dev/fuse", &st) == 0 ? st.st_mode & 07777 : 0;

		tn_doctor_add(checks, "/dev/fuse", status,
			      g_strdup_printf("mode %04o, not for you%s", mode, note),
			      g_strdup("root: chmod 0666 /dev/fuse (udev's usual mode), or start a "
				       "system daemon"));
	} else {
		tn_doctor_add(checks, "/dev/fuse", status,
			      g_strdup_printf("%s%s", g_strerror(error), note),
			      g_strdup("root: modprobe fuse; in a container: --device /dev/fuse"));
	}
}

static gboolean write_map(const char *path, const char *text)
{
	TN_AUTOFD fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* In a child: 0, or the errno of what failed. The last step is what AppArmor refuses. */
static int enter_namespaces(uid_t uid, gid_t gid)
{
	char uid_map[64], gid_map[64];

	snprintf(uid_map, sizeof(uid_map), "%u %u 1\n", uid, uid);
	snprintf(gid_map, sizeof(gid_map), "%u %u 1\n", gid, gid);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return errno;
	if (!write_map("/proc/self/setgroups", "deny") ||
	    !write_map("/proc/self/uid_map", uid_map) || !write_map("/proc/self/gid_map", gid_map))
		return errno;
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return errno;
	return 0;
}

static int try_namespaces(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(enter_namespaces(uid, gid));
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

/* A sysctl's number, or -1 where there is none of that name. */
static gint64 sysctl(const char *path)
{
	g_autofree char *text = NULL;

	return g_file_get_contents(path, &text, NULL, NULL) ? g_ascii_strtoll(text, NULL, 10) : -1;
}

static const char *namespace_hint(void)
{
	if (sysctl("/proc/sys/kernel/unprivileged_userns_clone") == 0)
		return "root: sysctl kernel.unprivileged_userns_clone=1";
	if (sysctl("/proc/sys/user/max_user_namespaces") == 0)
		return "root: sysctl user.max_user_namespaces=15000";
	if (sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1)
		return "AppArmor restricts them: root: sysctl "
		       "kernel.apparmor_restrict_unprivileged_userns=0, or a profile with userns "
		       "for "
		       "bwrap and tmpnest";
	return "in a container: allow unshare(2) and mount(2) in its seccomp and AppArmor profile; "
	       "in a sandbox: not from here";
}

void tn_doctor_user_namespaces(GPtrArray *checks)
{
	int error = try_namespaces();

	if (error == 0)
		tn_doctor_add(checks, "user namespaces", TN_CHECK_OK,
			      g_strdup("can be made, with mounts in them"), NULL);
	else
		tn_doctor_add(checks, "user namespaces", TN_CHECK_MISSING,
			      g_strdup(g_strerror(error)), g_strdup(namespace_hint()));
}

void tn_doctor_features(GPtrArray *checks)
{
	gboolean recent = tn_kernel_at_least(6, 9);
	gboolean pidfd = has_peer_pidfd();

	tn_doctor_add(checks, "peer pidfd", pidfd ? TN_CHECK_OK : TN_CHECK_WARNING,
		      g_strdup(pidfd ? "SO_PEERPIDFD is there"
				     : "none: a system daemon checks callers by what they send"),
		      pidfd ? NULL : g_strdup("Linux 6.5 or later"));
	tn_doctor_add(checks, "FUSE resend", recent ? TN_CHECK_OK : TN_CHECK_WARNING,
		      g_strdup(recent ? "in this kernel" : "not in this kernel"),
		      recent ? NULL : g_strdup("Linux 6.9 or later"));
	tn_doctor_add(checks, "FUSE passthrough", recent ? TN_CHECK_OK : TN_CHECK_WARNING,
		      g_strdup(recent ? "in this kernel, for a system daemon"
				      : "not in this kernel: all data goes through the daemon"),
		      recent ? NULL : g_strdup("Linux 6.9 or later"));
}
