/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which paths need stubs. The lists are data: profiles (data/stubs/NAME.json), each with its
 * source and version; this module reads one and joins it with the places of a run.
 *
 * Pure but for tn_stub_profile_load() and tn_stub_names_load(), which read files. Any thread.
 *
 * A profile is {"name", "source", "version", "directories": [NAME...],
 * "sets": [{"where": WHERE, "paths": [RELATIVE...]}...]}; WHERE is one of
 *   cwd             the working directory
 *   project         it, and each directory above it that is writable in the sandbox
 *   config          $CLAUDE_CONFIG_DIR, else ~/.claude
 *   default-config  ~/.claude, but only without CLAUDE_CONFIG_DIR
 *   global          $CLAUDE_CONFIG_DIR, else the home directory
 *   home            the home directory
 * "also_denied", a list of sets too, names paths that the runtime denies and that are always there,
 * so that they need no stub: only the audit reads it.
 */
#pragma once

#include "ledger.h"

#include <jansson.h>
#include <limits.h>

#define TN_STUB_INNER_NAME ".tmpnest-stub" /* the file in a filled directory stub */

typedef struct TnStubProfile {
	json_t *json;
} TnStubProfile;

/* Where a run takes place; all absolute and resolved, config_dir may be NULL. */
typedef struct TnStubPlaces {
	const char *cwd;
	const char *home;
	const char *config_dir;
	const char *const *writable;
	size_t n_writable;
} TnStubPlaces;

typedef struct TnStubPaths {
	char **paths; /* sorted, each once: a directory comes before what is inside */
	size_t n_paths;
} TnStubPaths;

typedef struct TnStubNames {
	json_t *names; /* the keys are the names */
} TnStubNames;

/* 0 or -EBADMSG, with one line in why. */
int tn_stub_profile_parse(const char *text, size_t size, TnStubProfile *ret, char *why,
			  size_t why_size);

/*
 * name is a path when it holds a slash, else a profile in dir, else one that is built in. 0
 * or -errno with one line in why.
 */
int tn_stub_profile_load(const char *dir, const char *name, TnStubProfile *ret, char *why,
			 size_t why_size);
void tn_stub_profile_clear(TnStubProfile *profile);

/* TMPNEST_STUBS_PROFILES, or where the installation keeps them. */
void tn_stub_profiles_dir(char ret[PATH_MAX]);

/* 0 or -ENOMEM. What is too long to be a path is left out. */
int tn_stub_paths_expand(const TnStubProfile *profile, const TnStubPlaces *places,
			 TnStubPaths *ret);
int tn_stub_paths_expand_also(const TnStubProfile *profile, const TnStubPlaces *places,
			      TnStubPaths *ret);
void tn_stub_paths_clear(TnStubPaths *paths);

/* What a stub at path is made as: the profile's "directories" name the directories. */
TnStubKind tn_stub_kind_of(const TnStubProfile *profile, const char *path);

/* The names of all stubs that a profile knows, built in or in dir. Never fails. */
void tn_stub_names_load(TnStubNames *ret, const char *dir);
bool tn_stub_names_has(const TnStubNames *names, const char *path);
void tn_stub_names_clear(TnStubNames *names);

/* The shortest harmless text for a filled stub at path. */
const char *tn_stub_text(const char *path);
