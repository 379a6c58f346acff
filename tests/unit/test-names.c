/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * File names as text and back.
 */
#include "names.h"

#include "macros.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_known_names(void **state)
{
	static const struct {
		const char *name, *text;
	} table[] = {
		{"", ""},
		{"plain", "plain"},
		{"a\\b", "a\\\\b"},
		{"\\x41", "\\\\x41"},
		{"new\nline\033[31m", "new\nline\033[31m"},
		{"\xc3\xa4", "\xc3\xa4"},
		{"\xff\xfe", "\\xff\\xfe"},
		{"\xc3", "\\xc3"},
		{"\xc0\xaf", "\\xc0\\xaf"},                   /* a slash in too many bytes */
		{"\xed\xa0\x80", "\\xed\\xa0\\x80"},          /* a surrogate */
		{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* past U+10FFFF */
		{"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
		{"\xe2\x82", "\\xe2\\x82"},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(table); i++) {
		char *text = tn_name_encode(table[i].name);

		assert_string_equal(text, table[i].text);
		assert_int_equal(tn_name_decode(text), 0);
		assert_string_equal(text, table[i].name);
		free(text);
	}
}

static void test_every_pair_of_bytes_comes_back(void **state)
{
	for (unsigned a = 1; a < 256; a++) {
		for (unsigned b = 1; b < 256; b++) {
			const char name[] = {(char)a, (char)b, 'z', '\0'};
			char *text = tn_name_encode(name);

			for (const char *at = text; *at; at += tn_utf8_length(at))
				assert_int_not_equal(tn_utf8_length(at), 0);
			assert_int_equal(tn_name_decode(text), 0);
			assert_string_equal(text, name);
			free(text);
		}
	}
}

static void test_refuses_what_no_name_is_written_as(void **state)
{
	static const char *const wrong[] = {"\\",    "a\\",   "\\n",   "\\x",    "\\x4",  "\\xg0",
					    "\\x0g", "\\xFF", "\\x00", "x\\x00", "\\u12", "\\\\\\"};

	for (size_t i = 0; i < TN_ARRAY_LEN(wrong); i++) {
		char *text = strdup(wrong[i]);

		if (tn_name_decode(text) != -EINVAL)
			fail_msg("taken: %s", wrong[i]);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_names),
		cmocka_unit_test(test_every_pair_of_bytes_comes_back),
		cmocka_unit_test(test_refuses_what_no_name_is_written_as),
	};

	return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
