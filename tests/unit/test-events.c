/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rings of events: what is kept, what is only counted, who sees what; buckets of latencies.
 */
#include "events.h"
#include "stats.h"

#include "macros.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ALL ((TnEventFilter){.owner = (uid_t)-1})

static int64_t clock_ns = 1000000000;

/* Time stands still unless a test moves it. */
int64_t __wrap_tn_monotonic(void);
int64_t __wrap_tn_monotonic(void)
{
	return clock_ns;
}

typedef struct Fixture {
	TnEventHub *hub;
	TnEvents *one, *two;
} Fixture;

static int set_up(void **state)
{
	static Fixture f;

	assert_int_equal(tn_event_hub_new(&f.hub), 0);
	f.one = tn_events_new(f.hub, 1, 1000, "one");
	f.two = tn_events_new(f.hub, 2, 2000, "two");
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	tn_events_free(f->one);
	tn_events_free(f->two);
	tn_event_hub_free(f->hub);
	return 0;
}

static size_t read_all(Fixture *f, TnEventFilter filter, uint64_t since, TnEvent *ret, size_t most)
{
	uint64_t last;

	return tn_event_hub_read(f->hub, &filter, since, ret, most, &last);
}

static void test_readers_see_what_is_theirs(void **state)
{
	Fixture *f = *state;
	TnEvent events[8];

	tn_events_add(f->one, TN_EVENT_ATTACH);
	tn_events_add(f->two, TN_EVENT_ATTACH);
	tn_event_hub_add(f->hub, TN_EVENT_EVICT, 3, 1000, "gone");
	tn_event_hub_add(f->hub, TN_EVENT_RESTART, 0, (uid_t)-1, NULL);
	assert_int_equal(read_all(f, ALL, 0, events, 8), 4);
	assert_string_equal(events[0].nest, "one");
	assert_string_equal(events[1].nest, "two");
	assert_string_equal(events[2].nest, "gone");
	assert_int_equal(events[3].kind, TN_EVENT_RESTART);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(events[i].number, i + 1);
	/* the restart concerns everybody */
	assert_int_equal(read_all(f, (TnEventFilter){.owner = 2000}, 0, events, 8), 2);
	assert_int_equal(events[0].nest_id, 2);
	assert_int_equal(
		read_all(f, (TnEventFilter){.owner = (uid_t)-1, .nest_id = 3}, 0, events, 8), 1);
	assert_string_equal(events[0].nest, "gone");
	assert_int_equal(read_all(f, (TnEventFilter){.owner = 2000, .nest_id = 1}, 0, events, 8),
			 0);
}

static void test_a_flood_is_counted_and_pushes_nothing_out(void **state)
{
	static TnEvent events[200];
	Fixture *f = *state;
	const TnEvent denied = {.kind = TN_EVENT_DENIED};
	unsigned noted = 0;
	size_t n;

	tn_events_add(f->one, TN_EVENT_ATTACH);
	for (unsigned second = 0; second < 50; second++) {
		clock_ns += 1000000000;
		for (unsigned i = 0; i < 1000; i++) {
			if (!tn_events_admit(f->one, TN_EVENT_DENIED))
				continue;
			tn_events_note(f->one, &denied);
			noted++;
		}
	}
	n = read_all(f, ALL, 0, events, 200);
	assert_int_equal(events[0].kind, TN_EVENT_ATTACH);
	assert_true(n > 10 && n < 150);
	assert_true(noted < 2000);
	assert_int_equal(tn_event_hub_dropped(f->hub, TN_EVENT_DENIED), 50000 - noted);
	/* the first of each second says how many were left out in the one before */
	assert_int_equal(events[n - 1].number, noted + 1);
	clock_ns += 1000000000;
	assert_true(tn_events_admit(f->one, TN_EVENT_DENIED));
	tn_events_note(f->one, &denied);
	n = read_all(f, ALL, noted + 1, events, 200);
	assert_int_equal(n, 1);
	assert_int_equal(events[0].dropped, 1000 - noted / 50);
}

static void test_a_reader_goes_on_where_it_was(void **state)
{
	Fixture *f = *state;
	TnEvent events[4];
	uint64_t since = 0;
	unsigned n = 0, expected = 1;

	clock_ns += 1000000000;
	for (unsigned i = 0; i < 10; i++)
		tn_events_add(i % 2 ? f->one : f->two, TN_EVENT_ATTACH);
	for (;;) {
		size_t some = tn_event_hub_read(f->hub, &ALL, since, events, 4, &since);

		for (size_t i = 0; i < some; i++)
			assert_int_equal(events[i].number, expected++);
		n += (unsigned)some;
		if (some == 0)
			break;
	}
	assert_int_equal(n, 10);
	assert_int_equal(since, 10);
	assert_int_equal(tn_event_hub_last(f->hub), 10);
}

static bool is_readable(const Fixture *f)
{
	struct pollfd p = {.fd = tn_event_hub_fd(f->hub), .events = POLLIN};
	uint64_t value;

	if (poll(&p, 1, 0) != 1)
		return false;
	assert_int_equal(read(p.fd, &value, sizeof(value)), sizeof(value));
	return true;
}

static void test_followers_are_woken_once(void **state)
{
	Fixture *f = *state;

	clock_ns += 1000000000;
	tn_events_add(f->one, TN_EVENT_ATTACH);
	assert_false(is_readable(f));
	tn_event_hub_watch(f->hub);
	assert_false(is_readable(f));
	tn_events_add(f->one, TN_EVENT_ATTACH);
	tn_events_add(f->two, TN_EVENT_ATTACH);
	assert_true(is_readable(f));
	tn_events_add(f->two, TN_EVENT_ATTACH);
	assert_false(is_readable(f));
}

static void *add_many(void *data)
{
	for (unsigned i = 0; i < 20000; i++) {
		const TnEvent event = {.kind = TN_EVENT_DENIED};

		if (tn_events_admit(data, TN_EVENT_DENIED))
			tn_events_note(data, &event);
	}
	return NULL;
}

static void test_threads_lose_no_count(void **state)
{
	Fixture *f = *state;
	pthread_t threads[4];
	uint64_t before = tn_event_hub_last(f->hub);

	clock_ns += 1000000000;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_many, f->one), 0);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(tn_event_hub_last(f->hub) - before +
				 tn_event_hub_dropped(f->hub, TN_EVENT_DENIED),
			 80000);
}

static void test_without_a_hub_nothing_is_noted(void **state)
{
	assert_null(tn_events_new(NULL, 1, 0, "x"));
	assert_false(tn_events_admit(NULL, TN_EVENT_DENIED));
	tn_events_add(NULL, TN_EVENT_ATTACH);
	tn_event_hub_add(NULL, TN_EVENT_EVICT, 1, 0, "x");
	tn_event_hub_free(NULL);
	tn_events_free(NULL);
}

static void test_buckets_are_powers_of_two(void **state)
{
	static const struct {
		uint64_t ns;
		unsigned bucket;
	} table[] = {
		{0, 0},
		{1000, 0},
		{1001, 1},
		{2000, 1},
		{2001, 2},
		{4000, 2},
		{4001, 3},
		{1024000, 10},
		{1024001, 11},
		{UINT64_MAX / 2, 23},
		{8000, 3},
		{8388608000ULL, 23},
		{4194304000ULL, 22},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(table); i++)
		assert_int_equal(tn_stats_bucket(table[i].ns), table[i].bucket);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_readers_see_what_is_theirs),
		TEST(test_a_flood_is_counted_and_pushes_nothing_out),
		TEST(test_a_reader_goes_on_where_it_was),
		TEST(test_followers_are_woken_once),
		TEST(test_threads_lose_no_count),
		TEST(test_without_a_hub_nothing_is_noted),
		cmocka_unit_test(test_buckets_are_powers_of_two),
	};

	return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
