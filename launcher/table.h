/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Aligned columns for a terminal. One thread.
 */
#pragma once

#include <glib.h>

typedef struct TnTable TnTable;

typedef enum TnTint {
	TN_TINT_NONE,
	TN_TINT_GOOD,
	TN_TINT_WARN,
	TN_TINT_BAD,
} TnTint;

/*
 * columns: titles with a NULL at the end; one that starts with '>' is aligned to the
 * right. Titles are borrowed.
 */
TnTable *tn_table_new(const char *const *columns, gboolean colours);
void tn_table_free(TnTable *table); /* takes NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TnTable, tn_table_free)

/* The next cell, row by row; takes text, which is escaped already or known to be harmless. */
void tn_table_add(TnTable *table, TnTint tint, char *text);

/* All rows with the titles above; no blanks at the ends of lines. The caller's. */
char *tn_table_text(const TnTable *table);
