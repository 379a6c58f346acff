/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which nest a line belongs to. A runtime starts one bwrap for each command and sets no
 * variable of ours, but its commands share a writable directory: the nest is named after
 * it, and ends with it.
 */
#pragma once

#include "splice.h"
#include "units.h"
#include "words.h"

#include <stdint.h>
#include <sys/types.h>

typedef struct TnFrontNest {
	char name[TN_NAME_MAX + 1];
	const char *path; /* the directory's real path; lives in the splice */
	int fd;           /* O_PATH descriptor of it */
} TnFrontNest;

/*
 * The writable bind of a directory that the first matching glob means: of several the one
 * highest up (a runtime binds parts of its directory too), then the first. NULL: none.
 * Globs are those of fnmatch(3), whose "*" crosses "/".
 */
const char *tn_front_nest_bind(const TnSplice *splice, const TnWords *globs);

/* The directory's name, as far as a nest's name may hold it, "-" and 8 hex digits. */
void tn_front_nest_name(const char *path, dev_t dev, ino_t ino, char ret[TN_NAME_MAX + 1]);

/* 0 with *ret set, -ENOENT when no bind matches, or another -errno, said. */
int tn_front_nest_find(const TnSplice *splice, const TnWords *globs, TnFrontNest *ret);
