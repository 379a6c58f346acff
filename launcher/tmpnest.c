/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tmpnest VERB ...`: runs `run` itself, so that starting a sandbox costs no library, and
 * executes tmpnest-ctl for the operators' verbs.
 */
#include "locate.h"
#include "macros.h"
#include "message.h"
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CTL "tmpnest-ctl"

typedef struct Verb {
	const char *name;
	int (*run)(char **argv); /* argv: the words after the verb; returns the exit status */
} Verb;

static const Verb own_verbs[] = {
	{"run", tn_run},
};

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

static int become_ctl(char **argv)
{
	char path[PATH_MAX];

	if (tn_locate(CTL, path) < 0)
		return TN_EXIT_FAILED;
	execv(path, argv);
	tn_say("locate: %s: cannot execute it: %s", path, strerror(errno));
	return TN_EXIT_FAILED;
}

int main(int argc, char **argv)
{
	guard_standard_streams();
	for (size_t i = 0; argc > 1 && i < TN_ARRAY_LEN(own_verbs); i++)
		if (strcmp(argv[1], own_verbs[i].name) == 0)
			return own_verbs[i].run(argv + 2);
	return become_ctl(argv);
}
