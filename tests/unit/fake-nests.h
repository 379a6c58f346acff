/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Nests of several owners that are numbers only, so that the control interface can be
 * tested alone. Takes the place of fs/registry.c and fs/nest.c at link time. Locked
 * inside, like the real ones.
 */
#pragma once

#include "registry.h"

#define FAKE_NESTS_MAX 400

/* A nest called "going" that is being wiped, of whoever asks; until the next reset. */
void fake_nests_going(void);

/* Forgets everything. */
void fake_nests_reset(void);
/* Makes a nest with that owner; its id. */
uint64_t fake_nests_add(uid_t owner, const char *name);
void fake_nests_set(uint64_t id, const TnNestInfo *info);
void fake_nests_get(uint64_t id, TnNestInfo *ret);
/* References that somebody still holds. */
int fake_nests_refs(void);
/* What the last tn_registry_create() was asked for. */
const TnNestSpec *fake_nests_last_spec(void);

/* What the next call of the kind returns, once. */
void fake_nests_fail_create(int error, const char *why);
void fake_nests_fail_limits(int error);
/* What a recount finds; error wins when it is not 0. */
void fake_nests_recount_finds(uint64_t bytes, uint64_t inodes, int error);
/* Bytes that the account moves by while each recount runs. */
void fake_nests_grow_during_recount(uint64_t bytes);
/* What tn_nest_look() and its kin show of every nest: below this directory; -1: nothing. */
void fake_nests_content(int dir);
/* What tn_registry_events() gives; borrowed. For daemons started after it. */
void fake_nests_hub(TnEventHub *hub);
/* Rules that every nest claims to have besides the built-in one, each of that pattern. */
void fake_nests_rules(unsigned n, const char *pattern);
