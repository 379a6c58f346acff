/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any lines as rules of one nest, and any places asked about. The first byte of a line says what
 * the rest is: 'd' a rule to deny, 'r' a read-only one, '-' one to take away, else a place.
 * Whatever was added is a rule that can be written down, read again and taken away; a copy
 * answers as the original; the three questions agree.
 */
#include "policy.h"
#include "promise.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COMPONENTS 80

typedef struct Place {
	char *text;
	const char *components[COMPONENTS];
	size_t n;
	TnSubtree subtree;
} Place;

static bool find_absolute(const char *pattern, bool deny, bool built_in, void *data)
{
	TnPolicy *other = data;

	(void)built_in;
	/* As it is shown it can be given back, and means the same. */
	PROMISE(pattern[0] == '/');
	PROMISE(tn_policy_add(other, pattern, deny) == 0);
	return true;
}

static size_t count(const TnPolicy *policy);

static bool count_one(const char *pattern, bool deny, bool built_in, void *data)
{
	(void)pattern;
	(void)deny;
	(void)built_in;
	++*(size_t *)data;
	return true;
}

static size_t count(const TnPolicy *policy)
{
	size_t n = 0;

	tn_policy_each(policy, count_one, &n);
	return n;
}

static bool see_below(const char *const *pattern, size_t n, TnVerdict verdict, void *data)
{
	(void)data;
	PROMISE(n > 0 && verdict != TN_ALLOWED);
	for (size_t i = 0; i < n; i++)
		PROMISE(pattern[i][0]);
	return false;
}

static void cut(Place *place, const char *line)
{
	char *rest = place->text = strdup(line), *component;

	place->subtree = strlen(line) % 2 ? TN_SUBTREE_TMP : TN_SUBTREE_VAR_TMP;
	place->n = 0;
	while (rest && place->n < COMPONENTS && (component = strsep(&rest, "/")))
		if (*component)
			place->components[place->n++] = component;
}

static void ask(const TnPolicy *policy, const TnPolicy *copy, const char *line)
{
	Place place;
	TnVerdict verdict;

	cut(&place, line);
	verdict = tn_policy_match(policy, place.subtree, place.components, place.n);
	PROMISE(verdict == tn_policy_match(copy, place.subtree, place.components, place.n));
	PROMISE((tn_policy_find(policy, place.subtree, place.components, place.n) == NULL) ==
		(verdict == TN_ALLOWED));
	PROMISE(verdict != TN_READ_ONLY || tn_policy_has_read_only(policy));
	/* A deeper place needs no more components. */
	if (place.n > tn_policy_depth(policy))
		PROMISE(verdict == tn_policy_match(policy, place.subtree, place.components,
						   tn_policy_depth(policy)));
	tn_policy_each_below(policy, place.subtree, place.components, place.n, see_below, NULL);
	free(place.text);
}

static void change(TnPolicy *policy, char kind, const char *pattern)
{
	size_t before = count(policy);
	int r = kind == '-' ? tn_policy_remove(policy, pattern + (*pattern != 0), *pattern == 'd')
			    : tn_policy_add(policy, pattern, kind == 'd');

	PROMISE(r <= 0 && r >= -4095);
	PROMISE(r == 0 || count(policy) == before);
	if (r == 0 && kind != '-') {
		/* Once more is no error and changes nothing. */
		before = count(policy);
		PROMISE(tn_policy_add(policy, pattern, kind == 'd') == 0);
		PROMISE(count(policy) == before);
	}
}

static void check(const TnPolicy *policy, TnPolicy *copy, char *const *places, size_t n)
{
	TnPolicy *again = tn_policy_new();

	PROMISE(count(copy) == count(policy));
	tn_policy_each(policy, find_absolute, again);
	PROMISE(count(again) == count(policy));
	for (size_t i = 0; i < n; i++) {
		ask(policy, copy, places[i]);
		ask(policy, again, places[i]);
	}
	tn_policy_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *rest = text, *line;
	char *places[16];
	TnPolicy *policy = tn_policy_new(), *copy;
	size_t n = 0;

	memcpy(text, data, size);
	text[size] = '\0';
	while ((line = strsep(&rest, "\n"))) {
		if (line[0] == 'd' || line[0] == 'r' || line[0] == '-')
			change(policy, line[0], line + 1);
		else if (n < 16)
			places[n++] = line;
	}
	copy = tn_policy_copy(policy);
	PROMISE(copy);
	check(policy, copy, places, n);
	tn_policy_free(copy);
	tn_policy_free(policy);
	free(text);
	return 0;
}
