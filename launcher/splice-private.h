/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of the splice share: paths on both sides, and what the sandbox will
 * show where. Included by splice*.c only.
 */
#pragma once

#include "splice.h"

/* What is known of one operation of the line. */
struct TnSpliceOp {
	const char *dest; /* normal path inside the sandbox, links of the root followed; or NULL */
	const char *source; /* real path of a bind's source, or NULL */
	TnFileKind kind;    /* of the source */
	bool skipped;       /* a -try whose source is missing: as if it were not there */
	bool dropped;       /* not given to bwrap */
	bool vanished;      /* a read-only bind onto itself whose source is missing */
	bool lacks_source;  /* refused, unless it is dropped */
};

/* A bind that is added directly after the view. */
struct TnSpliceExtra {
	TnSpliceArea area;
	const char *option;
	const char *source;
	const char *dest;
	bool dropped;
};

static inline bool tn_splice_found(TnFileKind kind)
{
	return kind >= TN_FILE_DIR;
}

/* Adds a note; text may be NULL when memory is exhausted. */
void tn_splice_note(TnSplice *splice, TnSpliceNoteKind kind, const char *text);

/* Refuses: the source of operation index is not there. */
void tn_splice_note_lacking(TnSplice *splice, size_t index);

/* Records exhausted memory for a NULL pointer; returns text. */
const char *tn_splice_keep(TnSplice *splice, const char *text);

/* path below dir as the part after it ("" when equal, no leading slash); path must be in dir. */
const char *tn_splice_rest(const char *path, const char *dir);

/* A normal absolute path for text, taken from base when relative; NULL: too long. */
const char *tn_splice_normal(TnSplice *splice, const char *base, const char *text);

/* As TnSpliceResolve; *ret_real lives in the pool (NULL unless found). */
TnFileKind tn_splice_resolve(TnSplice *splice, const char *path, const char **ret_real);

/* The real path that a host path has, its missing end taken as text. */
const char *tn_splice_host_path(TnSplice *splice, const char *text);

/* Where a destination lands inside the sandbox (rule 3); NULL: too long. */
const char *tn_splice_place(TnSplice *splice, const char *text);

/* The view that path lies strictly below, among the wanted ones; NULL: none. */
TnSpliceView *tn_splice_view_above(TnSplice *splice, const char *path);

/* True when operation index comes after the view was mounted and is given to bwrap. */
bool tn_splice_is_after(const TnSplice *splice, const TnSpliceView *view, size_t index);

/* True when the operation makes a mount that counts. */
bool tn_splice_mounts(const TnSplice *splice, size_t index);

/* True when later operations of the line make path, which is below view, exist. */
bool tn_splice_shows(TnSplice *splice, const TnSpliceView *view, const char *path);

/* Adds a bind after the view of area, or changes the one at dest; false: no memory. */
bool tn_splice_add_extra(TnSplice *splice, TnSpliceArea area, const char *option,
			 const char *source, const char *dest);

/* splice-needs.c: rule 2's files, and the current directory. */
void tn_splice_add_needs(TnSplice *splice);
void tn_splice_check_cwd(TnSplice *splice);

/* True when TMPDIR has to be set to /tmp; needs the plan and a reply. */
bool tn_splice_must_set_tmpdir(TnSplice *splice, const TnSpliceReply *reply);

/* splice-cover.c: what is mounted over something at the end, so that nothing shows it. */
typedef struct TnSpliceCover {
	const char *path; /* inside the sandbox; in the pool */
	bool file;
} TnSpliceCover;

typedef struct TnSpliceCovers {
	TnSpliceCover *items;
	size_t n, room;
} TnSpliceCovers;

/* Rule 5. Drops what the covers would hide. 0 or -ENOMEM. */
int tn_splice_find_covers(TnSplice *splice, const char *runtime_dir, TnSpliceCovers *covers);

/* Covers path if the finished sandbox shows something there. 0 or -ENOMEM. */
int tn_splice_cover_path(TnSplice *splice, const char *path, TnSpliceCovers *covers);

/* splice-emit.c: true when the reply denies path, which is inside the sandbox. */
bool tn_splice_is_denied(TnSplice *splice, const TnSpliceReply *reply, const char *path);
