/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `files`: what is in a directory of a nest. Small listings are sorted; large ones come as
 * the daemon reads them, so that their size does not matter.
 */
#include "ctl-tree.h"

#include "message.h"
#include "text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SORTED_MOST 10000

typedef struct Row {
	char *path;
	char *line; /* as printed */
} Row;

typedef struct Listing {
	const TnVerb *verb;
	gboolean json;
	gint64 now;
	GArray *rows; /* of Row, until there are too many */
	gboolean streaming, any, lost;
} Listing;

static void clear_row(void *data)
{
	Row *row = data;

	g_free(row->path);
	g_free(row->line);
}

static char *modified_text(gint64 ns)
{
	g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(ns / 1000000000);
	g_autofree char *seconds =
		time != NULL ? g_date_time_format(time, "%Y-%m-%dT%H:%M:%S") : NULL;

	if (seconds == NULL)
		return NULL;
	return g_strdup_printf("%s.%03dZ", seconds, (int)(ns / 1000000 % 1000));
}

static char *json_line(const char *path, const TnCtlFile *file, JsonObject *json)
{
	g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
	g_autofree char *modified = modified_text(file->mtime_ns);
	JsonObject *parameters;
	TnCtlPlace place = {.name = (char *)"", .owner = -1};

	/* The path written as the daemon writes names. */
	parameters = tn_ctl_place_parameters(&place, path);
	json_object_set_string_member(json, "path",
				      json_object_get_string_member(parameters, "path"));
	json_object_unref(parameters);
	json_object_remove_member(json, "mtime_ns");
	if (modified != NULL)
		json_object_set_string_member(json, "modified", modified);
	json_node_set_object(node, json);
	return json_to_string(node, FALSE);
}

static char *mode_text(const TnCtlFile *file)
{
	static const char letters[] = "rwxrwxrwx";
	char text[11] = "?---------";

	text[0] = file->type;
	for (int i = 0; i < 9; i++)
		if (file->mode & (0400u >> i))
			text[i + 1] = letters[i];
	if (file->mode & 04000)
		text[3] = text[3] == 'x' ? 's' : 'S';
	if (file->mode & 02000)
		text[6] = text[6] == 'x' ? 's' : 'S';
	if (file->mode & 01000)
		text[9] = text[9] == 'x' ? 't' : 'T';
	return g_strdup(text);
}

static char *plain_line(const char *path, const TnCtlFile *file, gint64 now)
{
	g_autofree char *mode = mode_text(file), *size = tn_text_size(file->size);
	g_autofree char *modified = modified_text(file->mtime_ns);
	g_autofree char *age = tn_text_age(modified != NULL ? modified : "", now);
	g_autofree char *shown = tn_text_escape(path);
	g_autofree char *target = file->target != NULL ? tn_text_escape(file->target) : NULL;

	return g_strdup_printf("%s %6" G_GINT64_FORMAT " %8s %5s  %s%s%s", mode, file->uid, size,
			       age, shown, target != NULL ? " -> " : "",
			       target != NULL ? target : "");
}

static void print_row(Listing *listing, const char *line)
{
	if (!listing->json)
		puts(line);
	else
		printf("%s\n  %s", listing->any ? "," : "[", line);
	listing->any = TRUE;
}

static int compare_rows(gconstpointer a, gconstpointer b)
{
	return strcmp(((const Row *)a)->path, ((const Row *)b)->path);
}

static void flush_rows(Listing *listing)
{
	g_array_sort(listing->rows, compare_rows);
	for (guint i = 0; i < listing->rows->len; i++)
		print_row(listing, g_array_index(listing->rows, Row, i).line);
	g_array_set_size(listing->rows, 0);
}

static gboolean add_file(const char *path, const TnCtlFile *file, JsonObject *json, void *data,
			 GError **error)
{
	Listing *listing = data;
	char *line =
		listing->json ? json_line(path, file, json) : plain_line(path, file, listing->now);
	Row row = {.line = line};

	if (listing->streaming) {
		print_row(listing, line);
		g_free(line);
		return TRUE;
	}
	row.path = g_strdup(path);
	g_array_append_val(listing->rows, row);
	if (listing->rows->len > SORTED_MOST) {
		flush_rows(listing);
		listing->streaming = TRUE;
	}
	return TRUE;
}

static void lose(const char *path, const char *message, void *data)
{
	Listing *listing = data;

	listing->lost = TRUE;
	tn_say("%s: %s", listing->verb->name, message);
}

int tn_verb_files(const TnVerb *verb, int argc, char **argv)
{
	char *owner_text = NULL;
	gboolean recursive = FALSE;
	const GOptionEntry entries[] = {
		{"recursive", 'R', 0, G_OPTION_ARG_NONE, &recursive, "Directories below as well",
		 NULL},
		TN_CTL_OWNER_ENTRY(owner_text),
		{NULL},
	};
	g_auto(TnCtlPlace) place = {NULL};
	g_autoptr(TnClient) client = NULL;
	Listing listing = {.verb = verb, .now = g_get_real_time()};
	TnCtlOptions options;
	GError *error = NULL;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 1, 2, &options, &status))
		return status;
	if (!tn_ctl_place(verb, &options, owner_text, &place))
		return TN_CTL_USAGE;
	client = tn_client_open(&options.choice, &error);
	if (client == NULL)
		return tn_ctl_fail(verb, error);
	listing.json = options.json;
	listing.rows = g_array_new(FALSE, FALSE, sizeof(Row));
	g_array_set_clear_func(listing.rows, clear_row);
	const TnCtlWalk walk = {
		.client = client,
		.place = &place,
		.recursive = recursive,
		.visit = add_file,
		.lost = lose,
		.data = &listing,
	};
	tn_ctl_walk(&walk, &error);
	flush_rows(&listing);
	g_array_unref(listing.rows);
	if (listing.json)
		puts(listing.any ? "\n]" : "[]");
	if (error != NULL)
		return tn_ctl_fail(verb, error);
	return listing.lost ? TN_CTL_FAILED : TN_CTL_OK;
}
