/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "splice-private.h"

#include "macros.h"
#include "paths.h"

#include <string.h>

const char *tn_splice_keep(TnSplice *splice, const char *text)
{
	splice->oom |= !text;
	return text;
}

const char *tn_splice_rest(const char *path, const char *dir)
{
	const char *rest = path + (strcmp(dir, "/") == 0 ? 0 : strlen(dir));

	while (*rest == '/')
		rest++;
	return rest;
}

const char *tn_splice_normal(TnSplice *splice, const char *base, const char *text)
{
	char normal[PATH_MAX];

	if (text[0] != '/') {
		text = tn_splice_keep(splice, tn_pool_join(&splice->pool, base, text));
		if (!text)
			return NULL;
	}
	if (!tn_path_normalize(text, normal, sizeof(normal)))
		return NULL;
	return tn_splice_keep(splice, tn_pool_copy(&splice->pool, normal, strlen(normal)));
}

TnFileKind tn_splice_resolve(TnSplice *splice, const char *path, const char **ret_real)
{
	char real[PATH_MAX];
	TnFileKind kind = splice->facts->resolve(splice->facts->data, path, real);

	*ret_real = NULL;
	if (!tn_splice_found(kind))
		return kind;
	*ret_real = tn_splice_keep(splice, tn_pool_copy(&splice->pool, real, strlen(real)));
	return *ret_real ? kind : TN_FILE_MISSING;
}

/*
 * The real path of the deepest directory of path, below top, that is there, joined with
 * the rest of path; *ret_found is that directory's. path itself when none is.
 */
static const char *real_below(TnSplice *splice, const char *top, const char *path)
{
	char *head = tn_pool_copy(&splice->pool, path, strlen(path));
	size_t length = strlen(path);

	if (!tn_splice_keep(splice, head))
		return NULL;
	while (length > 1) {
		const char *on_host, *real;

		head[length] = '\0';
		on_host = tn_splice_keep(splice, tn_pool_join(&splice->pool, top, head));
		if (!on_host)
			return NULL;
		if (tn_splice_found(tn_splice_resolve(splice, on_host, &real))) {
			const char *rest = tn_splice_rest(path + length, "/");

			/* A link that leads out of top: bwrap will see, we take the text. */
			if (!tn_path_is_below(real, top))
				return path;
			real = tn_pool_printf(&splice->pool, "/%s", tn_splice_rest(real, top));
			real = real ? tn_pool_join(&splice->pool, real, rest) : NULL;
			return tn_splice_keep(splice, real);
		}
		while (head[--length] != '/')
			;
	}
	return path;
}

const char *tn_splice_host_path(TnSplice *splice, const char *text)
{
	const char *base = splice->facts->cwd ? splice->facts->cwd : "/";
	const char *normal = tn_splice_normal(splice, base, text);

	return normal ? real_below(splice, "/", normal) : NULL;
}

const char *tn_splice_place(TnSplice *splice, const char *text)
{
	static const char *const names[TN_SPLICE_N_AREAS] = {"/tmp", "/var/tmp"};
	const char *path = tn_splice_normal(splice, "/", text);

	if (!path)
		return NULL;
	for (int area = 0; area < TN_SPLICE_N_AREAS; area++) {
		const char *dest = splice->views[area].dest;

		if (!dest)
			continue;
		if (tn_path_is_below(path, dest))
			return path;
		if (tn_path_is_below(path, names[area]))
			return tn_splice_keep(splice,
					      tn_pool_join(&splice->pool, dest,
							   tn_splice_rest(path, names[area])));
	}
	return splice->root ? real_below(splice, splice->root, path) : path;
}

TnSpliceView *tn_splice_view_above(TnSplice *splice, const char *path)
{
	for (int area = 0; area < TN_SPLICE_N_AREAS; area++) {
		TnSpliceView *view = &splice->views[area];

		if (view->wanted && strcmp(path, view->dest) != 0 &&
		    tn_path_is_below(path, view->dest))
			return view;
	}
	return NULL;
}

bool tn_splice_is_after(const TnSplice *splice, const TnSpliceView *view, size_t index)
{
	const TnSpliceOp *op = &splice->ops[index];

	return op->dest && !op->skipped && !op->dropped &&
	       (view->anchor == SIZE_MAX || index > view->anchor);
}

bool tn_splice_mounts(const TnSplice *splice, size_t index)
{
	const TnSpliceOp *op = &splice->ops[index];

	return op->dest && !op->skipped && !op->dropped &&
	       tn_bwrap_traits(splice->line->ops[index].option) & TN_BWRAP_MOUNTS;
}

/* True when the mount of operation index, whose destination lies above path, has path in it. */
static bool mount_holds(TnSplice *splice, size_t index, const char *path)
{
	const TnSpliceOp *op = &splice->ops[index];
	const char *inside, *real;

	if (!op->source)
		return false;
	inside = tn_pool_join(&splice->pool, op->source, tn_splice_rest(path, op->dest));
	return tn_splice_keep(splice, inside) &&
	       tn_splice_found(tn_splice_resolve(splice, inside, &real));
}

bool tn_splice_shows(TnSplice *splice, const TnSpliceView *view, const char *path)
{
	for (size_t i = splice->line->n_ops; i-- > 0;) {
		TnBwrapOption option = splice->line->ops[i].option;
		const TnSpliceOp *op = &splice->ops[i];

		if (!tn_splice_is_after(splice, view, i) || option == TN_BWRAP_CHMOD ||
		    option == TN_BWRAP_REMOUNT_RO)
			continue;
		/* Made at path, or below it with path as a parent. */
		if (tn_path_is_below(op->dest, path))
			return true;
		if (tn_splice_mounts(splice, i) && tn_path_is_below(path, op->dest))
			return mount_holds(splice, i, path);
	}
	return false;
}
