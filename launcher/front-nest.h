/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which nest a line belongs to. A runtime starts one bwrap for each command and sets no
 * variable of ours, but its commands share a writable directory: the nest is named after
 * it by the daemon, and ends with it.
 */
#pragma once

#include "splice.h"
#include "words.h"

typedef struct TnFrontNest {
	const char *path; /* the directory's real path; lives in the splice */
	int fd;           /* O_PATH descriptor of it */
} TnFrontNest;

/*
 * The writable bind of a directory that the first matching glob means: of several the one
 * highest up (a runtime binds parts of its directory too), then the first. NULL: none.
 * Globs are those of fnmatch(3), whose "*" crosses "/".
 */
const char *tn_front_nest_bind(const TnSplice *splice, const TnWords *globs);

/* 0 with *ret set, -ENOENT when no bind matches, or another -errno, said. */
int tn_front_nest_find(const TnSplice *splice, const TnWords *globs, TnFrontNest *ret);
