/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading what is in a nest through the daemon: places as users write them, entries as the
 * daemon lists them, a walk through a tree that changes meanwhile. One thread.
 */
#pragma once

#include "ctl.h"

#include <sys/types.h>

/* "NAME:PATH" or NAME and PATH. Paths may hold any byte. */
typedef struct TnCtlPlace {
	char *name, *path; /* owned */
	gint64 owner;      /* -1: not given */
} TnCtlPlace;
void tn_ctl_place_clear(TnCtlPlace *place);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TnCtlPlace, tn_ctl_place_clear)

/*
 * The arguments NAME [PATH] or NAME:PATH, and --owner; /tmp when no path is given. FALSE:
 * said, usage.
 */
gboolean tn_ctl_place(const TnVerb *verb, const TnCtlOptions *options, const char *owner,
		      TnCtlPlace *ret);

/* Parameters of a call about path in the nest of place. */
JsonObject *tn_ctl_place_parameters(const TnCtlPlace *place, const char *path);

/* One entry; names and target as bytes. Strings are valid during the visit. */
typedef struct TnCtlFile {
	char *name;
	char *target; /* of a symlink, or NULL */
	char type;    /* as ls(1) writes it: - d l s p ? */
	mode_t mode;
	gint64 uid, gid;
	guint64 size, disk, inode, links;
	gint64 mtime_ns;
	gboolean xattrs;
} TnCtlFile;

/* FALSE when the object is no entry (a name with a slash is none). */
gboolean tn_ctl_file_read(JsonObject *object, TnCtlFile *ret);
void tn_ctl_file_clear(TnCtlFile *file);

/*
 * An entry of a walk. path: as bytes, below the start, without a slash at its head; json:
 * as the daemon sent it. FALSE with *error ends the walk. Another client than the walk's
 * must be used inside.
 */
typedef gboolean (*TnCtlVisit)(const char *path, const TnCtlFile *file, JsonObject *json,
			       void *data, GError **error);
typedef struct TnCtlWalk {
	TnClient *client;
	const TnCtlPlace *place;
	gboolean recursive, xattrs;
	TnCtlVisit visit;
	/* Before the entries of a directory below the start; may be NULL. */
	gboolean (*enter)(const char *path, void *data, GError **error);
	/* A directory that has gone or cannot be read: message is one line. */
	void (*lost)(const char *path, const char *message, void *data);
	void *data;
} TnCtlWalk;

/* Visits what is below place->path; a directory's own entry before what is in it. */
gboolean tn_ctl_walk(const TnCtlWalk *walk, GError **error);

/* path/name; the caller's. */
char *tn_ctl_path_join(const char *path, const char *name);

/* A regular file's content: an open descriptor and its size then. -1 with *error. */
int tn_ctl_open_file(TnClient *client, const TnCtlPlace *place, const char *path, guint64 *ret_size,
		     GError **error);

/* The next stretch of data at or after `at` in a file of that size; FALSE: none is left. */
gboolean tn_ctl_next_data(int fd, guint64 at, guint64 size, guint64 *ret_start, guint64 *ret_end);
