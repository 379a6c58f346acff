/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What tmpnest-bwrap is told beside bwrap's words: by the environment, and by
 * tmpnest.conf for runtimes that start bwrap with a scrubbed one.
 *
 * /etc/tmpnest/tmpnest.conf is read first, then $XDG_CONFIG_HOME/tmpnest/tmpnest.conf;
 * a later value replaces an earlier one, lists grow. The environment wins over both.
 *
 *   [nest]   name, quota, inodes, ttl, idle_ttl, store, deny, read_only
 *   [bwrap]  nest_from, var_tmp, verbose, program, view
 *
 * deny, read_only and nest_from may come several times. `program` (the real bwrap) and
 * `view` count only in /etc: a sandbox may be able to write its user's files. Other sections
 * are the daemon's.
 */
#pragma once

#include "attach-proto.h"
#include "words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum TnFrontWhen {
	TN_FRONT_VIEW_ALWAYS,   /* a line that cannot have one is refused */
	TN_FRONT_VIEW_POSSIBLE, /* ... is started as it is, and that is said */
	TN_FRONT_VIEW_NEVER,
} TnFrontWhen;

typedef struct TnFrontOptions {
	char *nest;    /* NULL: by nest_from, else ephemeral */
	TnWords globs; /* of writable binds that name the nest, the first that matches counts */
	uint64_t bytes, inodes, ttl, idle_ttl; /* 0 = default, TN_UNLIMITED = none */
	TnStoreKind store;
	TnWords deny, read_only;
	TnFrontWhen view;
	bool var_tmp;
	bool verbose;     /* say also what was dropped and added */
	char *program;    /* the real bwrap, or NULL */
	bool no_built_in; /* nest_from = none was given */
} TnFrontOptions;

/*
 * Applies the text of one configuration file. 0, or -EINVAL with "NAME:LINE: why" said;
 * trusted: the file is root's.
 */
int tn_front_options_parse(TnFrontOptions *options, const char *text, const char *name,
			   bool trusted);

/* Applies variables as getenv-like lookup gives them. 0, or -EINVAL, said. */
int tn_front_options_environment(TnFrontOptions *options, const char *(*look)(const char *name));

/* Both files and the environment; adds the built-in rules. 0 or -errno, said. */
int tn_front_options_load(TnFrontOptions *options);
void tn_front_options_clear(TnFrontOptions *options);
