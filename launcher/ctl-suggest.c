/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"

#include <string.h>

#define LONGEST 16

/* Edits (insert, delete, replace, swap of neighbours) between two short words. */
static guint distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	guint d[LONGEST + 1][LONGEST + 1];

	for (size_t i = 0; i <= n; i++)
		d[i][0] = (guint)i;
	for (size_t j = 0; j <= m; j++)
		d[0][j] = (guint)j;
	for (size_t i = 1; i <= n; i++) {
		for (size_t j = 1; j <= m; j++) {
			guint best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			best = MIN(best, d[i - 1][j] + 1);
			best = MIN(best, d[i][j - 1] + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = MIN(best, d[i - 2][j - 2] + 1);
			d[i][j] = best;
		}
	}
	return d[n][m];
}

/* Words of other tools for the same thing. */
static const char *other_word(const char *name)
{
	static const char *const words[][2] = {
		{"list", "ls"},      {"ps", "ls"},        {"rm", "evict"},
		{"remove", "evict"}, {"delete", "evict"}, {"destroy", "evict"},
		{"exec", "run"},     {"info", "show"},    {"inspect", "show"},
		{"start", "daemon"}, {"stop", "daemon"},  {"status", "daemon"},
		{"new", "create"},   {"quota", "limits"}, {"check", "doctor"},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
		if (strcmp(words[i][0], name) == 0)
			return words[i][1];
	}
	return NULL;
}

const char *tn_verb_suggest(const char *name)
{
	const char *best = other_word(name);
	guint best_distance;
	const TnVerb *verbs;
	size_t n;

	if (best != NULL || strlen(name) > LONGEST)
		return best;
	verbs = tn_verbs(&n);
	/* Less than half of a word changed, and never all of it. */
	best_distance = MIN(3, (guint)strlen(name) / 2 + 1);
	for (size_t i = 0; i < n; i++) {
		guint d = distance(name, verbs[i].name);

		if (d < best_distance && d < strlen(verbs[i].name)) {
			best = verbs[i].name;
			best_distance = d;
		}
	}
	return best;
}
