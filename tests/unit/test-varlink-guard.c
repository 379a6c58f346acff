/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "varlink-guard.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct Case {
	const char *text;
	int expected;
} Case;

static void check(const Case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t size = strlen(cases[i].text);
		/* An exact copy on the heap, so that a sanitizer sees one byte too many. */
		char *copy = malloc(size + 1);
		int r;

		assert_non_null(copy);
		memcpy(copy, cases[i].text, size);
		copy = realloc(copy, size > 0 ? size : 1);
		r = tn_varlink_guard(copy, size);
		free(copy);
		if (r != cases[i].expected)
			fail_msg("%s: %d, not %d", cases[i].text, r, cases[i].expected);
	}
}

static void test_accepts_json_objects(void **state)
{
	static const Case cases[] = {
		{"{}", 0},
		{" \t\r\n{ } \n", 0},
		{"{\"method\":\"a.B\",\"parameters\":{}}", 0},
		{"{\"a\":[1,-2,0,3.5,1e9,-1E-3,0.0,true,false,null,\"x\",{},[]]}", 0},
		{"{\"\":{\"\":\"\"}}", 0},
		{"{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"}", 0},
		{"{\"a\":\"\\ud83d\\ude00\"}", 0},
		{"{\"a\":\"\xc3\xa9\"}", 0},
		{"{\"a\":9223372036854775807,\"b\":-9223372036854775808}", 0},
		{"{\"a\":1e999}", 0},
	};

	check(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_refuses_what_is_no_json_object(void **state)
{
	static const Case cases[] = {
		{"", -EBADMSG},
		{" ", -EBADMSG},
		{"[]", -EBADMSG},
		{"1", -EBADMSG},
		{"null", -EBADMSG},
		{"\"x\"", -EBADMSG},
		{"{", -EBADMSG},
		{"{\"", -EBADMSG},
		{"{\"a", -EBADMSG},
		{"{\"a\"", -EBADMSG},
		{"{\"a\":", -EBADMSG},
		{"{\"a\":1", -EBADMSG},
		{"{\"a\":1,", -EBADMSG},
		{"{\"a\":1,}", -EBADMSG},
		{"{,\"a\":1}", -EBADMSG},
		{"{\"a\":[1,]}", -EBADMSG},
		{"{\"a\":[1 2]}", -EBADMSG},
		{"{\"a\":1]", -EBADMSG},
		{"{\"a\":[1}", -EBADMSG},
		{"{}{}", -EBADMSG},
		{"{} x", -EBADMSG},
		{"{a:1}", -EBADMSG},
		{"{1:1}", -EBADMSG},
		{"{\"a\" 1}", -EBADMSG},
		{"{\"a\":tru}", -EBADMSG},
		{"{\"a\":nul", -EBADMSG},
		{"{\"a\":NaN}", -EBADMSG},
		{"{\"a\":+1}", -EBADMSG},
		{"{\"a\":-}", -EBADMSG},
		{"{\"a\":.5}", -EBADMSG},
		{"{\"a\":5.}", -EBADMSG},
		{"{\"a\":1e}", -EBADMSG},
		{"{\"a\":1e+}", -EBADMSG},
		{"{\"a\":01}", -EBADMSG},
		{"{\"a\":0x10}", -EBADMSG},
		{"{\"a\":\"\\q\"}", -EBADMSG},
		{"{\"a\":\"\\", -EBADMSG},
		{"{\"a\":\"\\u12", -EBADMSG},
		{"{\"a\":\"\\u12g4\"}", -EBADMSG},
		{"{\"a\":\"\\u0000\"}", -EBADMSG},
		{"{\"a\":\"\n\"}", -EBADMSG},
		{"{\"a\":\"\x1f\"}", -EBADMSG},
		/* What json-glib takes besides JSON. */
		{"/* c */{}", -EBADMSG},
		{"{/* c */}", -EBADMSG},
		{"{'a':1}", -EBADMSG},
		{"var x = {}", -EBADMSG},
		{"{\"a\":010}", -EBADMSG},
	};

	check(cases, sizeof(cases) / sizeof(cases[0]));
	assert_int_equal(tn_varlink_guard("{\"a\0\":1}", 8), -EBADMSG);
	assert_int_equal(tn_varlink_guard("{}\0", 3), -EBADMSG);
}

static void test_refuses_integers_past_64_bits(void **state)
{
	static const Case cases[] = {
		{"{\"a\":9223372036854775808}", -ERANGE},
		{"{\"a\":-9223372036854775809}", -ERANGE},
		{"{\"a\":18446744073709551616}", -ERANGE},
		{"{\"a\":99999999999999999999999999999999}", -ERANGE},
	};

	check(cases, sizeof(cases) / sizeof(cases[0]));
}

/* An object with `depth` levels, made of arrays inside it or of objects. */
static char *nested(size_t depth, char open)
{
	char *text = malloc(depth * 6 + 16);
	char *at = text;

	assert_non_null(text);
	*at++ = '{';
	for (size_t i = 1; i < depth; i++) {
		bool in_object = i == 1 || open == '{';

		at += in_object ? (size_t)(stpcpy(at, "\"a\":") - at) : 0;
		*at++ = open;
	}
	for (size_t i = 1; i < depth; i++)
		*at++ = open == '{' ? '}' : ']';
	*at++ = '}';
	*at = '\0';
	return text;
}

static void test_bounds_the_depth(void **state)
{
	static const struct {
		size_t depth;
		int expected;
	} cases[] = {
		{1, 0}, {2, 0}, {31, 0}, {32, 0}, {33, -ELOOP}, {34, -ELOOP}, {10000, -ELOOP},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (const char *open = "[{"; *open; open++) {
			char *text = nested(cases[i].depth, *open);

			assert_int_equal(tn_varlink_guard(text, strlen(text)), cases[i].expected);
			free(text);
		}
	}
}

static void test_strings_hide_no_depth_and_add_none(void **state)
{
	char text[4096];
	char *at = stpcpy(text, "{\"a\":\"");

	for (int i = 0; i < 100; i++)
		at = stpcpy(at, "[{\\\"");
	strcpy(at, "\"}");
	assert_int_equal(tn_varlink_guard(text, strlen(text)), 0);

	/* An escaped backslash before the closing quote: the brackets behind it count. */
	at = stpcpy(text, "{\"a\":\"\\\\\",\"b\":");
	for (int i = 0; i < 40; i++)
		at = stpcpy(at, "[");
	assert_int_equal(tn_varlink_guard(text, strlen(text)), -ELOOP);

	/* Many containers beside each other are not deep. */
	at = stpcpy(text, "{\"a\":[");
	for (int i = 0; i < 200; i++)
		at = stpcpy(at, "[{}],");
	strcpy(at, "[]]}");
	assert_int_equal(tn_varlink_guard(text, strlen(text)), 0);
}

static void test_bounds_the_size(void **state)
{
	size_t size = TN_VARLINK_MESSAGE_MAX + 1;
	char *text = malloc(size);

	assert_non_null(text);
	memset(text, ' ', size);
	text[0] = '{';
	text[1] = '}';
	assert_int_equal(tn_varlink_guard(text, size - 1), 0);
	assert_int_equal(tn_varlink_guard(text, size), -EMSGSIZE);
	free(text);
}

static void test_every_error_has_a_line(void **state)
{
	static const int errors[] = {-EMSGSIZE, -ELOOP, -ERANGE, -EBADMSG};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(tn_varlink_guard_text(errors[i]),
						tn_varlink_guard_text(errors[j]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepts_json_objects),
		cmocka_unit_test(test_refuses_what_is_no_json_object),
		cmocka_unit_test(test_refuses_integers_past_64_bits),
		cmocka_unit_test(test_bounds_the_depth),
		cmocka_unit_test(test_strings_hide_no_depth_and_add_none),
		cmocka_unit_test(test_bounds_the_size),
		cmocka_unit_test(test_every_error_has_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
