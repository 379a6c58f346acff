/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds git work trees on disk without git (gitrepository-layout(5)). Reads only.
 */
#pragma once

#include "stub-git.h"

/* The tops of all work trees that share one common directory, the main one included. */
typedef struct TnGitTops {
	char **tops;
	size_t n_tops;
} TnGitTops;

/* At most 64 linked worktrees are looked at, as a bound. 0 or -ENOMEM. */
int tn_stub_git_tops(const TnGitTree *tree, TnGitTops *ret);
void tn_stub_git_tops_clear(TnGitTops *tops);
