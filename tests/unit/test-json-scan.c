/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* JSON read in place, and nests read from it: the same as by json-glib, and nothing of broken text.
 */
#include "json-scan.h"
#include "nest-row.h"
#include "units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char nest[] =
	"{\"id\":\"7\",\"name\":\"a\\\"\\u00e4\\ud83d\\ude00\\n\\\\\",\"owner_uid\":1000,"
	"\"state\":\"idle\",\"ephemeral\":true,\"durable\":false,\"store\":\"dir\","
	"\"bytes_used\":5,\"bytes_limit\":null,\"inodes_limit\":12,\"extra\":{\"a\":[1,{},[]]},"
	"\"busy_ns\":9007199254740993,\"attachments\":-1,\"created\":\"2024-01-01T00:00:00Z\"}";

static void test_what_is_one_value(void **state)
{
	static const char *const good[] = {"{}",
					   "[]",
					   " [1, 2] ",
					   "\"\"",
					   "null",
					   "-1.5e3",
					   "{\"a\" : [ { } , true ] }",
					   "\"\\\"\"",
					   "[[[[]]]]"};
	static const char *const bad[] = {
		"",         "{",
		"[1",       "[1,]",
		"[,1]",     "{\"a\"}",
		"{\"a\":}", "{a:1}",
		"[1 2]",    "[1}",
		"\"",       "\"\\",
		"nul",      "{\"a\":1 \"b\":2}",
		"1 2",      "}",
		"\"\n\"",   "{\"a\":1,}",
		"[\"\\\"]", "truefalse",
	};
	g_autofree char *deep = g_strnfill(100, '[');
	TnJsonText value;

	for (gsize i = 0; i < G_N_ELEMENTS(good); i++)
		assert_true(tn_json_whole(good[i], &value));
	for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
		assert_false(tn_json_whole(bad[i], &value));
	assert_false(tn_json_whole(deep, &value));
}

/* Whatever is cut off or changed: it ends, and reads nothing behind the text. */
static void test_cut_and_changed_text(void **state)
{
	for (gsize length = 0; length < strlen(nest); length++) {
		g_autofree char *cut = g_strndup(nest, length);
		TnJsonText value;

		assert_false(tn_json_whole(cut, &value));
	}
	for (gsize i = 0; i < strlen(nest); i++) {
		static const char changes[] = "\"\\{}[],:u0\x01";

		for (gsize c = 0; c < sizeof(changes); c++) {
			g_autofree char *changed = g_strdup(nest);
			g_autoptr(TnNestRows) rows = tn_nest_rows_new();
			TnJsonText value = {changed, strlen(changed)};

			changed[i] = changes[c];
			value.size = strlen(changed);
			tn_nest_rows_add(&value, rows);
		}
	}
}

static void test_strings(void **state)
{
	static const struct {
		const char *json, *text;
	} cases[] = {
		{"\"\"", ""},
		{"\"a\\/\\b\\t\"", "a/\b\t"},
		{"\"\\u00e4\"", "\xc3\xa4"},
		{"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
		{"\"\\ud83dx\"", "\xef\xbf\xbdx"},
		{"\"\\u0000\"", "\xef\xbf\xbd"},
		{"\"\\u12\"", NULL},
		{"\"\\q\"", NULL},
		{"12", NULL},
	};

	for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
		TnJsonText value = {cases[i].json, strlen(cases[i].json)};
		g_autoptr(GString) text = g_string_new(NULL);
		gboolean ok = tn_json_append_string(&value, text);

		assert_int_equal(ok, cases[i].text != NULL);
		if (ok)
			assert_string_equal(text->str, cases[i].text);
	}
}

static void test_integers(void **state)
{
	static const struct {
		const char *json;
		gboolean ok;
		gint64 value;
	} cases[] = {
		{"0", TRUE, 0},
		{"-12", TRUE, -12},
		{"9223372036854775807", TRUE, G_MAXINT64},
		{"9223372036854775808", FALSE, 0},
		{"1.5", FALSE, 0},
		{"\"1\"", FALSE, 0},
		{"null", FALSE, 0},
	};

	for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
		TnJsonText value = {cases[i].json, strlen(cases[i].json)};
		gint64 number = 0;

		assert_int_equal(tn_json_int(&value, &number), cases[i].ok);
		assert_int_equal(number, cases[i].value);
	}
}

static void test_a_nest_is_the_same_by_both_ways(void **state)
{
	g_autoptr(JsonNode) node = json_from_string(nest, NULL);
	g_autoptr(TnNestRows) rows = tn_nest_rows_new();
	TnJsonText value = {nest, strlen(nest)};
	const TnNestRow *row;
	TnNestRow tree;

	tn_nest_row_read(json_node_get_object(node), &tree);
	tn_nest_rows_add(&value, rows);
	assert_int_equal(tn_nest_rows_count(rows), 1);
	row = tn_nest_rows_at(rows, 0);
	assert_string_equal(row->name, "a\"\xc3\xa4\xf0\x9f\x98\x80\n\\");
	assert_string_equal(row->name, tree.name);
	assert_string_equal(row->state, tree.state);
	assert_string_equal(row->store, "dir");
	assert_string_equal(row->last_used, "");
	assert_int_equal(row->owner_uid, 1000);
	assert_int_equal(row->attachments, tree.attachments);
	assert_true(row->ephemeral);
	assert_false(row->durable);
	assert_int_equal(row->bytes_used, 5);
	assert_true(row->bytes_limit == TN_UNLIMITED && tree.bytes_limit == TN_UNLIMITED);
	assert_true(row->ttl == TN_UNLIMITED);
	assert_int_equal(row->inodes_limit, 12);
	assert_true(row->busy_ns == G_GUINT64_CONSTANT(9007199254740993));
	assert_true(row->busy_ns == tree.busy_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_one_value),
		cmocka_unit_test(test_cut_and_changed_text),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_a_nest_is_the_same_by_both_ways),
	};

	return cmocka_run_group_tests_name("json-scan", tests, NULL, NULL);
}
