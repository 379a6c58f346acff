/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `export`: a nest, or a part of it, as a tar archive. What changes meanwhile is in it as
 * it was when it was read; a file that shrinks is filled up with zeros, which is said.
 */
#include "ctl-tree.h"

#include "macros.h"
#include "message.h"
#include "names.h"
#include "tar.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHUNK (256 * 1024)
#define SAID_MOST 10 /* messages of one kind, before they are only counted */

typedef struct Export {
	const TnVerb *verb;
	TnClient *content; /* a second connection: the walk's is busy */
	const TnCtlPlace *place;
	const char *prefix; /* of names in the archive: "tmp" or "var/tmp" and the path */
	TnTar *tar;
	GHashTable *linked; /* inode number to path in the archive, of files with several names */
	guint8 *chunk;
	guint64 files, sockets, lost, changed;
	gboolean progress;
	gint64 next_progress;
} Export;

static void note(Export *export, guint64 *count, const char *path, const char *what)
{
	g_autofree char *shown = tn_text_escape(path);

	if (++*count <= SAID_MOST)
		tn_say("%s: %s: %s", export->verb->name, shown, what);
}

static gboolean fail_write(int r, GError **error)
{
	if (r == 0)
		return TRUE;
	g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED, "archive: cannot write: %s",
		    g_strerror(-r));
	return FALSE;
}

/* --- extended attributes ------------------------------------------------------------------------
 */

static GByteArray *piece_target(GPtrArray *pieces, const char *name, gint64 offset)
{
	guint n = pieces->len;

	if (offset == 0) {
		g_ptr_array_add(pieces, g_strdup(name));
		g_ptr_array_add(pieces, g_byte_array_new());
		return g_ptr_array_index(pieces, n + 1);
	}
	return n >= 2 && strcmp(g_ptr_array_index(pieces, n - 2), name) == 0
		       ? g_ptr_array_index(pieces, n - 1)
		       : NULL;
}

static gboolean add_pieces(JsonObject *part, void *data, GError **error)
{
	GPtrArray *pieces = data;
	JsonArray *array = json_object_get_array_member(part, "xattrs");

	for (guint i = 0; array != NULL && i < json_array_get_length(array); i++) {
		JsonObject *piece = json_array_get_object_element(array, i);
		const char *text = json_object_get_string_member_with_default(piece, "base64", "");
		g_autofree char *name =
			g_strdup(json_object_get_string_member_with_default(piece, "name", ""));
		gint64 offset = json_object_get_int_member_with_default(piece, "offset", 0);
		GByteArray *value;
		g_autofree guchar *bytes = NULL;
		gsize size = 0;

		if (tn_name_decode(name) < 0)
			continue;
		value = piece_target(pieces, name, offset);
		/* An empty text is an empty value, which GLib does not decode. */
		if (value != NULL && text[0] != '\0' &&
		    (bytes = g_base64_decode(text, &size)) != NULL)
			g_byte_array_append(value, bytes, (guint)size);
	}
	return TRUE;
}

/* Names and GBytes; NULL when they cannot be had. */
static GPtrArray *read_xattrs(Export *export, const char *path)
{
	g_autoptr(GPtrArray) pieces = g_ptr_array_new();
	g_autoptr(GError) error = NULL;

	tn_client_each(export->content, "GetXattrs", tn_ctl_place_parameters(export->place, path),
		       add_pieces, pieces, &error);
	for (guint i = 1; i < pieces->len; i += 2)
		pieces->pdata[i] = g_byte_array_free_to_bytes(pieces->pdata[i]);
	return g_steal_pointer(&pieces);
}

static void free_xattrs(GPtrArray *xattrs)
{
	for (guint i = 0; xattrs != NULL && i + 1 < xattrs->len; i += 2) {
		g_free(xattrs->pdata[i]);
		g_bytes_unref(xattrs->pdata[i + 1]);
	}
	g_clear_pointer(&xattrs, g_ptr_array_unref);
}

/* --- content -------------------------------------------------------------------------------------
 */

/* The data of [at, end) of the file; zeros for what is not there any more. */
static int put_range(Export *export, int fd, guint64 at, guint64 end, gboolean *ret_short)
{
	while (at < end) {
		size_t wanted = (size_t)MIN(end - at, (guint64)CHUNK);
		ssize_t n = pread(fd, export->chunk, wanted, (off_t)at);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			*ret_short = TRUE;
			return tn_tar_fill(export->tar, end - at);
		}
		r = tn_tar_data(export->tar, export->chunk, (gsize)n);
		if (r < 0)
			return r;
		at += (guint64)n;
	}
	return 0;
}

/* Where the file has data, if it has holes; NULL otherwise. */
static GArray *find_ranges(int fd, guint64 size)
{
	GArray *ranges = g_array_new(FALSE, FALSE, sizeof(TnTarRange));
	guint64 at = 0, start, end, data = 0;

	while (tn_ctl_next_data(fd, at, size, &start, &end)) {
		TnTarRange range = {.offset = start, .size = end - start};

		g_array_append_val(ranges, range);
		data += range.size;
		at = end;
	}
	if (data == size) {
		g_array_unref(ranges);
		return NULL;
	}
	/* The end of the file, when it lies in a hole. */
	if (at < size) {
		TnTarRange range = {.offset = size};

		g_array_append_val(ranges, range);
	}
	return ranges;
}

static gboolean put_content(Export *export, TnTarEntry *entry, int fd, GError **error)
{
	g_autoptr(GArray) ranges = find_ranges(fd, entry->size);
	const TnTarRange whole = {.size = entry->size};
	const TnTarRange *all = &whole;
	gsize n = 1;
	gboolean is_short = FALSE;
	int r;

	if (ranges != NULL) {
		entry->ranges = all = (const void *)ranges->data;
		entry->n_ranges = n = ranges->len;
	}
	r = tn_tar_begin(export->tar, entry);
	for (gsize i = 0; r == 0 && i < n; i++)
		r = put_range(export, fd, all[i].offset, all[i].offset + all[i].size, &is_short);
	if (is_short)
		note(export, &export->changed, entry->path, "became shorter while it was read");
	return fail_write(r, error);
}

static gboolean put_file(Export *export, const char *path, TnTarEntry *entry, GError **error)
{
	g_autoptr(GError) failure = NULL;
	TN_AUTOFD fd = -1;

	if (entry->size == 0)
		return fail_write(tn_tar_begin(export->tar, entry), error);
	fd = tn_ctl_open_file(export->content, export->place, path, &entry->size, &failure);
	if (fd >= 0)
		return put_content(export, entry, fd, error);
	if (failure->code != TN_CTL_NO_FILE) {
		g_propagate_error(error, g_steal_pointer(&failure));
		return FALSE;
	}
	note(export, &export->lost, entry->path, "gone before it could be read");
	return TRUE;
}

/* --- entries
 * -------------------------------------------------------------------------------------- */

static void show_progress(Export *export)
{
	gint64 now = g_get_monotonic_time();
	g_autofree char *size = NULL;

	if (!export->progress || now < export->next_progress)
		return;
	size = tn_text_size(tn_tar_written(export->tar));
	fprintf(stderr, "\r%" G_GUINT64_FORMAT " files, %s  ", export->files, size);
	export->next_progress = now + G_USEC_PER_SEC;
}

/* The path that this inode has in the archive already, or NULL: then it is remembered. */
static const char *earlier_name(Export *export, const TnCtlFile *file, const char *path)
{
	const char *earlier;
	guint64 key = file->inode;

	if (file->type == 'd' || file->links < 2)
		return NULL;
	earlier = g_hash_table_lookup(export->linked, &key);
	if (earlier == NULL)
		g_hash_table_insert(export->linked, g_memdup2(&key, sizeof(key)), g_strdup(path));
	return earlier;
}

static gboolean put_entry(Export *export, const char *path, const TnCtlFile *file, GError **error)
{
	g_autofree char *archived = tn_ctl_path_join(export->prefix, path);
	const char *earlier = earlier_name(export, file, archived);
	g_autofree char *inside = tn_ctl_path_join(export->place->path, path);
	TnTarEntry entry = {
		.path = archived,
		.target = earlier != NULL ? earlier : file->target,
		.type = earlier != NULL ? 'h' : file->type,
		.mode = file->mode,
		.uid = (guint64)file->uid,
		.gid = (guint64)file->gid,
		.size = file->size,
		.mtime_ns = file->mtime_ns,
	};
	GPtrArray *xattrs = NULL;
	gboolean ok;

	if (earlier == NULL && file->xattrs)
		entry.xattrs = xattrs = read_xattrs(export, inside);
	if (entry.type == '-')
		ok = put_file(export, inside, &entry, error);
	else
		ok = fail_write(tn_tar_begin(export->tar, &entry), error);
	free_xattrs(xattrs);
	export->files++;
	return ok;
}

static gboolean add_entry(const char *path, const TnCtlFile *file, JsonObject *json, void *data,
			  GError **error)
{
	Export *export = data;

	show_progress(export);
	if (file->type == 's' || file->type == '?') {
		note(export, &export->sockets, path, "a socket, which an archive cannot hold");
		return TRUE;
	}
	return put_entry(export, path, file, error);
}

static void lose(const char *path, const char *message, void *data)
{
	Export *export = data;

	if (++export->lost <= SAID_MOST)
		tn_say("%s: %s", export->verb->name, message);
}

static gboolean walk_place(Export *export, TnClient *client, GError **error)
{
	const TnCtlWalk walk = {
		.client = client,
		.place = export->place,
		.recursive = TRUE,
		.xattrs = TRUE,
		.visit = add_entry,
		.lost = lose,
		.data = export,
	};

	return tn_ctl_walk(&walk, error);
}

/* "tmp/x" for "/tmp/x", "x" and "/private/tmp/x"; "var/tmp/x" for "/var/tmp/x". */
static char *archive_prefix(const char *path)
{
	GString *prefix = g_string_new(path[0] == '/' ? "" : "tmp/");

	if (g_str_has_prefix(path, "/private/"))
		path += strlen("/private");
	for (; *path != '\0'; path++) {
		if (*path != '/' || (prefix->len > 0 && prefix->str[prefix->len - 1] != '/'))
			g_string_append_c(prefix, *path);
	}
	while (prefix->len > 0 && prefix->str[prefix->len - 1] == '/')
		g_string_truncate(prefix, prefix->len - 1);
	return g_string_free(prefix, FALSE);
}

/* A single file is an archive of one entry. */
static gboolean export_one(Export *export, TnClient *client, GError **error)
{
	g_autoptr(JsonObject) reply =
		tn_client_call(client, "StatFile",
			       tn_ctl_place_parameters(export->place, export->place->path), error);
	g_autofree char *parent = NULL, *name = NULL, *above = NULL;
	TnCtlPlace in_parent = *export->place;
	gboolean ok;
	TnCtlFile file;

	if (reply == NULL)
		return FALSE;
	if (!tn_ctl_file_read(json_object_get_object_member(reply, "entry"), &file)) {
		g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED, "daemon: sent no entry");
		return FALSE;
	}
	if (file.type == 'd') {
		tn_ctl_file_clear(&file);
		return walk_place(export, client, error);
	}
	parent = g_path_get_dirname(export->place->path);
	above = archive_prefix(strcmp(parent, ".") == 0 ? "/tmp" : parent);
	name = g_path_get_basename(export->place->path);
	in_parent.path = strcmp(parent, ".") == 0 ? (char *)"/tmp" : parent;
	export->place = &in_parent;
	export->prefix = above;
	file.xattrs = file.type == '-';
	ok = add_entry(name, &file, NULL, export, error);
	tn_ctl_file_clear(&file);
	return ok;
}

static gboolean export_all(Export *export, TnClient *client, gboolean whole, GError **error)
{
	g_autofree char *prefix = archive_prefix(export->place->path);
	TnCtlPlace other = *export->place;

	export->prefix = prefix;
	if (!whole)
		return export_one(export, client, error);
	if (!walk_place(export, client, error))
		return FALSE;
	other.path = (char *)"/var/tmp";
	export->place = &other;
	export->prefix = "var/tmp";
	return walk_place(export, client, error);
}

static void print_json(const Export *export)
{
	JsonObject *summary = json_object_new();

	json_object_set_int_member(summary, "entries", (gint64) export->files);
	json_object_set_int_member(summary, "archive_bytes", (gint64)tn_tar_written(export->tar));
	json_object_set_int_member(summary, "sockets_left_out", (gint64) export->sockets);
	json_object_set_int_member(summary, "lost", (gint64) export->lost);
	json_object_set_int_member(summary, "changed", (gint64) export->changed);
	tn_ctl_print_json(summary);
}

static int open_output(const TnVerb *verb, const char *path, GError **error)
{
	int fd;

	if (path == NULL || strcmp(path, "-") == 0) {
		if (isatty(STDOUT_FILENO)) {
			g_set_error(error, TN_CLIENT_ERROR, TN_CTL_USAGE,
				    "standard output: a terminal (give -o FILE or a pipe)");
			return -1;
		}
		return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) {
		g_autofree char *shown = tn_text_escape(path);

		g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED, "%s: cannot write: %s", shown,
			    g_strerror(errno));
	}
	return fd;
}

int tn_verb_export(const TnVerb *verb, int argc, char **argv)
{
	char *owner_text = NULL, *output = NULL;
	const GOptionEntry entries[] = {
		{"output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
		 "Write there instead of to standard output", "FILE"},
		TN_CTL_OWNER_ENTRY(owner_text),
		{NULL},
	};
	g_auto(TnCtlPlace) place = {NULL};
	g_autoptr(TnClient) client = NULL, content = NULL;
	g_autoptr(TnTar) tar = NULL;
	g_autoptr(GHashTable) linked =
		g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	g_autofree guint8 *chunk = g_malloc(CHUNK);
	TN_AUTOFD fd = -1;
	Export export = {.verb = verb, .place = &place, .linked = linked, .chunk = chunk};
	TnCtlOptions options;
	GError *error = NULL;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 1, 2, &options, &status))
		return status;
	if (options.json && output == NULL)
		return tn_ctl_usage(verb, "--json", "needs -o FILE, as the archive goes to stdout");
	if (!tn_ctl_place(verb, &options, owner_text, &place))
		return TN_CTL_USAGE;
	client = tn_client_open(&options.choice, &error);
	if (client != NULL)
		content = tn_client_open(&options.choice, &error);
	if (content != NULL)
		fd = open_output(verb, output, &error);
	if (fd < 0)
		return tn_ctl_fail(verb, error);
	export.content = content;
	export.tar = tar = tn_tar_new(fd);
	export.progress = isatty(STDERR_FILENO);
	export_all(&export, client,
		   options.n_arguments == 1 && strchr(options.arguments[0], ':') == NULL, &error);
	if (error == NULL)
		fail_write(tn_tar_end(tar), &error);
	if (export.progress && export.next_progress > 0)
		fputs("\r\033[K", stderr);
	if (error != NULL)
		return tn_ctl_fail(verb, error);
	if (export.sockets > SAID_MOST || export.lost > SAID_MOST || export.changed > SAID_MOST)
		tn_say("%s: %" G_GUINT64_FORMAT " sockets left out, %" G_GUINT64_FORMAT
		       " files gone, %" G_GUINT64_FORMAT " became shorter",
		       verb->name, export.sockets, export.lost, export.changed);
	if (options.json)
		print_json(&export);
	return TN_CTL_OK;
}
