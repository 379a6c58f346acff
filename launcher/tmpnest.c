/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tmpnest VERB ...`: runs `run` itself, so that starting a sandbox costs no library;
 * executes tmpnest-stubs for `stubs`, tmpnest-serve for `serve` and tmpnest-ctl for the operators'
 * verbs.
 */
#include "locate.h"
#include "macros.h"
#include "message.h"
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/*
 * Closed standard streams would be taken by our own descriptors. Placeholders keep their
 * numbers free, and are gone again when bwrap starts.
 */
static void guard_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	tn_close(&fd);
}

/* Executes one of our other programs with these words. */
static int become(const char *program, char **argv)
{
	char path[PATH_MAX];

	if (tn_locate(program, path) < 0)
		return TN_EXIT_FAILED;
	execv(path, argv);
	tn_say("locate: %s: cannot execute it: %s", path, strerror(errno));
	return TN_EXIT_FAILED;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	guard_standard_streams();
	if (strcmp(verb, "run") == 0)
		return tn_run(argv + 2);
	if (strcmp(verb, "stubs") == 0)
		return become("tmpnest-stubs", argv + 1);
	if (strcmp(verb, "serve") == 0)
		return become("tmpnest-serve", argv + 1);
	return become("tmpnest-ctl", argv);
}
