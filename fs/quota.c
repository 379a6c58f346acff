/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "quota.h"

#include "macros.h"

#include <errno.h>

static bool take(_Atomic uint64_t *used, const _Atomic uint64_t *limit, uint64_t amount)
{
	uint64_t now = atomic_load(used);
	uint64_t then;

	if (amount == 0)
		return true;
	do {
		if (tn_add_overflows(now, amount, &then) || then > atomic_load(limit))
			return false;
	} while (!atomic_compare_exchange_weak(used, &now, then));
	return true;
}

static void give_back(TnAccount *account, _Atomic uint64_t *used, uint64_t amount)
{
	uint64_t now = atomic_load(used);
	uint64_t then;

	if (amount == 0)
		return;
	do {
		then = now > amount ? now - amount : 0;
	} while (!atomic_compare_exchange_weak(used, &now, then));
	if (now < amount)
		atomic_fetch_add(&account->underflows, 1);
}

static void add(_Atomic uint64_t *used, uint64_t amount)
{
	uint64_t now = atomic_load(used);
	uint64_t then;

	do {
		if (tn_add_overflows(now, amount, &then))
			then = UINT64_MAX;
	} while (!atomic_compare_exchange_weak(used, &now, then));
}

void tn_reservation_clear(TnReservation *reservation)
{
	if (reservation->account)
		tn_quota_refund(reservation->account, reservation->bytes, reservation->inodes);
	*reservation = (TnReservation){0};
}

int tn_quota_reserve(TnAccount *account, uint64_t bytes, uint64_t inodes, TnReservation *ret)
{
	if (!take(&account->inodes_used, &account->inodes_limit, inodes))
		goto refused;
	if (!take(&account->bytes_used, &account->bytes_limit, bytes)) {
		give_back(account, &account->inodes_used, inodes);
		goto refused;
	}
	*ret = (TnReservation){.account = account, .bytes = bytes, .inodes = inodes};
	return 0;

refused:
	atomic_fetch_add(&account->refusals, 1);
	return -ENOSPC;
}

uint64_t tn_quota_reserve_some(TnAccount *account, uint64_t bytes, TnReservation *ret)
{
	uint64_t wish = bytes;

	while (wish > 0) {
		uint64_t left;

		if (take(&account->bytes_used, &account->bytes_limit, wish)) {
			*ret = (TnReservation){.account = account, .bytes = wish};
			return wish;
		}
		/* Another thread may have spent or freed some since: ask again for what is left
		 * now. */
		left = tn_quota_bytes_free(account) & ~(TN_PAGE_SIZE - 1);
		wish = left < wish ? left : wish - TN_PAGE_SIZE;
	}
	if (bytes > 0)
		atomic_fetch_add(&account->refusals, 1);
	return 0;
}

void tn_quota_settle(TnReservation *reservation, uint64_t bytes, uint64_t inodes)
{
	TnAccount *account = reservation->account;

	if (!account)
		return;
	if (bytes > reservation->bytes)
		add(&account->bytes_used, bytes - reservation->bytes);
	else
		give_back(account, &account->bytes_used, reservation->bytes - bytes);
	if (inodes > reservation->inodes)
		add(&account->inodes_used, inodes - reservation->inodes);
	else
		give_back(account, &account->inodes_used, reservation->inodes - inodes);
	*reservation = (TnReservation){0};
}

void tn_quota_charge(TnAccount *account, uint64_t bytes, uint64_t inodes)
{
	add(&account->bytes_used, bytes);
	add(&account->inodes_used, inodes);
}

void tn_quota_refund(TnAccount *account, uint64_t bytes, uint64_t inodes)
{
	give_back(account, &account->bytes_used, bytes);
	give_back(account, &account->inodes_used, inodes);
}

static uint64_t left_of(const _Atomic uint64_t *used, const _Atomic uint64_t *limit)
{
	uint64_t most = atomic_load(limit), now = atomic_load(used);

	if (most == UINT64_MAX)
		return UINT64_MAX;
	return now < most ? most - now : 0;
}

uint64_t tn_quota_bytes_free(const TnAccount *account)
{
	return left_of(&account->bytes_used, &account->bytes_limit);
}

uint64_t tn_quota_inodes_free(const TnAccount *account)
{
	return left_of(&account->inodes_used, &account->inodes_limit);
}

bool tn_quota_is_over(const TnAccount *account)
{
	return atomic_load(&account->bytes_used) > atomic_load(&account->bytes_limit);
}
