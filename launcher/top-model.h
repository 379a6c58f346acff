/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What `top` shows: nests with what they do per second, sorted and filtered. Pure but for
 * the clock that the caller gives; one thread.
 */
#pragma once

#include "nest-row.h"

typedef enum TnTopSort {
	TN_TOP_USE,
	TN_TOP_GROWTH,
	TN_TOP_OPERATIONS,
	TN_TOP_LATENCY,
	TN_TOP_DENIED,
	TN_TOP_NAME,
	TN_TOP_SORTS,
} TnTopSort;

typedef struct TnTopRow {
	TnNestRow nest; /* its strings live until the next update */
	const char *id;
	gdouble growth;     /* bytes per second, may be negative */
	gdouble operations; /* per second */
	gdouble latency_us; /* of one request, on average since the last update */
} TnTopRow;

typedef struct TnTop TnTop;

TnTop *tn_top_new(void);
void tn_top_free(TnTop *top); /* takes NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TnTop, tn_top_free)

/* A new list (borrowed for the call's argument, kept by reference) at this monotonic time. */
void tn_top_update(TnTop *top, JsonObject *list, gint64 now_us);

void tn_top_sort(TnTop *top, TnTopSort sort);
TnTopSort tn_top_sorted_by(const TnTop *top);
/* Only names that hold this text; "" for all. */
void tn_top_filter(TnTop *top, const char *text);

guint tn_top_count(const TnTop *top);
const TnTopRow *tn_top_row(const TnTop *top, guint index);
/* Where the nest of that id is now, or -1. */
gint tn_top_find(const TnTop *top, const char *id);
