/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_follower(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

size_t tn_utf8_length(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned lowest = 0x80, highest = 0xbf; /* of the second byte */
	size_t length;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	/* Neither longer forms than needed, nor surrogates, nor past U+10FFFF. */
	if (s[0] == 0xe0)
		lowest = 0xa0;
	else if (s[0] == 0xed)
		highest = 0x9f;
	else if (s[0] == 0xf0)
		lowest = 0x90;
	else if (s[0] == 0xf4)
		highest = 0x8f;
	if (s[1] < lowest || s[1] > highest)
		return 0;
	for (size_t i = 2; i < length; i++) {
		if (!is_follower(s[i]))
			return 0;
	}
	return length;
}

char *tn_name_encode(const char *name)
{
	char *text = malloc(strlen(name) * 4 + 1), *out = text;

	if (!text)
		return NULL;
	while (*name) {
		size_t length = tn_utf8_length(name);

		if (length == 0) {
			out += sprintf(out, "\\x%02x", (unsigned char)*name++);
			continue;
		}
		if (*name == '\\')
			*out++ = '\\';
		memcpy(out, name, length);
		out += length;
		name += length;
	}
	*out = '\0';
	return text;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int tn_name_decode(char *text)
{
	char *out = text;

	while (*text) {
		int high, low;

		if (*text != '\\') {
			*out++ = *text++;
			continue;
		}
		if (text[1] == '\\') {
			*out++ = '\\';
			text += 2;
			continue;
		}
		high = text[1] == 'x' ? hex_digit(text[2]) : -1;
		low = high >= 0 ? hex_digit(text[3]) : -1;
		if (low < 0 || (high == 0 && low == 0))
			return -EINVAL;
		*out++ = (char)(high << 4 | low);
		text += 4;
	}
	*out = '\0';
	return 0;
}
