/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads mount tables (proc(5), /proc/PID/mountinfo). No state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct TnMount {
	char *root;        /* of the mounted tree inside its file system */
	char *mount_point; /* decoded */
	char *fs_type;
	char *source;
	bool read_only;
} TnMount;

/*
 * Takes one line apart, in place; the fields of *ret point into it. False when it is no
 * mountinfo line.
 */
bool tn_mountinfo_parse_line(char *line, TnMount *ret);

/*
 * Calls each() for every line of a mountinfo file; it may keep nothing of *mount. Stops when each()
 * is false. 0 or -errno.
 */
int tn_mountinfo_walk(const char *mountinfo, bool (*each)(const TnMount *mount, void *data),
		      void *data);
