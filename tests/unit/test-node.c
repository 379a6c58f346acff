/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The node table: identities, names, lives, places, and what it all costs. */
#include "node.h"

#include "macros.h"

#include <inttypes.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scratch.h"

#define ROOT_INO 2

typedef struct Fixture {
	TnArena arena;
	TnNodeTable *table;
	size_t released;   /* nodes that went */
	uint64_t last_ino; /* of the last one */
	char order[256];   /* their inode numbers */
	size_t fds;
} Fixture;

static void released(TnNode *node, void *data)
{
	Fixture *f = data;
	size_t used = strlen(f->order);

	assert_int_not_equal(node->id, 0); /* still whole */
	f->released++;
	f->last_ino = node->ino;
	if (used < sizeof(f->order) - 24)
		sprintf(f->order + used, "%" PRIu64 " ", node->ino);
}

static int set_up(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));

	f->fds = tn_count_fds();
	assert_int_equal(tn_arena_init(&f->arena, 7), 0);
	assert_int_equal(tn_node_table_new(&f->table, &f->arena, ROOT_INO), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	tn_node_table_free(f->table);
	tn_arena_clear(&f->arena);
	assert_int_equal(tn_count_fds(), f->fds);
	free(f);
	return 0;
}

static uint32_t enter(Fixture *f, uint32_t parent, const char *name, uint64_t ino, mode_t type)
{
	uint32_t index = tn_node_enter(f->table, parent, name, ino, type);

	assert_int_not_equal(index, 0);
	return index;
}

static void forget(Fixture *f, uint32_t index, uint64_t count)
{
	tn_node_forget(f->table, index, count, released, f);
}

static uint64_t id_of(Fixture *f, uint32_t index)
{
	return tn_node_at(f->table, index)->id;
}

static void test_root(void **state)
{
	Fixture *f = *state;

	assert_int_equal(tn_node_by_id(f->table, 1), TN_ROOT_INDEX);
	assert_int_equal(tn_node_by_ino(f->table, ROOT_INO), TN_ROOT_INDEX);
	assert_int_equal(tn_node_by_id(f->table, 0), 0);
	assert_int_equal(tn_node_by_id(f->table, 2), 0);
	assert_int_equal(tn_node_by_id(f->table, UINT64_MAX), 0);
	assert_int_equal(tn_node_count(f->table), 1);
	forget(f, TN_ROOT_INDEX, UINT64_MAX);
	assert_int_equal(tn_node_count(f->table), 1);
	assert_int_equal(f->released, 0);
}

static void test_enter_and_forget(void **state)
{
	Fixture *f = *state;
	uint32_t tmp = enter(f, TN_ROOT_INDEX, "tmp", 10, S_IFDIR | 01777);
	uint32_t file = enter(f, tmp, "x", 11, S_IFREG | 0644);
	uint64_t id = id_of(f, file);

	assert_int_equal(tn_node_at(f->table, file)->type, S_IFREG);
	assert_int_equal(tn_node_at(f->table, file)->subtree, TN_SUBTREE_TMP);
	assert_int_equal(tn_node_at(f->table, file)->held_fd, -1);
	assert_int_equal(enter(f, tmp, "x", 11, S_IFREG), file); /* the same, once more */
	assert_int_equal(tn_node_at(f->table, file)->lookups, 2);
	assert_int_equal(tn_node_by_id(f->table, id), file);
	forget(f, file, 1);
	assert_int_equal(tn_node_by_id(f->table, id), file);
	forget(f, file, 1);
	assert_int_equal(tn_node_by_id(f->table, id), 0);
	assert_int_equal(tn_node_by_ino(f->table, 11), 0);
	assert_string_equal(f->order, "11 ");
	file = enter(f, tmp, "x", 11, S_IFREG);
	assert_true(id_of(f, file) > id); /* a nodeid is never used again */
	forget(f, file, 1000);            /* more than was given */
	assert_int_equal(tn_node_by_ino(f->table, 11), 0);
	assert_int_equal(tn_node_count(f->table), 2);
}

static void test_subtrees(void **state)
{
	Fixture *f = *state;
	uint32_t tmp = enter(f, TN_ROOT_INDEX, "tmp", 10, S_IFDIR);
	uint32_t var = enter(f, TN_ROOT_INDEX, "var-tmp", 11, S_IFDIR);

	assert_int_equal(tn_node_at(f->table, tmp)->subtree, TN_SUBTREE_TMP);
	assert_int_equal(tn_node_at(f->table, var)->subtree, TN_SUBTREE_VAR_TMP);
	assert_int_equal(tn_node_at(f->table, enter(f, var, "d", 12, S_IFDIR))->subtree,
			 TN_SUBTREE_VAR_TMP);
}

/* A parent goes after its last known child, whatever the order of the FORGETs. */
static void test_forget_order(void **state)
{
	Fixture *f = *state;
	uint32_t tmp = enter(f, TN_ROOT_INDEX, "tmp", 10, S_IFDIR);
	uint32_t a = enter(f, tmp, "a", 11, S_IFDIR);
	uint32_t b = enter(f, a, "b", 12, S_IFDIR);
	uint32_t c = enter(f, b, "c", 13, S_IFREG);

	forget(f, tmp, 1);
	forget(f, a, 1);
	forget(f, b, 1);
	assert_int_equal(f->released, 0);
	assert_int_equal(tn_node_count(f->table), 5);
	forget(f, c, 1);
	assert_string_equal(f->order, "13 12 11 10 ");
	assert_int_equal(tn_node_count(f->table), 1);
	assert_int_equal(tn_node_at(f->table, TN_ROOT_INDEX)->children, 0);
}

static void test_hard_links(void **state)
{
	Fixture *f = *state;
	uint32_t tmp = enter(f, TN_ROOT_INDEX, "tmp", 10, S_IFDIR);
	uint32_t a = enter(f, tmp, "a", 11, S_IFDIR), b = enter(f, tmp, "b", 12, S_IFDIR);
	uint32_t file = enter(f, a, "one", 20, S_IFREG);
	char name[NAME_MAX + 1];

	assert_int_equal(enter(f, b, "two", 20, S_IFREG), file);
	assert_int_equal(enter(f, a, "three", 20, S_IFREG), file);
	assert_true(tn_node_has_link(f->table, file, a, "one"));
	assert_true(tn_node_has_link(f->table, file, b, "two"));
	assert_false(tn_node_has_link(f->table, file, b, "one"));
	assert_false(tn_node_has_link(f->table, file, a, "on"));
	assert_int_equal(tn_node_at(f->table, a)->children, 2);
	tn_node_remove_link(f->table, file, a, "nothing", released, f); /* unknown: ignored */
	tn_node_remove_link(f->table, file, a, "three", released, f);
	tn_node_remove_link(f->table, file, b, "two", released, f);
	assert_int_equal(tn_node_name(f->table, file, name), a);
	assert_string_equal(name, "one");
	tn_node_remove_link(f->table, file, a, "one", released, f);
	assert_int_equal(tn_node_name(f->table, file, name), 0);
	assert_int_equal(tn_node_by_ino(f->table, 20), file); /* unlinked, still referenced */
	assert_true(tn_node_add_link(f->table, file, b, "again"));
	assert_int_equal(tn_node_name(f->table, file, name), b);
	/* The last one out: both directories are still referenced. */
	forget(f, file, 3);
	assert_string_equal(f->order, "20 ");
	forget(f, tmp, 1);
	forget(f, a, 1);
	forget(f, b, 1);
	assert_int_equal(tn_node_count(f->table), 1);
}

/* A file in many directories alone keeps them all. */
static void test_many_parents(void **state)
{
	Fixture *f = *state;
	uint32_t tmp = enter(f, TN_ROOT_INDEX, "tmp", 10, S_IFDIR), file = 0;
	char name[16];

	for (uint32_t i = 0; i < 100; i++) {
		uint32_t dir;

		snprintf(name, sizeof(name), "d%u", i);
		dir = enter(f, tmp, name, 100 + i, S_IFDIR);
		file = enter(f, dir, "f", 11, S_IFREG);
		forget(f, dir, 1);
	}
	assert_int_equal(tn_node_count(f->table), 103);
	forget(f, tmp, 1);
	forget(f, file, 100);
	assert_int_equal(tn_node_count(f->table), 1);
	assert_int_equal(f->released, 102);
}

/* Deep trees must not need a deep stack. */
static void test_deep(void **state)
{
	Fixture *f = *state;
	uint32_t at = enter(f, TN_ROOT_INDEX, "tmp", 10, S_IFDIR), above = 0;

	for (uint64_t i = 0; i < 100000; i++) {
		above = at;
		at = enter(f, at, "d", 100 + i, S_IFDIR);
		forget(f, above, 1);
	}
	assert_int_equal(tn_node_count(f->table), 100002);
	forget(f, at, 1);
	assert_int_equal(tn_node_count(f->table), 1);
}

static void check_place(Fixture *f, uint32_t parent, const char *name, size_t most,
			const char *expected)
{
	const char *components[8];
	char text[64] = "";
	TnSubtree subtree;
	size_t n = tn_node_place(f->table, parent, name, components, most, &subtree);

	assert_int_equal(subtree, parent == TN_ROOT_INDEX ? TN_SUBTREE_NONE : TN_SUBTREE_TMP);
	for (size_t i = 0; i < n; i++)
		strcat(strcat(text, "/"), components[i]);
	assert_string_equal(text, expected);
}

static void test_place(void **state)
{
	Fixture *f = *state;
	uint32_t tmp = enter(f, TN_ROOT_INDEX, "tmp", 10, S_IFDIR);
	uint32_t a = enter(f, tmp, "a", 11, S_IFDIR), b = enter(f, a, "b", 12, S_IFDIR);
	uint32_t c = enter(f, b, "c", 13, S_IFDIR);

	check_place(f, tmp, NULL, 8, "");
	check_place(f, tmp, "x", 8, "/x");
	check_place(f, a, NULL, 8, "/a");
	check_place(f, c, "x", 8, "/a/b/c/x");
	check_place(f, c, NULL, 8, "/a/b/c");
	check_place(f, c, "x", 4, "/a/b/c/x");
	check_place(f, c, "x", 3, "/a/b/c");
	check_place(f, c, "x", 1, "/a");
	check_place(f, c, "x", 0, "");
	check_place(f, TN_ROOT_INDEX, NULL, 8, "");
	/* b moves to the top: everything below it has another place. */
	assert_true(tn_node_add_link(f->table, b, tmp, "moved"));
	tn_node_remove_link(f->table, b, a, "b", released, f);
	check_place(f, c, "x", 8, "/moved/c/x");
	assert_int_equal(f->released, 0);
}

static void test_names(void **state)
{
	Fixture *f = *state;
	uint32_t tmp = enter(f, TN_ROOT_INDEX, "tmp", 10, S_IFDIR);
	char name[NAME_MAX + 1], back[NAME_MAX + 1];
	uint32_t names_end;

	for (int round = 0; round < 3; round++) {
		for (size_t length = 1; length <= NAME_MAX; length++) {
			uint32_t index;

			for (size_t i = 0; i < length; i++)
				name[i] = (char)(1 + (i * 7 + length) % 255);
			name[length] = '\0';
			index = enter(f, tmp, name, 1000 + length, S_IFREG);
			assert_int_equal(tn_node_name(f->table, index, back), tmp);
			assert_string_equal(back, name);
		}
		/* All of them at once, each still itself. */
		for (size_t length = 1; length <= NAME_MAX; length++) {
			uint32_t index = tn_node_by_ino(f->table, 1000 + length);

			tn_node_name(f->table, index, back);
			assert_int_equal(strlen(back), length);
			assert_int_equal((unsigned char)back[length - 1],
					 1 + ((length - 1) * 7 + length) % 255);
			forget(f, index, 1);
		}
		if (round == 0)
			names_end = f->arena.header->names_end;
		assert_int_equal(f->arena.header->names_end, names_end); /* freed space is reused */
	}
}

static void test_reuse(void **state)
{
	Fixture *f = *state;
	uint32_t tmp = enter(f, TN_ROOT_INDEX, "tmp", 10, S_IFDIR);
	uint32_t nodes_end = 0, links_end = 0;
	char name[16];

	for (int round = 0; round < 5; round++) {
		for (uint64_t i = 0; i < 1000; i++) {
			snprintf(name, sizeof(name), "f%u", (unsigned)i);
			enter(f, tmp, name, 100 + i, S_IFREG);
		}
		if (round == 0) {
			nodes_end = f->arena.header->nodes_end;
			links_end = f->arena.header->links_end;
		}
		for (uint64_t i = 0; i < 1000; i++)
			forget(f, tn_node_by_ino(f->table, 100 + (i * 7) % 1000), 1);
		assert_int_equal(tn_node_count(f->table), 2);
	}
	assert_int_equal(f->arena.header->nodes_end, nodes_end);
	assert_int_equal(f->arena.header->links_end, links_end);
	assert_true(f->arena.header->next_node_id > 5000);
}

static void test_reset(void **state)
{
	Fixture *f = *state;
	uint32_t tmp = enter(f, TN_ROOT_INDEX, "tmp", 10, S_IFDIR);
	uint64_t next;

	for (uint64_t i = 0; i < 1000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", (unsigned)i);
		enter(f, tmp, name, 100 + i, S_IFREG);
	}
	next = f->arena.header->next_node_id;
	tn_node_table_reset(f->table, 77);
	assert_int_equal(tn_node_count(f->table), 1);
	assert_int_equal(tn_node_by_ino(f->table, 77), TN_ROOT_INDEX);
	assert_int_equal(tn_node_by_ino(f->table, 10), 0);
	assert_int_equal(tn_node_by_id(f->table, next - 1), 0);
	assert_int_equal(tn_node_next(f->table, 0), TN_ROOT_INDEX);
	assert_int_equal(tn_node_next(f->table, TN_ROOT_INDEX), 0);
	tmp = enter(f, TN_ROOT_INDEX, "tmp", 10, S_IFDIR);
	assert_int_equal(id_of(f, tmp), next); /* still never used again */
}

static void test_next(void **state)
{
	Fixture *f = *state;
	uint32_t tmp = enter(f, TN_ROOT_INDEX, "tmp", 10, S_IFDIR);
	uint32_t a = enter(f, tmp, "a", 11, S_IFREG);
	size_t n = 0;

	enter(f, tmp, "b", 12, S_IFREG);
	forget(f, a, 1);
	for (uint32_t i = tn_node_next(f->table, 0); i; i = tn_node_next(f->table, i))
		n++;
	assert_int_equal(n, tn_node_count(f->table));
	assert_int_equal(n, 3);
}

/* --- against a model ---------------------------------------------------------------------- */

#define MODEL_NODES 40
#define MODEL_LINKS 6

typedef struct ModelNode {
	uint32_t index;
	uint64_t id, lookups;
	uint32_t links; /* bits: has the link (tmp, "<ino>-<bit>") */
} ModelNode;

static void model_name(char name[24], size_t node, unsigned link)
{
	snprintf(name, 24, "%zu-%u", node, link);
}

static void check_model(Fixture *f, uint32_t tmp, const ModelNode *nodes)
{
	size_t live = 2, links = 0;
	char name[24];

	for (size_t i = 0; i < MODEL_NODES; i++) {
		const ModelNode *node = &nodes[i];

		assert_int_equal(tn_node_by_ino(f->table, 100 + i), node->index);
		if (!node->index)
			continue;
		live++;
		assert_int_equal(tn_node_by_id(f->table, node->id), node->index);
		assert_int_equal(tn_node_at(f->table, node->index)->lookups, node->lookups);
		for (unsigned j = 0; j < MODEL_LINKS; j++) {
			model_name(name, i, j);
			assert_int_equal(tn_node_has_link(f->table, node->index, tmp, name),
					 node->links >> j & 1);
			links += node->links >> j & 1;
		}
	}
	assert_int_equal(tn_node_count(f->table), live);
	assert_int_equal(tn_node_at(f->table, tmp)->children, links);
}

static void model_step(Fixture *f, uint32_t tmp, ModelNode *nodes, TnDice *dice)
{
	size_t i = tn_dice(dice, MODEL_NODES);
	unsigned j = (unsigned)tn_dice(dice, MODEL_LINKS);
	ModelNode *node = &nodes[i];
	char name[24];

	model_name(name, i, j);
	switch (tn_dice(dice, 4)) {
	case 0:
	case 1: {
		uint32_t index = enter(f, tmp, name, 100 + i, S_IFREG);

		if (node->index) {
			assert_int_equal(index, node->index);
		} else {
			*node = (ModelNode){.index = index, .id = id_of(f, index)};
		}
		node->lookups++;
		node->links |= 1U << j;
		break;
	}
	case 2:
		if (node->index) {
			tn_node_remove_link(f->table, node->index, tmp, name, released, f);
			node->links &= ~(1U << j);
		}
		break;
	default:
		if (node->index) {
			uint64_t count = 1 + tn_dice(dice, node->lookups);

			forget(f, node->index, count);
			node->lookups -= count;
			if (node->lookups == 0)
				*node = (ModelNode){0};
		}
	}
}

static void test_model(void **state)
{
	Fixture *f = *state;
	ModelNode nodes[MODEL_NODES] = {0};
	uint32_t tmp = enter(f, TN_ROOT_INDEX, "tmp", 10, S_IFDIR);
	TnDice dice = {tn_test_seed()};

	for (int step = 0; step < 20000; step++) {
		model_step(f, tmp, nodes, &dice);
		if (step % 50 == 0)
			check_model(f, tmp, nodes);
	}
	check_model(f, tmp, nodes);
}

/* --- what it costs ------------------------------------------------------------------------- */

#define MANY 200000

static size_t bytes_in_use(const TnArena *arena)
{
	struct stat st;

	assert_int_equal(fstat(arena->fd, &st), 0);
	return (size_t)st.st_blocks * 512;
}

static void test_bytes_per_node(void **state)
{
	Fixture *f = *state;
	uint32_t tmp = enter(f, TN_ROOT_INDEX, "tmp", 10, S_IFDIR);
	size_t before = bytes_in_use(&f->arena) + mallinfo2().uordblks + mallinfo2().hblkhd, after;
	char name[NAME_MAX + 1];

	for (uint64_t i = 0; i < MANY; i++) {
		/* As npm and compilers name theirs: 10 to 40 bytes. */
		snprintf(name, sizeof(name), "%07u-%.*s", (unsigned)i, (int)(2 + i % 31),
			 "some-longer-name-of-a-file.tmp.js");
		enter(f, tmp, name, 1000 + i, S_IFREG);
	}
	after = bytes_in_use(&f->arena) + mallinfo2().uordblks + mallinfo2().hblkhd;
	printf("%zu bytes per node\n", (after - before) / MANY);
	assert_true((after - before) / MANY <= 200);
	/* Chains stay short: every one of them is found at once. */
	for (uint64_t i = 0; i < MANY; i++)
		assert_int_not_equal(tn_node_by_ino(f->table, 1000 + i), 0);
	tn_node_table_reset(f->table, ROOT_INO);
	assert_true(bytes_in_use(&f->arena) < 256 * 1024);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_root),       TEST(test_enter_and_forget),
		TEST(test_subtrees),   TEST(test_forget_order),
		TEST(test_hard_links), TEST(test_many_parents),
		TEST(test_deep),       TEST(test_place),
		TEST(test_names),      TEST(test_reuse),
		TEST(test_reset),      TEST(test_next),
		TEST(test_model),      TEST(test_bytes_per_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
