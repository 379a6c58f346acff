/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "splice-private.h"

#include "macros.h"
#include "paths.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Words with a NUL after each; errors are sticky. */
typedef struct Block {
	char *bytes;
	size_t used, room, n_words;
	bool failed;
} Block;

static void put(Block *block, const char *word)
{
	size_t size = strlen(word) + 1, total;

	if (block->failed)
		return;
	if (tn_add_overflows(block->used, size, &total)) {
		block->failed = true;
		return;
	}
	if (total > block->room) {
		size_t room = total < 4096 ? 4096 : total + total / 2;
		char *bigger = realloc(block->bytes, room);

		if (!bigger) {
			block->failed = true;
			return;
		}
		block->bytes = bigger;
		block->room = room;
	}
	memcpy(block->bytes + block->used, word, size);
	block->used = total;
	block->n_words++;
}

static int finish(Block *block, char **ret_block, size_t *ret_size)
{
	if (!block->failed && !block->bytes) {
		block->bytes = calloc(1, 1);
		block->failed = !block->bytes;
	}
	if (block->failed) {
		free(block->bytes);
		return -ENOMEM;
	}
	*ret_block = block->bytes;
	*ret_size = block->used;
	return 0;
}

int tn_splice_emit_plain(const TnBwrapLine *line, char **ret_block, size_t *ret_size)
{
	Block block = {0};

	for (size_t i = 0; i < line->n_words; i++)
		put(&block, line->words[i]);
	return finish(&block, ret_block, ret_size);
}

/* What a rule says below the view's tmp or var-tmp: "x", "/x", "/tmp/x", "/private/tmp/x". */
static const char *rule_pattern(const char *rule, TnSpliceArea *ret_area)
{
	static const struct {
		const char *prefix;
		TnSpliceArea area;
	} anchors[] = {
		{"/var/tmp/", TN_SPLICE_VAR_TMP},
		{"/private/tmp/", TN_SPLICE_TMP},
		{"/tmp/", TN_SPLICE_TMP},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(anchors); i++) {
		size_t length = strlen(anchors[i].prefix);

		if (strncmp(rule, anchors[i].prefix, length) == 0) {
			*ret_area = anchors[i].area;
			return rule + length;
		}
	}
	*ret_area = TN_SPLICE_TMP;
	return rule;
}

/* Takes the next component of a path off *path into part; false at the end. */
static bool next_part(const char **path, char part[NAME_MAX + 1])
{
	size_t length;

	*path += strspn(*path, "/");
	length = strcspn(*path, "/");
	if (length == 0 || length > NAME_MAX)
		return false;
	memcpy(part, *path, length);
	part[length] = '\0';
	*path += length;
	return true;
}

/* True when pattern matches path or a directory above it, component by component. */
static bool pattern_holds(const char *pattern, const char *path)
{
	char wanted[NAME_MAX + 1], part[NAME_MAX + 1];

	if (!next_part(&pattern, wanted))
		return false;
	do {
		if (!next_part(&path, part) || fnmatch(wanted, part, FNM_NOESCAPE) != 0)
			return false;
	} while (next_part(&pattern, wanted));
	return true;
}

bool tn_splice_is_denied(TnSplice *splice, const TnSpliceReply *reply, const char *path)
{
	const TnSpliceView *view = tn_splice_view_above(splice, path);

	for (size_t i = 0; view && i < reply->n_denied; i++) {
		TnSpliceArea area;
		const char *pattern = rule_pattern(reply->denied[i], &area);

		if (view == &splice->views[area] &&
		    pattern_holds(pattern, tn_splice_rest(path, view->dest)))
			return true;
	}
	return false;
}

static void note_denied(TnSplice *splice, const char *dest, const char *option)
{
	tn_splice_note(splice, TN_SPLICE_DENIED,
		       tn_pool_printf(&splice->pool, "%.512s: %s left out, the name is denied",
				      dest, option));
}

/* Drops operation index and what the line puts below it afterwards. */
static void drop_op(TnSplice *splice, size_t index)
{
	const char *dest = splice->ops[index].dest;

	for (size_t i = index; i < splice->line->n_ops; i++) {
		TnSpliceOp *op = &splice->ops[i];

		if (!op->dest || op->dropped || op->skipped || !tn_path_is_below(op->dest, dest))
			continue;
		op->dropped = true;
		note_denied(splice, op->dest, tn_bwrap_name(splice->line->ops[i].option));
	}
}

static void drop_extra(TnSplice *splice, TnSpliceExtra *extra)
{
	if (extra->dropped)
		return;
	extra->dropped = true;
	note_denied(splice, extra->dest, extra->option);
}

/* Rule 4. */
static void drop_denied(TnSplice *splice, const TnSpliceReply *reply)
{
	size_t n_ops = splice->line->n_ops;

	for (size_t i = 0; reply->states && i < splice->n_points; i++) {
		size_t owner = splice->points[i].owner;

		if (reply->states[i] != TN_POINT_DENIED)
			continue;
		if (owner < n_ops)
			drop_op(splice, owner);
		else
			drop_extra(splice, &splice->extras[owner - n_ops]);
	}
	for (size_t i = 0; i < n_ops; i++) {
		const TnSpliceOp *op = &splice->ops[i];
		const TnSpliceView *view = op->dest ? tn_splice_view_above(splice, op->dest) : NULL;

		if (view && tn_splice_is_after(splice, view, i) &&
		    tn_splice_is_denied(splice, reply, op->dest))
			drop_op(splice, i);
	}
	for (size_t i = 0; i < splice->n_extras; i++)
		if (tn_splice_is_denied(splice, reply, splice->extras[i].dest))
			drop_extra(splice, &splice->extras[i]);
}

/* A source that was not there was not missed as long as the destination could be denied. */
static void refuse_lacking(TnSplice *splice)
{
	for (size_t i = 0; i < splice->line->n_ops; i++)
		if (splice->ops[i].lacks_source && !splice->ops[i].dropped)
			tn_splice_note_lacking(splice, i);
}

static void put_view(TnSplice *splice, Block *block, const char *place, TnSpliceArea area)
{
	static const char *const trees[TN_SPLICE_N_AREAS] = {"tmp", "var-tmp"};
	const char *tree = tn_pool_join(&splice->pool, place, trees[area]);

	if (!tn_splice_keep(splice, tree))
		return;
	put(block, "--bind");
	put(block, tree);
	put(block, splice->views[area].dest);
	for (size_t i = 0; i < splice->n_extras; i++) {
		const TnSpliceExtra *extra = &splice->extras[i];

		if (extra->area != area || extra->dropped)
			continue;
		put(block, extra->option);
		put(block, extra->source);
		put(block, extra->dest);
	}
}

static void put_views_at(TnSplice *splice, Block *block, const char *place, size_t anchor)
{
	for (int area = 0; area < TN_SPLICE_N_AREAS; area++)
		if (splice->views[area].wanted && splice->views[area].anchor == anchor)
			put_view(splice, block, place, (TnSpliceArea)area);
}

/* Rule 3: below a view by the real path, anything else as the caller spelled it. */
static void put_op(TnSplice *splice, Block *block, size_t index)
{
	const TnBwrapLine *line = splice->line;
	const TnBwrapOp *parsed = &line->ops[index];
	const TnSpliceOp *op = &splice->ops[index];
	bool by_dest = false;

	for (int area = 0; op->dest && area < TN_SPLICE_N_AREAS; area++)
		by_dest |= splice->views[area].wanted &&
			   tn_path_is_below(op->dest, splice->views[area].dest);
	for (size_t i = 0; i + 1 < parsed->n_words; i++)
		put(block, line->words[parsed->first + i]);
	put(block, by_dest ? op->dest : line->words[parsed->first + parsed->n_words - 1U]);
}

static bool is_replaced(const TnSplice *splice, size_t index)
{
	for (int area = 0; area < TN_SPLICE_N_AREAS; area++)
		if (splice->views[area].wanted && splice->views[area].replaces &&
		    splice->views[area].anchor == index)
			return true;
	return false;
}

static void put_ops(TnSplice *splice, Block *block, const char *place)
{
	bool first = true;

	for (size_t i = 0; i < splice->line->n_ops; i++) {
		const TnSpliceOp *op = &splice->ops[i];

		if (op->dest && first) {
			put_views_at(splice, block, place, SIZE_MAX);
			first = false;
		}
		if (!op->skipped && !op->dropped && !is_replaced(splice, i))
			put_op(splice, block, i);
		put_views_at(splice, block, place, i);
	}
	if (first)
		put_views_at(splice, block, place, SIZE_MAX);
}

/*
 * A name denied in /tmp is denied in /private/tmp too, for runtimes that deny both. Where
 * that is the same directory the view sees to it; elsewhere it is the host's, and what it
 * has there is covered. Patterns are left out: nobody mounts what they could match.
 */
static int cover_private(TnSplice *splice, const TnSpliceReply *reply, TnSpliceCovers *covers)
{
	for (size_t i = 0; i < reply->n_denied; i++) {
		TnSpliceArea area;
		const char *name = rule_pattern(reply->denied[i], &area);
		const char *path;
		int r = 0;

		if (area != TN_SPLICE_TMP || strpbrk(name, "*?["))
			continue;
		name += strspn(name, "/");
		path = tn_splice_keep(splice,
				      tn_pool_printf(&splice->pool, "/private/tmp/%s", name));
		path = path ? tn_splice_place(splice, path) : NULL;
		if (path && !tn_splice_view_above(splice, path))
			r = tn_splice_cover_path(splice, path, covers);
		if (r < 0)
			return r;
	}
	return splice->oom ? -ENOMEM : 0;
}

static void put_covers(const TnSpliceCovers *covers, const char *empty, Block *block)
{
	for (size_t i = 0; i < covers->n; i++) {
		const TnSpliceCover *cover = &covers->items[i];

		put(block, "--ro-bind");
		put(block, cover->file ? "/dev/null" : empty);
		put(block, cover->path);
	}
}

static void put_environment(TnSplice *splice, const TnSpliceReply *reply, Block *block)
{
	if (!tn_splice_must_set_tmpdir(splice, reply))
		return;
	put(block, "--setenv");
	put(block, "TMPDIR");
	put(block, "/tmp");
	tn_splice_note(splice, TN_SPLICE_TMPDIR, "TMPDIR: set to /tmp, its own value is not there");
}

/* bwrap counts the words of the block and of its command line together. */
static void check_count(TnSplice *splice, const Block *block)
{
	size_t n = block->n_words + splice->line->n_command + 3; /* --args N -- */

	if (n > TN_BWRAP_WORDS_MAX)
		tn_splice_note(splice, TN_SPLICE_TOO_LONG,
			       tn_pool_printf(&splice->pool,
					      "%zu words with the view: bwrap takes %d", n,
					      TN_BWRAP_WORDS_MAX));
}

int tn_splice_emit(TnSplice *splice, const TnSpliceReply *reply, char **ret_block, size_t *ret_size)
{
	TnSpliceCovers covers = {0};
	Block block = {0};
	char fd[16];
	int r;

	if (splice->refused)
		return -EINVAL;
	drop_denied(splice, reply);
	refuse_lacking(splice);
	r = tn_splice_find_covers(splice, reply->runtime_dir, &covers);
	if (r == 0)
		r = cover_private(splice, reply, &covers);
	if (r == 0) {
		if (reply->sync_fd >= 0) {
			snprintf(fd, sizeof(fd), "%d", reply->sync_fd);
			put(&block, "--sync-fd");
			put(&block, fd);
		}
		put_ops(splice, &block, reply->place);
		put_covers(&covers, reply->empty, &block);
		put_environment(splice, reply, &block);
		check_count(splice, &block);
	}
	free(covers.items);
	if (r < 0 || splice->oom || splice->refused) {
		free(block.bytes);
		return r < 0 ? r : splice->oom ? -ENOMEM : -EINVAL;
	}
	return finish(&block, ret_block, ret_size);
}
