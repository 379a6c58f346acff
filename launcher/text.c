/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "text.h"

#include "units.h"

#include <string.h>

static gboolean is_plain(gunichar c)
{
	switch (g_unichar_type(c)) {
	/* These can reorder, hide or break what stands beside them. */
	case G_UNICODE_FORMAT:
	case G_UNICODE_LINE_SEPARATOR:
	case G_UNICODE_PARAGRAPH_SEPARATOR:
		return FALSE;
	default:
		return c != '\\' && g_unichar_isprint(c);
	}
}

char *tn_text_escape(const char *text)
{
	GString *out = g_string_sized_new(strlen(text));

	while (*text != '\0') {
		gunichar c = g_utf8_get_char_validated(text, -1);
		gboolean valid = c != (gunichar)-1 && c != (gunichar)-2;
		gsize length = valid ? (gsize)(g_utf8_next_char(text) - text) : 1;

		if (valid && is_plain(c)) {
			g_string_append_len(out, text, (gssize)length);
		} else if (c == '\\') {
			g_string_append(out, "\\\\");
		} else {
			for (gsize i = 0; i < length; i++)
				g_string_append_printf(out, "\\x%02x", (guchar)text[i]);
		}
		text += length;
	}
	return g_string_free(out, FALSE);
}

char *tn_text_size(guint64 bytes)
{
	char buffer[TN_SIZE_TEXT_MAX];

	return g_strdup(bytes == TN_UNLIMITED ? "-" : tn_format_size(bytes, buffer));
}

static guint64 part_of(guint64 used, guint64 limit, guint64 whole)
{
	double part;

	if (limit == 0 || used >= limit)
		return whole;
	part = (double)used / (double)limit * (double)whole;
	return (guint64)part + (part > (double)(guint64)part ? 1 : 0);
}

char *tn_text_percent(guint64 used, guint64 limit)
{
	if (limit == TN_UNLIMITED)
		return g_strdup("-");
	return g_strdup_printf("%" G_GUINT64_FORMAT "%%", part_of(used, limit, 100));
}

char *tn_text_bar(guint64 used, guint64 limit, guint cells)
{
	guint64 filled = limit == TN_UNLIMITED ? 0 : part_of(used, limit, cells);
	GString *bar = g_string_new(limit == TN_UNLIMITED ? " " : "[");

	for (guint i = 0; i < cells; i++)
		g_string_append_c(bar, limit == TN_UNLIMITED ? ' ' : i < filled ? '#' : '.');
	g_string_append_c(bar, limit == TN_UNLIMITED ? ' ' : ']');
	return g_string_free(bar, FALSE);
}

char *tn_text_age(const char *rfc3339, gint64 now_us)
{
	g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(rfc3339, NULL);
	char buffer[TN_SIZE_TEXT_MAX];
	gint64 age;

	if (time == NULL)
		return g_strdup("-");
	age = now_us / G_USEC_PER_SEC - g_date_time_to_unix(time);
	return g_strdup(tn_format_duration(age > 0 ? (guint64)age : 0, buffer));
}

guint tn_text_width(const char *text)
{
	guint width = 0;

	for (; *text != '\0'; text = g_utf8_next_char(text)) {
		gunichar c = g_utf8_get_char(text);

		if (!g_unichar_iszerowidth(c))
			width += g_unichar_iswide(c) ? 2 : 1;
	}
	return width;
}
