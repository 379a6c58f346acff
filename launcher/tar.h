/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A tar archive in the pax format (POSIX.1-2001), with extended attributes
 * (SCHILY.xattr) and sparse files (GNU.sparse 1.0), which GNU tar and libarchive read.
 * Writes in one direction; memory does not depend on sizes. One thread.
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

typedef struct TnTar TnTar;

/* Writes to fd, which stays the caller's. */
TnTar *tn_tar_new(int fd);
void tn_tar_free(TnTar *tar); /* takes NULL; an archive that was not ended is cut short */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TnTar, tn_tar_free)

/* Where a sparse file has data. */
typedef struct TnTarRange {
	guint64 offset, size;
} TnTarRange;

typedef struct TnTarEntry {
	const char *path;   /* any bytes; without a slash at its head */
	const char *target; /* of a symlink (type l) or a hard link (type h), else NULL */
	char type;          /* - file, d directory, l symlink, p fifo, h hard link */
	mode_t mode;
	guint64 uid, gid, size;
	gint64 mtime_ns;
	/* Names and values of extended attributes: char *, GBytes *, one after the other. */
	const GPtrArray *xattrs;
	/* Of a sparse file, in order; NULL: all of it is data. */
	const TnTarRange *ranges;
	gsize n_ranges;
} TnTarEntry;

/*
 * Begins an entry. What follows, by tn_tar_data(), must be exactly its data: `size` bytes,
 * or the sum of the ranges. 0 or -errno.
 */
int tn_tar_begin(TnTar *tar, const TnTarEntry *entry);
int tn_tar_data(TnTar *tar, const void *data, gsize size);
/* Zeros for data that is not there any more. */
int tn_tar_fill(TnTar *tar, guint64 size);
/* What is left of the present entry's data. */
guint64 tn_tar_missing(const TnTar *tar);

/* The end of the archive. 0 or -errno. */
int tn_tar_end(TnTar *tar);
guint64 tn_tar_written(const TnTar *tar);
