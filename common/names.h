/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * File names, which may hold any byte but NUL, as text that is valid UTF-8 and leads back
 * to the same bytes: a backslash is written \\, a byte that is no part of valid UTF-8 \xNN.
 * Everything else stays as it is, control characters too. Pure; any thread.
 */
#pragma once

#include <stddef.h>

/* Bytes of the character at text, 1 to 4; 0 when it is no valid UTF-8. text ends in NUL. */
size_t tn_utf8_length(const char *text);

/* The text of a name; malloc()ed, NULL when out of memory. */
char *tn_name_encode(const char *name);

/* The name of a text, in place. -EINVAL: a backslash that starts neither of the two. */
int tn_name_decode(char *text);
