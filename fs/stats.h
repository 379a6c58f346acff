/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts of one daemon since its worker started: how long requests took, by kind, and what
 * happened to nests. Relaxed atomics, no lock; any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define TN_STATS_OPERATIONS 64
/* Bucket i counts what took at most 2^i microseconds; the last one all that is longer. */
#define TN_STATS_BUCKETS 24

typedef struct TnLatency {
	_Atomic uint64_t buckets[TN_STATS_BUCKETS];
	_Atomic uint64_t sum_ns;
} TnLatency;

typedef struct TnStats {
	TnLatency latency[TN_STATS_OPERATIONS]; /* by opcode */
	_Atomic uint64_t attached, detached, evicted;
} TnStats;

static inline unsigned tn_stats_bucket(uint64_t ns)
{
	uint64_t us = ns / 1000 + (ns % 1000 != 0);
	unsigned bucket = us <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(us - 1);

	return bucket < TN_STATS_BUCKETS ? bucket : TN_STATS_BUCKETS - 1;
}

static inline void tn_stats_took(TnLatency *latency, uint64_t ns)
{
	atomic_fetch_add_explicit(&latency->buckets[tn_stats_bucket(ns)], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&latency->sum_ns, ns, memory_order_relaxed);
}

static inline void tn_stats_add(_Atomic uint64_t *count)
{
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}
