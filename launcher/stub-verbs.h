/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The verbs of `tmpnest stubs`, one a file, and the options that they share.
 *
 * Each verb takes its own words (argv[0] is the verb) and returns the exit status:
 * 0, 1 failure (audit: a difference), 2 usage.
 */
#pragma once

#include "stub-hold.h"
#include "stub-report.h"

#include <stdbool.h>

#define TN_STUBS_EXIT_FAILURE 1
#define TN_STUBS_EXIT_USAGE 2

int tn_stubs_verb_hold(int argc, char **argv);
int tn_stubs_verb_release(int argc, char **argv);
int tn_stubs_verb_run(int argc, char **argv);
int tn_stubs_verb_list(int argc, char **argv);
int tn_stubs_verb_missing(int argc, char **argv);
int tn_stubs_verb_reclaim(int argc, char **argv);
int tn_stubs_verb_audit(int argc, char **argv);
int tn_stubs_verb_paths(int argc, char **argv);
int tn_stubs_verb_reaper(int argc, char **argv);

/* Which options a verb knows; --ledger and --help always. */
typedef enum TnStubsKnows {
	TN_KNOWS_OWNER = 1 << 0,
	TN_KNOWS_PID = 1 << 1,
	TN_KNOWS_PLACES = 1 << 2, /* --cwd --home --config-dir --writable --profile --path */
	TN_KNOWS_FILLED = 1 << 3,
	TN_KNOWS_ALL = 1 << 4,
	TN_KNOWS_NO_LEDGER = 1 << 5,
	TN_KNOWS_COMMAND = 1 << 6, /* -- CMD */
	TN_KNOWS_JSON = 1 << 7,
	TN_KNOWS_MOUNTINFO = 1 << 8,
} TnStubsKnows;

typedef struct TnStubsArgs {
	const char *verb;
	const char *owner;
	int64_t pid; /* 0: not given */
	bool all, filled, no_ledger, json, verbose;
	const char *profile_name;
	const char *mountinfo;
	char **command;

	char cwd[PATH_MAX], home[PATH_MAX], config_dir[PATH_MAX];
	char **writable;
	size_t n_writable;
	TnStubPaths explicit_paths;

	char ledger_path[PATH_MAX], profiles_dir[PATH_MAX], runtime_dir[PATH_MAX];
} TnStubsArgs;

/* -1: go on. Otherwise the exit status; the message is out. */
int tn_stubs_args_init(TnStubsArgs *args, unsigned knows, int argc, char **argv);
void tn_stubs_args_clear(TnStubsArgs *args);

/* The paths that --path or the profile name. -1 or the exit status. kinds may be NULL. */
int tn_stubs_args_paths(const TnStubsArgs *args, TnStubPaths *ret, TnStubKind **ret_kinds);

/* The keeper and the report for these arguments. */
void tn_stubs_args_open(const TnStubsArgs *args, TnStubs *stubs, TnStubReport *report);

/* One line "tmpnest: stubs VERB: OBJECT: WHY"; returns the failure status. */
int tn_stubs_fail(const TnStubsArgs *args, const char *object, const char *why);
int tn_stubs_usage(const char *verb, const char *why);

/* The holder that --pid names, else the parent process. -1 or the exit status. */
int tn_stubs_args_holder(const TnStubsArgs *args, const TnSelf *self, TnStubHolder *ret);
