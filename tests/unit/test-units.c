/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* units: what is a size, a count, a duration, a name; and how they are written again. */
#include "units.h"

#include "macros.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aULL

typedef struct NumberCase {
	const char *text;
	int result;
	uint64_t value; /* when result is 0 */
} NumberCase;

typedef int (*Parser)(const char *text, uint64_t *ret);

static void check_numbers(Parser parse, const NumberCase *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t value = UNTOUCHED;
		int r = parse(cases[i].text, &value);
		uint64_t wanted = cases[i].result == 0 ? cases[i].value : UNTOUCHED;

		if (r != cases[i].result || value != wanted)
			fail_msg("\"%s\": %d, %llu", cases[i].text, r, (unsigned long long)value);
	}
}

static void sizes(void **state)
{
	static const NumberCase cases[] = {
		{"0", 0, 0},
		{"1", 0, 1},
		{"4096", 0, 4096},
		{"007", 0, 7},
		{"1K", 0, 1024},
		{"64M", 0, 67108864},
		{"1G", 0, 1073741824},
		{"2T", 0, 2199023255552},
		{"1.5G", 0, 1610612736},
		{"0.5K", 0, 512},
		{"1.000000001K", 0, 1024},
		{"0.1T", 0, 109951162777},
		{"max", 0, TN_UNLIMITED},
		{"9223372036854775808", 0, 1ULL << 63},
		{"8388608T", 0, 1ULL << 63},
		{"9223372036854775809", -ERANGE, 0},
		{"8388608.1T", -ERANGE, 0},
		{"16777216T", -ERANGE, 0},
		{"18446744073709551615", -ERANGE, 0},
		{"18446744073709551616", -ERANGE, 0},
		{"99999999999999999999999999M", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"K", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"+1", -EINVAL, 0},
		{" 1", -EINVAL, 0},
		{"1 ", -EINVAL, 0},
		{"1k", -EINVAL, 0},
		{"1KB", -EINVAL, 0},
		{"1KiB", -EINVAL, 0},
		{"1P", -EINVAL, 0},
		{"1.G", -EINVAL, 0},
		{".5G", -EINVAL, 0},
		{"1.5", -EINVAL, 0},
		{"1.0000000001G", -EINVAL, 0},
		{"1e3", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"Max", -EINVAL, 0},
		{"maximum", -EINVAL, 0},
		{"99999999999999999999999999x", -EINVAL, 0},
	};

	check_numbers(tn_parse_size, cases, TN_ARRAY_LEN(cases));
}

static void counts(void **state)
{
	static const NumberCase cases[] = {
		{"1", 0, 1},       {"1000", 0, 1000},
		{"64K", 0, 65536}, {"max", 0, TN_UNLIMITED},
		{"0", -EINVAL, 0}, {"0K", -EINVAL, 0},
		{"x", -EINVAL, 0}, {"9223372036854775809", -ERANGE, 0},
	};

	check_numbers(tn_parse_count, cases, TN_ARRAY_LEN(cases));
}

static void durations(void **state)
{
	static const NumberCase cases[] = {
		{"0s", 0, 0},
		{"90s", 0, 90},
		{"15m", 0, 900},
		{"2h", 0, 7200},
		{"7d", 0, 604800},
		{"max", 0, TN_UNLIMITED},
		{"9223372036854775807s", 0, INT64_MAX},
		{"9223372036854775808s", -ERANGE, 0},
		{"106751991167301d", -ERANGE, 0},
		{"99999999999999999999d", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"15", -EINVAL, 0},
		{"m", -EINVAL, 0},
		{"15M", -EINVAL, 0},
		{"1.5h", -EINVAL, 0},
		{"1w", -EINVAL, 0},
		{"1ms", -EINVAL, 0},
		{"-1s", -EINVAL, 0},
		{"1h30m", -EINVAL, 0},
	};

	check_numbers(tn_parse_duration, cases, TN_ARRAY_LEN(cases));
}

static void names(void **state)
{
	static const char *const good[] = {"a", "A1", "a.b", "a-b", "a_b", "0", "_x", "a..", "x-"};
	static const char *const bad[] = {"",    ".", "..",     ".a", "-a", "a/b",  "a b",  "a\nb",
					  "a:b", "ä", "a\x01b", "a*", "a%", "a\\b", "a\tb", "~"};
	char longest[TN_NAME_MAX + 2];

	for (size_t i = 0; i < TN_ARRAY_LEN(good); i++)
		if (!tn_name_is_valid(good[i]))
			fail_msg("\"%s\" is refused", good[i]);
	for (size_t i = 0; i < TN_ARRAY_LEN(bad); i++)
		if (tn_name_is_valid(bad[i]))
			fail_msg("\"%s\" is taken", bad[i]);

	memset(longest, 'x', sizeof(longest));
	longest[TN_NAME_MAX + 1] = '\0';
	assert_false(tn_name_is_valid(longest));
	longest[TN_NAME_MAX] = '\0';
	assert_true(tn_name_is_valid(longest));
}

static void formats(void **state)
{
	static const struct {
		uint64_t value;
		const char *text;
	} size_cases[] =
		{
			{0, "0"},
			{1023, "1023"},
			{1024, "1K"},
			{1025, "1K"},
			{1536, "1.5K"},
			{67108864, "64M"},
			{67108863, "63.9M"},
			{1610612736, "1.5G"},
			{1ULL << 50, "1024T"},
			{TN_UNLIMITED - 1, "16777215.9T"},
			{TN_UNLIMITED, "max"},
		},
	  duration_cases[] = {
		  {0, "0s"},
		  {1, "1s"},
		  {60, "1m"},
		  {90, "90s"},
		  {120, "2m"},
		  {150, "2m"},
		  {900, "15m"},
		  {3600, "1h"},
		  {5400, "90m"},
		  {7200, "2h"},
		  {86400, "1d"},
		  {604800, "7d"},
		  {100000, "27h"},
		  {INT64_MAX, "9999999999999d"},
		  {TN_UNLIMITED - 1, "9999999999999d"},
		  {TN_UNLIMITED, "max"},
	  };
	char buffer[TN_SIZE_TEXT_MAX];

	for (size_t i = 0; i < TN_ARRAY_LEN(size_cases); i++)
		assert_string_equal(tn_format_size(size_cases[i].value, buffer),
				    size_cases[i].text);
	for (size_t i = 0; i < TN_ARRAY_LEN(duration_cases); i++)
		assert_string_equal(tn_format_duration(duration_cases[i].value, buffer),
				    duration_cases[i].text);
}

/* What is printed can be given back: exactly when it is short enough, never larger. */
static void round_trips(void **state)
{
	char buffer[TN_SIZE_TEXT_MAX];

	for (unsigned shift = 0; shift < 63; shift++) {
		for (uint64_t factor = 1; factor < 4; factor++) {
			uint64_t value = factor << shift;
			uint64_t back;

			if (value >> shift != factor || value > INT64_MAX / 2)
				continue;
			/* powers of two and the halves between them are exact */
			assert_int_equal(tn_parse_size(tn_format_size(value, buffer), &back), 0);
			assert_true(back == value);
			/* something odd on top is cut off, less than a tenth of it */
			assert_int_equal(
				tn_parse_size(tn_format_size(value + value / 7, buffer), &back), 0);
			assert_true(back <= value + value / 7 && back >= value);
			assert_int_equal(
				tn_parse_duration(tn_format_duration(value, buffer), &back), 0);
			assert_true(back <= value);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes), cmocka_unit_test(counts),  cmocka_unit_test(durations),
		cmocka_unit_test(names), cmocka_unit_test(formats), cmocka_unit_test(round_trips),
	};

	return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
