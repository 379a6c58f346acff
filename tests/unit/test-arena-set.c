/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arenas that were mapped ahead: only what the state still lists is there at its place. */
#include "arena-set.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NEST 7

typedef struct Fixture {
	TnState *state;
	TnArenaSet set;
	TnArena arenas[3]; /* of the nests NEST, NEST + 1, ..., which the state lists */
} Fixture;

static int set_up(void **state)
{
	Fixture *f = test_calloc(1, sizeof(*f));

	assert_int_equal(tn_state_new(&f->state), 0);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(tn_arena_init(&f->arenas[i], NEST + i), 0);
		assert_int_equal(tn_state_add(f->state, NEST + i, f->arenas[i].fd), 0);
	}
	assert_int_equal(tn_arena_set_fill(&f->set, f->state, TN_STATE_NESTS), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	tn_arena_set_clear(&f->set);
	for (size_t i = 0; i < 3; i++) {
		if (f->arenas[i].base)
			assert_true(fcntl(f->arenas[i].fd, F_GETFD) >= 0);
		tn_arena_clear(&f->arenas[i]);
	}
	tn_state_free(f->state);
	test_free(f);
	return 0;
}

static TnArena *at(Fixture *f, uint32_t place)
{
	return tn_arena_set_at(&f->set, f->state, place);
}

/* The nest at that place goes, and another one has the place and the number of its descriptor. */
static void replace(Fixture *f, uint32_t place, uint64_t id)
{
	TnArena next;
	int fd = f->arenas[place].fd;

	tn_state_remove(f->state, NEST + place);
	assert_int_equal(tn_arena_init(&next, id), 0);
	assert_int_equal(dup3(next.fd, fd, O_CLOEXEC), fd);
	close(next.fd);
	next.fd = fd;
	f->arenas[place].fd = -1;
	tn_arena_clear(&f->arenas[place]);
	f->arenas[place] = next;
	assert_int_equal(tn_state_add(f->state, id, fd), 0);
	assert_int_equal(atomic_load(&f->state->nests[place].id), id);
}

static void test_listed(void **state)
{
	Fixture *f = *state;

	for (uint32_t i = 0; i < 3; i++) {
		assert_non_null(at(f, i));
		assert_int_equal(at(f, i)->fd, f->arenas[i].fd);
		/* The same memory. */
		f->arenas[i].header->xattr_bytes = 1000 + i;
		assert_int_equal(at(f, i)->header->xattr_bytes, 1000 + i);
	}
	assert_null(at(f, 3));
	assert_null(at(f, TN_STATE_NESTS));
}

static void test_removed(void **state)
{
	Fixture *f = *state;

	tn_state_remove(f->state, NEST + 1);
	assert_null(at(f, 1));
	assert_int_equal(tn_arena_set_fill(&f->set, f->state, TN_STATE_NESTS), 0);
	assert_null(f->set.arenas[1].base);
	assert_non_null(at(f, 0));
	assert_non_null(at(f, 2));
}

static void test_replaced(void **state)
{
	Fixture *f = *state;

	replace(f, 1, 99);
	assert_null(at(f, 1));
	assert_int_equal(tn_arena_set_fill(&f->set, f->state, TN_STATE_NESTS), 0);
	assert_non_null(at(f, 1));
	assert_int_equal(at(f, 1)->header->nest_id, 99);
}

static void test_some(void **state)
{
	Fixture *f = *state;

	tn_arena_set_clear(&f->set);
	assert_int_equal(tn_arena_set_fill(&f->set, f->state, 2), 0);
	assert_non_null(at(f, 1));
	assert_null(at(f, 2));
	assert_int_equal(tn_arena_set_fill(&f->set, f->state, TN_STATE_NESTS), 0);
	assert_non_null(at(f, 2));
}

static void test_damaged(void **state)
{
	Fixture *f = *state;

	f->arenas[0].header->nodes_end = TN_NODES_MAX + 1;
	f->arenas[1].header->magic++;
	assert_int_equal(ftruncate(f->arenas[2].fd, 0), 0);
	for (int i = 0; i < 2; i++) {
		assert_null(at(f, 0));
		assert_null(at(f, 1));
		assert_null(at(f, 2));
		assert_int_equal(tn_arena_set_fill(&f->set, f->state, TN_STATE_NESTS), 0);
	}
}

/* Whoever wrote the state can have listed anything. */
static void test_anything_listed(void **state)
{
	Fixture *f = *state;

	f->state->nests[0].arena = -1;
	f->state->nests[1].arena = f->state->fd;
	f->state->nests[2].arena = f->arenas[1].fd;
	atomic_store(&f->state->nests_end, UINT32_MAX);
	assert_int_equal(tn_arena_set_fill(&f->set, f->state, UINT32_MAX), 0);
	for (uint32_t i = 0; i < TN_STATE_NESTS; i++)
		assert_null(at(f, i));
	atomic_store(&f->state->nests_end, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_listed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_some, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_damaged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_anything_listed, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
