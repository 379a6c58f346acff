/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the records of an arena sound whatever bytes they hold, before anything follows them:
 * what a killed worker leaves is half-made at worst, but one that was killed for what it did to
 * its own memory may have written anything.
 */
#include "arena.h"

#include "macros.h"
#include "policy.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ROOT 1U
#define PAGES_MOST (UINT64_C(1) << 40) /* more is not a count of anything */

/* --- nodes ----------------------------------------------------------------------------------- */

/* The descriptor of this very inode; a number that has become something else is not ours to close.
 */
static bool is_held(const TnNode *node)
{
	struct stat st;

	return node->held_fd >= 0 && fstat(node->held_fd, &st) == 0 && st.st_ino == node->ino;
}

static bool is_type(uint16_t type)
{
	return type == S_IFREG || type == S_IFDIR || type == S_IFLNK || type == S_IFIFO ||
	       type == S_IFSOCK;
}

static void mend_node(TnNode *node)
{
	if (node->id == 1 || !is_type(node->type)) {
		*node = (TnNode){.held_fd = -1};
		return;
	}
	if (!is_held(node))
		node->held_fd = -1;
	if (node->subtree != TN_SUBTREE_VAR_TMP)
		node->subtree = TN_SUBTREE_TMP;
	if (node->pages > PAGES_MOST)
		node->charge &= (uint8_t)~TN_CHARGE_KNOWN;
}

static int mend_nodes(TnArena *arena)
{
	TnNode *root = &arena->nodes[ROOT];

	/* Without one the table was being emptied. */
	if (arena->header->nodes_end <= ROOT)
		return 0;
	if (root->id != 1)
		return -EBADMSG;
	root->type = S_IFDIR;
	root->subtree = TN_SUBTREE_NONE;
	root->held_fd = -1;
	root->flags = 0;
	for (uint32_t i = ROOT + 1; i < arena->header->nodes_end; i++) {
		if (arena->nodes[i].id)
			mend_node(&arena->nodes[i]);
	}
	return 0;
}

/* --- names ----------------------------------------------------------------------------------- */

typedef struct Mend {
	TnArena *arena;
	uint8_t *used;     /* units of the heap of names */
	uint32_t *name_of; /* by node: the link that is a directory's only name */
	uint8_t *mark;     /* by node: see cut_cycle() */
} Mend;

static bool is_live(const TnArena *arena, uint32_t node)
{
	return node && node < arena->header->nodes_end && arena->nodes[node].id;
}

/* A component that the store could have: whole, and nobody else's bytes. Takes its units. */
static bool take_name(Mend *mend, const TnLink *link)
{
	size_t units = ((size_t)link->name_length + TN_NAME_UNIT) / TN_NAME_UNIT;
	const char *text = mend->arena->names + (size_t)link->name * TN_NAME_UNIT;

	if (!link->name || link->name_length == 0 || link->name_length > NAME_MAX ||
	    (uint64_t)link->name + units > mend->arena->header->names_end)
		return false;
	if (strnlen(text, link->name_length + 1) != link->name_length || strchr(text, '/') ||
	    strcmp(text, ".") == 0 || strcmp(text, "..") == 0 ||
	    memchr(mend->used + link->name, 1, units))
		return false;
	memset(mend->used + link->name, 1, units);
	return true;
}

static bool is_sound(Mend *mend, uint32_t index)
{
	const TnLink *link = &mend->arena->links[index];
	const TnNode *nodes = mend->arena->nodes;

	if (!is_live(mend->arena, link->node) || !is_live(mend->arena, link->parent) ||
	    link->node == ROOT || nodes[link->parent].type != S_IFDIR)
		return false;
	/* A directory has one name. */
	if (nodes[link->node].type == S_IFDIR && mend->name_of[link->node])
		return false;
	if (!take_name(mend, link))
		return false;
	mend->name_of[link->node] = index;
	return true;
}

/* From node upwards until what is known to end; a way that meets itself loses the name there. */
static void cut_cycle(Mend *mend, uint32_t node)
{
	enum { UNKNOWN, ON_THE_WAY, ENDS };
	uint32_t at = node;

	while (mend->mark[at] == UNKNOWN && mend->name_of[at]) {
		uint32_t up = mend->arena->links[mend->name_of[at]].parent;

		mend->mark[at] = ON_THE_WAY;
		if (mend->mark[up] == ON_THE_WAY) {
			mend->arena->links[mend->name_of[at]].node = 0;
			mend->name_of[at] = 0;
			break;
		}
		at = up;
	}
	for (at = node; mend->mark[at] == ON_THE_WAY;
	     at = mend->arena->links[mend->name_of[at]].parent) {
		mend->mark[at] = ENDS;
		if (!mend->name_of[at])
			break;
	}
}

static void mend_links(Mend *mend)
{
	const TnArenaHeader *header = mend->arena->header;

	for (uint32_t i = 1; i < header->links_end; i++) {
		if (mend->arena->links[i].node && !is_sound(mend, i))
			mend->arena->links[i].node = 0;
	}
	for (uint32_t i = ROOT + 1; i < header->nodes_end; i++) {
		if (mend->arena->nodes[i].id && mend->arena->nodes[i].type == S_IFDIR)
			cut_cycle(mend, i);
	}
}

int tn_arena_mend(TnArena *arena)
{
	size_t nodes = arena->header->nodes_end;
	TN_AUTOFREE uint8_t *used = calloc(arena->header->names_end, 1);
	TN_AUTOFREE uint32_t *name_of = calloc(nodes, sizeof(*name_of));
	TN_AUTOFREE uint8_t *mark = calloc(nodes, 1);
	int r;

	if (!used || !name_of || !mark)
		return -ENOMEM;
	r = mend_nodes(arena);
	if (r == 0)
		mend_links(&(Mend){arena, used, name_of, mark});
	return r;
}
