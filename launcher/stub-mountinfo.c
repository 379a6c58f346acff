/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-mountinfo.h"

#include "macros.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES (256 * 1024) /* two paths and all options of a mount, with room */
#define TOTAL_BYTES ((size_t)64 << 20)

/* Space, tab, newline and backslash are written as \ooo. */
static void decode(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
		    from[2] <= '7' && from[3] >= '0' && from[3] <= '7') {
			*to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* The option "ro" stands first in a list where it stands at all. */
static bool starts_read_only(const char *options)
{
	return strncmp(options, "ro", 2) == 0 && (options[2] == ',' || options[2] == '\0');
}

bool tn_mountinfo_parse_line(char *line, TnMount *ret)
{
	char *fields[6], *state = NULL, *word, *type, *source, *super;

	line[strcspn(line, "\n")] = '\0';
	for (size_t i = 0; i < TN_ARRAY_LEN(fields); i++) {
		fields[i] = strtok_r(i == 0 ? line : NULL, " ", &state);
		if (!fields[i])
			return false;
	}
	/* any number of optional fields, then "-" */
	do {
		word = strtok_r(NULL, " ", &state);
		if (!word)
			return false;
	} while (strcmp(word, "-") != 0);
	type = strtok_r(NULL, " ", &state);
	source = strtok_r(NULL, " ", &state);
	super = strtok_r(NULL, " ", &state);
	if (!type || !source)
		return false;
	decode(fields[3]);
	decode(fields[4]);
	decode(source);
	*ret = (TnMount){.root = fields[3],
			 .mount_point = fields[4],
			 .fs_type = type,
			 .source = source,
			 .read_only =
				 starts_read_only(fields[5]) || (super && starts_read_only(super))};
	return true;
}

int tn_mountinfo_walk(const char *mountinfo, bool (*each)(const TnMount *mount, void *data),
		      void *data)
{
	TN_AUTOFREE char *line = malloc(LINE_BYTES);
	FILE *file = line ? fopen(mountinfo, "re") : NULL;
	size_t total = 0;
	int result = 0;

	if (!file)
		return line ? -errno : -ENOMEM;
	errno = 0;
	while (fgets(line, LINE_BYTES, file)) {
		size_t length = strlen(line);
		TnMount mount;

		/* any file may be named as one, an endless one too */
		total += length;
		if (total > TOTAL_BYTES || (!feof(file) && (!length || line[length - 1] != '\n'))) {
			result = -EBADMSG;
			break;
		}
		if (tn_mountinfo_parse_line(line, &mount) && !each(&mount, data))
			break;
	}
	if (ferror(file))
		result = errno ? -errno : -EIO;
	fclose(file);
	return result;
}
