/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps `git status` clean while stubs lie in a work tree: a marked block in the info/exclude
 * that git reads for it (linked worktrees share one through commondir) names the stubs.
 *
 * The block is computed anew from the ledger and the file system each time, and goes with the last
 * stub. Text outside it keeps every byte. A read-only .git, an exclude file that
 * is a symbolic link, and a .git file that does not lead to a repository are left alone.
 */
#pragma once

#include "ledger.h"

/*
 * Brings the block of every work tree up to date in which one of the paths lies. The caller
 * has the ledger locked. warn() is told the exclude file that could not be written.
 */
void tn_stub_git_update(const TnLedger *ledger, const char *const *paths, size_t n_paths,
			void (*warn)(void *data, const char *path, const char *why), void *data);

/*
 * Puts block (lines, each ended; empty: none) into the text of an exclude file (NULL: there is
 * none) in place of the one that is there. Pure. *ret is malloc()ed, or NULL when the file should
 * not be there. 0 or -ENOMEM.
 */
int tn_stub_git_splice(const char *text, size_t size, const char *block, char **ret,
		       size_t *ret_size);

/*
 * Writes relative as a pattern that matches just this path below the work tree, with a newline.
 * False when no pattern can.
 */
bool tn_stub_git_pattern(const char *relative, char *ret, size_t size);

/* The work tree that dir lies in, and the directory that holds its info/exclude. Resolved. */
typedef struct TnGitTree {
	char top[4096];
	char common_dir[4096];
} TnGitTree;

bool tn_stub_git_find(const char *dir, TnGitTree *ret);
