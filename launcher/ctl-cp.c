/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `cp`: a file or a tree from a nest to the host. On the host nothing is followed below
 * the destination, and only files, directories and symbolic links are made.
 */
#include "ctl-tree.h"

#include "macros.h"
#include "message.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define CHUNK (256 * 1024)

typedef struct Copy {
	const TnVerb *verb;
	TnClient *content;
	const TnCtlPlace *place;
	int root; /* the destination directory */
	int dir;  /* below it: of the present directory, or -1 when it cannot be entered */
	guint8 *chunk;
	guint64 files, bytes, skipped;
} Copy;

static void skip(Copy *copy, const char *path, const char *why)
{
	g_autofree char *shown = tn_text_escape(path);

	copy->skipped++;
	tn_say("%s: %s: %s", copy->verb->name, shown, why);
}

static int open_below(int root, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* 0 or -errno of writing. What the file lost meanwhile stays a hole. */
static int copy_range(Copy *copy, int from, int to, guint64 at, guint64 end)
{
	while (at < end) {
		ssize_t n =
			pread(from, copy->chunk, (size_t)MIN(end - at, (guint64)CHUNK), (off_t)at);
		ssize_t done = 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		while (done < n) {
			ssize_t m = pwrite(to, copy->chunk + done, (size_t)(n - done),
					   (off_t)(at + (guint64)done));

			if (m < 0 && errno == EINTR)
				continue;
			if (m < 0)
				return -errno;
			done += m;
		}
		at += (guint64)n;
		copy->bytes += (guint64)n;
	}
	return 0;
}

/* As many as the destination takes: it may know none. */
static void copy_xattrs(int from, int to)
{
	char names[XATTR_LIST_MAX];
	g_autofree char *value = g_malloc(XATTR_SIZE_MAX);
	ssize_t n = flistxattr(from, names, sizeof(names));

	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
		ssize_t size = fgetxattr(from, names + at, value, XATTR_SIZE_MAX);

		if (size >= 0 && g_str_has_prefix(names + at, "user."))
			fsetxattr(to, names + at, value, (size_t)size, 0);
	}
}

static int copy_content(Copy *copy, int from, int to, guint64 size, const TnCtlFile *file)
{
	const struct timespec times[2] = {
		{.tv_nsec = UTIME_OMIT},
		{.tv_sec = file->mtime_ns / 1000000000, .tv_nsec = file->mtime_ns % 1000000000},
	};
	guint64 at = 0, start, end;
	int r = 0;

	while (r == 0 && tn_ctl_next_data(from, at, size, &start, &end)) {
		r = copy_range(copy, from, to, start, end);
		at = end;
	}
	if (r == 0 && ftruncate(to, (off_t)size) < 0)
		r = -errno;
	copy_xattrs(from, to);
	if (r == 0 && fchmod(to, file->mode & 0777) < 0)
		r = -errno;
	if (file->mtime_ns >= 0)
		futimens(to, times);
	return r;
}

static gboolean copy_file(Copy *copy, const char *path, const char *name, int dir,
			  const TnCtlFile *file, GError **error)
{
	g_autoptr(GError) failure = NULL;
	TN_AUTOFD from = -1, to = -1;
	guint64 size;
	int r;

	from = tn_ctl_open_file(copy->content, copy->place, path, &size, &failure);
	if (from < 0 && failure->code == TN_CTL_NO_FILE) {
		skip(copy, path, "gone before it could be read");
		return TRUE;
	}
	if (from < 0) {
		g_propagate_error(error, g_steal_pointer(&failure));
		return FALSE;
	}
	to = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		    0600);
	if (to < 0) {
		skip(copy, path, g_strerror(errno));
		return TRUE;
	}
	r = copy_content(copy, from, to, size, file);
	if (r < 0) {
		g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED, "%s: cannot write: %s", name,
			    g_strerror(-r));
		return FALSE;
	}
	copy->files++;
	return TRUE;
}

static gboolean add_entry(const char *path, const TnCtlFile *file, JsonObject *json, void *data,
			  GError **error)
{
	Copy *copy = data;
	g_autofree char *inside = tn_ctl_path_join(copy->place->path, path);

	if (copy->dir < 0)
		return TRUE; /* said when it was to be entered */
	switch (file->type) {
	case '-':
		return copy_file(copy, inside, file->name, copy->dir, file, error);
	case 'd':
		/* Writable for us, or what is in it could not be made. */
		if (mkdirat(copy->dir, file->name, (file->mode & 0777) | 0700) < 0 &&
		    errno != EEXIST)
			skip(copy, inside, g_strerror(errno));
		return TRUE;
	case 'l':
		if (symlinkat(file->target != NULL ? file->target : "", copy->dir, file->name) < 0)
			skip(copy, inside, g_strerror(errno));
		return TRUE;
	default:
		skip(copy, inside, file->type == 'p' ? "a fifo, left out" : "a socket, left out");
		return TRUE;
	}
}

static gboolean enter(const char *path, void *data, GError **error)
{
	Copy *copy = data;

	tn_close(&copy->dir);
	copy->dir = open_below(copy->root, path);
	if (copy->dir < 0)
		skip(copy, path, g_strerror(errno));
	return TRUE;
}

static void lose(const char *path, const char *message, void *data)
{
	Copy *copy = data;

	copy->skipped++;
	tn_say("%s: %s", copy->verb->name, message);
}

static gboolean copy_tree(Copy *copy, TnClient *client, const char *destination, GError **error)
{
	const TnCtlWalk walk = {
		.client = client,
		.place = copy->place,
		.recursive = TRUE,
		.visit = add_entry,
		.enter = enter,
		.lost = lose,
		.data = copy,
	};
	gboolean ok;

	if (mkdir(destination, 0777) < 0 && errno != EEXIST) {
		g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED, "%s: cannot make it: %s",
			    destination, g_strerror(errno));
		return FALSE;
	}
	copy->root = open(destination, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	copy->dir = copy->root < 0 ? -1 : fcntl(copy->root, F_DUPFD_CLOEXEC, 3);
	if (copy->dir < 0) {
		g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED, "%s: cannot enter it: %s",
			    destination, g_strerror(errno));
		return FALSE;
	}
	ok = tn_ctl_walk(&walk, error);
	tn_close(&copy->dir);
	tn_close(&copy->root);
	return ok;
}

/* DEST itself, or inside it when it is a directory, as cp(1). The caller's. */
static char *choose_destination(const char *wanted, const char *source)
{
	g_autofree char *base = g_path_get_basename(source);
	struct stat st;

	if (stat(wanted, &st) < 0 || !S_ISDIR(st.st_mode))
		return g_strdup(wanted);
	return tn_ctl_path_join(wanted, base);
}

static gboolean copy_place(Copy *copy, TnClient *client, const char *wanted, GError **error)
{
	g_autoptr(JsonObject) reply = tn_client_call(
		client, "StatFile", tn_ctl_place_parameters(copy->place, copy->place->path), error);
	g_autofree char *destination = NULL;
	gboolean ok = FALSE;
	TnCtlFile file;

	if (reply == NULL)
		return FALSE;
	if (!tn_ctl_file_read(json_object_get_object_member(reply, "entry"), &file)) {
		g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED, "daemon: sent no entry");
		return FALSE;
	}
	destination = choose_destination(wanted, copy->place->path);
	if (file.type == 'd')
		ok = copy_tree(copy, client, destination, error);
	else if (file.type == '-')
		ok = copy_file(copy, copy->place->path, destination, AT_FDCWD, &file, error);
	else
		g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED,
			    "%s: neither a file nor a directory", copy->place->path);
	tn_ctl_file_clear(&file);
	return ok;
}

static void print_json(const Copy *copy)
{
	JsonObject *summary = json_object_new();

	json_object_set_int_member(summary, "files", (gint64)copy->files);
	json_object_set_int_member(summary, "bytes", (gint64)copy->bytes);
	json_object_set_int_member(summary, "skipped", (gint64)copy->skipped);
	tn_ctl_print_json(summary);
}

int tn_verb_cp(const TnVerb *verb, int argc, char **argv)
{
	char *owner_text = NULL;
	const GOptionEntry entries[] = {TN_CTL_OWNER_ENTRY(owner_text), {NULL}};
	g_auto(TnCtlPlace) place = {NULL};
	g_autoptr(TnClient) client = NULL, content = NULL;
	g_autofree guint8 *chunk = g_malloc(CHUNK);
	Copy copy = {.verb = verb, .place = &place, .root = -1, .dir = -1, .chunk = chunk};
	TnCtlOptions options;
	GError *error = NULL;
	const char *destination;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 2, 2, &options, &status))
		return status;
	if (strchr(options.arguments[0], ':') == NULL)
		return tn_ctl_usage(verb, options.arguments[0], "not NAME:PATH");
	destination = options.arguments[1];
	options.n_arguments = 1;
	if (!tn_ctl_place(verb, &options, owner_text, &place))
		return TN_CTL_USAGE;
	client = tn_client_open(&options.choice, &error);
	if (client != NULL)
		content = tn_client_open(&options.choice, &error);
	if (content == NULL)
		return tn_ctl_fail(verb, error);
	copy.content = content;
	if (!copy_place(&copy, client, destination, &error)) {
		if (error->code != TN_CTL_FAILED || strchr(error->message, '\n') == NULL)
			return tn_ctl_fail(verb, error);
		g_autofree char *shown = tn_text_escape(error->message);
		g_autofree char *said = error->message;
		error->message = g_steal_pointer(&shown);
		return tn_ctl_fail(verb, error);
	}
	if (options.json)
		print_json(&copy);
	return copy.skipped > 0 ? TN_CTL_FAILED : TN_CTL_OK;
}
