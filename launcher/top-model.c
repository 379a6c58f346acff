/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "top-model.h"

#include <string.h>

/* What a nest was at the last update. */
typedef struct Before {
	guint64 bytes, requests, busy_ns;
	gboolean seen;
} Before;

struct TnTop {
	JsonObject *list;
	GArray *all;        /* of TnTopRow */
	GPtrArray *shown;   /* of TnTopRow in all */
	GHashTable *before; /* id to Before */
	gint64 updated_us;
	TnTopSort sort;
	char *filter;
};

TnTop *tn_top_new(void)
{
	TnTop *top = g_new0(TnTop, 1);

	top->all = g_array_new(FALSE, TRUE, sizeof(TnTopRow));
	top->shown = g_ptr_array_new();
	top->before = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	top->filter = g_strdup("");
	return top;
}

void tn_top_free(TnTop *top)
{
	if (top == NULL)
		return;
	g_clear_pointer(&top->list, json_object_unref);
	g_array_unref(top->all);
	g_ptr_array_unref(top->shown);
	g_hash_table_unref(top->before);
	g_free(top->filter);
	g_free(top);
}

/* --- order
 * ---------------------------------------------------------------------------------------- */

static int compare_numbers(gdouble a, gdouble b)
{
	return (a < b) - (a > b);
}

static int compare_rows(gconstpointer left, gconstpointer right, gpointer data)
{
	const TnTopRow *a = *(TnTopRow *const *)left, *b = *(TnTopRow *const *)right;
	int order = 0;

	switch (*(TnTopSort *)data) {
	case TN_TOP_USE:
		order = compare_numbers((gdouble)a->nest.bytes_used, (gdouble)b->nest.bytes_used);
		break;
	case TN_TOP_GROWTH:
		order = compare_numbers(a->growth, b->growth);
		break;
	case TN_TOP_OPERATIONS:
		order = compare_numbers(a->operations, b->operations);
		break;
	case TN_TOP_LATENCY:
		order = compare_numbers(a->latency_us, b->latency_us);
		break;
	case TN_TOP_DENIED:
		order = compare_numbers((gdouble)a->nest.denied_total,
					(gdouble)b->nest.denied_total);
		break;
	default:
		break;
	}
	return order != 0 ? order : strcmp(a->nest.name, b->nest.name);
}

static void arrange(TnTop *top)
{
	g_ptr_array_set_size(top->shown, 0);
	for (guint i = 0; i < top->all->len; i++) {
		TnTopRow *row = &g_array_index(top->all, TnTopRow, i);

		if (strstr(row->nest.name, top->filter) != NULL)
			g_ptr_array_add(top->shown, row);
	}
	g_ptr_array_sort_with_data(top->shown, compare_rows, &top->sort);
}

void tn_top_sort(TnTop *top, TnTopSort sort)
{
	top->sort = sort;
	arrange(top);
}

TnTopSort tn_top_sorted_by(const TnTop *top)
{
	return top->sort;
}

void tn_top_filter(TnTop *top, const char *text)
{
	g_free(top->filter);
	top->filter = g_strdup(text);
	arrange(top);
}

/* --- figures
 * -------------------------------------------------------------------------------------- */

static guint64 busy_of(JsonObject *nest)
{
	gint64 value = json_object_get_int_member_with_default(nest, "busy_ns", 0);

	return value > 0 ? (guint64)value : 0;
}

/* Counters begin anew with another worker. */
static gdouble above(guint64 now, guint64 before)
{
	return now >= before ? (gdouble)(now - before) : (gdouble)now;
}

static void add_rates(TnTop *top, TnTopRow *row, JsonObject *nest, gdouble seconds)
{
	Before *before = g_hash_table_lookup(top->before, row->id);
	guint64 busy = busy_of(nest);

	if (before == NULL) {
		before = g_new0(Before, 1);
		g_hash_table_insert(top->before, g_strdup(row->id), before);
	} else if (seconds > 0) {
		gdouble requests = above(row->nest.requests_total, before->requests);

		row->growth = ((gdouble)row->nest.bytes_used - (gdouble)before->bytes) / seconds;
		row->operations = requests / seconds;
		if (requests > 0)
			row->latency_us = above(busy, before->busy_ns) / requests / 1000;
	}
	*before = (Before){
		.bytes = row->nest.bytes_used,
		.requests = row->nest.requests_total,
		.busy_ns = busy,
		.seen = TRUE,
	};
}

static gboolean forget_unseen(gpointer key, gpointer value, gpointer data)
{
	Before *before = value;
	gboolean seen = before->seen;

	before->seen = FALSE;
	return !seen;
}

void tn_top_update(TnTop *top, JsonObject *list, gint64 now_us)
{
	JsonNode *node = json_object_get_member(list, "nests");
	JsonArray *nests =
		node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
	gdouble seconds =
		top->updated_us > 0 ? (gdouble)(now_us - top->updated_us) / G_USEC_PER_SEC : 0;

	json_object_ref(list);
	g_clear_pointer(&top->list, json_object_unref);
	top->list = list;
	top->updated_us = now_us;
	g_array_set_size(top->all, 0);
	for (guint i = 0; nests != NULL && i < json_array_get_length(nests); i++) {
		JsonObject *nest = json_array_get_object_element(nests, i);
		TnTopRow row = {
			.id = json_object_get_string_member_with_default(nest, "id", ""),
		};

		tn_nest_row_read(nest, &row.nest);
		add_rates(top, &row, nest, seconds);
		g_array_append_val(top->all, row);
	}
	g_hash_table_foreach_remove(top->before, forget_unseen, NULL);
	arrange(top);
}

guint tn_top_count(const TnTop *top)
{
	return top->shown->len;
}

const TnTopRow *tn_top_row(const TnTop *top, guint index)
{
	return g_ptr_array_index(top->shown, index);
}

gint tn_top_find(const TnTop *top, const char *id)
{
	for (guint i = 0; i < top->shown->len; i++) {
		if (strcmp(tn_top_row(top, i)->id, id) == 0)
			return (gint)i;
	}
	return -1;
}
