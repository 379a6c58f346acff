/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A walk through a tree that others change meanwhile, of any depth and width, without
 * recursion: it goes down by name and up by "..", whose inode must be the one it came
 * from. Nothing is followed out of the tree. One walk belongs to one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

typedef struct TnTreeEntry {
	int dir;           /* where it is */
	const char *name;  /* in dir */
	const char *path;  /* below the start; NULL when it is too long to be told */
	size_t depth;      /* 0: in the start itself */
	struct stat *stat; /* of the entry, no link followed */
} TnTreeEntry;

/* 0 goes on, anything else ends the walk with it. */
typedef int (*TnTreeVisit)(const TnTreeEntry *entry, void *data);

#define TN_TREE_PATH_MAX 6000 /* bytes of a path that is still told */

/*
 * Visits everything below dir, a directory before what is in it. *ret_complete becomes
 * false when a directory moved away under the walk, so that what came after it was not
 * seen, or when one could not be opened. 0, what visit returned, or -errno.
 */
int tn_tree_walk(int dir, TnTreeVisit visit, void *data, bool *ret_complete);
