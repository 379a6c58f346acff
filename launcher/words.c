/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "words.h"
#include "message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes word. */
static void take(TnWords *words, char *word)
{
	if (!word)
		tn_out_of_memory();
	if (words->n + 2 > words->capacity) {
		size_t capacity = words->capacity ? 2 * words->capacity : 16;
		char **items = reallocarray(words->items, capacity, sizeof(*items));

		if (!items)
			tn_out_of_memory();
		words->items = items;
		words->capacity = capacity;
	}
	words->items[words->n++] = word;
	words->items[words->n] = NULL;
}

void tn_words_add(TnWords *words, const char *word)
{
	take(words, strdup(word));
}

void tn_words_addf(TnWords *words, const char *format, ...)
{
	va_list arguments;
	char *word = NULL;

	va_start(arguments, format);
	if (vasprintf(&word, format, arguments) < 0)
		word = NULL;
	va_end(arguments);
	take(words, word);
}

void tn_words_add_all(TnWords *words, ...)
{
	va_list arguments;
	const char *word;

	va_start(arguments, words);
	while ((word = va_arg(arguments, const char *)))
		tn_words_add(words, word);
	va_end(arguments);
}

bool tn_words_contain(const TnWords *words, const char *word)
{
	for (size_t i = 0; i < words->n; i++)
		if (strcmp(words->items[i], word) == 0)
			return true;
	return false;
}

void tn_words_clear(TnWords *words)
{
	for (size_t i = 0; i < words->n; i++)
		free(words->items[i]);
	free(words->items);
	*words = (TnWords){0};
}
