/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon-choice.h"

#include <errno.h>
#include <stdio.h>

int tn_daemon_candidates(const TnDaemonChoice *choice, uid_t uid, TnPaths ret[TN_DAEMONS_MAX],
			 char *why, size_t why_size)
{
	bool is_explicit = tn_paths_are_explicit(choice->runtime_dir, choice->store_dir);
	TnScope scope =
		choice->system || (!choice->user && uid == 0) ? TN_SCOPE_SYSTEM : TN_SCOPE_USER;
	bool both = uid != 0 && !is_explicit && !choice->system && !choice->user;
	int n = 0;
	int r;

	if (choice->system && choice->user) {
		snprintf(why, why_size, "--system and --user exclude each other (give one)");
		return -EINVAL;
	}
	if (both) {
		r = tn_paths_init(&ret[n], TN_SCOPE_SYSTEM, NULL, NULL, why, why_size);
		if (r < 0)
			return r;
		n++;
	}
	r = tn_paths_init(&ret[n], scope, choice->runtime_dir, choice->store_dir, why, why_size);
	if (r < 0)
		return r;
	return n + 1;
}

bool tn_daemon_may_start(const TnDaemonChoice *choice, const TnPaths *paths, uid_t uid)
{
	return uid == 0 || paths->scope == TN_SCOPE_USER ||
	       tn_paths_are_explicit(choice->runtime_dir, choice->store_dir);
}
