/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line of `tmpnest run`. Pure: looks at words only, touches nothing else.
 */
#pragma once

#include "attach-proto.h"
#include "daemon-choice.h"
#include "words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TnBindOption {
	char *host;   /* as given */
	char *inside; /* absolute; NULL: the same as host */
	bool read_only;
} TnBindOption;

typedef struct TnRunOptions {
	TnDaemonChoice daemon;
	const char *nest; /* NULL: ephemeral */

	/* LIMITS: 0 = default, TN_UNLIMITED = none */
	uint64_t bytes, inodes, ttl, idle_ttl;
	bool durable, no_xattrs, writeback;
	TnStoreKind store;
	/* RULES */
	TnWords deny, read_only;

	/* SANDBOX */
	TnWords workspaces;
	bool no_workspace;
	TnBindOption *binds; /* in the order given */
	size_t n_binds;
	TnWords setenvs; /* name, value, name, value, ... */
	bool unshare_net;
	bool no_var_tmp;
	TnWords bwrap_args;
	const char *run_as;
	bool keep_caps;
	bool report;
	bool keep;

	bool help;
	char **command; /* borrowed from argv, NULL-terminated */
} TnRunOptions;

/*
 * argv are the words after `run`, NULL-terminated; strings in *ret are borrowed from it
 * unless they are in a list. 0, or -EINVAL with one line in why. *ret is to be cleared
 * either way.
 */
int tn_run_options_parse(TnRunOptions *ret, char **argv, char *why, size_t why_size);
void tn_run_options_clear(TnRunOptions *options);

/* True when something was asked for that only the making of a nest can heed. */
bool tn_run_options_shape_nest(const TnRunOptions *options);
