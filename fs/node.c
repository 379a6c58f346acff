/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "node.h"

#include "journal.h"
#include "macros.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 256U
#define NAME_CLASSES 17 /* 256 bytes in units of 16, and one unused */

/* What can be rebuilt from the arena: hashes and free lists. */
struct TnNodeTable {
	TnArena *arena;
	uint32_t *by_id, *by_ino; /* heads of chains, n_buckets each */
	uint32_t n_buckets;       /* a power of two */
	uint32_t n_nodes;
	uint32_t free_nodes, free_links;   /* lists through next_by_id and next */
	uint32_t free_names[NAME_CLASSES]; /* lists through the first four bytes */
};

static void release_unneeded(TnNodeTable *table, uint32_t index, TnNodeReleased released,
			     void *data);

static uint32_t bucket_of(const TnNodeTable *table, uint64_t key)
{
	/* Fibonacci hashing: counters and inode numbers differ in their low bits. */
	return (uint32_t)((key * 0x9e3779b97f4a7c15ULL) >> 32) & (table->n_buckets - 1);
}

TnNode *tn_node_at(TnNodeTable *table, uint32_t index)
{
	return &table->arena->nodes[index];
}

static TnLink *link_at(TnNodeTable *table, uint32_t index)
{
	return &table->arena->links[index];
}

static char *name_at(TnNodeTable *table, const TnLink *link)
{
	return table->arena->names + (size_t)link->name * TN_NAME_UNIT;
}

/* --- names -------------------------------------------------------------------------- */

static uint32_t name_units(size_t length)
{
	return (uint32_t)((length + 1 + TN_NAME_UNIT - 1) / TN_NAME_UNIT);
}

/* Offset of a stored copy, or 0. */
static uint32_t name_store(TnNodeTable *table, const char *name, size_t length)
{
	uint32_t units = name_units(length);
	uint32_t offset = table->free_names[units];
	char *place;

	if (offset) {
		place = table->arena->names + (size_t)offset * TN_NAME_UNIT;
		memcpy(&table->free_names[units], place, sizeof(uint32_t));
	} else {
		TnArenaHeader *header = table->arena->header;

		if (header->names_end > TN_NAME_UNITS_MAX - units)
			return 0;
		offset = header->names_end;
		header->names_end += units;
		place = table->arena->names + (size_t)offset * TN_NAME_UNIT;
	}
	memcpy(place, name, length + 1);
	return offset;
}

static void name_release(TnNodeTable *table, uint32_t offset, size_t length)
{
	uint32_t units = name_units(length);
	char *place = table->arena->names + (size_t)offset * TN_NAME_UNIT;

	memcpy(place, &table->free_names[units], sizeof(uint32_t));
	table->free_names[units] = offset;
}

/* --- hashes ------------------------------------------------------------------------- */

static void hash_insert(TnNodeTable *table, uint32_t index)
{
	TnNode *node = tn_node_at(table, index);
	uint32_t *id_head = &table->by_id[bucket_of(table, node->id)];
	uint32_t *ino_head = &table->by_ino[bucket_of(table, node->ino)];

	node->next_by_id = *id_head;
	*id_head = index;
	node->next_by_ino = *ino_head;
	*ino_head = index;
}

static void hash_remove(TnNodeTable *table, uint32_t index)
{
	TnNode *node = tn_node_at(table, index);
	uint32_t *at = &table->by_id[bucket_of(table, node->id)];

	while (*at != index)
		at = &tn_node_at(table, *at)->next_by_id;
	*at = node->next_by_id;
	at = &table->by_ino[bucket_of(table, node->ino)];
	while (*at != index)
		at = &tn_node_at(table, *at)->next_by_ino;
	*at = node->next_by_ino;
}

/* Doubles the buckets; keeps the old ones when memory is short (chains get longer). */
static void hash_grow(TnNodeTable *table)
{
	uint32_t wanted = table->n_buckets * 2;
	uint32_t *by_id = calloc(wanted, sizeof(*by_id));
	uint32_t *by_ino = calloc(wanted, sizeof(*by_ino));

	if (!by_id || !by_ino) {
		free(by_id);
		free(by_ino);
		return;
	}
	free(table->by_id);
	free(table->by_ino);
	table->by_id = by_id;
	table->by_ino = by_ino;
	table->n_buckets = wanted;
	for (uint32_t i = 1; i < table->arena->header->nodes_end; i++) {
		if (tn_node_at(table, i)->id)
			hash_insert(table, i);
	}
}

/* --- life of the table -------------------------------------------------------------- */

static void add_root(TnNodeTable *table, uint64_t root_ino)
{
	TnArenaHeader *header = table->arena->header;
	TnNode *root = tn_node_at(table, TN_ROOT_INDEX);

	header->nodes_end = TN_ROOT_INDEX + 1;
	*root = (TnNode){
		.id = 1, /* FUSE_ROOT_ID */
		.ino = root_ino,
		.lookups = 1, /* never forgotten */
		.held_fd = -1,
		.type = S_IFDIR,
		.subtree = TN_SUBTREE_NONE,
	};
	if (header->next_node_id < 2)
		header->next_node_id = 2;
	table->n_nodes = 1;
	hash_insert(table, TN_ROOT_INDEX);
}

static int table_alloc(TnNodeTable **ret, TnArena *arena, uint32_t buckets)
{
	TnNodeTable *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->arena = arena;
	table->n_buckets = buckets;
	table->by_id = calloc(buckets, sizeof(*table->by_id));
	table->by_ino = calloc(buckets, sizeof(*table->by_ino));
	if (!table->by_id || !table->by_ino) {
		tn_node_table_free(table);
		return -ENOMEM;
	}
	*ret = table;
	return 0;
}

int tn_node_table_new(TnNodeTable **ret, TnArena *arena, uint64_t root_ino)
{
	int r = table_alloc(ret, arena, FIRST_BUCKETS);

	if (r == 0)
		add_root(*ret, root_ino);
	return r;
}

void tn_node_table_free(TnNodeTable *table)
{
	if (!table)
		return;
	free(table->by_id);
	free(table->by_ino);
	free(table);
}

void tn_node_table_reset(TnNodeTable *table, uint64_t root_ino)
{
	tn_arena_trim(table->arena);
	memset(table->by_id, 0, table->n_buckets * sizeof(*table->by_id));
	memset(table->by_ino, 0, table->n_buckets * sizeof(*table->by_ino));
	memset(table->free_names, 0, sizeof(table->free_names));
	table->free_nodes = table->free_links = 0;
	add_root(table, root_ino);
}

/* --- after a worker's death ----------------------------------------------------------- */

static bool is_whole(TnNodeTable *table, const TnLink *link)
{
	const TnArenaHeader *header = table->arena->header;

	return link->node && link->node < header->nodes_end && link->parent &&
	       link->parent < header->nodes_end && link->name_length <= NAME_MAX && link->name &&
	       (uint64_t)link->name + name_units(link->name_length) <= header->names_end &&
	       tn_node_at(table, link->node)->id && tn_node_at(table, link->parent)->id;
}

/* Chains and counts of links from the records that are whole; others become free ones. */
static void adopt_links(TnNodeTable *table)
{
	for (uint32_t i = 1; i < table->arena->header->nodes_end; i++) {
		tn_node_at(table, i)->links = 0;
		tn_node_at(table, i)->children = 0;
	}
	for (uint32_t i = 1; i < table->arena->header->links_end; i++) {
		TnLink *link = link_at(table, i);

		if (is_whole(table, link)) {
			link->next = tn_node_at(table, link->node)->links;
			tn_node_at(table, link->node)->links = i;
			tn_node_at(table, link->parent)->children++;
		} else {
			*link = (TnLink){.next = table->free_links};
			table->free_links = i;
		}
	}
}

/* Puts the units [from, to) of the name heap on the free lists. */
static void free_names(TnNodeTable *table, uint32_t from, uint32_t to)
{
	while (from < to) {
		uint32_t units = to - from < NAME_CLASSES ? to - from : NAME_CLASSES - 1;
		char *place = table->arena->names + (size_t)from * TN_NAME_UNIT;

		memcpy(place, &table->free_names[units], sizeof(uint32_t));
		table->free_names[units] = from;
		from += units;
	}
}

static int adopt_names(TnNodeTable *table)
{
	const TnArenaHeader *header = table->arena->header;
	TN_AUTOFREE uint8_t *used = calloc(header->names_end, 1);
	uint32_t free_from = 1;

	if (!used)
		return -ENOMEM;
	for (uint32_t i = 1; i < header->links_end; i++) {
		const TnLink *link = link_at(table, i);

		if (link->node)
			memset(used + link->name, 1, name_units(link->name_length));
	}
	for (uint32_t at = 1; at <= header->names_end; at++) {
		if (at < header->names_end && !used[at])
			continue;
		free_names(table, free_from, at);
		free_from = at + 1;
	}
	return 0;
}

static void adopt_nodes(TnNodeTable *table)
{
	for (uint32_t i = TN_ROOT_INDEX; i < table->arena->header->nodes_end; i++) {
		TnNode *node = tn_node_at(table, i);

		if (!node->id) {
			*node = (TnNode){.next_by_id = table->free_nodes, .held_fd = -1};
			table->free_nodes = i;
			continue;
		}
		if (node->id >= table->arena->header->next_node_id)
			table->arena->header->next_node_id = node->id + 1;
		node->flags &= ~(uint32_t)TN_NODE_DYING;
		table->n_nodes++;
		hash_insert(table, i);
	}
}

int tn_node_table_adopt(TnNodeTable **ret, TnArena *arena)
{
	TnNodeTable *table;
	uint32_t buckets = FIRST_BUCKETS;
	int r;

	while (buckets < arena->header->nodes_end)
		buckets *= 2;
	r = tn_arena_mend(arena);
	if (r == 0)
		r = table_alloc(&table, arena, buckets);
	if (r < 0)
		return r;
	adopt_links(table);
	r = adopt_names(table);
	if (r < 0) {
		tn_node_table_free(table);
		return r;
	}
	adopt_nodes(table);
	*ret = table;
	return 0;
}

void tn_node_sweep(TnNodeTable *table, TnNodeReleased released, void *data)
{
	for (uint32_t i = TN_ROOT_INDEX + 1; i < table->arena->header->nodes_end; i++) {
		if (tn_node_at(table, i)->id)
			release_unneeded(table, i, released, data);
	}
}

/* --- finding ------------------------------------------------------------------------ */

uint32_t tn_node_by_id(TnNodeTable *table, uint64_t id)
{
	uint32_t index = table->by_id[bucket_of(table, id)];

	while (index && tn_node_at(table, index)->id != id)
		index = tn_node_at(table, index)->next_by_id;
	return index;
}

uint32_t tn_node_by_ino(TnNodeTable *table, uint64_t ino)
{
	uint32_t index = table->by_ino[bucket_of(table, ino)];

	while (index && tn_node_at(table, index)->ino != ino)
		index = tn_node_at(table, index)->next_by_ino;
	return index;
}

uint32_t tn_node_next(TnNodeTable *table, uint32_t index)
{
	while (++index < table->arena->header->nodes_end) {
		if (tn_node_at(table, index)->id)
			return index;
	}
	return 0;
}

size_t tn_node_count(TnNodeTable *table)
{
	return table->n_nodes;
}

/* --- links -------------------------------------------------------------------------- */

/* Where the index of the link (parent, name) of the node is stored, or NULL. */
static uint32_t *find_link(TnNodeTable *table, uint32_t index, uint32_t parent, const char *name)
{
	uint32_t *at = &tn_node_at(table, index)->links;
	size_t length = strlen(name);

	for (; *at; at = &link_at(table, *at)->next) {
		const TnLink *link = link_at(table, *at);

		if (link->parent == parent && link->name_length == length &&
		    memcmp(name_at(table, link), name, length) == 0)
			return at;
	}
	return NULL;
}

bool tn_node_has_link(TnNodeTable *table, uint32_t index, uint32_t parent, const char *name)
{
	return find_link(table, index, parent, name) != NULL;
}

bool tn_node_is_only_link(TnNodeTable *table, uint32_t index, uint32_t parent, const char *name)
{
	const uint32_t *at = find_link(table, index, parent, name);

	return at && at == &tn_node_at(table, index)->links && link_at(table, *at)->next == 0;
}

bool tn_node_add_link(TnNodeTable *table, uint32_t index, uint32_t parent, const char *name)
{
	TnArenaHeader *header = table->arena->header;
	TnNode *node = tn_node_at(table, index);
	size_t length = strlen(name);
	uint32_t offset, new_link = table->free_links;

	if (find_link(table, index, parent, name))
		return true;
	offset = name_store(table, name, length);
	if (!offset)
		return false;
	if (new_link) {
		table->free_links = link_at(table, new_link)->next;
	} else if (header->links_end < TN_LINKS_MAX) {
		new_link = header->links_end++;
	} else {
		name_release(table, offset, length);
		return false;
	}
	*link_at(table, new_link) = (TnLink){
		.parent = parent,
		.next = node->links,
		.name = offset,
		.name_length = (uint32_t)length,
	};
	tn_kill_point();
	/* Last: a successor takes the record for whole by it, and finds the rest from there. */
	*(volatile uint32_t *)&link_at(table, new_link)->node = index;
	tn_kill_point();
	node->links = new_link;
	tn_node_at(table, parent)->children++;
	return true;
}

/* Unhooks and frees the link stored at *at; returns its parent. */
static uint32_t drop_link(TnNodeTable *table, uint32_t *at)
{
	uint32_t index = *at;
	TnLink *link = link_at(table, index);
	uint32_t parent = link->parent;

	*(volatile uint32_t *)&link->node = 0;
	tn_kill_point();
	*at = link->next;
	name_release(table, link->name, link->name_length);
	*link = (TnLink){.next = table->free_links};
	table->free_links = index;
	tn_node_at(table, parent)->children--;
	return parent;
}

/* --- life of a node ----------------------------------------------------------------- */

static uint32_t node_new(TnNodeTable *table, uint64_t ino, mode_t type, uint8_t subtree)
{
	TnArenaHeader *header = table->arena->header;
	uint32_t index = table->free_nodes;

	if (index)
		table->free_nodes = tn_node_at(table, index)->next_by_id;
	else if (header->nodes_end < TN_NODES_MAX)
		index = header->nodes_end++;
	else
		return 0;
	*tn_node_at(table, index) = (TnNode){
		.ino = ino,
		.held_fd = -1,
		.type = (uint16_t)(type & S_IFMT),
		.subtree = subtree,
	};
	tn_kill_point();
	/* Last: it makes the record valid for a successor. */
	*(volatile uint64_t *)&tn_node_at(table, index)->id = header->next_node_id++;
	tn_kill_point();
	if (++table->n_nodes > table->n_buckets)
		hash_grow(table); /* inserts the new node as well */
	if (tn_node_by_ino(table, ino) != index)
		hash_insert(table, index);
	return index;
}

/*
 * Takes the record and its names out of the table. Returns a parent that may not be needed
 * any more, or 0. Hard links have several: all but one go by recursion, one level deep
 * each, since a directory has one parent only.
 */
static uint32_t free_node(TnNodeTable *table, uint32_t index, TnNodeReleased released, void *data)
{
	TnNode *node = tn_node_at(table, index);
	uint32_t parent = 0;

	hash_remove(table, index);
	*(volatile uint64_t *)&node->id = 0;
	tn_kill_point();
	while (node->links) {
		uint32_t other = drop_link(table, &node->links);

		if (parent)
			release_unneeded(table, parent, released, data);
		parent = other;
	}
	*node = (TnNode){.next_by_id = table->free_nodes, .held_fd = -1};
	table->free_nodes = index;
	table->n_nodes--;
	return parent;
}

/* Frees the node if nothing needs it, then whatever of its ancestors it alone kept. */
static void release_unneeded(TnNodeTable *table, uint32_t index, TnNodeReleased released,
			     void *data)
{
	while (index > TN_ROOT_INDEX) {
		TnNode *node = tn_node_at(table, index);

		if (node->id == 0 || node->lookups > 0 || node->children > 0 ||
		    (node->flags & TN_NODE_DYING))
			return;
		if (node->flags & TN_NODE_ORPHAN) {
			node->flags |= TN_NODE_DYING;
			released(node, data);
			return;
		}
		released(node, data);
		index = free_node(table, index, released, data);
	}
}

void tn_node_bury(TnNodeTable *table, uint32_t index, TnNodeReleased released, void *data)
{
	uint32_t parent = free_node(table, index, released, data);

	if (parent)
		release_unneeded(table, parent, released, data);
}

/* For a node that nobody has got to know. */
static void ignore_released(TnNode *node, void *data)
{
	(void)node;
	(void)data;
}

uint32_t tn_node_enter(TnNodeTable *table, uint32_t parent, const char *name, uint64_t ino,
		       mode_t type)
{
	uint32_t index = tn_node_by_ino(table, ino);

	if (!index) {
		uint8_t subtree = tn_node_at(table, parent)->subtree;

		if (subtree == TN_SUBTREE_NONE)
			subtree = strcmp(name, "tmp") == 0 ? TN_SUBTREE_TMP : TN_SUBTREE_VAR_TMP;
		index = node_new(table, ino, type, subtree);
	}
	if (!index)
		return 0;
	/* The name first: without it the reference would be one to nowhere. */
	if ((index != TN_ROOT_INDEX && !tn_node_add_link(table, index, parent, name)) ||
	    !tn_journal_give(tn_node_at(table, index), index)) {
		release_unneeded(table, index, ignore_released, NULL);
		return 0;
	}
	return index;
}

uint32_t tn_node_enter_unnamed(TnNodeTable *table, uint32_t parent, uint64_t ino, mode_t type)
{
	uint32_t index = node_new(table, ino, type, tn_node_at(table, parent)->subtree);

	if (index && !tn_journal_give(tn_node_at(table, index), index)) {
		release_unneeded(table, index, ignore_released, NULL);
		return 0;
	}
	return index;
}

void tn_node_forget(TnNodeTable *table, uint32_t index, uint64_t count, TnNodeReleased released,
		    void *data)
{
	TnNode *node = tn_node_at(table, index);

	if (index == TN_ROOT_INDEX) {
		tn_journal_take_none();
		return;
	}
	tn_journal_take(node, index, count);
	release_unneeded(table, index, released, data);
}

void tn_node_remove_link(TnNodeTable *table, uint32_t index, uint32_t parent, const char *name,
			 TnNodeReleased released, void *data)
{
	uint32_t *at = find_link(table, index, parent, name);

	if (!at)
		return;
	drop_link(table, at);
	release_unneeded(table, parent, released, data);
}

/* --- places ------------------------------------------------------------------------- */

uint32_t tn_node_name(TnNodeTable *table, uint32_t index, char name[NAME_MAX + 1])
{
	uint32_t first = tn_node_at(table, index)->links;
	const TnLink *link = link_at(table, first);

	if (!first)
		return 0;
	memcpy(name, name_at(table, link), link->name_length + 1);
	return link->parent;
}

void tn_node_each_name(TnNodeTable *table, uint32_t index, TnNodeName visit, void *data)
{
	for (uint32_t i = tn_node_at(table, index)->links; i; i = link_at(table, i)->next)
		visit(link_at(table, i)->parent, name_at(table, link_at(table, i)), data);
}

size_t tn_node_place(TnNodeTable *table, uint32_t parent, const char *name,
		     const char *components[], size_t most, TnSubtree *ret_subtree)
{
	size_t depth = name ? 1 : 0, skip, n;
	uint32_t at = parent;

	*ret_subtree = tn_node_at(table, parent)->subtree;
	/* The subtrees' own names, children of the root, are not components. */
	while (at != TN_ROOT_INDEX && tn_node_at(table, at)->links) {
		uint32_t up = link_at(table, tn_node_at(table, at)->links)->parent;

		if (up == TN_ROOT_INDEX)
			break;
		depth++;
		at = up;
	}
	n = depth < most ? depth : most;
	skip = depth;
	if (name && skip-- <= n)
		components[skip] = name;
	for (at = parent; skip > 0; skip--) {
		const TnLink *link = link_at(table, tn_node_at(table, at)->links);

		if (skip <= n)
			components[skip - 1] = name_at(table, link);
		at = link->parent;
	}
	return n;
}
