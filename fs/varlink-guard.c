/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "varlink-guard.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct Cursor {
	const char *at;
	const char *end;
	int depth;
} Cursor;

static int scan_value(Cursor *c);

/* The next byte, or NUL at the end: a NUL in the text is no JSON either. */
static char peek(const Cursor *c)
{
	return c->at < c->end ? *c->at : '\0';
}

static bool accept(Cursor *c, char wanted)
{
	if (peek(c) != wanted || c->at == c->end)
		return false;
	c->at++;
	return true;
}

static void skip_space(Cursor *c)
{
	while (c->at < c->end &&
	       (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
		c->at++;
}

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static bool is_hex(char byte)
{
	return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

/* After a backslash. */
static int scan_escape(Cursor *c)
{
	char kind = peek(c);

	if (kind == '\0' || strchr("\"\\/bfnrtu", kind) == NULL)
		return -EBADMSG;
	c->at++;
	if (kind != 'u')
		return 0;
	if (c->end - c->at < 4)
		return -EBADMSG;
	for (int i = 0; i < 4; i++) {
		if (!is_hex(c->at[i]))
			return -EBADMSG;
	}
	/* It would end the C string early, and the checks behind would see another name. */
	if (memcmp(c->at, "0000", 4) == 0)
		return -EBADMSG;
	c->at += 4;
	return 0;
}

static int scan_string(Cursor *c)
{
	if (!accept(c, '"'))
		return -EBADMSG;
	while (c->at < c->end) {
		char byte = *c->at++;

		if (byte == '"')
			return 0;
		if ((unsigned char)byte < 0x20)
			return -EBADMSG;
		if (byte == '\\') {
			int r = scan_escape(c);
			if (r < 0)
				return r;
		}
	}
	return -EBADMSG;
}

static int scan_digits(Cursor *c)
{
	if (!is_digit(peek(c)))
		return -EBADMSG;
	while (is_digit(peek(c)))
		c->at++;
	return 0;
}

static bool fits_int64(const char *digits, const char *end, bool negative)
{
	uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
	uint64_t value = 0;

	for (; digits < end; digits++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*digits - '0'), &value) ||
		    value > limit)
			return false;
	}
	return true;
}

static int scan_number(Cursor *c)
{
	bool negative = accept(c, '-');
	const char *digits = c->at;
	bool whole = true;

	if (scan_digits(c) < 0 || (digits[0] == '0' && c->at - digits > 1))
		return -EBADMSG;
	const char *end = c->at;
	if (accept(c, '.')) {
		whole = false;
		if (scan_digits(c) < 0)
			return -EBADMSG;
	}
	if (peek(c) == 'e' || peek(c) == 'E') {
		whole = false;
		c->at++;
		if (!accept(c, '+'))
			accept(c, '-');
		if (scan_digits(c) < 0)
			return -EBADMSG;
	}
	return whole && !fits_int64(digits, end, negative) ? -ERANGE : 0;
}

static int scan_word(Cursor *c, const char *word)
{
	size_t length = strlen(word);

	if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
		return -EBADMSG;
	c->at += length;
	return 0;
}

static int scan_member(Cursor *c, bool object)
{
	int r;

	skip_space(c);
	if (object) {
		r = scan_string(c);
		if (r < 0)
			return r;
		skip_space(c);
		if (!accept(c, ':'))
			return -EBADMSG;
	}
	r = scan_value(c);
	skip_space(c);
	return r;
}

/* Recursion is bounded by TN_VARLINK_DEPTH_MAX. */
static int scan_container(Cursor *c)
{
	bool object = peek(c) == '{';
	char close = object ? '}' : ']';
	int r;

	if (c->depth == TN_VARLINK_DEPTH_MAX)
		return -ELOOP;
	c->depth++;
	c->at++;
	skip_space(c);
	if (!accept(c, close)) {
		do {
			r = scan_member(c, object);
			if (r < 0)
				return r;
		} while (accept(c, ','));
		if (!accept(c, close))
			return -EBADMSG;
	}
	c->depth--;
	return 0;
}

static int scan_value(Cursor *c)
{
	skip_space(c);
	switch (peek(c)) {
	case '{':
	case '[':
		return scan_container(c);
	case '"':
		return scan_string(c);
	case 't':
		return scan_word(c, "true");
	case 'f':
		return scan_word(c, "false");
	case 'n':
		return scan_word(c, "null");
	default:
		return scan_number(c);
	}
}

int tn_varlink_guard(const char *text, size_t size)
{
	Cursor c = {.at = text, .end = text + size};
	int r;

	if (size > TN_VARLINK_MESSAGE_MAX)
		return -EMSGSIZE;
	skip_space(&c);
	if (peek(&c) != '{')
		return -EBADMSG;
	r = scan_container(&c);
	if (r < 0)
		return r;
	skip_space(&c);
	return c.at == c.end ? 0 : -EBADMSG;
}

const char *tn_varlink_guard_text(int error)
{
	switch (error) {
	case -EMSGSIZE:
		return "the message is longer than 64 KiB";
	case -ELOOP:
		return "the message is nested deeper than 32 levels";
	case -ERANGE:
		return "the message holds an integer past 64 bits";
	default:
		return "the message is not one JSON object";
	}
}
