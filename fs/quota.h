/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A nest's account: bytes and inodes, each with a limit. Pure arithmetic on atomics that
 * may lie in shared memory; any thread, no lock.
 *
 * Reserve before a call that may grow something, settle to what the call really did, and
 * let the scope refund the rest. The account never shows less than zero, and never more
 * than its limit unless the limit was lowered below the present use.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TN_PAGE_SIZE 4096ULL

typedef struct TnAccount {
	_Atomic uint64_t bytes_used, bytes_limit; /* limits: UINT64_MAX = none */
	_Atomic uint64_t inodes_used, inodes_limit;
	_Atomic uint64_t refusals;   /* reservations answered ENOSPC */
	_Atomic uint64_t underflows; /* refunds past zero: a defect of ours */
} TnAccount;

/* What one operation holds of the account until it is settled. */
typedef struct TnReservation {
	TnAccount *account; /* NULL: nothing held */
	uint64_t bytes, inodes;
} TnReservation;

/* Refunds what is still held, at the end of the scope. */
void tn_reservation_clear(TnReservation *reservation);
#define TN_RESERVATION __attribute__((cleanup(tn_reservation_clear))) TnReservation

/* Both or nothing: 0, or -ENOSPC with nothing taken. *ret must hold nothing. */
int tn_quota_reserve(TnAccount *account, uint64_t bytes, uint64_t inodes, TnReservation *ret);

/* Reserves between 0 and `bytes` bytes in whole pages: whatever fits. Returns what it took. */
uint64_t tn_quota_reserve_some(TnAccount *account, uint64_t bytes, TnReservation *ret);

/*
 * Makes `bytes` and `inodes` of the reservation permanent and refunds the rest. Taking
 * more than was reserved is charged all the same (the store has already spent it).
 */
void tn_quota_settle(TnReservation *reservation, uint64_t bytes, uint64_t inodes);

/* Charges without asking: for what is found in a store, and for what cannot be undone. */
void tn_quota_charge(TnAccount *account, uint64_t bytes, uint64_t inodes);

/* Gives back what was charged. */
void tn_quota_refund(TnAccount *account, uint64_t bytes, uint64_t inodes);

/* More is in use than the limit: it was lowered, or something had grown before it could be refused.
 */
bool tn_quota_is_over(const TnAccount *account);

/* What is left; 0 when the limit lies below the use, UINT64_MAX when there is none. */
uint64_t tn_quota_bytes_free(const TnAccount *account);
uint64_t tn_quota_inodes_free(const TnAccount *account);
