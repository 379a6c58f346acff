/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a Varlink message must be before the JSON parser may see it. json-glib nests
 * without bound and takes comments, single quotes, octal and overlong numbers and text
 * after the end, so a message is checked here against RFC 8259 to the letter: there is
 * then one reading of it, and a bound on what reading it costs.
 *
 * Pure: no I/O, no allocation, any thread. UTF-8 is left to the parser, which checks it.
 */
#pragma once

#include <stddef.h>

#define TN_VARLINK_MESSAGE_MAX (64 * 1024) /* bytes of one message, without its NUL */
#define TN_VARLINK_DEPTH_MAX 32            /* objects and arrays inside each other */

/*
 * 0 when text is exactly one JSON object within these limits, else
 * -EMSGSIZE  more bytes than TN_VARLINK_MESSAGE_MAX
 * -ELOOP     nested deeper than TN_VARLINK_DEPTH_MAX
 * -ERANGE    an integer that no int64_t holds
 * -EBADMSG   not one JSON object, or a string with a NUL (\u0000) in it
 */
int tn_varlink_guard(const char *text, size_t size);

/* One line for the sender about such an error. */
const char *tn_varlink_guard_text(int error);
