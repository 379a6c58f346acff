/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mountinfo.h"
#include "message.h"
#include "paths.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* "\040" and its like, in place: space, tab, newline and backslash are written so. */
static void decode(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && is_octal(from[2]) &&
		    is_octal(from[3])) {
			*to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* The next word of a line, or NULL. */
static char *next_field(char **line)
{
	char *field = strsep(line, " ");

	return field && *field ? field : NULL;
}

static bool parse_number(const char *text, uint64_t *ret)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0';
}

/* ID PARENT MAJOR:MINOR ROOT POINT ... */
static int parse_line(char *line, TnMountEntry *ret)
{
	char *id = next_field(&line);
	char *parent = id ? next_field(&line) : NULL;
	char *device = parent ? next_field(&line) : NULL;
	char *root = device ? next_field(&line) : NULL;
	char *point = root ? next_field(&line) : NULL;
	char *colon = device ? strchr(device, ':') : NULL;
	uint64_t major, minor;

	if (!point || !colon)
		return -EINVAL;
	*colon = '\0';
	if (!parse_number(id, &ret->id) || !parse_number(device, &major) ||
	    !parse_number(colon + 1, &minor) || major > UINT32_MAX || minor > UINT32_MAX)
		return -EINVAL;
	ret->major = (uint32_t)major;
	ret->minor = (uint32_t)minor;
	decode(root);
	decode(point);
	ret->root = strdup(root);
	ret->point = strdup(point);
	if (!ret->root || !ret->point)
		tn_out_of_memory();
	return 0;
}

static TnMountEntry *grow(TnMountTable *table)
{
	/* doubles at each power of two */
	if ((table->n & (table->n - 1)) == 0) {
		size_t capacity = table->n ? 2 * table->n : 1;
		TnMountEntry *entries =
			reallocarray(table->entries, capacity, sizeof(*table->entries));

		if (!entries)
			tn_out_of_memory();
		table->entries = entries;
	}
	table->entries[table->n] = (TnMountEntry){0};
	return &table->entries[table->n++];
}

int tn_mountinfo_parse(char *text, TnMountTable *ret)
{
	char *line;

	*ret = (TnMountTable){0};
	while ((line = strsep(&text, "\n"))) {
		int r;

		if (*line == '\0')
			continue;
		r = parse_line(line, grow(ret));
		if (r < 0)
			return r;
	}
	return 0;
}

void tn_mount_table_clear(TnMountTable *table)
{
	for (size_t i = 0; i < table->n; i++) {
		free(table->entries[i].root);
		free(table->entries[i].point);
	}
	free(table->entries);
	*table = (TnMountTable){0};
}

static const TnMountEntry *find(const TnMountTable *table, uint64_t id)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->entries[i].id == id)
			return &table->entries[i];
	return NULL;
}

/* What follows dir in path, without the slash; path is dir or lies below it. */
static const char *rest_of(const char *path, const char *dir)
{
	const char *rest = strcmp(dir, "/") == 0 ? path : path + strlen(dir);

	return *rest == '/' ? rest + 1 : rest;
}

static bool join(const char *dir, const char *rest, char ret[PATH_MAX])
{
	int n;

	if (*rest == '\0')
		n = snprintf(ret, PATH_MAX, "%s", dir);
	else
		n = snprintf(ret, PATH_MAX, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, rest);
	return n >= 0 && n < PATH_MAX;
}

bool tn_mount_aliases(const TnMountTable *table, uint64_t id, const char *path, TnWords *ret)
{
	const TnMountEntry *own = find(table, id);
	char inner[PATH_MAX]; /* path, as the file system itself knows it */

	if (!own || !tn_path_is_below(path, own->point) ||
	    !join(own->root, rest_of(path, own->point), inner))
		return false;
	for (size_t i = 0; i < table->n; i++) {
		const TnMountEntry *entry = &table->entries[i];
		char alias[PATH_MAX];

		if (entry == own || entry->major != own->major || entry->minor != own->minor)
			continue;
		if (tn_path_is_below(inner, entry->root)) {
			if (!join(entry->point, rest_of(inner, entry->root), alias))
				return false;
			tn_words_add(ret, alias);
		} else if (tn_path_is_below(entry->root, inner)) {
			tn_words_add(ret, entry->point);
		}
	}
	return true;
}
