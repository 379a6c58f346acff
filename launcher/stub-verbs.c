/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-verbs.h"
#include "config.h"
#include "macros.h"
#include "stubs.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{"hold", tn_stubs_verb_hold},       {"release", tn_stubs_verb_release},
	{"run", tn_stubs_verb_run},         {"list", tn_stubs_verb_list},
	{"missing", tn_stubs_verb_missing}, {"reclaim", tn_stubs_verb_reclaim},
	{"audit", tn_stubs_verb_audit},     {"paths", tn_stubs_verb_paths},
	{"reaper", tn_stubs_verb_reaper},
};

static const char help[] =
	"usage: tmpnest stubs VERB [OPTION...]\n"
	"  hold --owner O [--pid P] [PLACES] [--filled]   make the missing stubs and hold them\n"
	"  release --owner O [--pid P] | --all [--pid P]  remove those that nobody else holds\n"
	"  run --owner O [--no-ledger] [PLACES] -- CMD    held while CMD runs\n"
	"  list                                           all stubs and their holders\n"
	"  missing [PLACES]                               paths that bwrap would have to make\n"
	"  reclaim [--owner O [--pid P]]                  remove (or take over) what the dead "
	"left\n"
	"  audit (--pid P | --mountinfo FILE) [PLACES]    compare a sandbox with the profile\n"
	"  paths [PLACES]                                 the paths of the profile\n"
	"PLACES: --cwd D --home H --config-dir C --writable R... --profile NAME|FILE, or --path "
	"P...\n"
	"every verb: --ledger FILE, --runtime-dir DIR; all but run: --json, --verbose\n";

int tn_stubs_main(int argc, char **argv)
{
	if (argc < 2) {
		fputs(help, stderr);
		return TN_STUBS_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
		fputs(help, stdout);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("tmpnest " TN_VERSION);
		return 0;
	}
	for (size_t i = 0; i < TN_ARRAY_LEN(verbs); i++) {
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "tmpnest: stubs: %s: no such verb (see tmpnest-stubs(1))\n", argv[1]);
	return TN_STUBS_EXIT_USAGE;
}
