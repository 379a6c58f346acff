/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the operator verbs share: the verb table, option parsing, exit statuses, output.
 * One thread; GLib is allowed here, as this program never unshares anything itself.
 */
#pragma once

#include "control-client.h"

#include <glib.h>
#include <json-glib/json-glib.h>

/* Exit statuses that scripts build on. */
enum {
	TN_CTL_OK = 0,
	TN_CTL_FAILED = 1,
	TN_CTL_USAGE = 2,
	TN_CTL_NO_NEST = 3,
	TN_CTL_REFUSED = 4,
	TN_CTL_NO_DAEMON = 5,
	TN_CTL_NO_FILE = 6, /* for callers only: a verb exits with TN_CTL_FAILED */
};

typedef struct TnVerb {
	const char *name;
	const char *arguments; /* "NAME", for the usage line */
	const char *summary;   /* one line for the overview */
	/* argv[0] is the verb. Its exit status. NULL: another program has this verb. */
	int (*run)(const struct TnVerb *verb, int argc, char **argv);
} TnVerb;

int tn_verb_bridge(const TnVerb *verb, int argc, char **argv);
int tn_verb_cat(const TnVerb *verb, int argc, char **argv);
int tn_verb_cp(const TnVerb *verb, int argc, char **argv);
int tn_verb_create(const TnVerb *verb, int argc, char **argv);
int tn_verb_daemon(const TnVerb *verb, int argc, char **argv);
int tn_verb_df(const TnVerb *verb, int argc, char **argv);
int tn_verb_doctor(const TnVerb *verb, int argc, char **argv);
int tn_verb_du(const TnVerb *verb, int argc, char **argv);
int tn_verb_events(const TnVerb *verb, int argc, char **argv);
int tn_verb_evict(const TnVerb *verb, int argc, char **argv);
int tn_verb_export(const TnVerb *verb, int argc, char **argv);
int tn_verb_files(const TnVerb *verb, int argc, char **argv);
int tn_verb_freeze(const TnVerb *verb, int argc, char **argv);
int tn_verb_gc(const TnVerb *verb, int argc, char **argv);
int tn_verb_help(const TnVerb *verb, int argc, char **argv);
int tn_verb_limits(const TnVerb *verb, int argc, char **argv);
int tn_verb_lsof(const TnVerb *verb, int argc, char **argv);
int tn_verb_metrics(const TnVerb *verb, int argc, char **argv);
int tn_verb_report(const TnVerb *verb, int argc, char **argv);
int tn_verb_ls(const TnVerb *verb, int argc, char **argv);
int tn_verb_top(const TnVerb *verb, int argc, char **argv);
int tn_verb_rules(const TnVerb *verb, int argc, char **argv); /* deny, read-only */
int tn_verb_show(const TnVerb *verb, int argc, char **argv);
int tn_verb_thaw(const TnVerb *verb, int argc, char **argv);

/* ctl-main.c. NULL when there is none of that name. */
const TnVerb *tn_verb_find(const char *name);
const TnVerb *tn_verbs(size_t *ret_n);
/* A verb that name was perhaps meant to be, or NULL. Pure. */
const char *tn_verb_suggest(const char *name);
/* Says that there is no such verb; TN_CTL_USAGE. */
int tn_verb_unknown(const char *name);

/* ctl-options.c: the options that every verb has, and its arguments. */
typedef struct TnCtlOptions {
	TnDaemonChoice choice; /* its strings live as long as the process */
	gboolean json;
	char **arguments; /* what is left, NULL-terminated; points into argv */
	guint n_arguments;
} TnCtlOptions;

/*
 * Parses argv (changed). entries are the verb's own options (NULL: none), min and max its
 * arguments. FALSE: *ret_status is the exit status, everything has been said (--help too).
 */
gboolean tn_ctl_parse(const TnVerb *verb, int argc, char **argv, const GOptionEntry *entries,
		      guint min, guint max, TnCtlOptions *ret, int *ret_status);
/* Says what is wrong with one argument; TN_CTL_USAGE. */
int tn_ctl_usage(const TnVerb *verb, const char *object, const char *why);

/* Is this a nest's name? Only such ones go to the daemon. FALSE: said, usage. */
gboolean tn_ctl_check_name(const TnVerb *verb, const char *name);

/* --owner of root: a name or a number, NULL: none given (-1). FALSE: said, usage. */
gboolean tn_ctl_owner(const TnVerb *verb, const char *text, gint64 *ret);

/* The LIMITS as users write them, NULL where not given. */
typedef struct TnCtlLimits {
	char *quota, *inodes, *ttl, *idle_ttl;
} TnCtlLimits;

#define TN_CTL_LIMIT_ENTRIES(limits) \
	{"quota", \
	 0, \
	 0, \
	 G_OPTION_ARG_FILENAME, \
	 &(limits).quota, \
	 "Bytes that the nest may hold; max for none", \
	 "SIZE"}, \
		{"inodes", \
		 0, \
		 0, \
		 G_OPTION_ARG_FILENAME, \
		 &(limits).inodes, \
		 "Files, directories and links that it may hold", \
		 "N"}, \
		{"ttl", \
		 0, \
		 0, \
		 G_OPTION_ARG_FILENAME, \
		 &(limits).ttl, \
		 "Evict this long after it was made", \
		 "DURATION"}, \
	{ \
		"idle-ttl", 0, 0, G_OPTION_ARG_FILENAME, &(limits).idle_ttl, \
			"Evict when unused for this long", "DURATION" \
	}

/* Adds them to the parameters of a call, max as -1. FALSE: said, usage. */
gboolean tn_ctl_add_limits(const TnVerb *verb, const TnCtlLimits *limits, JsonObject *parameters);
gboolean tn_ctl_limits_empty(const TnCtlLimits *limits);

/*
 * ctl-output.c. Says "tmpnest: VERB: MESSAGE" (an empty one has been said before); returns
 * the exit status, frees error.
 */
int tn_ctl_fail(const TnVerb *verb, GError *error);
/* Prints to stdout; take the object. */
void tn_ctl_print_json(JsonObject *object);
void tn_ctl_print_json_array(JsonArray *array);
/* May stdout have colours? A terminal, no NO_COLOR, TERM not dumb. */
gboolean tn_ctl_colours(void);

/* --owner, of verbs about one nest */
#define TN_CTL_OWNER_ENTRY(text) \
	{ \
		"owner", 0, 0, G_OPTION_ARG_FILENAME, &(text), "Whose nest (root only)", "USER" \
	}
