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

static int add_cover(TnSpliceCovers *covers, const char *path)
{
	if (covers->n == covers->room) {
		size_t more = covers->room ? covers->room * 2 : 4, bytes;
		const char **bigger = tn_mul_overflows(more, sizeof(*bigger), &bytes)
					      ? NULL
					      : realloc(covers->paths, bytes);

		if (!bigger)
			return -ENOMEM;
		covers->paths = bigger;
		covers->room = more;
	}
	covers->paths[covers->n++] = path;
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
		r = add_cover(covers, shown);
		if (r < 0)
			return r;
		drop_below(splice, i, shown);
	}
	return splice->oom ? -ENOMEM : 0;
}
