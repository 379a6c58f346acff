/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "splice-private.h"

#include "macros.h"
#include "paths.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool tn_splice_note_refuses(TnSpliceNoteKind kind)
{
	return kind <= TN_SPLICE_TOO_LONG;
}

void tn_splice_note(TnSplice *splice, TnSpliceNoteKind kind, const char *text)
{
	if (!tn_splice_keep(splice, text))
		return;
	splice->refused |= tn_splice_note_refuses(kind);
	if (splice->n_notes < TN_SPLICE_NOTES_MAX)
		splice->notes[splice->n_notes] = (TnSpliceNote){kind, text};
	splice->n_notes++;
}

/* One more element in an array of the splice; NULL when memory is exhausted. */
static void *grow(TnSplice *splice, void **array, size_t *n, size_t *room, size_t size)
{
	if (*n == *room) {
		size_t more = *room ? *room * 2 : 16, bytes;
		void *bigger = tn_mul_overflows(more, size, &bytes) ? NULL : realloc(*array, bytes);

		if (!bigger) {
			splice->oom = true;
			return NULL;
		}
		*array = bigger;
		*room = more;
	}
	return (char *)*array + size * (*n)++;
}

bool tn_splice_add_extra(TnSplice *splice, TnSpliceArea area, const char *option,
			 const char *source, const char *dest)
{
	TnSpliceExtra *extra = NULL;

	for (size_t i = 0; i < splice->n_extras && !extra; i++)
		if (strcmp(splice->extras[i].dest, dest) == 0)
			extra = &splice->extras[i];
	if (!extra)
		extra = grow(splice, (void **)&splice->extras, &splice->n_extras,
			     &splice->extras_room, sizeof(*extra));
	if (extra)
		*extra = (TnSpliceExtra){area, option, source, dest, false};
	return extra;
}

static bool is_covered(const TnSplice *splice, const char *real)
{
	for (const char *const *covered = splice->facts->covered; *covered; covered++)
		if (strcmp(real, *covered) != 0 && tn_path_is_below(real, *covered))
			return true;
	return false;
}

/* A source that the launcher will have covered before bwrap looks. */
static void source_covered(TnSplice *splice, TnSpliceOp *op, unsigned traits, const char *word)
{
	if (traits & TN_BWRAP_TRY)
		op->skipped = true;
	else
		tn_splice_note(splice, TN_SPLICE_SOURCE_COVERED,
			       tn_pool_printf(&splice->pool,
					      "%.512s: lies in the runtime directory, which no "
					      "sandbox sees",
					      word));
}

/* `--ro-bind P P` outside /tmp: what a runtime does with a path that it wants unchanged. */
static bool is_self_mask(const TnSplice *splice, const TnBwrapOp *parsed)
{
	const char *word = tn_bwrap_dest(splice->line, parsed);
	char normal[PATH_MAX];

	return tn_bwrap_traits(parsed->option) & TN_BWRAP_READ_ONLY && word[0] == '/' &&
	       strcmp(word, tn_bwrap_argument(splice->line, parsed, 0)) == 0 &&
	       tn_path_normalize(word, normal, sizeof(normal)) &&
	       !tn_path_is_below(normal, "/tmp") &&
	       !tn_path_is_below(normal, splice->facts->host_tmp);
}

static void look_at_source(TnSplice *splice, size_t index)
{
	const TnBwrapOp *parsed = &splice->line->ops[index];
	unsigned traits = tn_bwrap_traits(parsed->option);
	const char *word = tn_bwrap_argument(splice->line, parsed, 0);
	TnSpliceOp *op = &splice->ops[index];
	const char *path = word, *real;

	if (traits & TN_BWRAP_FROM_FD)
		path = tn_splice_keep(splice,
				      tn_pool_printf(&splice->pool, "/proc/self/fd/%.32s", word));
	if (!path)
		return;
	op->kind = tn_splice_resolve(splice, path, &op->source);
	if (traits & TN_BWRAP_FROM_FD)
		return;
	real = op->source ? op->source : tn_splice_host_path(splice, word);
	if (real && is_covered(splice, real)) {
		source_covered(splice, op, traits, word);
		return;
	}
	if (tn_splice_found(op->kind))
		return;
	if (op->kind == TN_FILE_MISSING && traits & TN_BWRAP_TRY)
		op->skipped = true;
	else if (op->kind == TN_FILE_MISSING && is_self_mask(splice, parsed))
		op->vanished = true;
	else
		op->lacks_source = true;
}

void tn_splice_note_lacking(TnSplice *splice, size_t index)
{
	const TnBwrapOp *parsed = &splice->line->ops[index];
	bool missing = splice->ops[index].kind == TN_FILE_MISSING;

	tn_splice_note(splice, TN_SPLICE_SOURCE_MISSING,
		       tn_pool_printf(&splice->pool, "%.512s: %s, source of %s",
				      tn_bwrap_argument(splice->line, parsed, 0),
				      missing ? "not there" : "cannot be reached",
				      tn_bwrap_name(parsed->option)));
}

/* An operation without its source is refused, unless its destination may turn out denied. */
static void refuse_lacking(TnSplice *splice)
{
	for (size_t i = 0; i < splice->line->n_ops; i++) {
		const TnSpliceOp *op = &splice->ops[i];
		const TnSpliceView *view;

		if (!op->lacks_source)
			continue;
		view = op->dest ? tn_splice_view_above(splice, op->dest) : NULL;
		if (!view || !tn_splice_is_after(splice, view, i))
			tn_splice_note_lacking(splice, i);
	}
}

/* The last mount at / decides what the sandbox's paths mean. */
static void find_root(TnSplice *splice)
{
	const TnBwrapLine *line = splice->line;

	for (size_t i = line->n_ops; i-- > 0;) {
		const char *dest;

		if (!(tn_bwrap_traits(line->ops[i].option) & TN_BWRAP_MOUNTS) ||
		    splice->ops[i].skipped)
			continue;
		dest = tn_splice_normal(splice, "/", tn_bwrap_dest(line, &line->ops[i]));
		if (dest && strcmp(dest, "/") == 0) {
			splice->root = splice->ops[i].source;
			return;
		}
	}
}

static void no_tmp(TnSplice *splice, const char *name, const char *why)
{
	tn_splice_note(splice, TN_SPLICE_NO_TMP,
		       tn_pool_printf(&splice->pool, "%s: %s, so it gets no view", name, why));
}

/* Where an area lies inside the sandbox: by its real path, when its root has one. */
static void find_view_dest(TnSplice *splice, TnSpliceArea area)
{
	static const char *const names[TN_SPLICE_N_AREAS] = {"/tmp", "/var/tmp"};
	TnSpliceView *view = &splice->views[area];
	const char *on_host, *real;

	view->wanted = true;
	view->dest = names[area];
	if (!splice->root)
		return;
	if (strcmp(splice->root, "/") == 0) {
		view->dest = area == TN_SPLICE_TMP ? splice->facts->host_tmp
						   : splice->facts->host_var_tmp;
		return;
	}
	on_host = tn_splice_keep(splice, tn_pool_join(&splice->pool, splice->root, names[area]));
	if (!on_host || !tn_splice_found(tn_splice_resolve(splice, on_host, &real)))
		return;
	if (tn_path_is_below(real, splice->root)) {
		view->dest =
			tn_splice_keep(splice, tn_pool_printf(&splice->pool, "/%s",
							      tn_splice_rest(real, splice->root)));
		return;
	}
	view->wanted = false;
	no_tmp(splice, names[area], "it is a link that leads out of the sandbox's root");
}

static void find_anchor(TnSplice *splice, TnSpliceView *view)
{
	view->anchor = SIZE_MAX;
	for (size_t i = splice->line->n_ops; i-- > 0;) {
		if (tn_splice_mounts(splice, i) &&
		    tn_path_is_below(view->dest, splice->ops[i].dest)) {
			view->anchor = i;
			return;
		}
	}
}

/* What an anchor above or at the view means for it. */
static void judge_anchor(TnSplice *splice, TnSpliceView *view, const char *host)
{
	const TnBwrapOp *parsed = &splice->line->ops[view->anchor];
	const TnSpliceOp *op = &splice->ops[view->anchor];
	const char *shown, *real;

	if (strcmp(op->dest, view->dest) == 0) {
		if (parsed->option == TN_BWRAP_TMPFS) {
			view->replaces = true;
			return;
		}
		view->wanted = false;
		tn_splice_note(
			splice, TN_SPLICE_EXPLICIT,
			tn_pool_printf(&splice->pool,
				       "%s: %s mounts something of its own there, so it gets "
				       "no view",
				       view->dest, tn_bwrap_name(parsed->option)));
		return;
	}
	view->read_only = tn_bwrap_traits(parsed->option) & TN_BWRAP_READ_ONLY;
	for (size_t i = view->anchor + 1; i < splice->line->n_ops; i++)
		if (splice->line->ops[i].option == TN_BWRAP_REMOUNT_RO && splice->ops[i].dest &&
		    strcmp(splice->ops[i].dest, op->dest) == 0)
			view->read_only = true;
	if (!op->source)
		return;
	shown = tn_splice_keep(splice, tn_pool_join(&splice->pool, op->source,
						    tn_splice_rest(view->dest, op->dest)));
	if (!shown)
		return;
	view->shows_host = strcmp(shown, host) == 0;
	if (tn_bwrap_traits(parsed->option) & TN_BWRAP_READ_ONLY &&
	    tn_splice_resolve(splice, shown, &real) != TN_FILE_DIR) {
		view->wanted = false;
		no_tmp(splice, view->dest, "the sandbox's read-only root has no such directory");
	}
}

/* `--symlink X /tmp` and `--file FD /tmp`: the caller's choice as well. */
static void judge_entries(TnSplice *splice, TnSpliceView *view)
{
	for (size_t i = 0; i < splice->line->n_ops && view->wanted; i++) {
		TnBwrapOption option = splice->line->ops[i].option;

		if ((option != TN_BWRAP_SYMLINK && option != TN_BWRAP_FILE) ||
		    !tn_splice_is_after(splice, view, i) ||
		    !tn_path_is_below(view->dest, splice->ops[i].dest))
			continue;
		view->wanted = false;
		tn_splice_note(
			splice, TN_SPLICE_EXPLICIT,
			tn_pool_printf(&splice->pool,
				       "%s: %s makes something of its own there, so it gets no "
				       "view",
				       view->dest, tn_bwrap_name(option)));
	}
}

static void note_tmpfs_size(TnSplice *splice, const TnSpliceView *view)
{
	const TnBwrapOp *op = &splice->line->ops[view->anchor];

	for (unsigned i = 0; i + 1U < op->n_modifiers; i += 2)
		if (strcmp(splice->line->words[op->first + i], "--size") == 0)
			splice->tmpfs_size = splice->line->words[op->first + i + 1];
}

static void find_view(TnSplice *splice, TnSpliceArea area, const char *host)
{
	TnSpliceView *view = &splice->views[area];

	if (!view->wanted)
		return;
	find_anchor(splice, view);
	if (view->anchor != SIZE_MAX)
		judge_anchor(splice, view, host);
	if (view->wanted)
		judge_entries(splice, view);
	if (view->wanted && view->replaces && area == TN_SPLICE_TMP)
		note_tmpfs_size(splice, view);
}

/* True when a bind below the view was to be seen through the anchor (rule 2). */
static bool is_hidden_by_view(TnSplice *splice, const TnSpliceView *view, size_t index)
{
	const TnSpliceOp *op = &splice->ops[index];
	const char *normal;

	if (!(tn_bwrap_traits(splice->line->ops[index].option) & TN_BWRAP_FROM_PATH) ||
	    !tn_splice_mounts(splice, index) || strcmp(op->dest, view->dest) == 0 ||
	    !tn_path_is_below(op->dest, view->dest))
		return false;
	if (strcmp(op->source, op->dest) != 0) {
		/* The same text for both is the same place too, with a link in it. */
		normal = tn_splice_place(
			splice, tn_bwrap_argument(splice->line, &splice->line->ops[index], 0));
		if (!normal || strcmp(normal, op->dest) != 0)
			return false;
	}
	for (size_t i = view->anchor + 1; i < splice->line->n_ops; i++)
		if (tn_splice_mounts(splice, i) && tn_path_is_below(op->dest, splice->ops[i].dest))
			return false;
	return true;
}

static void add_replays(TnSplice *splice, TnSpliceArea area)
{
	const TnSpliceView *view = &splice->views[area];

	if (!view->wanted || !view->shows_host)
		return;
	for (size_t i = 0; i < view->anchor; i++) {
		const TnBwrapOp *parsed = &splice->line->ops[i];
		const char *option = "--bind";

		if (!is_hidden_by_view(splice, view, i))
			continue;
		if (view->read_only || tn_bwrap_traits(parsed->option) & TN_BWRAP_READ_ONLY)
			option = "--ro-bind";
		else if (parsed->option == TN_BWRAP_DEV_BIND ||
			 parsed->option == TN_BWRAP_DEV_BIND_TRY)
			option = "--dev-bind";
		tn_splice_add_extra(splice, area, option,
				    tn_bwrap_argument(splice->line, parsed, 0),
				    splice->ops[i].dest);
	}
}

/* True when a mount between the view and operation index holds its destination. */
static bool is_in_another_mount(const TnSplice *splice, const TnSpliceView *view, size_t index)
{
	const char *dest = splice->ops[index].dest;

	for (size_t i = 0; i < index; i++)
		if (tn_splice_is_after(splice, view, i) && tn_splice_mounts(splice, i) &&
		    strcmp(splice->ops[i].dest, dest) != 0 &&
		    tn_path_is_below(dest, splice->ops[i].dest))
			return true;
	return false;
}

static void add_point(TnSplice *splice, const TnSpliceView *view, TnMountPointKind kind,
		      const char *dest, size_t owner)
{
	const char *area = view == &splice->views[TN_SPLICE_TMP] ? "/tmp" : "/var/tmp";
	const char *path = tn_pool_join(&splice->pool, area, tn_splice_rest(dest, view->dest));
	TnSplicePoint *point;

	if (!tn_splice_keep(splice, path))
		return;
	point = grow(splice, (void **)&splice->points, &splice->n_points, &splice->points_room,
		     sizeof(*point));
	if (point)
		*point = (TnSplicePoint){kind, path, owner};
}

static void add_points(TnSplice *splice)
{
	size_t n_ops = splice->line->n_ops;

	for (size_t i = 0; i < splice->n_extras; i++) {
		const TnSpliceExtra *extra = &splice->extras[i];
		const char *real;
		TnFileKind kind = tn_splice_resolve(splice, extra->source, &real);

		add_point(splice, &splice->views[extra->area],
			  kind == TN_FILE_DIR ? TN_MOUNT_POINT_DIR : TN_MOUNT_POINT_FILE,
			  extra->dest, n_ops + i);
	}
	for (size_t i = 0; i < n_ops; i++) {
		unsigned traits = tn_bwrap_traits(splice->line->ops[i].option);
		const TnSpliceView *view;
		bool file;

		if (!tn_splice_mounts(splice, i))
			continue;
		view = tn_splice_view_above(splice, splice->ops[i].dest);
		if (!view || !tn_splice_is_after(splice, view, i) ||
		    is_in_another_mount(splice, view, i))
			continue;
		file = traits & TN_BWRAP_MOUNTS_FILE ||
		       (traits & (TN_BWRAP_FROM_PATH | TN_BWRAP_FROM_FD) &&
			splice->ops[i].kind != TN_FILE_DIR);
		add_point(splice, view, file ? TN_MOUNT_POINT_FILE : TN_MOUNT_POINT_DIR,
			  splice->ops[i].dest, i);
	}
}

/* An overlay's lower layers are seen without what is mounted on them, our covers too. */
static void check_overlay(TnSplice *splice, const TnBwrapOp *op)
{
	const TnBwrapLine *line = splice->line;

	for (unsigned i = 0; i + 1U < op->n_words; i++) {
		const char *word = line->words[op->first + i];
		const char *source;

		if (i < op->n_modifiers ? i % 2 == 0 : i != op->n_modifiers + 1U)
			continue;
		source = tn_splice_host_path(splice, word);
		for (const char *const *covered = splice->facts->covered; source && *covered;
		     covered++) {
			if (!tn_path_is_below(*covered, source))
				continue;
			tn_splice_note(
				splice, TN_SPLICE_OVERLAY_SHOWS,
				tn_pool_printf(&splice->pool,
					       "%.512s: an overlay of it would show %s, which no "
					       "sandbox may see",
					       word, *covered));
			return;
		}
	}
}

static void look_at_ops(TnSplice *splice)
{
	const TnBwrapLine *line = splice->line;

	for (size_t i = 0; i < line->n_ops; i++) {
		unsigned traits = tn_bwrap_traits(line->ops[i].option);

		if (traits & (TN_BWRAP_FROM_PATH | TN_BWRAP_FROM_FD))
			look_at_source(splice, i);
		if (traits & TN_BWRAP_OVERLAYS)
			check_overlay(splice, &line->ops[i]);
	}
}

static void place_ops(TnSplice *splice)
{
	const TnBwrapLine *line = splice->line;
	bool host_root = splice->root && strcmp(splice->root, "/") == 0;

	for (size_t i = 0; i < line->n_ops; i++) {
		const TnBwrapOp *parsed = &line->ops[i];
		TnSpliceOp *op = &splice->ops[i];
		const char *word;

		if (!(tn_bwrap_traits(parsed->option) & TN_BWRAP_HAS_DEST))
			continue;
		word = tn_bwrap_dest(line, parsed);
		/* Most binds put a host path where it is: its real path is known already. */
		if (host_root && op->source && word[0] == '/' &&
		    strcmp(word, tn_bwrap_argument(line, parsed, 0)) == 0 &&
		    strcmp(word, op->source) == 0)
			op->dest = op->source;
		else
			op->dest = tn_splice_place(splice, word);
		if (!op->dest && !splice->oom)
			tn_splice_note(splice, TN_SPLICE_TOO_LONG,
				       tn_pool_printf(&splice->pool,
						      "%.128s...: the path is too long", word));
	}
}

int tn_splice_plan(TnSplice *splice, const TnBwrapLine *line, const TnSpliceFacts *facts)
{
	*splice = (TnSplice){.line = line, .facts = facts};
	tn_pool_init(&splice->pool);
	splice->ops = calloc(line->n_ops + 1, sizeof(*splice->ops));
	if (!splice->ops)
		return -ENOMEM;
	look_at_ops(splice);
	if (splice->oom)
		return -ENOMEM;
	if (splice->refused)
		return -EINVAL;
	find_root(splice);
	find_view_dest(splice, TN_SPLICE_TMP);
	if (facts->host_var_tmp && !tn_path_is_below(facts->host_var_tmp, facts->host_tmp))
		find_view_dest(splice, TN_SPLICE_VAR_TMP);
	if (splice->oom)
		return -ENOMEM;
	place_ops(splice);
	if (splice->oom)
		return -ENOMEM;
	if (splice->refused)
		return -EINVAL;
	find_view(splice, TN_SPLICE_TMP, facts->host_tmp);
	find_view(splice, TN_SPLICE_VAR_TMP, facts->host_var_tmp);
	refuse_lacking(splice);
	if (splice->oom)
		return -ENOMEM;
	if (splice->refused)
		return -EINVAL;
	add_replays(splice, TN_SPLICE_TMP);
	add_replays(splice, TN_SPLICE_VAR_TMP);
	tn_splice_add_needs(splice);
	tn_splice_check_cwd(splice);
	add_points(splice);
	if (splice->oom)
		return -ENOMEM;
	return splice->refused ? -EINVAL : 0;
}

const char *tn_splice_writable_dir(const TnSplice *splice, size_t index)
{
	const TnSpliceOp *op = &splice->ops[index];
	unsigned traits = tn_bwrap_traits(splice->line->ops[index].option);

	return op->source && op->kind == TN_FILE_DIR && !(traits & TN_BWRAP_READ_ONLY) ? op->source
										       : NULL;
}

void tn_splice_clear(TnSplice *splice)
{
	free(splice->ops);
	free(splice->points);
	free(splice->extras);
	tn_pool_clear(&splice->pool);
	*splice = (TnSplice){0};
}
