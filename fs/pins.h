/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pins: the mount points that bwrap makes inside the view. While a sandbox uses one, no
 * sandbox of the nest may remove or move it, nor move any directory above it: the kernel
 * protects a mount point only in the namespace that mounted it.
 *
 * A pin is a place (subtree and names), not a node: it is registered before bwrap makes
 * it. Pure: no I/O. The nest's table lock guards a set and its pins.
 */
#pragma once

#include "attach-proto.h"
#include "policy.h"

#include <stdbool.h>
#include <stddef.h>

#define TN_PIN_DEPTH_MAX 256

typedef struct TnPin {
	struct TnPin *next;
	unsigned users;   /* attachments that registered it */
	size_t made_from; /* components from here on did not exist before; n: all did */
	TnMountPointKind kind;
	TnSubtree subtree;
	size_t n;
	const char **components; /* into text */
	char *text;
} TnPin;

typedef struct TnPinSet {
	TnPin *first;
	size_t depth; /* of the deepest pin so far */
} TnPinSet;

/*
 * Parses "/tmp/a/b", "/var/tmp/x", "/private/tmp/x" or (below tmp) "x" into a pin that
 * belongs to no set yet. 0, -EINVAL (no place below a subtree, "..", too deep) or -ENOMEM.
 */
int tn_pin_new(TnPin **ret, TnMountPointKind kind, const char *path);
void tn_pin_free(TnPin *pin); /* takes NULL */

/* The pin of the same place, or NULL. */
TnPin *tn_pins_find(const TnPinSet *set, const TnPin *like);
/* Takes the pin, with one user. */
void tn_pins_add(TnPinSet *set, TnPin *pin);
/* Takes it out; the caller frees it. */
void tn_pins_remove(TnPinSet *set, TnPin *pin);

/*
 * How many leading components of pin were there before any sandbox made them: of the
 * `existing` that are there now those that no other pin of the set accounts for.
 */
size_t tn_pins_lasting(const TnPinSet *set, const TnPin *pin, size_t existing);

/*
 * True when the place is pinned, or, with above, when it is a directory above a pin.
 * components must be the whole place, or its first tn_pins_depth + 1 components.
 */
bool tn_pins_hold(const TnPinSet *set, TnSubtree subtree, const char *const components[], size_t n,
		  bool above);
