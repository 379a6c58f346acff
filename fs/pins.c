/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pins.h"

#include "macros.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ANCHOR_MOST 3 /* components of "/private/var/tmp" */
#define COMPONENTS_MOST (ANCHOR_MOST + TN_PIN_DEPTH_MAX)

/* Which subtree the first components name, and how many of them do. */
static size_t anchor_of(const TnPin *pin, bool absolute, TnSubtree *ret)
{
	size_t skip = absolute && pin->n >= 1 && strcmp(pin->components[0], "private") == 0;

	*ret = TN_SUBTREE_TMP;
	if (!absolute)
		return 0;
	if (pin->n > skip && strcmp(pin->components[skip], "tmp") == 0)
		return skip + 1;
	if (pin->n > skip + 1 && strcmp(pin->components[skip], "var") == 0 &&
	    strcmp(pin->components[skip + 1], "tmp") == 0) {
		*ret = TN_SUBTREE_VAR_TMP;
		return skip + 2;
	}
	return 0;
}

static int split(TnPin *pin)
{
	char *rest = pin->text, *component;

	while ((component = strsep(&rest, "/"))) {
		if (*component == '\0' || strcmp(component, ".") == 0)
			continue;
		if (strcmp(component, "..") == 0 || strlen(component) > 255 ||
		    pin->n == COMPONENTS_MOST)
			return -EINVAL;
		pin->components[pin->n++] = component;
	}
	return 0;
}

int tn_pin_new(TnPin **ret, TnMountPointKind kind, const char *path)
{
	TnPin *pin = calloc(1, sizeof(*pin));
	size_t anchor;
	int r = -ENOMEM;

	if (!pin)
		return r;
	pin->kind = kind;
	pin->text = strdup(path);
	pin->components = calloc(COMPONENTS_MOST, sizeof(*pin->components));
	if (pin->text && pin->components)
		r = split(pin);
	if (r == 0) {
		anchor = anchor_of(pin, path[0] == '/', &pin->subtree);
		pin->n -= anchor;
		memmove(pin->components, pin->components + anchor,
			pin->n * sizeof(*pin->components));
		if (pin->n == 0 || pin->n > TN_PIN_DEPTH_MAX)
			r = -EINVAL;
	}
	if (r < 0) {
		tn_pin_free(pin);
		return r;
	}
	pin->made_from = pin->n;
	*ret = pin;
	return 0;
}

void tn_pin_free(TnPin *pin)
{
	if (!pin)
		return;
	free(pin->components);
	free(pin->text);
	free(pin);
}

/* How many leading components both places share; 0 in different subtrees. */
static size_t shared(const TnPin *pin, TnSubtree subtree, const char *const components[], size_t n)
{
	size_t i = 0;

	if (pin->subtree != subtree)
		return 0;
	while (i < n && i < pin->n && strcmp(pin->components[i], components[i]) == 0)
		i++;
	return i;
}

TnPin *tn_pins_find(const TnPinSet *set, const TnPin *like)
{
	TnPin *pin = set->first;

	while (pin && (pin->n != like->n ||
		       shared(pin, like->subtree, like->components, like->n) != like->n))
		pin = pin->next;
	return pin;
}

void tn_pins_add(TnPinSet *set, TnPin *pin)
{
	pin->users = 1;
	pin->next = set->first;
	set->first = pin;
	if (pin->n > set->depth)
		set->depth = pin->n;
}

void tn_pins_remove(TnPinSet *set, TnPin *pin)
{
	TnPin **at = &set->first;

	while (*at && *at != pin)
		at = &(*at)->next;
	if (*at)
		*at = pin->next;
	if (!set->first)
		set->depth = 0;
}

size_t tn_pins_lasting(const TnPinSet *set, const TnPin *pin, size_t existing)
{
	size_t lasting = existing;

	for (const TnPin *other = set->first; other; other = other->next) {
		size_t common = shared(other, pin->subtree, pin->components, pin->n);

		if (other->made_from < common && other->made_from < lasting)
			lasting = other->made_from;
	}
	return lasting;
}

bool tn_pins_hold(const TnPinSet *set, TnSubtree subtree, const char *const components[], size_t n,
		  bool above)
{
	for (const TnPin *pin = set->first; pin; pin = pin->next) {
		if (pin->n < n || (pin->n > n && !above))
			continue;
		if (shared(pin, subtree, components, n) == n)
			return true;
	}
	return false;
}
