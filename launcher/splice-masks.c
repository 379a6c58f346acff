/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which host paths a line masks: for the stub keeper. */
#include "splice-private.h"

#include "macros.h"
#include "paths.h"

#include <errno.h>
#include <string.h>

/* True when the sandbox shows the host's own path at dest just before operation index. */
static bool shows_host_path(const TnSplice *splice, size_t index, const char *dest)
{
	for (size_t i = index; i-- > 0;) {
		const TnSpliceOp *op = &splice->ops[i];

		if (!tn_splice_mounts(splice, i) || strcmp(op->dest, dest) == 0 ||
		    !tn_path_is_below(dest, op->dest))
			continue;
		return op->source && strcmp(op->source, op->dest) == 0;
	}
	return false;
}

static bool is_mask(TnSplice *splice, size_t index)
{
	const TnSpliceOp *op = &splice->ops[index];
	unsigned traits = tn_bwrap_traits(splice->line->ops[index].option);

	if (!(traits & TN_BWRAP_FROM_PATH) || !(traits & TN_BWRAP_READ_ONLY) ||
	    !tn_splice_mounts(splice, index) || tn_splice_view_above(splice, op->dest))
		return false;
	return shows_host_path(splice, index, op->dest);
}

int tn_splice_masks(TnSplice *splice, TnSpliceMask **ret, size_t *ret_n)
{
	TnSpliceMask *masks = calloc(splice->line->n_ops + 1, sizeof(*masks));
	size_t n = 0;

	if (!masks)
		return -ENOMEM;
	for (size_t i = 0; i < splice->line->n_ops; i++) {
		const TnSpliceOp *op = &splice->ops[i];

		if (is_mask(splice, i))
			masks[n++] = (TnSpliceMask){
				.path = op->dest,
				.as_dir = op->kind == TN_FILE_DIR,
				.vanished = op->vanished,
			};
	}
	*ret = masks;
	*ret_n = n;
	return 0;
}
