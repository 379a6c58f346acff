/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Puts the view into a parsed bwrap line: where it is mounted, what it would hide and is
 * shown again, what may not be mounted in it, and how the way to it is closed again.
 *
 * Two steps with the attach request between them. tn_splice_plan() decides everything
 * that needs no daemon and lists the mount points below the view for the request;
 * tn_splice_emit() takes the reply (which names are denied) and writes the words for
 * bwrap. Pure: files are looked at only through the callbacks in TnSpliceFacts, so a
 * test can give any file system. Not thread-safe per object.
 *
 * The rules, in the order in which they apply:
 *  1. The anchor is the last mount whose destination is the view's (/tmp, by its real
 *     path) or lies above it. The view comes directly after it; before the first operation
 *     on files when there is none. `--tmpfs /tmp` is replaced. Anything else mounted at
 *     /tmp is the caller's choice: no view there.
 *  2. When the anchor shows the host's own /tmp, binds before it whose source is their
 *     destination and lies below /tmp were visible through it (a runtime's proxy sockets):
 *     they are repeated after the view, read-only when the anchor is. So are files below
 *     the host's /tmp without which the command cannot start (tn_splice_needs in
 *     splice-needs.c says which).
 *  3. Destinations below the view are written by their real path: a link at /tmp cannot be
 *     followed in a half-built root.
 *  4. Operations on denied names are dropped. A denied name that the host has under
 *     /private/tmp, which runtimes deny together with /tmp, is covered there.
 *  5. The runtime directory, below which the launcher attaches the view, is covered at
 *     every place where a bind shows it and nothing later hides it, and nowhere else.
 */
#pragma once

#include "attach-proto.h"
#include "bwrap-args.h"
#include "pool.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum TnFileKind {
	TN_FILE_MISSING = 0, /* ENOENT */
	TN_FILE_UNREACHABLE, /* any other error */
	TN_FILE_DIR,
	TN_FILE_REGULAR,
	TN_FILE_EXECUTABLE, /* regular, and this user may execute it */
	TN_FILE_OTHER,      /* socket, device, ... */
} TnFileKind;

/*
 * What path (absolute, or relative to the caller's cwd) leads to on the host, links
 * followed. Unless MISSING or UNREACHABLE, real gets its real path.
 */
typedef TnFileKind (*TnSpliceResolve)(void *data, const char *path, char real[PATH_MAX]);

typedef struct TnSpliceFacts {
	TnSpliceResolve resolve;
	void *data;
	const char *host_tmp;     /* real path of the host's /tmp */
	const char *host_var_tmp; /* likewise; NULL: /var/tmp gets no view */
	const char *cwd;          /* real path, NULL when it has none */
	const char *tmpdir;       /* TMPDIR in the caller's environment, or NULL */
	/* real paths of the directories that the launcher will cover, NULL at the end */
	const char *const *covered;
} TnSpliceFacts;

typedef enum TnSpliceNoteKind {
	/* refusals */
	TN_SPLICE_SOURCE_MISSING, /* bwrap would fail too; in the plan unless it may be denied */
	TN_SPLICE_SOURCE_COVERED, /* the source lies in what the launcher covers */
	TN_SPLICE_OVERLAY_SHOWS,  /* an overlay would look below the launcher's covers */
	TN_SPLICE_CWD_HIDDEN,     /* bwrap would silently start elsewhere */
	TN_SPLICE_TOO_LONG,       /* more words than bwrap takes */
	/* for the user to know */
	TN_SPLICE_EXPLICIT,    /* the caller mounted something at /tmp: no view there */
	TN_SPLICE_NO_TMP,      /* the sandbox's root has no /tmp and takes none */
	TN_SPLICE_DENIED,      /* an operation was dropped, its destination is denied */
	TN_SPLICE_BELOW_COVER, /* dropped, the cover of the runtime directory would hide it */
	TN_SPLICE_TMPDIR,      /* TMPDIR was set to /tmp */
	TN_SPLICE_NEEDED,      /* a file of the host's /tmp is bound read-only */
} TnSpliceNoteKind;

typedef struct TnSpliceNote {
	TnSpliceNoteKind kind;
	const char *text; /* one line, "OBJECT: WHY (what to do)"; lives in the pool */
} TnSpliceNote;

bool tn_splice_note_refuses(TnSpliceNoteKind kind);

#define TN_SPLICE_NOTES_MAX 32 /* further ones are counted only */

/* A mount point that bwrap will make in the view, for the attach request. */
typedef struct TnSplicePoint {
	TnMountPointKind kind;
	const char *path; /* "/tmp/..." or "/var/tmp/...": as rules spell it */
	size_t owner;     /* private */
} TnSplicePoint;

typedef struct TnSpliceOp TnSpliceOp;

typedef enum TnSpliceArea {
	TN_SPLICE_TMP,
	TN_SPLICE_VAR_TMP,
	TN_SPLICE_N_AREAS,
} TnSpliceArea;

typedef struct TnSpliceExtra TnSpliceExtra;

/* One of the view's two trees, and where it goes. */
typedef struct TnSpliceView {
	bool wanted;      /* mounted in this sandbox */
	const char *dest; /* where: a real path inside the sandbox */
	size_t anchor;    /* index of the operation that it follows, or SIZE_MAX: the first */
	bool replaces;    /* it takes the place of the anchor, a tmpfs */
	bool shows_host;  /* without the view the host's own directory would be seen here */
	bool read_only;   /* the anchor is a read-only bind */
} TnSpliceView;

typedef struct TnSplice {
	const TnBwrapLine *line;
	const TnSpliceFacts *facts;
	TnPool pool;
	TnSpliceView views[TN_SPLICE_N_AREAS];
	const char *tmpfs_size; /* of a replaced `--size N --tmpfs /tmp`, or NULL */
	TnSplicePoint *points;
	size_t n_points, points_room;
	TnSpliceNote notes[TN_SPLICE_NOTES_MAX];
	size_t n_notes; /* may exceed TN_SPLICE_NOTES_MAX: how many there were */
	/* private */
	const char *root; /* host directory that is the sandbox's root, NULL: none is */
	TnSpliceOp *ops;  /* one per line->ops */
	TnSpliceExtra *extras;
	size_t n_extras, extras_room;
	bool refused, oom;
} TnSplice;

/*
 * Plans the splice; line and facts must outlive it. 0; -EINVAL when a note refuses;
 * -ENOMEM. With no view wanted the line can be started as it is. Call
 * tn_splice_clear() after any result.
 */
int tn_splice_plan(TnSplice *splice, const TnBwrapLine *line, const TnSpliceFacts *facts);
void tn_splice_clear(TnSplice *splice);

/* The real path of the directory that operation index binds writable, or NULL. */
const char *tn_splice_writable_dir(const TnSplice *splice, size_t index);

/*
 * A host path that the line masks with something read-only: /dev/null, an empty directory,
 * or itself. bwrap makes the missing ones on the host, which is the stub keeper's business; so
 * is one that is there, since it may be another sandbox's stub and about to go.
 */
typedef struct TnSpliceMask {
	const char *path; /* real, lives in the pool */
	bool as_dir;      /* its source is a directory */
	bool vanished;    /* bound onto itself and not there: bwrap cannot start without it */
} TnSpliceMask;

/*
 * All masks of host paths outside the views, in order; *ret is the caller's to free.
 * 0 or -ENOMEM. A vanished source is no refusal of the plan's: a keeper may put it back.
 */
int tn_splice_masks(TnSplice *splice, TnSpliceMask **ret, size_t *ret_n);

/* The daemon's answer to the points, and what the launcher adds to the line. */
typedef struct TnSpliceReply {
	const char *runtime_dir; /* real path of the directory below which the view is attached */
	const char *place;       /* where: the view's root, below runtime_dir */
	const char *empty;       /* an empty directory that nobody can write to */
	const TnMountPointState *states; /* one per point, in order */
	const char *const *denied;       /* patterns of deny rules: "/tmp/claude", "/var/tmp/a*" */
	size_t n_denied;
	/* does this path ("/tmp/...") exist in the view already? NULL: nothing does */
	bool (*exists)(void *data, const char *path);
	void *data;
	int sync_fd; /* lease for bwrap to hold, or -1 */
} TnSpliceReply;

/*
 * The content for bwrap's --args: words with a NUL after each, to be freed by the caller;
 * the command follows inline. 0, -EINVAL (a note refuses), -ENOMEM.
 */
int tn_splice_emit(TnSplice *splice, const TnSpliceReply *reply, char **ret_block,
		   size_t *ret_size);

/* The same for a line that gets no view: every operation as it was given. */
int tn_splice_emit_plain(const TnBwrapLine *line, char **ret_block, size_t *ret_size);
