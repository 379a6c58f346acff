/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "table.h"

#include "text.h"

#include <string.h>

typedef struct Cell {
	char *text;
	TnTint tint;
} Cell;

struct TnTable {
	const char *const *columns;
	guint n_columns;
	gboolean colours;
	GArray *cells; /* of Cell */
};

static void clear_cell(void *data)
{
	g_free(((Cell *)data)->text);
}

TnTable *tn_table_new(const char *const *columns, gboolean colours)
{
	TnTable *table = g_new0(TnTable, 1);

	table->columns = columns;
	table->n_columns = g_strv_length((char **)columns);
	table->colours = colours;
	table->cells = g_array_new(FALSE, FALSE, sizeof(Cell));
	g_array_set_clear_func(table->cells, clear_cell);
	return table;
}

void tn_table_free(TnTable *table)
{
	if (table == NULL)
		return;
	g_array_unref(table->cells);
	g_free(table);
}

void tn_table_add(TnTable *table, TnTint tint, char *text)
{
	Cell cell = {.text = text, .tint = tint};

	g_array_append_val(table->cells, cell);
}

static gboolean is_right(const TnTable *table, guint column)
{
	return table->columns[column][0] == '>';
}

static const char *title(const TnTable *table, guint column)
{
	return table->columns[column] + (is_right(table, column) ? 1 : 0);
}

static guint *measure(const TnTable *table)
{
	guint *widths = g_new0(guint, table->n_columns);

	for (guint i = 0; i < table->n_columns; i++)
		widths[i] = tn_text_width(title(table, i));
	for (guint i = 0; i < table->cells->len; i++) {
		guint width = tn_text_width(g_array_index(table->cells, Cell, i).text);
		guint column = i % table->n_columns;

		widths[column] = MAX(widths[column], width);
	}
	return widths;
}

static void append_tinted(GString *out, const char *text, TnTint tint)
{
	static const char *const starts[] = {
		[TN_TINT_NONE] = "",
		[TN_TINT_GOOD] = "\033[32m",
		[TN_TINT_WARN] = "\033[33m",
		[TN_TINT_BAD] = "\033[31m",
	};

	g_string_append(out, starts[tint]);
	g_string_append(out, text);
	if (tint != TN_TINT_NONE)
		g_string_append(out, "\033[0m");
}

static void append_blanks(GString *out, guint n)
{
	for (; n > 0; n--)
		g_string_append_c(out, ' ');
}

static void append_cell(GString *out, const TnTable *table, guint column, guint width,
			const char *text, TnTint tint)
{
	guint gap = width - tn_text_width(text);
	gboolean last = column + 1 == table->n_columns;

	if (is_right(table, column))
		append_blanks(out, gap);
	append_tinted(out, text, table->colours ? tint : TN_TINT_NONE);
	if (!is_right(table, column) && !last)
		append_blanks(out, gap);
	g_string_append(out, last ? "\n" : "  ");
}

char *tn_table_text(const TnTable *table)
{
	g_autofree guint *widths = measure(table);
	GString *out = g_string_new(NULL);

	for (guint i = 0; i < table->n_columns; i++)
		append_cell(out, table, i, widths[i], title(table, i), TN_TINT_NONE);
	for (guint i = 0; i < table->cells->len; i++) {
		const Cell *cell = &g_array_index(table->cells, Cell, i);

		append_cell(out, table, i % table->n_columns, widths[i % table->n_columns],
			    cell->text, cell->tint);
	}
	return g_string_free(out, FALSE);
}
