/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A registry without a store: nests are names and counters, so that the attach server can
 * be tested alone. Takes the place of fs/registry.c, fs/nest.c and fs/serve.c at link time.
 * A mount is an end of a pipe.
 */
#pragma once

#include "registry.h"

typedef struct TnFake {
	/* calls that did something */
	_Atomic unsigned created, evicted, attached, detached;
	_Atomic int refs;            /* references on nests that the caller holds */
	_Atomic int attach_error;    /* what the next tn_nest_attach() returns once, if not 0 */
	_Atomic int create_error;    /* likewise */
	_Atomic unsigned huge_rules; /* rules of PATH_MAX bytes that each nest claims to have */
} TnFake;

extern TnFake tn_fake;

/* Forgets every nest; counters to zero. */
void tn_fake_reset(void);
