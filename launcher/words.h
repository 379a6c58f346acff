/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A growing list of words, NULL-terminated, so that it can be an argument vector. The
 * list owns copies. Running out of memory ends the program (tn_out_of_memory()).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct TnWords {
	char **items; /* NULL while empty */
	size_t n;
	size_t capacity;
} TnWords;

void tn_words_add(TnWords *words, const char *word);
void tn_words_addf(TnWords *words, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds every argument up to NULL. */
void tn_words_add_all(TnWords *words, ...) __attribute__((sentinel));
bool tn_words_contain(const TnWords *words, const char *word);
void tn_words_clear(TnWords *words);
