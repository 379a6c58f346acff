/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The charge of file data: what a write, truncate or fallocate will add, and what it did.
 *
 * Most files have storage for exactly their first N pages (a hole can only follow): for
 * those the charge is arithmetic. Others are `sparse`: the store is asked about the range
 * before and after.
 *
 * All functions: the caller holds the node's lock; any thread. 0 or -errno.
 */
#pragma once

#include "nest-private.h"

/* The node is known to be charged this much; the account knows it already. `more`: TN_CHARGE_... */
void tn_charge_note(TnNode *node, uint64_t pages, uint8_t more);

/* Makes node->pages right, from the store if it must. */
int tn_charge_load(TnNest *nest, TnNode *node, int fd);

/*
 * Pages of [offset, offset + size) without storage, an upper bound where the store cannot
 * tell (*ret_exact false).
 */
int tn_charge_missing(TnNest *nest, TnNode *node, int fd, uint64_t offset, uint64_t size,
		      uint64_t *ret_pages, bool *ret_exact);

/*
 * After storage was added for [offset, offset + done): settles the reservation. A sparse
 * file is looked at anew when the count was not exact.
 */
int tn_charge_grown(TnNest *nest, TnNode *node, int fd, uint64_t offset, uint64_t done,
		    uint64_t missing, bool exact, TnReservation *reservation);

/* After a truncation to size. */
int tn_charge_truncated(TnNest *nest, TnNode *node, int fd, uint64_t size);

/* After anything else (punch, collapse, insert, zero): recounts, settles, marks sparse. */
int tn_charge_recount(TnNest *nest, TnNode *node, int fd, TnReservation *reservation);

/*
 * A request for the file's data was interrupted by its worker's death: the account gets to
 * know what the store holds. `offset`: of what was being written; `sparse`: it may have left
 * holes.
 */
void tn_charge_after_death(TnNest *nest, uint32_t index, uint64_t offset, bool sparse);

/* Before a directory changes: makes its charge known. */
int tn_charge_directory_load(TnNest *nest, TnNode *node, int fd);

/*
 * After a directory changed: charges what it grew. -ENOSPC when that passed the limit; the
 * block is charged all the same, since a directory's storage cannot be given back.
 */
int tn_charge_directory(TnNest *nest, TnNode *node, int fd);
