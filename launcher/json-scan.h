/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads JSON text (RFC 8259) in place: member by member, element by element, without a tree. For
 * long listings, where json-glib spends some 130,000 instructions on each nest. Pure; any thread.
 *
 * A value is the stretch of text from its first to behind its last byte, in a text that ends in a
 * NUL. What is no JSON ends an iteration as its end does; tn_json_is_broken() tells.
 */
#pragma once

#include <glib.h>

#define TN_JSON_DEPTH_MAX 32

typedef struct TnJsonText {
	const char *at;
	gsize size;
} TnJsonText;

/* An array or an object that is being read. */
typedef struct TnJsonScan {
	const char *at; /* NULL when the text is broken */
	char end;       /* what closes it */
	gboolean begun, ended;
	guint depth;
} TnJsonScan;

/* The value that text is, blanks around it aside. FALSE: it is none, or more than one. */
gboolean tn_json_whole(const char *text, TnJsonText *ret);

/* FALSE when value is no object, no array. */
gboolean tn_json_scan_object(const TnJsonText *value, TnJsonScan *ret);
gboolean tn_json_scan_array(const TnJsonText *value, TnJsonScan *ret);
/* The next member; key is a string, quotes included. FALSE: there is none. */
gboolean tn_json_next_member(TnJsonScan *scan, TnJsonText *ret_key, TnJsonText *ret_value);
gboolean tn_json_next_element(TnJsonScan *scan, TnJsonText *ret_value);
gboolean tn_json_is_broken(const TnJsonScan *scan);

/* Is value the string `text`, which needs no escaping? */
gboolean tn_json_equals(const TnJsonText *value, const char *text);
/* The string that value is, appended to out. FALSE when it is none. */
gboolean tn_json_append_string(const TnJsonText *value, GString *out);
/* The integer that value is. FALSE when it is none, or does not fit. */
gboolean tn_json_int(const TnJsonText *value, gint64 *ret);
