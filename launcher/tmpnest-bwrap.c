/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A drop-in bwrap: takes its command line, gives the sandbox a private /tmp, and becomes
 * the real bwrap. Nothing stays behind: process id, group, signals and exit status are
 * bwrap's. Fails like bwrap does, with status 1.
 */
#include "bwrap-args.h"
#include "front.h"
#include "locate.h"
#include "macros.h"
#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define EXIT_BWRAP 1 /* bwrap's own status for everything that keeps a sandbox from starting */

/* Closed standard streams would be taken by our own descriptors. */
static void guard_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	tn_close(&fd);
}

/* What only asks bwrap about itself. */
static bool is_question(int argc, char **argv)
{
	return argc < 2 || strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "--help") == 0;
}

static int become(const char *bwrap, char **argv)
{
	execv(bwrap, argv);
	tn_say("bwrap: %s: cannot execute it: %s", bwrap, strerror(errno));
	return EXIT_BWRAP;
}

/* The line asks for help, or has no command: bwrap's own answer, its blocks are used up. */
static int answer_like_bwrap(const char *bwrap, int outcome, bool loaded, char **argv)
{
	char *word = outcome == TN_BWRAP_WANTS_HELP      ? (char[]){"--help"}
		     : outcome == TN_BWRAP_WANTS_VERSION ? (char[]){"--version"}
							 : NULL;
	char *short_argv[] = {argv[0], word, NULL};

	return become(bwrap, loaded ? short_argv : argv);
}

int main(int argc, char **argv)
{
	char why[TN_BWRAP_WHY_MAX];
	TnFront front;
	char bwrap[PATH_MAX];
	int r;

	guard_standard_streams();
	if (is_question(argc, argv))
		return tn_locate_bwrap(bwrap) < 0 ? EXIT_BWRAP : become(bwrap, argv);
	tn_front_init(&front);
	r = tn_bwrap_parse(&front.line, (const char *const *)argv + 1, (size_t)argc - 1,
			   tn_front_load, &front, why);
	if (r < 0) {
		tn_say("bwrap's words: %s", why[0] ? why : strerror(-r));
		return EXIT_BWRAP;
	}
	if (r > 0 || (tn_bwrap_is_probe(&front.line) && !getenv("TMPNEST_NEST"))) {
		if (tn_locate_bwrap(bwrap) < 0)
			return EXIT_BWRAP;
		return r > 0 ? answer_like_bwrap(bwrap, r, front.line.summary.loaded, argv)
			     : become(bwrap, argv);
	}
	tn_front_start(&front, argv);
	tn_front_clear(&front);
	return EXIT_BWRAP;
}
