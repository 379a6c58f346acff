/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The list of `top`: rates between two looks, order, filter; and figures as Prometheus text.
 */
#include "metrics-text.h"
#include "top-model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static JsonObject *parse(const char *text)
{
	g_autoptr(JsonParser) parser = json_parser_new();

	assert_true(json_parser_load_from_data(parser, text, -1, NULL));
	return json_node_dup_object(json_parser_get_root(parser));
}

static void update(TnTop *top, const char *text, gint64 now_us)
{
	JsonObject *list = parse(text);

	tn_top_update(top, list, now_us);
	json_object_unref(list);
}

#define NEST(id, name, bytes, requests, busy) \
	"{\"id\":\"" id "\",\"name\":\"" name "\",\"bytes_used\":" bytes \
	",\"requests_total\":" requests ",\"busy_ns\":" busy "}"

static void test_rates_are_between_two_looks(void **state)
{
	g_autoptr(TnTop) top = tn_top_new();

	update(top, "{\"nests\":[" NEST("1", "a", "1000", "10", "1000") "]}", 1000000);
	assert_true(tn_top_row(top, 0)->growth == 0);
	update(top, "{\"nests\":[" NEST("1", "a", "3000", "30", "2001000") "]}", 3000000);
	assert_true(tn_top_row(top, 0)->growth == 1000);
	assert_true(tn_top_row(top, 0)->operations == 10);
	assert_true(tn_top_row(top, 0)->latency_us == 100);
	/* another worker counts anew; less is no overflow */
	update(top, "{\"nests\":[" NEST("1", "a", "1000", "4", "4000") "]}", 5000000);
	assert_true(tn_top_row(top, 0)->growth == -1000);
	assert_true(tn_top_row(top, 0)->operations == 2);
}

static void test_order_and_filter(void **state)
{
	static const char list[] = "{\"nests\":[" NEST("1", "b", "10", "0", "0") "," NEST(
		"2", "a", "30", "0", "0") "," NEST("3", "ab", "20", "0", "0") "]}";
	g_autoptr(TnTop) top = tn_top_new();

	update(top, list, 1);
	assert_string_equal(tn_top_row(top, 0)->id, "2");
	assert_string_equal(tn_top_row(top, 2)->id, "1");
	tn_top_sort(top, TN_TOP_NAME);
	assert_string_equal(tn_top_row(top, 1)->id, "3");
	tn_top_filter(top, "b");
	assert_int_equal(tn_top_count(top), 2);
	assert_int_equal(tn_top_find(top, "2"), -1);
	assert_int_equal(tn_top_find(top, "1"), 1);
	update(top, "{\"nests\":[]}", 2);
	assert_int_equal(tn_top_count(top), 0);
	update(top, "{}", 3);
	assert_int_equal(tn_top_count(top), 0);
}

static void test_metrics_escape_labels_and_sum_buckets(void **state)
{
	JsonObject *list = parse("{\"nests\":[{\"name\":\"a\\\"b\\\\c\\nd\",\"bytes_used\":5}]}");
	JsonObject *daemon = parse("{\"latencies\":[{\"operation\":\"READ\",\"sum_ns\":1500000000,"
				   "\"buckets\":[1,2,3]}]}");
	g_autoptr(TnNestRows) rows = tn_nest_rows_read(json_object_get_array_member(list, "nests"));
	g_autofree char *text = tn_metrics_text(rows, daemon, NULL);
	g_autofree char *down = tn_metrics_text(NULL, NULL, NULL);

	assert_non_null(strstr(text, "tmpnest_nest_used_bytes{nest=\"a\\\"b\\\\c\\nd\","));
	assert_non_null(strstr(text, "_bucket{operation=\"READ\",le=\"0.000001\"} 1\n"));
	assert_non_null(strstr(text, "_bucket{operation=\"READ\",le=\"0.000002\"} 3\n"));
	assert_non_null(strstr(text, "_bucket{operation=\"READ\",le=\"+Inf\"} 6\n"));
	assert_non_null(strstr(text, "_sum{operation=\"READ\"} 1.500000000\n"));
	assert_non_null(strstr(text, "_count{operation=\"READ\"} 6\n"));
	assert_non_null(strstr(down, "tmpnest_up 0\n"));
	json_object_unref(list);
	json_object_unref(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates_are_between_two_looks),
		cmocka_unit_test(test_order_and_filter),
		cmocka_unit_test(test_metrics_escape_labels_and_sum_buckets),
	};

	return cmocka_run_group_tests_name("top", tests, NULL, NULL);
}
