/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "table.h"
#include "text.h"
#include "units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_escape(void **state)
{
	static const struct {
		const char *text, *shown;
	} cases[] = {
		{"", ""},
		{"plain-1.x", "plain-1.x"},
		{"a b", "a b"},
		{"\xc3\xa9\xe4\xb8\xad", "\xc3\xa9\xe4\xb8\xad"},
		{"a\\x0a", "a\\\\x0a"},
		{"a\nb\rc\td", "a\\x0ab\\x0dc\\x09d"},
		{"\x1b[31mred", "\\x1b[31mred"},
		{"\x7f", "\\x7f"},
		/* C1: some terminals take U+009B for ESC [ */
		{"\xc2\x9b"
		 "31m",
		 "\\xc2\\x9b31m"},
		/* Right-to-left override, zero width joiner, byte order mark */
		{"a\xe2\x80\xae"
		 "b",
		 "a\\xe2\\x80\\xaeb"},
		{"a\xe2\x80\x8d", "a\\xe2\\x80\\x8d"},
		{"\xef\xbb\xbf", "\\xef\\xbb\\xbf"},
		/* Line separator */
		{"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},
		/* Not UTF-8: lone, overlong, cut, surrogate */
		{"a\xff"
		 "b",
		 "a\\xffb"},
		{"\xc0\xaf", "\\xc0\\xaf"},
		{"\xe4\xb8", "\\xe4\\xb8"},
		{"\xed\xa0\x80", "\\xed\\xa0\\x80"},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *shown = tn_text_escape(cases[i].text);

		assert_string_equal(shown, cases[i].shown);
	}
}

static void test_percent_and_bar(void **state)
{
	static const struct {
		guint64 used, limit;
		const char *percent, *bar;
	} cases[] = {
		{0, 100, "0%", "[..........]"},
		{1, 100, "1%", "[#.........]"},
		{10, 100, "10%", "[#.........]"},
		{11, 100, "11%", "[##........]"},
		{99, 100, "99%", "[##########]"},
		{100, 100, "100%", "[##########]"},
		{200, 100, "100%", "[##########]"},
		{1, G_GUINT64_CONSTANT(1) << 60, "1%", "[#.........]"},
		{5, 0, "100%", "[##########]"},
		{5, TN_UNLIMITED, "-", "            "},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *percent = tn_text_percent(cases[i].used, cases[i].limit);
		g_autofree char *bar = tn_text_bar(cases[i].used, cases[i].limit, 10);

		assert_string_equal(percent, cases[i].percent);
		assert_string_equal(bar, cases[i].bar);
	}
}

static void test_age(void **state)
{
	const gint64 now = G_GINT64_CONSTANT(1700000000) * G_USEC_PER_SEC;
	static const struct {
		const char *time, *age;
	} cases[] = {
		{"2023-11-14T22:13:20.000Z", "0s"},
		{"2023-11-14T22:13:15.900Z", "5s"},
		{"2023-11-14T22:03:20Z", "10m"},
		{"2023-11-14T19:13:20.123Z", "3h"},
		{"2023-11-05T22:13:20.123Z", "9d"},
		{"2030-01-01T00:00:00Z", "0s"},
		{"", "-"},
		{"yesterday", "-"},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *age = tn_text_age(cases[i].time, now);

		assert_string_equal(age, cases[i].age);
	}
}

static void test_size(void **state)
{
	g_autofree char *some = tn_text_size(64 << 20), *none = tn_text_size(TN_UNLIMITED);

	assert_string_equal(some, "64M");
	assert_string_equal(none, "-");
}

static void test_width(void **state)
{
	assert_int_equal(tn_text_width("abc"), 3);
	assert_int_equal(tn_text_width("\xe4\xb8\xad"), 2);
	assert_int_equal(tn_text_width("e\xcc\x81"), 1);
}

static TnTable *fill(gboolean colours)
{
	static const char *const columns[] = {"NAME", ">SIZE", "NOTE", NULL};
	static const char *const cells[] = {"a", "5", "x", "\xe4\xb8\xad\xe6\x96\x87", "12345", ""};
	TnTable *table = tn_table_new(columns, colours);

	for (size_t i = 0; i < G_N_ELEMENTS(cells); i++)
		tn_table_add(table, i == 1 ? TN_TINT_BAD : TN_TINT_NONE, g_strdup(cells[i]));
	return table;
}

static void test_table_aligns(void **state)
{
	g_autoptr(TnTable) table = fill(FALSE);
	g_autofree char *text = tn_table_text(table);

	assert_string_equal(text, "NAME   SIZE  NOTE\n"
				  "a         5  x\n"
				  "\xe4\xb8\xad\xe6\x96\x87  12345  \n");
}

static void test_table_tints_without_moving(void **state)
{
	g_autoptr(TnTable) table = fill(TRUE);
	g_autofree char *text = tn_table_text(table);

	assert_non_null(strstr(text, "\na         \033[31m5\033[0m  x\n"));
}

static void test_table_without_rows(void **state)
{
	static const char *const columns[] = {"NAME", ">SIZE", NULL};
	g_autoptr(TnTable) table = tn_table_new(columns, FALSE);
	g_autofree char *text = tn_table_text(table);

	assert_string_equal(text, "NAME  SIZE\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_percent_and_bar),
		cmocka_unit_test(test_age),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_table_aligns),
		cmocka_unit_test(test_table_tints_without_moving),
		cmocka_unit_test(test_table_without_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
