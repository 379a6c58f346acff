/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The capacity policy: how much room there is, who goes next; and its configuration. */
#include "capacity-config.h"
#include "capacity.h"
#include "space.h"

#include "macros.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scratch.h"

#define MIB (UINT64_C(1) << 20)
#define NONE UINT64_MAX

static const TnDisk large = {
	.bytes = 100000 * MIB, .bytes_free = 50000 * MIB, .inodes = 1000000, .inodes_free = 500000};

static void test_room(void **state)
{
	static const struct {
		TnCapacity capacity;
		TnRoom used;
		uint64_t disk, free; /* bytes */
		uint64_t room;
	} cases[] = {
		/* no limit: the disk without the reserve, which is at most 256 MiB ... */
		{{NONE, NONE}, {0, 0}, 100000 * MIB, 1000 * MIB, 744 * MIB},
		{{NONE, NONE}, {0, 0}, 100000 * MIB, 256 * MIB, 0},
		{{NONE, NONE}, {0, 0}, 100000 * MIB, 10 * MIB, 0},
		/* ... and at most a twentieth of the disk */
		{{NONE, NONE}, {0, 0}, 100 * MIB, 50 * MIB, 45 * MIB},
		{{NONE, NONE, 0, true}, {0, 0}, 100 * MIB, 50 * MIB, 50 * MIB},
		{{NONE, NONE, 60 * MIB, true}, {0, 0}, 100 * MIB, 50 * MIB, 0},
		/* the nests' limit */
		{{10 * MIB, NONE}, {4 * MIB, 0}, 100000 * MIB, 50000 * MIB, 6 * MIB},
		{{10 * MIB, NONE}, {10 * MIB, 0}, 100000 * MIB, 50000 * MIB, 0},
		{{10 * MIB, NONE}, {11 * MIB, 0}, 100000 * MIB, 50000 * MIB, 0},
		{{10 * MIB, NONE}, {NONE, 0}, 100000 * MIB, 50000 * MIB, 0},
		/* whichever is less */
		{{10 * MIB, NONE, MIB, true}, {0, 0}, 100000 * MIB, 4 * MIB, 3 * MIB},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		TnDisk disk = large;
		TnRoom room;

		disk.bytes = cases[i].disk;
		disk.bytes_free = cases[i].free;
		room = tn_capacity_room(&cases[i].capacity, &cases[i].used, &disk);
		if (room.bytes != cases[i].room)
			fail_msg("case %zu: %llu", i, (unsigned long long)room.bytes);
	}
}

static void test_room_of_inodes(void **state)
{
	TnCapacity capacity = tn_capacity_default();
	TnDisk disk = large;
	TnRoom used = {0, 300};

	assert_int_equal(tn_capacity_room(&capacity, &used, &disk).inodes, 490000);
	disk.inodes = 1000;
	disk.inodes_free = 100;
	assert_int_equal(tn_capacity_room(&capacity, &used, &disk).inodes, 50);
	disk.inodes = disk.inodes_free = NONE; /* a disk that does not count them */
	assert_int_equal(tn_capacity_room(&capacity, &used, &disk).inodes, NONE);
	capacity.inodes = 400;
	assert_int_equal(tn_capacity_room(&capacity, &used, &disk).inodes, 100);
}

static TnShortage shortage(const TnCapacity *capacity, TnRoom used, TnDisk disk, TnRoom pending,
			   TnRoom wanted)
{
	return tn_capacity_shortage(capacity, &used, &disk, &pending, &wanted);
}

static void test_shortage(void **state)
{
	const TnCapacity limits = {.bytes = 100, .inodes = 10, .reserve = 50, .has_reserve = true};
	TnDisk disk = {1000, 60, 1000, 500};
	const TnRoom none = {0, 0};

	assert_int_equal(shortage(&limits, (TnRoom){90, 9}, disk, none, (TnRoom){10, 1}),
			 TN_ROOM_ENOUGH);
	assert_int_equal(shortage(&limits, (TnRoom){90, 9}, disk, none, (TnRoom){11, 1}),
			 TN_SHORT_OF_QUOTA);
	assert_int_equal(shortage(&limits, (TnRoom){90, 9}, disk, none, (TnRoom){10, 2}),
			 TN_SHORT_OF_INODES);
	/* nobody wants anything: only what is over a limit is a shortage */
	assert_int_equal(shortage(&limits, (TnRoom){100, 10}, disk, none, none), TN_ROOM_ENOUGH);
	assert_int_equal(shortage(&limits, (TnRoom){101, 10}, disk, none, none), TN_SHORT_OF_QUOTA);
	assert_int_equal(shortage(&limits, (TnRoom){100, 11}, disk, none, none),
			 TN_SHORT_OF_INODES);
	/* the disk, and what the wipe will give back to it */
	assert_int_equal(shortage(&limits, none, disk, none, (TnRoom){11, 1}), TN_SHORT_OF_DISK);
	assert_int_equal(shortage(&limits, none, disk, (TnRoom){1, 0}, (TnRoom){11, 1}),
			 TN_ROOM_ENOUGH);
	assert_int_equal(shortage(&limits, none, disk, (TnRoom){NONE, 0}, (TnRoom){100, 1}),
			 TN_ROOM_ENOUGH);
	disk.bytes_free = 0;
	assert_int_equal(shortage(&limits, none, disk, none, (TnRoom){1, 1}), TN_SHORT_OF_DISK);
}

static void test_choice(void **state)
{
	TnTenant tenants[] = {
		{.in_use = true, .last_used_ns = 1},
		{.frozen = true, .last_used_ns = 2},
		{.durable = true, .last_used_ns = 3},
		{.last_used_ns = 9},
		{.last_used_ns = 5},
		{.last_used_ns = 5},
		{.durable = true, .last_used_ns = 1},
	};
	static const size_t order[] = {4, 5, 3, 6, 2};
	size_t n = TN_ARRAY_LEN(tenants);

	for (size_t i = 0; i < TN_ARRAY_LEN(order); i++) {
		size_t chosen = tn_capacity_choose(tenants, n);

		assert_int_equal(chosen, order[i]);
		tenants[chosen].in_use = true;
	}
	assert_int_equal(tn_capacity_choose(tenants, n), n);
	assert_int_equal(tn_capacity_choose(NULL, 0), 0);
}

/* --- the configuration --- */

static void test_parse(void **state)
{
	TnCapacity capacity = tn_capacity_default();

	tn_capacity_parse("[nest]\nquota = 1M\n[store]\nquota = 2G\ninodes=10K\nreserve = 1M\n"
			  "what = 1\n",
			  "test", &capacity);
	assert_int_equal(capacity.bytes, 2048 * MIB);
	assert_int_equal(capacity.inodes, 10240);
	assert_true(capacity.has_reserve);
	assert_int_equal(capacity.reserve, MIB);
	/* A wrong value changes nothing, the others count. */
	tn_capacity_parse("[store]\nquota = many\ninodes = 0\nreserve = max\n", "test", &capacity);
	assert_int_equal(capacity.bytes, 2048 * MIB);
	assert_int_equal(capacity.inodes, 10240);
	assert_int_equal(capacity.reserve, MIB);
	tn_capacity_parse("[store]\nquota = max\nreserve = 0\nnonsense\n", "test", &capacity);
	assert_int_equal(capacity.bytes, NONE);
	assert_int_equal(capacity.reserve, 0);
}

static void test_load(void **state)
{
	TnScratch scratch;
	TnConfigStamp stamp = {0};
	TnCapacity capacity;
	char first[400], second[400];
	const char *files[TN_CONFIG_FILES] = {first, second};

	assert_true(tn_scratch_new(&scratch, NULL));
	snprintf(first, sizeof(first), "%s/first", scratch.path);
	snprintf(second, sizeof(second), "%s/second", scratch.path);
	assert_true(tn_config_changed(&stamp, files));
	assert_false(tn_config_changed(&stamp, files));
	tn_capacity_load(files, &capacity);
	assert_int_equal(capacity.bytes, NONE);
	assert_int_equal(tn_replace_file(scratch.dir, "first", "[store]\nquota=1M\ninodes=7\n", 25,
					 0600, false),
			 0);
	assert_true(tn_config_changed(&stamp, files));
	assert_int_equal(
		tn_replace_file(scratch.dir, "second", "[store]\nquota=3M\n", 17, 0600, false), 0);
	assert_true(tn_config_changed(&stamp, files));
	assert_false(tn_config_changed(&stamp, files));
	tn_capacity_load(files, &capacity);
	assert_int_equal(capacity.bytes, 3 * MIB);
	assert_int_equal(capacity.inodes, 7);
	setenv("TMPNEST_STORE_INODES", "9", 1);
	setenv("TMPNEST_STORE_QUOTA", "nonsense", 1);
	tn_capacity_load(files, &capacity);
	assert_int_equal(capacity.bytes, 3 * MIB);
	assert_int_equal(capacity.inodes, 9);
	unsetenv("TMPNEST_STORE_INODES");
	unsetenv("TMPNEST_STORE_QUOTA");
	unlinkat(scratch.dir, "second", 0);
	assert_true(tn_config_changed(&stamp, files));
	tn_scratch_remove(&scratch);
}

/* --- the room as it is given out --- */

typedef struct Shortages {
	TnSpace *space;
	unsigned n;
} Shortages;

static void note_shortage(void *data)
{
	((Shortages *)data)->n++;
}

static void test_space(void **state)
{
	TnSpace space;
	Shortages shortages = {.space = &space};
	const TnCapacity limits = {
		.bytes = 100 * MIB, .inodes = 1000, .has_reserve = true, .reserve = 0};
	TnScratch scratch;
	uint64_t taken = 0;

	assert_true(tn_scratch_new(&scratch, NULL));
	tn_space_init(&space, scratch.dir, note_shortage, &shortages);
	tn_space_set_capacity(&space, &limits);
	tn_space_report(&space, &(TnRoom){40 * MIB, 0});
	while (tn_space_take(&space, MIB, 1) == 0)
		taken++;
	/* Exactly to the limit: the report and what was given out since. */
	assert_int_equal(taken, 60);
	assert_int_equal(atomic_load(&space.refusals), 1);
	assert_int_equal(tn_space_take(&space, 0, 940), 0);
	assert_int_equal(tn_space_take(&space, 0, 1), -ENOSPC);
	/* Something was evicted. */
	tn_space_report(&space, &(TnRoom){99 * MIB, 0});
	assert_int_equal(tn_space_take(&space, MIB, 1), 0);
	assert_int_equal(tn_space_take(&space, MIB, 1), -ENOSPC);
	tn_space_clear(&space);
	tn_scratch_remove(&scratch);
}

static void test_space_asks_for_room(void **state)
{
	TnSpace space;
	Shortages shortages = {.space = &space};
	const TnCapacity limits = {.bytes = MIB, .inodes = NONE, .has_reserve = true};
	TnScratch scratch;
	int64_t begin;

	assert_true(tn_scratch_new(&scratch, NULL));
	tn_space_init(&space, scratch.dir, note_shortage, &shortages);
	tn_space_set_capacity(&space, &limits);
	assert_int_equal(tn_space_take(&space, MIB, 0), 0);
	assert_int_equal(shortages.n, 0);
	begin = tn_monotonic();
	assert_int_equal(tn_space_take(&space, 1, 0), -ENOSPC);
	assert_int_equal(shortages.n, 1);
	/* Nobody reports here: the wait has an end. */
	assert_in_range(tn_monotonic() - begin, 1, INT64_C(5000000000));
	/* While a report is fresh nobody asks again. */
	tn_space_report(&space, &(TnRoom){MIB, 0});
	assert_int_equal(tn_space_take(&space, 1, 0), -ENOSPC);
	assert_int_equal(shortages.n, 1);
	tn_space_clear(&space);
	tn_scratch_remove(&scratch);
}

/* The reserve of the disk, by the free space that it has now. */
static void test_space_keeps_the_reserve(void **state)
{
	TnSpace space;
	TnCapacity limits = tn_capacity_default();
	TnScratch scratch;
	TnDisk disk;

	assert_true(tn_scratch_new(&scratch, NULL));
	tn_space_init(&space, scratch.dir, NULL, NULL);
	assert_int_equal(tn_space_disk(&space, &disk), 0);
	limits.has_reserve = true;
	limits.reserve = disk.bytes_free + 1000 * MIB;
	tn_space_set_capacity(&space, &limits);
	assert_int_equal(tn_space_take(&space, 1, 0), -ENOSPC);
	limits.reserve = 0;
	tn_space_set_capacity(&space, &limits);
	assert_int_equal(tn_space_take(&space, 1, 0), 0);
	tn_space_clear(&space);
	tn_scratch_remove(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_room_of_inodes),
		cmocka_unit_test(test_shortage),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_space),
		cmocka_unit_test(test_space_asks_for_room),
		cmocka_unit_test(test_space_keeps_the_reserve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
