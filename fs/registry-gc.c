/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What an operator asks of the store as a whole: collect garbage, say how it is. */
#include "registry-private.h"

#include "sys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char unused_for_long[] = "unused for as long as was said";

/* Why the nest goes, or NULL. */
static const char *reason_to_go(TnNest *nest, const TnGcOptions *options, int64_t now)
{
	int64_t used = atomic_load(&nest->arena.header->last_used_ns);
	const char *why = NULL;

	if (tn_janitor_has_expired(nest, now, &why))
		return why;
	if (!options->unused_for || atomic_load(&nest->frozen) || tn_nest_users(nest) > 0)
		return NULL;
	return now >= used && (uint64_t)(now - used) / 1000000000 >= options->unused_for
		       ? unused_for_long
		       : NULL;
}

static void collect_nest(TnRegistry *registry, TnNest *nest, const TnGcOptions *options,
			 TnGcReport *report)
{
	const char *why = reason_to_go(nest, options, tn_now());
	TnGcItem item = {.why = why};

	if (!why)
		return;
	tn_nest_info(nest, &item.info);
	item.info.from = NULL;
	if (!options->dry_run &&
	    (tn_nest_retire(nest, false) > 0 || tn_registry_evict(registry, nest, true, NULL) < 0))
		return;
	report->items[report->n_items++] = item;
}

/* The names, and when they are to go: to the trash. */
static int collect_damaged(TnRegistry *registry, bool wipe, TnGcReport *report)
{
	size_t n = 0;
	int r = 0;

	pthread_mutex_lock(&registry->lock);
	report->damaged = calloc(registry->n_damaged + 1, sizeof(char *));
	for (; report->damaged && n < registry->n_damaged; n++) {
		report->damaged[n] = strdup(registry->damaged[n]);
		if (!report->damaged[n])
			break;
		if (wipe) {
			tn_registry_discard_home(registry, registry->damaged[n]);
			free(registry->damaged[n]);
		}
	}
	if (n < registry->n_damaged)
		r = -ENOMEM;
	if (wipe) {
		memmove(registry->damaged, registry->damaged + n,
			(registry->n_damaged - n) * sizeof(char *));
		registry->n_damaged -= n;
	}
	report->n_damaged = n;
	pthread_mutex_unlock(&registry->lock);
	return r;
}

int tn_registry_gc(TnRegistry *registry, uid_t owner, const TnGcOptions *options, TnGcReport *ret)
{
	TnGcReport report = {0};
	size_t n;
	TnNest **nests = tn_registry_list(registry, owner, &n);
	int r = 0;

	report.items = calloc(n ? n : 1, sizeof(*report.items));
	if (!report.items)
		r = -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (r == 0)
			collect_nest(registry, nests[i], options, &report);
		tn_nest_unref(nests[i]);
	}
	free(nests);
	if (r == 0 && options->all)
		r = collect_damaged(registry, options->damaged && !options->dry_run, &report);
	if (r == 0 && options->all && !options->dry_run)
		tn_wiper_retry(registry->wiper);
	if (r < 0)
		tn_gc_report_clear(&report);
	else
		*ret = report;
	return r;
}

void tn_gc_report_clear(TnGcReport *report)
{
	for (size_t i = 0; i < report->n_damaged; i++)
		free(report->damaged[i]);
	free(report->damaged);
	free(report->items);
	*report = (TnGcReport){0};
}

void tn_registry_store_info(TnRegistry *registry, TnStoreInfo *ret)
{
	TnWiperState wiper;
	TnCapacity capacity;
	TnDisk disk = {0};

	*ret = (TnStoreInfo){0};
	tn_wiper_state(registry->wiper, &wiper);
	tn_space_get_capacity(&registry->space, &capacity);
	tn_space_disk(&registry->space, &disk);
	ret->bytes_limit = capacity.bytes;
	ret->inodes_limit = capacity.inodes;
	ret->reserve = tn_capacity_reserve(&capacity, &disk);
	ret->disk_free = disk.bytes_free;
	ret->disk_inodes_free = disk.inodes_free;
	ret->refusals_total = atomic_load(&registry->space.refusals);
	ret->wiping = wiper.going;
	ret->stuck = wiper.stuck;
	pthread_mutex_lock(&registry->lock);
	ret->damaged = registry->n_damaged;
	for (const TnNest *nest = registry->list; nest; nest = nest->next) {
		uint64_t bytes;

		if (!tn_nest_on_disk(nest, &bytes))
			continue;
		ret->bytes_used += bytes;
		ret->inodes_used += atomic_load(&nest->account->inodes_used);
	}
	pthread_mutex_unlock(&registry->lock);
}

uint64_t *tn_registry_list_going(TnRegistry *registry, uid_t owner, size_t *ret_n)
{
	return tn_wiper_list(registry->wiper, owner, ret_n);
}

bool tn_registry_going_info(TnRegistry *registry, uint64_t id, TnNestInfo *ret)
{
	return tn_wiper_info(registry->wiper, id, ret);
}
