/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "run-as.h"
#include "message.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static void set_variables(const struct passwd *entry)
{
	static const char *const of_root[] = {"XDG_RUNTIME_DIR", "XDG_STATE_HOME",
					      "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"};
	char runtime[64];
	struct stat st;

	for (size_t i = 0; i < sizeof(of_root) / sizeof(of_root[0]); i++)
		unsetenv(of_root[i]);
	snprintf(runtime, sizeof(runtime), "/run/user/%u", (unsigned)entry->pw_uid);
	if (stat(runtime, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == entry->pw_uid)
		setenv("XDG_RUNTIME_DIR", runtime, 1);
	setenv("HOME", entry->pw_dir, 1);
	setenv("USER", entry->pw_name, 1);
	setenv("LOGNAME", entry->pw_name, 1);
}

int tn_run_as(const char *name)
{
	const struct passwd *entry;

	if (geteuid() != 0)
		return tn_fail(-EPERM, "run-as: %s: only root can become another user", name);
	errno = 0;
	entry = getpwnam(name);
	if (!entry)
		return tn_fail(errno ? -errno : -ENOENT, "run-as: %s: no such user", name);
	/* in this order: each step needs what the next one gives up */
	if (initgroups(entry->pw_name, entry->pw_gid) < 0 ||
	    setresgid(entry->pw_gid, entry->pw_gid, entry->pw_gid) < 0 ||
	    setresuid(entry->pw_uid, entry->pw_uid, entry->pw_uid) < 0)
		return tn_fail(-errno, "run-as: %s: %s", name, strerror(errno));
	/* the change of ids made /proc/self root's, where the maps of the namespace are written */
	if (prctl(PR_SET_DUMPABLE, 1) < 0)
		return tn_fail(-errno, "run-as: %s: %s", name, strerror(errno));
	set_variables(entry);
	return 0;
}
