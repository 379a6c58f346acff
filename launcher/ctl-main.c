/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tmpnest-ctl: every verb but `run`. `tmpnest` executes it with its own arguments.
 */
#include "ctl.h"

#include "config.h"
#include "message.h"
#include "text.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

static const TnVerb verbs[] = {
	{"run", "[OPTION...] [--] CMD [ARG...]", "run a command in a sandbox with its own /tmp",
	 NULL},
	{"create", "NAME", "make a named nest before its first use", tn_verb_create},
	{"ls", "", "list nests", tn_verb_ls},
	{"show", "NAME", "show everything about one nest", tn_verb_show},
	{"limits", "NAME", "change a nest's limits while it is in use", tn_verb_limits},
	{"deny", "NAME ls|add|rm [PATH...]", "show or change what a nest denies", tn_verb_rules},
	{"read-only", "NAME ls|add|rm [PATH...]", "the same of what must not change",
	 tn_verb_rules},
	{"files", "NAME [PATH]", "list what is in a nest", tn_verb_files},
	{"du", "NAME [PATH]", "show what fills a nest, largest first", tn_verb_du},
	{"cat", "NAME PATH", "print one file of a nest", tn_verb_cat},
	{"cp", "NAME:PATH DEST", "copy a file or a tree out of a nest", tn_verb_cp},
	{"export", "NAME [PATH]", "write a nest, or a part of it, as a tar archive",
	 tn_verb_export},
	{"events", "[NAME]", "show what was refused and what became of nests", tn_verb_events},
	{"top", "", "watch nests fill, on a terminal", tn_verb_top},
	{"metrics", "", "print figures in the Prometheus text format", tn_verb_metrics},
	{"serve", "", "serve figures to Prometheus and a web page", NULL},
	{"bridge", "", "speak the control protocol on stdin and stdout", tn_verb_bridge},
	{"lsof", "NAME", "show which processes hold files of a nest", tn_verb_lsof},
	{"df", "[NAME...]", "show how full nests are", tn_verb_df},
	{"evict", "NAME...", "end nests and wipe what is in them", tn_verb_evict},
	{"freeze", "NAME", "refuse every change in a nest (EROFS)", tn_verb_freeze},
	{"thaw", "NAME", "allow changes again", tn_verb_thaw},
	{"gc", "", "evict what has outlived its time, look after the store", tn_verb_gc},
	{"daemon", "start|stop|status|restart|upgrade",
	 "start, stop, look at or replace the daemon", tn_verb_daemon},
	{"stubs", "VERB", "hold the placeholders that denied paths need", NULL},
	{"doctor", "", "check what this machine has and lacks", tn_verb_doctor},
	{"help", "[VERB]", "show this, or one verb's options", tn_verb_help},
};

/* What other programs of tmpnest call; not for people, so help does not list it. */
static const TnVerb internal = {"report", "", "say what a nest refused", tn_verb_report};

const TnVerb *tn_verbs(size_t *ret_n)
{
	*ret_n = G_N_ELEMENTS(verbs);
	return verbs;
}

const TnVerb *tn_verb_find(const char *name)
{
	for (size_t i = 0; i < G_N_ELEMENTS(verbs); i++) {
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	}
	return NULL;
}

int tn_verb_unknown(const char *name)
{
	const char *meant = tn_verb_suggest(name);
	g_autofree char *shown = tn_text_escape(name);

	if (meant != NULL)
		tn_say("%s: no such verb (did you mean %s?)", shown, meant);
	else
		tn_say("%s: no such verb (tmpnest help lists them)", shown);
	return TN_CTL_USAGE;
}

static int run_verb(int argc, char **argv)
{
	const TnVerb *verb;
	g_autofree char *program = NULL;

	if (argc == 0) {
		tn_verb_help(tn_verb_find("help"), 0, NULL);
		return TN_CTL_USAGE;
	}
	if (strcmp(argv[0], "--version") == 0) {
		puts("tmpnest " TN_VERSION);
		return TN_CTL_OK;
	}
	if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)
		return tn_verb_help(tn_verb_find("help"), 1, argv);
	verb = strcmp(argv[0], internal.name) == 0 ? &internal : tn_verb_find(argv[0]);
	if (verb == NULL)
		return tn_verb_unknown(argv[0]);
	if (verb->run == NULL) {
		tn_say("%s: not a verb of this program (call tmpnest)", verb->name);
		return TN_CTL_USAGE;
	}
	program = g_strconcat("tmpnest ", verb->name, NULL);
	g_set_prgname(program);
	return verb->run(verb, argc, argv);
}

int main(int argc, char **argv)
{
	int status;

	setlocale(LC_CTYPE, "");
	status = run_verb(argc - 1, argv + 1);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		tn_say("output: cannot write: %s", g_strerror(errno));
		return status != TN_CTL_OK ? status : TN_CTL_FAILED;
	}
	return status;
}
