/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The account: exact sums, from one thread and from many at once. */
#include "quota.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "scratch.h"

#define PAGE TN_PAGE_SIZE

static TnAccount account_of(uint64_t bytes, uint64_t inodes)
{
	return (TnAccount){.bytes_limit = bytes, .inodes_limit = inodes};
}

#define assert_used(account, bytes, inodes) \
	do { \
		assert_int_equal(atomic_load(&(account)->bytes_used), (bytes)); \
		assert_int_equal(atomic_load(&(account)->inodes_used), (inodes)); \
		assert_int_equal(atomic_load(&(account)->underflows), 0); \
	} while (0)

static void test_reserve_settle(void **state)
{
	TnAccount account = account_of(10 * PAGE, 3);
	TnReservation a = {0}, b = {0};

	(void)state;
	assert_int_equal(tn_quota_reserve(&account, 10 * PAGE, 2, &a), 0);
	assert_used(&account, 10 * PAGE, 2);
	assert_int_equal(tn_quota_reserve(&account, 1, 0, &b), -ENOSPC);
	assert_int_equal(tn_quota_reserve(&account, 0, 2, &b), -ENOSPC);
	assert_null(b.account);
	assert_int_equal(atomic_load(&account.refusals), 2);
	tn_quota_settle(&a, 4 * PAGE, 1);
	assert_used(&account, 4 * PAGE, 1);
	assert_null(a.account);
	tn_reservation_clear(&a); /* settled: nothing more to give back */
	assert_used(&account, 4 * PAGE, 1);
	tn_quota_refund(&account, 4 * PAGE, 1);
	assert_used(&account, 0, 0);
}

static void test_both_or_nothing(void **state)
{
	TnAccount account = account_of(PAGE, 10);
	TnReservation r = {0};

	(void)state;
	assert_int_equal(tn_quota_reserve(&account, 2 * PAGE, 5, &r), -ENOSPC);
	assert_used(&account, 0, 0);
	assert_int_equal(tn_quota_reserve(&account, PAGE, 11, &r), -ENOSPC);
	assert_used(&account, 0, 0);
	assert_int_equal(tn_quota_reserve(&account, 0, 0, &r), 0);
	tn_reservation_clear(&r);
	assert_used(&account, 0, 0);
}

static void test_scope(void **state)
{
	TnAccount account = account_of(PAGE, 1);

	(void)state;
	{
		TN_RESERVATION r = {0};

		assert_int_equal(tn_quota_reserve(&account, PAGE, 1, &r), 0);
		assert_used(&account, PAGE, 1);
	}
	assert_used(&account, 0, 0);
}

static void test_some(void **state)
{
	static const struct {
		uint64_t limit, used, wish, got;
	} rows[] = {
		{10 * PAGE, 0, 4 * PAGE, 4 * PAGE},
		{10 * PAGE, 8 * PAGE, 4 * PAGE, 2 * PAGE},
		{10 * PAGE, 8 * PAGE + 1, 4 * PAGE, PAGE}, /* whole pages only */
		{10 * PAGE, 10 * PAGE, 4 * PAGE, 0},
		{10 * PAGE, 12 * PAGE, 4 * PAGE, 0}, /* the limit was lowered */
		{10 * PAGE + 5, 10 * PAGE, PAGE, 0},
		{UINT64_MAX, UINT64_MAX - 3 * PAGE, 2 * PAGE, 2 * PAGE},
		{0, 0, PAGE, 0},
		{PAGE, 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		TnAccount account = account_of(rows[i].limit, 0);
		TnReservation r = {0};
		uint64_t got;

		tn_quota_charge(&account, rows[i].used, 0);
		got = tn_quota_reserve_some(&account, rows[i].wish, &r);
		assert_int_equal(got, rows[i].got);
		assert_int_equal(atomic_load(&account.bytes_used), rows[i].used + got);
		assert_int_equal(atomic_load(&account.refusals), got == 0 && rows[i].wish > 0);
		tn_reservation_clear(&r);
		assert_used(&account, rows[i].used, 0);
	}
}

static void test_settle_more(void **state)
{
	TnAccount account = account_of(PAGE, 1);
	TnReservation r = {0};

	(void)state;
	assert_int_equal(tn_quota_reserve(&account, PAGE, 1, &r), 0);
	tn_quota_settle(&r, 3 * PAGE, 2); /* the store has spent it */
	assert_used(&account, 3 * PAGE, 2);
	assert_int_equal(tn_quota_bytes_free(&account), 0);
	assert_int_equal(tn_quota_inodes_free(&account), 0);
	assert_int_equal(tn_quota_reserve(&account, 1, 0, &r), -ENOSPC);
}

static void test_edges(void **state)
{
	TnAccount account = account_of(UINT64_MAX, UINT64_MAX);
	TnReservation r = {0};

	(void)state;
	assert_int_equal(tn_quota_bytes_free(&account), UINT64_MAX);
	tn_quota_charge(&account, UINT64_MAX - 1, 0);
	assert_int_equal(tn_quota_reserve(&account, 2, 0, &r), -ENOSPC); /* no wrap to 0 */
	tn_quota_charge(&account, UINT64_MAX, 0);
	assert_int_equal(atomic_load(&account.bytes_used), UINT64_MAX);
	tn_quota_refund(&account, UINT64_MAX, 0);
	assert_used(&account, 0, 0);
	tn_quota_refund(&account, 1, 1); /* stays at zero, and is noted */
	assert_int_equal(atomic_load(&account.bytes_used), 0);
	assert_int_equal(atomic_load(&account.inodes_used), 0);
	assert_int_equal(atomic_load(&account.underflows), 2);
}

static void test_lowered_limit(void **state)
{
	TnAccount account = account_of(10 * PAGE, 10);
	TnReservation r = {0};

	(void)state;
	tn_quota_charge(&account, 8 * PAGE, 8);
	atomic_store(&account.bytes_limit, 4 * PAGE);
	atomic_store(&account.inodes_limit, 4);
	assert_int_equal(tn_quota_bytes_free(&account), 0);
	assert_int_equal(tn_quota_inodes_free(&account), 0);
	assert_int_equal(tn_quota_reserve(&account, 1, 0, &r), -ENOSPC);
	tn_quota_refund(&account, 5 * PAGE, 5);
	assert_int_equal(tn_quota_reserve(&account, PAGE, 1, &r), 0);
	assert_int_equal(tn_quota_reserve(&account, 1, 0, &(TnReservation){0}), -ENOSPC);
	tn_reservation_clear(&r);
}

/* --- racing threads ---------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS 4000000
#define RACE_PAGES 37
#define RACE_INODES 11

typedef struct Racer {
	pthread_t thread;
	TnAccount *account;
	TnDice dice;
	uint64_t bytes, inodes; /* what it has settled and not refunded */
	bool over;              /* it saw the account beyond its limit */
	_Atomic bool *stop;
} Racer;

static bool is_over(TnAccount *account)
{
	return atomic_load(&account->bytes_used) > RACE_PAGES * PAGE ||
	       atomic_load(&account->inodes_used) > RACE_INODES;
}

static void race_once(Racer *racer)
{
	TN_RESERVATION r = {0};
	uint64_t wish = (1 + tn_dice(&racer->dice, 12)) * PAGE;

	switch (tn_dice(&racer->dice, 4)) {
	case 0:
		if (tn_quota_reserve(racer->account, wish, 1, &r) == 0) {
			uint64_t keep = tn_dice(&racer->dice, wish / PAGE + 1) * PAGE;

			/* Who has just taken too much sees it best: it is not given back yet. */
			racer->over |= is_over(racer->account);
			tn_quota_settle(&r, keep, 1);
			racer->bytes += keep;
			racer->inodes++;
		}
		break;
	case 1:
		wish = tn_quota_reserve_some(racer->account, wish, &r);
		racer->over |= is_over(racer->account);
		tn_quota_settle(&r, wish, 0);
		racer->bytes += wish;
		break;
	case 2:
		(void)tn_quota_reserve(racer->account, wish, 2, &r); /* the scope gives it back */
		break;
	default:
		wish = tn_dice(&racer->dice, racer->bytes / PAGE + 1) * PAGE;
		tn_quota_refund(racer->account, wish, racer->inodes > 0);
		racer->bytes -= wish;
		racer->inodes -= racer->inodes > 0;
	}
}

static void *race(void *data)
{
	Racer *racer = data;

	for (int i = 0; i < ROUNDS; i++)
		race_once(racer);
	return NULL;
}

static void *watch(void *data)
{
	Racer *racer = data;

	while (!atomic_load(racer->stop))
		racer->over |= is_over(racer->account);
	return NULL;
}

static void test_race(void **state)
{
	TnAccount account = account_of(RACE_PAGES * PAGE, RACE_INODES);
	Racer racers[THREADS], watcher = {.account = &account};
	uint64_t seed = tn_test_seed(), bytes = 0, inodes = 0;
	_Atomic bool stop = false;

	(void)state;
	watcher.stop = &stop;
	assert_int_equal(pthread_create(&watcher.thread, NULL, watch, &watcher), 0);
	for (size_t i = 0; i < THREADS; i++) {
		racers[i] = (Racer){.account = &account, .dice = {seed + i}};
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(racers[i].thread, NULL);
		watcher.over |= racers[i].over;
		bytes += racers[i].bytes;
		inodes += racers[i].inodes;
	}
	atomic_store(&stop, true);
	pthread_join(watcher.thread, NULL);
	assert_false(watcher.over);
	assert_used(&account, bytes, inodes);
	assert_true(atomic_load(&account.refusals) > 0); /* the limit was reached at all */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reserve_settle), cmocka_unit_test(test_both_or_nothing),
		cmocka_unit_test(test_scope),          cmocka_unit_test(test_some),
		cmocka_unit_test(test_settle_more),    cmocka_unit_test(test_edges),
		cmocka_unit_test(test_lowered_limit),  cmocka_unit_test(test_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
