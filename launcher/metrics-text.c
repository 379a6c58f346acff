/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "metrics-text.h"

#include "units.h"

#include <string.h>

/* A label's value: backslash, quote and line feed are escaped (the format's own rule). */
static void append_label(GString *text, const char *name, const char *value)
{
	g_string_append_printf(text, "%s=\"", name);
	for (; *value != '\0'; value++) {
		if (*value == '\n')
			g_string_append(text, "\\n");
		else if (*value == '"' || *value == '\\')
			g_string_append_printf(text, "\\%c", *value);
		else
			g_string_append_c(text, *value);
	}
	g_string_append_c(text, '"');
}

static void begin(GString *text, const char *name, const char *type, const char *help)
{
	g_string_append_printf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void append_seconds(GString *text, guint64 ns)
{
	g_string_append_printf(text, "%" G_GUINT64_FORMAT ".%09u\n", ns / 1000000000,
			       (unsigned)(ns % 1000000000));
}

/* --- nests ---------------------------------------------------------------------------------------
 */

typedef guint64 (*NestValue)(const TnNestRow *row);

static guint64 member(JsonObject *object, const char *key)
{
	gint64 value = json_object_get_int_member_with_default(object, key, 0);

	return value > 0 ? (guint64)value : 0;
}

#define VALUE(name, expression) \
	static guint64 name(const TnNestRow *row) \
	{ \
		return expression; \
	}
VALUE(bytes_used, row->bytes_used)
VALUE(bytes_limit, row->bytes_limit)
VALUE(inodes_used, row->inodes_used)
VALUE(inodes_limit, row->inodes_limit)
VALUE(attachments, row->attachments > 0 ? (guint64)row->attachments : 0)
VALUE(denied, row->denied_total)
VALUE(quota_hits, row->quota_hits_total)
VALUE(store_full, row->store_full_total)
VALUE(requests, row->requests_total)
VALUE(busy_ns, row->busy_ns)

static const struct {
	const char *name, *type, *help;
	NestValue value;
	gboolean seconds; /* the value is in nanoseconds */
} nest_metrics[] = {
	{"tmpnest_nest_used_bytes", "gauge", "Bytes that the nest is charged.", bytes_used},
	{"tmpnest_nest_limit_bytes", "gauge", "Bytes that the nest may hold.", bytes_limit},
	{"tmpnest_nest_used_inodes", "gauge", "Inodes that the nest is charged.", inodes_used},
	{"tmpnest_nest_limit_inodes", "gauge", "Inodes that the nest may hold.", inodes_limit},
	{"tmpnest_nest_attachments", "gauge", "Sandboxes that use the nest.", attachments},
	{"tmpnest_nest_denied_total", "counter", "Operations that a rule refused.", denied},
	{"tmpnest_nest_quota_hits_total", "counter", "Operations that the quota refused.",
	 quota_hits},
	{"tmpnest_nest_store_full_total", "counter",
	 "Operations refused because the disk of the store was full.", store_full},
	{"tmpnest_nest_requests_total", "counter", "File-system requests answered.", requests},
	{"tmpnest_nest_busy_seconds_total", "counter", "Time that those requests took.", busy_ns,
	 TRUE},
};

/* {nest="...",owner_uid="..."}, once for all the figures of a nest. The caller's. */
static GPtrArray *label_all(const TnNestRows *rows)
{
	GPtrArray *labels = g_ptr_array_new_with_free_func(g_free);

	for (guint i = 0; i < tn_nest_rows_count(rows); i++) {
		const TnNestRow *row = tn_nest_rows_at(rows, i);
		GString *text = g_string_new("{");

		append_label(text, "nest", row->name);
		g_string_append_printf(text, ",owner_uid=\"%" G_GINT64_FORMAT "\"} ",
				       row->owner_uid);
		g_ptr_array_add(labels, g_string_free(text, FALSE));
	}
	return labels;
}

static void append_count(GString *text, guint64 value)
{
	char digits[24], *at = digits + sizeof(digits);

	*--at = '\n';
	do
		*--at = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	g_string_append_len(text, at, digits + sizeof(digits) - at);
}

static void append_nest_metric(GString *text, gsize which, const TnNestRows *rows,
			       const GPtrArray *labels)
{
	begin(text, nest_metrics[which].name, nest_metrics[which].type, nest_metrics[which].help);
	for (guint i = 0; i < tn_nest_rows_count(rows); i++) {
		guint64 value = nest_metrics[which].value(tn_nest_rows_at(rows, i));

		g_string_append(text, nest_metrics[which].name);
		g_string_append(text, labels->pdata[i]);
		if (nest_metrics[which].seconds)
			append_seconds(text, value);
		else if (value == TN_UNLIMITED)
			g_string_append(text, "+Inf\n");
		else
			append_count(text, value);
	}
}

static void append_states(GString *text, const TnNestRows *rows)
{
	static const char *const states[] = {"active", "idle", "frozen", "evicting", "detached"};

	begin(text, "tmpnest_nests", "gauge", "Nests by state.");
	for (gsize s = 0; s < G_N_ELEMENTS(states); s++) {
		guint n = 0;

		for (guint i = 0; i < tn_nest_rows_count(rows); i++)
			n += strcmp(tn_nest_rows_at(rows, i)->state, states[s]) == 0;
		g_string_append_printf(text, "tmpnest_nests{state=\"%s\"} %u\n", states[s], n);
	}
}

static void append_nests(GString *text, const TnNestRows *rows)
{
	g_autoptr(GPtrArray) labels = label_all(rows);

	append_states(text, rows);
	for (gsize i = 0; i < G_N_ELEMENTS(nest_metrics); i++)
		append_nest_metric(text, i, rows, labels);
}

/* --- the daemon
 * ------------------------------------------------------------------------------------ */

static const struct {
	const char *key, *name, *type, *help;
} daemon_metrics[] = {
	{"store_bytes_size", "tmpnest_store_size_bytes", "gauge", "Size of the store's disk."},
	{"store_bytes_free", "tmpnest_store_free_bytes", "gauge", "Room on the store's disk."},
	{"store_inodes_free", "tmpnest_store_free_inodes", "gauge",
	 "Free inodes of the store's disk."},
	{"attached_total", "tmpnest_attached_total", "counter", "Sandboxes that were attached."},
	{"detached_total", "tmpnest_detached_total", "counter", "Sandboxes that ended."},
	{"evicted_total", "tmpnest_evicted_total", "counter", "Nests that were evicted."},
	{"connections", "tmpnest_control_connections", "gauge",
	 "Connections to the control socket."},
	{"worker_restarts", "tmpnest_worker_restarts_total", "counter",
	 "Workers that were replaced."},
};

/* Buckets are cumulative in the format; the last one is +Inf. */
static void append_latency(GString *text, JsonObject *latency)
{
	const char *operation =
		json_object_get_string_member_with_default(latency, "operation", "");
	JsonArray *buckets = json_object_get_array_member(latency, "buckets");
	guint n = buckets != NULL ? json_array_get_length(buckets) : 0;
	guint64 sum = 0;

	for (guint i = 0; i < n; i++) {
		gint64 some = json_array_get_int_element(buckets, i);

		sum += some > 0 ? (guint64)some : 0;
		g_string_append(text, "tmpnest_request_duration_seconds_bucket{");
		append_label(text, "operation", operation);
		if (i + 1 == n)
			g_string_append(text, ",le=\"+Inf\"");
		else
			g_string_append_printf(text, ",le=\"%" G_GUINT64_FORMAT ".%06u\"",
					       ((guint64)1 << i) / 1000000,
					       (unsigned)(((guint64)1 << i) % 1000000));
		g_string_append_printf(text, "} %" G_GUINT64_FORMAT "\n", sum);
	}
	g_string_append(text, "tmpnest_request_duration_seconds_sum{");
	append_label(text, "operation", operation);
	g_string_append(text, "} ");
	append_seconds(text, member(latency, "sum_ns"));
	g_string_append(text, "tmpnest_request_duration_seconds_count{");
	append_label(text, "operation", operation);
	g_string_append_printf(text, "} %" G_GUINT64_FORMAT "\n", sum);
}

static void append_latencies(GString *text, JsonObject *daemon)
{
	JsonArray *latencies = json_object_has_member(daemon, "latencies")
				       ? json_object_get_array_member(daemon, "latencies")
				       : NULL;

	if (latencies == NULL || json_array_get_length(latencies) == 0)
		return;
	begin(text, "tmpnest_request_duration_seconds", "histogram",
	      "How long file-system requests took, by operation.");
	for (guint i = 0; i < json_array_get_length(latencies); i++)
		append_latency(text, json_array_get_object_element(latencies, i));
}

static void append_dropped(GString *text, JsonObject *daemon)
{
	JsonObject *dropped = json_object_has_member(daemon, "events_dropped")
				      ? json_object_get_object_member(daemon, "events_dropped")
				      : NULL;
	JsonObjectIter iter;
	const char *kind;
	JsonNode *node;

	if (dropped == NULL)
		return;
	begin(text, "tmpnest_events_dropped_total", "counter",
	      "Events that were counted only, too many in a second.");
	json_object_iter_init(&iter, dropped);
	while (json_object_iter_next(&iter, &kind, &node)) {
		g_string_append(text, "tmpnest_events_dropped_total{");
		append_label(text, "event", kind);
		g_string_append_printf(text, "} %" G_GUINT64_FORMAT "\n", member(dropped, kind));
	}
}

static void append_daemon(GString *text, JsonObject *daemon)
{
	const char *started = json_object_get_string_member_with_default(daemon, "started", "");
	g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(started, NULL);

	for (gsize i = 0; i < G_N_ELEMENTS(daemon_metrics); i++) {
		if (!json_object_has_member(daemon, daemon_metrics[i].key))
			continue;
		begin(text, daemon_metrics[i].name, daemon_metrics[i].type, daemon_metrics[i].help);
		g_string_append_printf(text, "%s %" G_GUINT64_FORMAT "\n", daemon_metrics[i].name,
				       member(daemon, daemon_metrics[i].key));
	}
	if (time != NULL) {
		begin(text, "tmpnest_worker_start_time_seconds", "gauge",
		      "When the worker was started, in Unix time.");
		g_string_append_printf(text,
				       "tmpnest_worker_start_time_seconds %" G_GINT64_FORMAT "\n",
				       g_date_time_to_unix(time));
	}
	append_latencies(text, daemon);
	append_dropped(text, daemon);
}

char *tn_metrics_text(const TnNestRows *nests, JsonObject *daemon, JsonObject *status)
{
	GString *text = g_string_new(NULL);

	begin(text, "tmpnest_up", "gauge", "Does the daemon answer?");
	g_string_append_printf(text, "tmpnest_up %d\n", nests != NULL);
	if (status != NULL) {
		begin(text, "tmpnest_build_info", "gauge", "Version of the daemon.");
		g_string_append(text, "tmpnest_build_info{");
		append_label(text, "version",
			     json_object_get_string_member_with_default(status, "version", ""));
		g_string_append(text, "} 1\n");
	}
	if (nests != NULL)
		append_nests(text, nests);
	if (daemon != NULL)
		append_daemon(text, daemon);
	return g_string_free(text, FALSE);
}
