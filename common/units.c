/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "units.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SIZE_LIMIT ((uint64_t)1 << 63)
#define FRACTION_DIGITS_MAX 9

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads the digits at *text and moves it behind them. 0, -EINVAL or -ERANGE. */
static int parse_digits(const char **text, uint64_t *ret)
{
	const char *p = *text;
	uint64_t value = 0;

	if (!is_digit(*p))
		return -EINVAL;
	for (; is_digit(*p); p++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return -ERANGE;
	}
	*text = p;
	*ret = value;
	return 0;
}

/* Reads ".5" at *text as numerator and denominator; without it 0/1. */
static int parse_fraction(const char **text, uint64_t *ret_numerator, uint64_t *ret_denominator)
{
	const char *p = *text;
	uint64_t numerator = 0;
	uint64_t denominator = 1;

	if (*p == '.') {
		int n_digits = 0;

		for (p++; is_digit(*p); p++) {
			if (++n_digits > FRACTION_DIGITS_MAX)
				return -EINVAL;
			numerator = numerator * 10 + (uint64_t)(*p - '0');
			denominator *= 10;
		}
		if (n_digits == 0)
			return -EINVAL;
	}
	*text = p;
	*ret_numerator = numerator;
	*ret_denominator = denominator;
	return 0;
}

static int parse_binary_suffix(const char *suffix, uint64_t *ret)
{
	static const char letters[] = "KMGT";
	const char *found;

	if (*suffix == '\0') {
		*ret = 1;
		return 0;
	}
	found = strchr(letters, *suffix);
	if (!found || suffix[1] != '\0')
		return -EINVAL;
	*ret = (uint64_t)1 << (10 * (found - letters + 1));
	return 0;
}

int tn_parse_size(const char *text, uint64_t *ret)
{
	uint64_t whole = 0;
	uint64_t numerator, denominator, unit, value;
	int r, overflow;

	if (strcmp(text, "max") == 0) {
		*ret = TN_UNLIMITED;
		return 0;
	}

	overflow = parse_digits(&text, &whole);
	if (overflow == -EINVAL)
		return overflow;
	if (overflow)
		/* what follows the digits still decides whether this is a size at all */
		while (is_digit(*text))
			text++;
	r = parse_fraction(&text, &numerator, &denominator);
	if (r < 0)
		return r;
	r = parse_binary_suffix(text, &unit);
	if (r < 0)
		return r;
	if (denominator > 1 && unit == 1)
		return -EINVAL;

	if (overflow || __builtin_mul_overflow(whole, unit, &value))
		return -ERANGE;
	/* numerator < 10^9 and unit <= 2^40: the product needs more than 64 bits */
	if (__builtin_add_overflow(
		    value, (uint64_t)((unsigned __int128)numerator * unit / denominator), &value))
		return -ERANGE;
	if (value > SIZE_LIMIT)
		return -ERANGE;
	*ret = value;
	return 0;
}

int tn_parse_count(const char *text, uint64_t *ret)
{
	uint64_t value;
	int r = tn_parse_size(text, &value);

	if (r < 0)
		return r;
	if (value == 0)
		return -EINVAL;
	*ret = value;
	return 0;
}

static uint64_t duration_unit(char suffix)
{
	switch (suffix) {
	case 's':
		return 1;
	case 'm':
		return 60;
	case 'h':
		return 60 * 60;
	case 'd':
		return 24 * 60 * 60;
	default:
		return 0;
	}
}

int tn_parse_duration(const char *text, uint64_t *ret)
{
	uint64_t value, unit;
	int overflow;

	if (strcmp(text, "max") == 0) {
		*ret = TN_UNLIMITED;
		return 0;
	}

	overflow = parse_digits(&text, &value);
	if (overflow == -EINVAL)
		return overflow;
	if (overflow)
		while (is_digit(*text))
			text++;
	unit = duration_unit(*text);
	if (unit == 0 || text[1] != '\0')
		return -EINVAL;
	/* an i64 of seconds everywhere, and never the value that means "max" */
	if (overflow || __builtin_mul_overflow(value, unit, &value) || value > INT64_MAX)
		return -ERANGE;
	*ret = value;
	return 0;
}

bool tn_name_is_valid(const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";
	size_t length = strlen(name);

	if (length == 0 || length > TN_NAME_MAX)
		return false;
	if (name[0] == '.' || name[0] == '-')
		return false;
	return strspn(name, allowed) == length;
}

char *tn_format_size(uint64_t bytes, char buffer[TN_SIZE_TEXT_MAX])
{
	static const char letters[] = "KMGT";
	uint64_t unit = 1;
	int letter = -1;
	uint64_t tenths;

	if (bytes == TN_UNLIMITED) {
		snprintf(buffer, TN_SIZE_TEXT_MAX, "max");
		return buffer;
	}
	while (letter < 3 && bytes / unit >= 1024) {
		unit <<= 10;
		letter++;
	}
	if (letter < 0) {
		snprintf(buffer, TN_SIZE_TEXT_MAX, "%u", (unsigned)bytes);
		return buffer;
	}
	tenths = bytes % unit * 10 / unit;
	if (tenths == 0)
		snprintf(buffer, TN_SIZE_TEXT_MAX, "%u%c", (unsigned)(bytes / unit),
			 letters[letter]);
	else
		snprintf(buffer, TN_SIZE_TEXT_MAX, "%u.%u%c", (unsigned)(bytes / unit),
			 (unsigned)tenths, letters[letter]);
	return buffer;
}

char *tn_format_duration(uint64_t seconds, char buffer[TN_SIZE_TEXT_MAX])
{
	static const char letters[] = "dhm";
	/* keeps the text inside the buffer; no parsed duration comes near it */
	const uint64_t count_max = 9999999999999;
	uint64_t count = seconds;
	char letter = 's';

	if (seconds == TN_UNLIMITED) {
		snprintf(buffer, TN_SIZE_TEXT_MAX, "max");
		return buffer;
	}
	for (const char *p = letters; *p; p++) {
		uint64_t unit = duration_unit(*p);

		if (seconds >= 2 * unit || seconds == unit) {
			count = seconds / unit;
			letter = *p;
			break;
		}
	}
	if (count > count_max)
		count = count_max;
	snprintf(buffer, TN_SIZE_TEXT_MAX, "%llu%c", (unsigned long long)count, letter);
	return buffer;
}
