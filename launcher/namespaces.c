/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "namespaces.h"
#include "macros.h"
#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

/* The number in a file of /proc/sys, or fallback when there is none. */
static long read_sysctl(const char *path, long fallback)
{
	TN_AUTOFD fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return fallback;
	text[n] = '\0';
	return strtol(text, NULL, 10);
}

/* The first of the known switches that stands against user namespaces, and how to turn it. */
static const char *why_no_user_namespace(int error)
{
	if (error == ENOSPC || read_sysctl("/proc/sys/user/max_user_namespaces", 1) == 0)
		return "the limit of user namespaces is reached (raise "
		       "user.max_user_namespaces, or do not run it inside a sandbox; see tmpnest "
		       "doctor)";
	if (read_sysctl("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0)
		return "user namespaces are switched off (sysctl "
		       "kernel.unprivileged_userns_clone=1; see tmpnest doctor)";
	if (read_sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) == 1)
		return "AppArmor restricts user namespaces (sysctl "
		       "kernel.apparmor_restrict_unprivileged_userns=0, or a profile that allows "
		       "userns; see tmpnest doctor)";
	return "not permitted here, as in most containers and sandboxes (see tmpnest doctor)";
}

static int refuse_user_namespace(int error)
{
	return tn_fail(-error, "user namespace: cannot make one: %s: %s", strerror(error),
		       why_no_user_namespace(error));
}

static int write_map(const char *path, const char *text)
{
	TN_AUTOFD fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

static int write_identity_map(const char *path, unsigned id)
{
	char text[64];

	snprintf(text, sizeof(text), "%u %u 1", id, id);
	return write_map(path, text);
}

static int enter_as_user(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return refuse_user_namespace(errno);
	r = write_map("/proc/self/setgroups", "deny");
	if (r == 0)
		r = write_identity_map("/proc/self/uid_map", uid);
	if (r == 0)
		r = write_identity_map("/proc/self/gid_map", gid);
	/* AppArmor lets the namespace be made and takes the capabilities in it away */
	return r < 0 ? refuse_user_namespace(-r) : 0;
}

static int enter_as_root(void)
{
	int error;

	if (unshare(CLONE_NEWNS) == 0)
		return 0;
	error = errno;
	return tn_fail(-error,
		       "mount namespace: cannot make one: %s (root lacks CAP_SYS_ADMIN here, as in "
		       "most containers; see tmpnest doctor)",
		       strerror(error));
}

int tn_namespaces_enter(void)
{
	int r = geteuid() == 0 ? enter_as_root() : enter_as_user();

	if (r < 0)
		return r;
	/* not private: that would keep alive what the host unmounts meanwhile */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) {
		int error = errno;

		if (geteuid() != 0)
			return refuse_user_namespace(error);
		return tn_fail(-error, "mount namespace: cannot separate it from the host's: %s",
			       strerror(error));
	}
	return 0;
}
