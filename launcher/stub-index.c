/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b, void *data)
{
	const TnLedger *ledger = data;
	size_t left = *(const size_t *)a, right = *(const size_t *)b;
	int order = strcmp(ledger->entries[left].path, ledger->entries[right].path);

	return order ? order : (left > right) - (left < right);
}

int tn_stub_index_init(TnStubIndex *index, const TnLedger *ledger)
{
	*index = (TnStubIndex){.ledger = ledger, .n_positions = ledger->n_entries};
	index->positions = calloc(ledger->n_entries + 1, sizeof(size_t));
	if (!index->positions)
		return -ENOMEM;
	for (size_t i = 0; i < ledger->n_entries; i++)
		index->positions[i] = i;
	qsort_r(index->positions, index->n_positions, sizeof(size_t), compare, (void *)ledger);
	return 0;
}

void tn_stub_index_clear(TnStubIndex *index)
{
	free(index->positions);
	*index = (TnStubIndex){0};
}

size_t tn_stub_index_find(const TnStubIndex *index, const char *path)
{
	size_t low = 0, high = index->n_positions;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(tn_stub_index_at(index, middle)->path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t tn_stub_index_group_end(const TnStubIndex *index, size_t place)
{
	const char *path = tn_stub_index_at(index, place)->path;

	while (place < index->n_positions &&
	       strcmp(tn_stub_index_at(index, place)->path, path) == 0)
		place++;
	return place;
}
