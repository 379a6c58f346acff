/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the launcher tells its user: one line on stderr,
 * `tmpnest: WHAT: OBJECT: WHY (what to do)`.
 *
 * A function of the launcher that fails has said why, once, and returns -errno; its
 * callers pass the number on and say nothing.
 */
#pragma once

#include <stddef.h>

#define TN_EXIT_FAILED 125 /* tmpnest itself failed, as opposed to the command */

/* Prints "tmpnest: " and the line in one write(2); control bytes come out as \xNN. */
void tn_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, and returns error, so that a function can end with `return tn_fail(...)`. */
int tn_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says so and exits with TN_EXIT_FAILED: nothing of the launcher outlives it anyway. */
_Noreturn void tn_out_of_memory(void);
