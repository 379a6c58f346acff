/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launch-stubs.h"
#include "locate.h"
#include "macros.h"
#include "message.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "tmpnest-stubs"

static void say_note(void *data, TnStubOutcome outcome, const char *path, const char *why)
{
	const bool *verbose = data;

	if (outcome == TN_STUB_WARNING || *verbose)
		tn_say("stubs: %s: %s", path, why);
}

void tn_launch_stubs(const TnAttached *attached, const TnStubMask *masks, size_t n, bool verbose)
{
	char program[PATH_MAX];
	TnStubLaunch launch = {.note = say_note, .note_data = &verbose};
	int r;

	if (n == 0)
		return;
	/* A system daemon's directory is not ours to write: then stubs of unknown names are not
	 * made. */
	if (access(attached->paths.runtime_dir, W_OK) == 0)
		launch.runtime_dir = attached->paths.runtime_dir;
	if (attached->lease.path[0])
		launch.lease = attached->lease.path;
	if (tn_locate(PROGRAM, program) == 0)
		launch.reaper = program;
	r = tn_stubs_hold_for_launch(&launch, masks, n);
	if (r < 0)
		tn_say("stubs: cannot be held: %s (the sandbox starts without; see tmpnest stubs "
		       "list)",
		       strerror(-r));
}

static bool is_empty_dir(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	while (dir && n < 3 && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n == 2; /* "." and ".." */
}

size_t tn_launch_stub_masks(char *const *words, size_t n, TnStubMask *ret)
{
	size_t found = 0;

	for (size_t i = 0; i + 2 < n; i++) {
		const char *from = words[i + 1], *to = words[i + 2];

		if (strcmp(words[i], "--ro-bind") != 0)
			continue;
		if (strcmp(from, "/dev/null") == 0)
			ret[found++] = (TnStubMask){.path = to};
		else if (strcmp(from, to) == 0)
			ret[found++] = (TnStubMask){.path = to, .vanished = true};
		else if (is_empty_dir(from))
			ret[found++] = (TnStubMask){.path = to, .as_dir = true};
		else
			continue;
		i += 2;
	}
	return found;
}
