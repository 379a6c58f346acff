/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ledger-file.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int home_directory(char ret[PATH_MAX])
{
	const char *home = getenv("HOME");

	if (!home || home[0] != '/') {
		struct passwd *entry = getpwuid(geteuid());

		home = entry ? entry->pw_dir : NULL;
	}
	if (!home || home[0] != '/')
		return -ENOENT;
	return snprintf(ret, PATH_MAX, "%s", home) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int tn_ledger_file_path(const char *explicit_path, char ret[PATH_MAX])
{
	const char *path = explicit_path ? explicit_path : getenv("TMPNEST_STUBS_LEDGER");
	const char *state = getenv("XDG_STATE_HOME");
	char home[PATH_MAX];
	int length, result;

	if (path && *path) {
		if (path[0] != '/')
			return -EINVAL;
		return snprintf(ret, PATH_MAX, "%s", path) < PATH_MAX ? 0 : -ENAMETOOLONG;
	}
	if (state && state[0] == '/') {
		length = snprintf(ret, PATH_MAX, "%s/tmpnest/stubs/ledger.json", state);
	} else {
		result = home_directory(home);
		if (result < 0)
			return result;
		length = snprintf(ret, PATH_MAX, "%s/.local/state/tmpnest/stubs/ledger.json", home);
	}
	return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}
