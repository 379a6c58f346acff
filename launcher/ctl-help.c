/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"

#include "locate.h"
#include "message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void print_overview(void)
{
	const TnVerb *verbs;
	size_t n;

	puts("tmpnest gives every bubblewrap sandbox its own writable, size-limited /tmp.\n\n"
	     "Usage: tmpnest VERB [OPTION...] [ARGUMENT...]\n");
	verbs = tn_verbs(&n);
	for (size_t i = 0; i < n; i++)
		printf("  %-9s %-29s %s\n", verbs[i].name, verbs[i].arguments, verbs[i].summary);
	puts("\nEvery verb takes --system or --user (which daemon), --runtime-dir and "
	     "--store-dir,\n"
	     "and all but run take --json. tmpnest help VERB shows the rest.\n\n"
	     "Exit status: 0 done, 1 failed, 2 usage, 3 no such nest, 4 refused, 5 no daemon;\n"
	     "run: the command's, 125 tmpnest failed, 126 not executable, 127 not found.");
}

static int print_overview_json(void)
{
	JsonArray *array = json_array_new();
	const TnVerb *verbs;
	size_t n;

	verbs = tn_verbs(&n);
	for (size_t i = 0; i < n; i++) {
		JsonObject *object = json_object_new();

		json_object_set_string_member(object, "name", verbs[i].name);
		json_object_set_string_member(object, "arguments", verbs[i].arguments);
		json_object_set_string_member(object, "summary", verbs[i].summary);
		json_array_add_object_element(array, object);
	}
	tn_ctl_print_json_array(array);
	return TN_CTL_OK;
}

/* The verb belongs to tmpnest itself, which knows its options. */
static int help_elsewhere(const TnVerb *verb)
{
	char program[PATH_MAX];

	if (tn_locate("tmpnest", program) < 0)
		return TN_CTL_FAILED;
	fflush(stdout);
	execl(program, "tmpnest", verb->name, "--help", (char *)NULL);
	tn_say("help: %s: cannot execute: %s", program, g_strerror(errno));
	return TN_CTL_FAILED;
}

int tn_verb_help(const TnVerb *verb, int argc, char **argv)
{
	const TnVerb *about;
	char *words[] = {NULL, (char *)"--help", NULL};
	g_autofree char *program = NULL;

	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
		print_overview();
		return TN_CTL_OK;
	}
	if (argc > 2)
		return tn_ctl_usage(verb, argv[2], "one verb at a time");
	if (strcmp(argv[1], "--json") == 0)
		return print_overview_json();
	about = tn_verb_find(argv[1]);
	if (about == NULL)
		return tn_verb_unknown(argv[1]);
	if (about->run == NULL)
		return help_elsewhere(about);
	program = g_strconcat("tmpnest ", about->name, NULL);
	g_set_prgname(program);
	words[0] = argv[1];
	return about->run(about, 2, words);
}
