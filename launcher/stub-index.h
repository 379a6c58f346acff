/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The entries of a ledger in the order of their paths. Pure; holds positions, so that it
 * stays right while entries are added (they are not in it) or dropped (they are).
 */
#pragma once

#include "ledger.h"

typedef struct TnStubIndex {
	const TnLedger *ledger;
	size_t *positions;
	size_t n_positions;
} TnStubIndex;

int tn_stub_index_init(TnStubIndex *index, const TnLedger *ledger);
void tn_stub_index_clear(TnStubIndex *index);

/* The first place in positions whose path is not below path; compare it yourself. */
size_t tn_stub_index_find(const TnStubIndex *index, const char *path);

/* The place after the last one that has the path of the one at place. */
size_t tn_stub_index_group_end(const TnStubIndex *index, size_t place);

static inline TnLedgerEntry *tn_stub_index_at(const TnStubIndex *index, size_t place)
{
	return &index->ledger->entries[index->positions[place]];
}
