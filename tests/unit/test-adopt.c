/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The node table of an arena that a killed worker has left: whatever it was in the middle of. */
#include "node.h"

#include "macros.h"

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
	uint32_t tmp, dir, file;
	size_t released;
} Fixture;

static void count(TnNode *node, void *data)
{
	Fixture *f = data;

	assert_int_not_equal(node->id, 0);
	f->released++;
}

/* tmp/dir/file, and a second name of the file in tmp. */
static int set_up(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(tn_arena_init(&f->arena, 7), 0);
	assert_int_equal(tn_node_table_new(&f->table, &f->arena, ROOT_INO), 0);
	f->tmp = tn_node_enter(f->table, TN_ROOT_INDEX, "tmp", 10, S_IFDIR);
	f->dir = tn_node_enter(f->table, f->tmp, "dir", 11, S_IFDIR);
	f->file = tn_node_enter(f->table, f->dir, "file", 12, S_IFREG);
	assert_true(tn_node_add_link(f->table, f->file, f->tmp, "second"));
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	tn_node_table_free(f->table);
	tn_arena_clear(&f->arena);
	free(f);
	return 0;
}

/* The worker dies; the next one takes over. */
static void adopt(Fixture *f)
{
	tn_node_table_free(f->table);
	f->table = NULL;
	assert_int_equal(tn_node_table_adopt(&f->table, &f->arena), 0);
}

/* The table works: what is entered is found, and its records do not run into each other. */
static void check_works(Fixture *f)
{
	enum { N = 300 };
	static const char filler[] =
		"a-name-that-takes-one-to-seven-units-of-the-heap-of-names-and-"
		"leaves-places-of-that-many-when-it-goes";
	char name[NAME_MAX + 1];
	uint32_t indices[N];

	for (uint32_t i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "%u-%.*s", i, (int)(i % sizeof(filler)), filler);
		indices[i] = tn_node_enter(f->table, f->tmp, name, 1000 + i, S_IFREG);
		assert_int_not_equal(indices[i], 0);
	}
	for (uint32_t i = 0; i < N; i++) {
		char found[NAME_MAX + 1];

		assert_int_equal(tn_node_by_ino(f->table, 1000 + i), indices[i]);
		assert_int_equal(tn_node_name(f->table, indices[i], found), f->tmp);
		assert_int_equal(strtoul(found, NULL, 10), i);
		assert_true(tn_node_has_link(f->table, indices[i], f->tmp, found));
		tn_node_forget(f->table, indices[i], 1, count, f);
	}
}

static void check_tree(Fixture *f)
{
	assert_true(tn_node_has_link(f->table, f->file, f->dir, "file"));
	assert_true(tn_node_has_link(f->table, f->file, f->tmp, "second"));
	assert_true(tn_node_has_link(f->table, f->dir, f->tmp, "dir"));
	assert_int_equal(tn_node_by_ino(f->table, 12), f->file);
	assert_int_equal(tn_node_at(f->table, f->dir)->children, 1);
	assert_int_equal(tn_node_at(f->table, f->tmp)->children, 2);
}

static void test_whole(void **state)
{
	Fixture *f = *state;

	for (int i = 0; i < 3; i++) {
		adopt(f);
		check_tree(f);
		assert_int_equal(tn_node_count(f->table), 4);
		check_works(f);
	}
	tn_node_sweep(f->table, count, f);
	check_tree(f);
}

static uint32_t link_to(Fixture *f, uint32_t node, uint32_t parent)
{
	uint32_t i = 1;

	while (i < f->arena.header->links_end &&
	       (f->arena.links[i].node != node || f->arena.links[i].parent != parent))
		i++;
	assert_true(i < f->arena.header->links_end);
	return i;
}

/* A link whose node is not set yet, or no more: the name does not exist. */
static void test_half_a_link(void **state)
{
	Fixture *f = *state;

	f->arena.links[link_to(f, f->file, f->tmp)].node = 0;
	adopt(f);
	assert_false(tn_node_has_link(f->table, f->file, f->tmp, "second"));
	assert_true(tn_node_has_link(f->table, f->file, f->dir, "file"));
	check_works(f);
}

/* A record that has its place and no id yet, or no more; names lead to and from it. */
static void test_half_a_node(void **state)
{
	Fixture *f = *state;

	tn_node_at(f->table, f->dir)->id = 0;
	adopt(f);
	assert_int_equal(tn_node_by_ino(f->table, 11), 0);
	assert_false(tn_node_has_link(f->table, f->file, f->dir, "file"));
	assert_true(tn_node_has_link(f->table, f->file, f->tmp, "second"));
	assert_int_equal(tn_node_at(f->table, f->tmp)->children, 1);
	check_works(f);
}

/* The end was raised and nothing written behind it. */
static void test_empty_records(void **state)
{
	Fixture *f = *state;

	f->arena.header->nodes_end += 3;
	f->arena.header->links_end += 3;
	f->arena.header->names_end += 20;
	adopt(f);
	check_tree(f);
	assert_int_equal(tn_node_count(f->table), 4);
	check_works(f);
}

/* The id was given, the counter not raised yet. */
static void test_counter_behind(void **state)
{
	Fixture *f = *state;
	uint64_t last = tn_node_at(f->table, f->file)->id;
	uint32_t next;

	f->arena.header->next_node_id = last;
	adopt(f);
	next = tn_node_enter(f->table, f->tmp, "next", 13, S_IFREG);
	assert_true(tn_node_at(f->table, next)->id > last);
}

/* References that were taken back leave nodes that nobody needs: they go, parents as well. */
static void test_sweep(void **state)
{
	Fixture *f = *state;

	tn_node_at(f->table, f->file)->lookups = 0;
	tn_node_at(f->table, f->dir)->lookups = 0;
	adopt(f);
	tn_node_sweep(f->table, count, f);
	assert_int_equal(f->released, 2);
	assert_int_equal(tn_node_count(f->table), 2);
	assert_int_equal(tn_node_by_ino(f->table, 11), 0);
	check_works(f);
}

/* An orphan whose end had begun is ended by the next one. */
static void test_dying(void **state)
{
	Fixture *f = *state;

	tn_node_remove_link(f->table, f->file, f->tmp, "second", count, f);
	tn_node_remove_link(f->table, f->file, f->dir, "file", count, f);
	tn_node_at(f->table, f->file)->flags |= TN_NODE_ORPHAN | TN_NODE_DYING;
	tn_node_at(f->table, f->file)->lookups = 0;
	adopt(f);
	tn_node_sweep(f->table, count, f);
	assert_int_equal(f->released, 1);
	assert_true(tn_node_at(f->table, f->file)->flags & TN_NODE_DYING);
	tn_node_bury(f->table, f->file, count, f);
	assert_int_equal(tn_node_by_ino(f->table, 12), 0);
}

/* The worker died while it emptied the table: then the superblock has ended, and it is reset. */
static void test_no_root(void **state)
{
	Fixture *f = *state;

	f->arena.header->nodes_end = f->arena.header->links_end = f->arena.header->names_end = 1;
	adopt(f);
	assert_int_equal(tn_node_count(f->table), 0);
	tn_node_table_reset(f->table, ROOT_INO);
	f->tmp = tn_node_enter(f->table, TN_ROOT_INDEX, "tmp", 10, S_IFDIR);
	check_works(f);
}

/* Whatever bytes there are: nothing outside the records is touched (a sanitizer looks on). */
static void test_garbage(void **state)
{
	Fixture *f = *state;
	TnDice dice = {tn_test_seed()};

	for (int round = 0; round < 200; round++) {
		TnArenaHeader *header = f->arena.header;

		header->links_end = header->nodes_end = 64;
		header->names_end = 1 + (uint32_t)(tn_dice(&dice, 40));
		for (uint32_t i = 1; i < 64; i++) {
			f->arena.links[i] = (TnLink){
				.node = (uint32_t)tn_dice(&dice, 80),
				.parent = (uint32_t)tn_dice(&dice, 80),
				.next = (uint32_t)tn_dice(&dice, UINT32_MAX),
				.name = (uint32_t)tn_dice(&dice, 2) ? (uint32_t)tn_dice(&dice, 64)
								    : UINT32_MAX - 100,
				.name_length = (uint32_t)tn_dice(&dice, 300),
			};
			if (i > TN_ROOT_INDEX)
				f->arena.nodes[i].id = tn_dice(&dice, 2) ? 2 + i : 0;
			f->arena.nodes[i].next_by_id = (uint32_t)tn_dice(&dice, UINT32_MAX);
			f->arena.nodes[i].next_by_ino = (uint32_t)tn_dice(&dice, UINT32_MAX);
			f->arena.nodes[i].links = (uint32_t)tn_dice(&dice, UINT32_MAX);
		}
		adopt(f);
		for (uint32_t i = tn_node_next(f->table, 0); i; i = tn_node_next(f->table, i)) {
			char name[NAME_MAX + 1];

			assert_in_range(tn_node_name(f->table, i, name), 0, 63);
			assert_int_equal(tn_node_by_id(f->table, tn_node_at(f->table, i)->id), i);
		}
	}
	/* What is left has cycles of parents, which nothing walks any more. */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_whole),         TEST(test_half_a_link),    TEST(test_half_a_node),
		TEST(test_empty_records), TEST(test_counter_behind), TEST(test_sweep),
		TEST(test_dying),         TEST(test_no_root),        TEST(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
