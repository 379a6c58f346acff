/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "json-scan.h"

#include <errno.h>
#include <string.h>

static const char *skip_blanks(const char *at)
{
	while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')
		at++;
	return at;
}

/* at: the opening quote. Behind the closing one, or NULL. */
static const char *skip_string(const char *at)
{
	for (at++; *at != '"'; at++) {
		if ((guchar)*at < ' ')
			return NULL;
		if (*at == '\\' && (guchar) * ++at < ' ')
			return NULL;
	}
	return at + 1;
}

static const char *skip_word(const char *at)
{
	static const char *const words[] = {"null", "true", "false"};

	for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
		gsize length = strlen(words[i]);

		if (strncmp(at, words[i], length) == 0)
			return at + length;
	}
	return NULL;
}

static const char *skip_number(const char *at)
{
	const char *end = at + strspn(at, "+-.0123456789eE");

	return end > at ? end : NULL;
}

static const char *skip_plain(const char *at)
{
	if (*at == '"')
		return skip_string(at);
	return g_ascii_isalpha(*at) ? skip_word(at) : skip_number(at);
}

static const char *skip_value(const char *at, guint depth)
{
	TnJsonScan scan;
	TnJsonText key, value;

	if (*at != '{' && *at != '[')
		return skip_plain(at);
	if (depth >= TN_JSON_DEPTH_MAX)
		return NULL;
	scan = (TnJsonScan){.at = at + 1, .end = *at == '{' ? '}' : ']', .depth = depth + 1};
	while (scan.end == '}' ? tn_json_next_member(&scan, &key, &value)
			       : tn_json_next_element(&scan, &value))
		;
	return scan.at;
}

gboolean tn_json_whole(const char *text, TnJsonText *ret)
{
	const char *begin = skip_blanks(text), *end = skip_value(begin, 0);

	if (end == NULL || *skip_blanks(end) != '\0')
		return FALSE;
	*ret = (TnJsonText){begin, (gsize)(end - begin)};
	return TRUE;
}

static gboolean scan_inside(const TnJsonText *value, char open, char close, TnJsonScan *ret)
{
	if (value->size == 0 || *value->at != open)
		return FALSE;
	*ret = (TnJsonScan){.at = value->at + 1, .end = close};
	return TRUE;
}

gboolean tn_json_scan_object(const TnJsonText *value, TnJsonScan *ret)
{
	return scan_inside(value, '{', '}', ret);
}

gboolean tn_json_scan_array(const TnJsonText *value, TnJsonScan *ret)
{
	return scan_inside(value, '[', ']', ret);
}

static gboolean fail(TnJsonScan *scan)
{
	scan->at = NULL;
	return FALSE;
}

/* To the next value or key. FALSE: at the end, or broken. */
static gboolean advance(TnJsonScan *scan)
{
	if (scan->at == NULL || scan->ended)
		return FALSE;
	scan->at = skip_blanks(scan->at);
	if (*scan->at == scan->end) {
		scan->at++;
		scan->ended = TRUE;
		return FALSE;
	}
	if (scan->begun && *scan->at != ',')
		return fail(scan);
	if (scan->begun)
		scan->at = skip_blanks(scan->at + 1);
	scan->begun = TRUE;
	return TRUE;
}

static gboolean take_value(TnJsonScan *scan, TnJsonText *ret)
{
	const char *begin = scan->at;

	scan->at = skip_value(begin, scan->depth);
	if (scan->at == NULL)
		return FALSE;
	*ret = (TnJsonText){begin, (gsize)(scan->at - begin)};
	return TRUE;
}

gboolean tn_json_next_member(TnJsonScan *scan, TnJsonText *ret_key, TnJsonText *ret_value)
{
	if (!advance(scan))
		return FALSE;
	if (*scan->at != '"' || !take_value(scan, ret_key))
		return fail(scan);
	scan->at = skip_blanks(scan->at);
	if (*scan->at != ':')
		return fail(scan);
	scan->at = skip_blanks(scan->at + 1);
	return take_value(scan, ret_value);
}

gboolean tn_json_next_element(TnJsonScan *scan, TnJsonText *ret_value)
{
	return advance(scan) && take_value(scan, ret_value);
}

gboolean tn_json_is_broken(const TnJsonScan *scan)
{
	return scan->at == NULL;
}

gboolean tn_json_equals(const TnJsonText *value, const char *text)
{
	gsize length = strlen(text);

	return value->size == length + 2 && value->at[0] == '"' &&
	       memcmp(value->at + 1, text, length) == 0;
}

/* Four hexadecimal digits, or G_MAXUINT32. */
static guint32 hex4(const char *at)
{
	guint32 value = 0;

	for (int i = 0; i < 4; i++) {
		int digit = g_ascii_xdigit_value(at[i]);

		if (digit < 0)
			return G_MAXUINT32;
		value = value << 4 | (guint32)digit;
	}
	return value;
}

/* at: behind the u of an escape. Behind its digits, or NULL. A half of a pair, and a NUL, become
 * U+FFFD. */
static const char *append_escaped(const char *at, GString *out)
{
	guint32 c = hex4(at), low;

	if (c == G_MAXUINT32)
		return NULL;
	at += 4;
	if (c >= 0xd800 && c < 0xdc00 && at[0] == '\\' && at[1] == 'u') {
		low = hex4(at + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
			at += 6;
		}
	}
	g_string_append_unichar(out, c == 0 || (c >= 0xd800 && c < 0xe000) ? 0xfffd : c);
	return at;
}

gboolean tn_json_append_string(const TnJsonText *value, GString *out)
{
	static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *at = value->at + 1, *end = value->at + value->size - 1;

	if (value->size < 2 || value->at[0] != '"')
		return FALSE;
	while (at < end) {
		const char *letter;

		if (*at != '\\') {
			g_string_append_c(out, *at++);
			continue;
		}
		at += 2;
		letter = strchr(letters, at[-1]);
		if (at[-1] == 'u')
			at = append_escaped(at, out);
		else if (letter != NULL)
			g_string_append_c(out, meant[letter - letters]);
		else
			return FALSE;
		if (at == NULL)
			return FALSE;
	}
	return TRUE;
}

gboolean tn_json_int(const TnJsonText *value, gint64 *ret)
{
	char *end;
	gint64 number;

	if (value->size == 0 || (*value->at != '-' && !g_ascii_isdigit(*value->at)))
		return FALSE;
	errno = 0;
	number = g_ascii_strtoll(value->at, &end, 10);
	if (errno != 0 || end != value->at + value->size)
		return FALSE;
	*ret = number;
	return TRUE;
}
