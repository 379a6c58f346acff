/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's log: one line per event on stderr, "tmpnestd: WHAT", with a syslog
 * priority in front ("<3>") when stderr is the journal (JOURNAL_STREAM, sd-daemon(3)).
 * Any thread; a line is one write(2). Text that a sandbox chose must go through
 * tn_log_escape() first.
 */
#pragma once

#include <stddef.h>

typedef enum TnLogLevel {
	TN_LOG_ERROR = 3,
	TN_LOG_WARNING = 4,
	TN_LOG_INFO = 6,
	TN_LOG_DEBUG = 7,
} TnLogLevel;

/* Chooses the prefix and the lowest level that is printed. Call once, in main(). */
void tn_log_init(TnLogLevel lowest);
void tn_log(TnLogLevel level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Copies text with control and non-ASCII bytes as \xNN; always NUL-terminated; returns buffer. */
char *tn_log_escape(const char *text, char *buffer, size_t size);
