/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "registry-private.h"

#include "dispatch.h"

TnEventHub *tn_registry_events(TnRegistry *registry)
{
	return registry->events;
}

const TnStats *tn_registry_stats(const TnRegistry *registry)
{
	return &registry->stats;
}

void tn_registry_each_latency(const TnRegistry *registry, TnLatencyVisit visit, void *data)
{
	for (uint32_t i = 0; i < TN_STATS_OPERATIONS; i++) {
		const TnLatency *latency = &registry->stats.latency[i];

		if (tn_opcode_name(i) && atomic_load(&latency->sum_ns) > 0)
			visit(tn_opcode_name(i), latency, data);
	}
}

uint64_t tn_registry_restarts(const TnRegistry *registry)
{
	return registry->state ? atomic_load(&registry->state->restarts) : 0;
}
