/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Values as people read them. Pure; any thread. Strings returned are the caller's.
 */
#pragma once

#include <glib.h>

/*
 * Text that a sandbox may have chosen, safe on a terminal: control characters (C1 and
 * bidirectional marks too) and what is no UTF-8 come out as \xNN, a backslash as \\.
 */
char *tn_text_escape(const char *text);

/* "3.2G"; "-" for TN_UNLIMITED. */
char *tn_text_size(guint64 bytes);
/* "37%"; "-" without a limit. Rounded up: "100%" is full or nearly so, "0%" is empty. */
char *tn_text_percent(guint64 used, guint64 limit);
/* "[####......]" of that many cells; blanks without a limit. */
char *tn_text_bar(guint64 used, guint64 limit, guint cells);

/* "5s", "12m", "3h", "9d" from an RFC 3339 time to now_us (Unix time); "-" when it is none. */
char *tn_text_age(const char *rfc3339, gint64 now_us);

/* Columns on a terminal that valid UTF-8 takes: wide characters two, combining ones none. */
guint tn_text_width(const char *text);
