/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "splice-private.h"

#include "macros.h"
#include "paths.h"

#include <errno.h>
#include <string.h>

/* True when what operation index shows at path is hidden by a later mount or the view. */
static bool is_hidden(const TnSplice *splice, size_t index, const char *path)
{
	for (size_t i = index + 1; i < splice->line->n_ops; i++)
		if (tn_splice_mounts(splice, i) && tn_path_is_below(path, splice->ops[i].dest))
			return true;
	for (int area = 0; area < TN_SPLICE_N_AREAS; area++) {
		const TnSpliceView *view = &splice->views[area];

		if (view->wanted && view->anchor != SIZE_MAX && index <= view->anchor &&
		    tn_path_is_below(path, view->dest))
			return true;
	}
	return false;
}

/*
 * The cover comes last, so whatever is put below it would be hidden; it could not be put
 * there anyway, as the launcher's own cover is read-only.
 */
static void drop_below(TnSplice *splice, size_t index, const char *cover)
{
	for (size_t i = index + 1; i < splice->line->n_ops; i++) {
		TnSpliceOp *op = &splice->ops[i];

		if (!op->dest || op->skipped || op->dropped || strcmp(op->dest, cover) == 0 ||
		    !tn_path_is_below(op->dest, cover))
			continue;
		op->dropped = true;
		tn_splice_note(
			splice, TN_SPLICE_BELOW_COVER,
			tn_pool_printf(&splice->pool,
				       "%.512s: %s left out, it lies in the runtime directory",
				       op->dest, tn_bwrap_name(splice->line->ops[i].option)));
	}
}

static int add_cover(TnSpliceCovers *covers, const char *path, bool file)
{
	if (covers->n == covers->room) {
		size_t more = covers->room ? covers->room * 2 : 4, bytes;
		TnSpliceCover *bigger = tn_mul_overflows(more, sizeof(*bigger), &bytes)
						? NULL
						: realloc(covers->items, bytes);

		if (!bigger)
			return -ENOMEM;
		covers->items = bigger;
		covers->room = more;
	}
	covers->items[covers->n++] = (TnSpliceCover){path, file};
	return 0;
}

int tn_splice_find_covers(TnSplice *splice, const char *runtime_dir, TnSpliceCovers *covers)
{
	for (size_t i = 0; i < splice->line->n_ops; i++) {
		const TnSpliceOp *op = &splice->ops[i];
		const char *shown;
		int r;

		if (!op->source || op->kind != TN_FILE_DIR || !tn_splice_mounts(splice, i) ||
		    !tn_path_is_below(runtime_dir, op->source))
			continue;
		shown = tn_pool_join(&splice->pool, op->dest,
				     tn_splice_rest(runtime_dir, op->source));
		if (!shown)
			return -ENOMEM;
		if (is_hidden(splice, i, shown))
			continue;
		r = add_cover(covers, shown, false);
		if (r < 0)
			return r;
		drop_below(splice, i, shown);
	}
	return splice->oom ? -ENOMEM : 0;
}

/* What the last mount that holds path shows there; entries that the line makes are its own. */
static TnFileKind shown_at(TnSplice *splice, const char *path)
{
	for (size_t i = splice->line->n_ops; i-- > 0;) {
		const TnSpliceOp *op = &splice->ops[i];
		const char *inside, *real;

		if (!tn_splice_mounts(splice, i) || !tn_path_is_below(path, op->dest))
			continue;
		if (!op->source)
			return TN_FILE_MISSING;
		if (strcmp(op->dest, path) == 0)
			return op->kind;
		inside = tn_splice_keep(splice, tn_pool_join(&splice->pool, op->source,
							     tn_splice_rest(path, op->dest)));
		return inside ? tn_splice_resolve(splice, inside, &real) : TN_FILE_MISSING;
	}
	return TN_FILE_MISSING;
}

int tn_splice_cover_path(TnSplice *splice, const char *path, TnSpliceCovers *covers)
{
	TnFileKind kind = shown_at(splice, path);
	int r;

	if (splice->oom)
		return -ENOMEM;
	if (!tn_splice_found(kind))
		return 0;
	r = add_cover(covers, path, kind != TN_FILE_DIR);
	if (r == 0)
		tn_splice_note(
			splice, TN_SPLICE_DENIED,
			tn_pool_printf(&splice->pool, "%.512s: covered, the name is denied", path));
	return splice->oom ? -ENOMEM : r;
}
