/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "data-path.h"

#include "macros.h"

#include <linux/capability.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* include/linux/proc_ns.h, PROC_USER_INIT_INO: the same on every boot. */
#define INITIAL_USER_NAMESPACE 0xeffffffdU

TnHidePassthrough tn_hide_passthrough(const char *value)
{
	if (!value || !*value || strcmp(value, "0") == 0)
		return TN_HIDE_ALL;
	return strcmp(value, "kernel") == 0 ? TN_HIDE_KERNEL : TN_HIDE_NOTHING;
}

/* The kernel asks for CAP_SYS_ADMIN in the initial user namespace (fs/fuse/backing.c). */
static bool may_pass_through(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
	struct stat st;

	/* By itself: a library for it would go into every program that links this. */
	if (syscall(SYS_capget, &header, data) < 0 ||
	    !(data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN)))
		return false;
	return stat("/proc/self/ns/user", &st) == 0 && st.st_ino == INITIAL_USER_NAMESPACE;
}

TnDataPath tn_data_path_of_daemon(TnHidePassthrough hide)
{
	if (geteuid() != 0)
		return TN_PATH_USER;
	if (hide == TN_HIDE_ALL)
		return TN_PATH_OFF;
	return may_pass_through() ? TN_PATH_PASSTHROUGH : TN_PATH_NO_RIGHT;
}

const char *tn_data_path_reason(TnDataPath path)
{
	static const char *const reasons[] = {
		[TN_PATH_PASSTHROUGH] = "",
		[TN_PATH_STORE] = "store dir has no limit that the kernel keeps",
		[TN_PATH_USER] = "only a root daemon may",
		[TN_PATH_NO_RIGHT] = "the daemon lacks CAP_SYS_ADMIN in the initial user namespace",
		[TN_PATH_OFF] = "not switched on (TMPNEST_PASSTHROUGH=1 for the daemon)",
		[TN_PATH_RULES] = "read-only rules look at each write",
		[TN_PATH_WRITEBACK] = "write-back was asked for",
		[TN_PATH_KERNEL] = "the kernel does not offer it (Linux 6.9 or later)",
	};

	return (size_t)path < TN_ARRAY_LEN(reasons) ? reasons[path] : "";
}
