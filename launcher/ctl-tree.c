/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl-tree.h"

#include "macros.h"
#include "names.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void tn_ctl_place_clear(TnCtlPlace *place)
{
	g_clear_pointer(&place->name, g_free);
	g_clear_pointer(&place->path, g_free);
}

JsonObject *tn_ctl_place_parameters(const TnCtlPlace *place, const char *path)
{
	JsonObject *parameters = json_object_new();
	char *text = tn_name_encode(path);

	json_object_set_string_member(parameters, "name", place->name);
	if (place->owner >= 0)
		json_object_set_int_member(parameters, "owner_uid", place->owner);
	json_object_set_string_member(parameters, "path", text != NULL ? text : "");
	free(text);
	return parameters;
}

char *tn_ctl_path_join(const char *path, const char *name)
{
	return path[0] == '\0' ? g_strdup(name) : g_strconcat(path, "/", name, NULL);
}

/* --- entries ------------------------------------------------------------------------------------
 */

static gint64 number(JsonObject *object, const char *key)
{
	return json_object_get_int_member_with_default(object, key, 0);
}

static guint64 count(JsonObject *object, const char *key)
{
	gint64 value = number(object, key);

	return value > 0 ? (guint64)value : 0;
}

static char *decoded(JsonObject *object, const char *key)
{
	const char *text = json_object_get_string_member_with_default(object, key, NULL);
	char *name = g_strdup(text);

	if (name == NULL || tn_name_decode(name) == 0)
		return name;
	g_free(name);
	return NULL;
}

static char type_letter(const char *type)
{
	static const struct {
		const char *type;
		char letter;
	} known[] = {{"file", '-'},
		     {"directory", 'd'},
		     {"symlink", 'l'},
		     {"socket", 's'},
		     {"fifo", 'p'}};

	for (gsize i = 0; i < G_N_ELEMENTS(known); i++) {
		if (strcmp(known[i].type, type) == 0)
			return known[i].letter;
	}
	return '?';
}

gboolean tn_ctl_file_read(JsonObject *object, TnCtlFile *ret)
{
	const char *type = json_object_get_string_member_with_default(object, "type", "");
	char *name = decoded(object, "name");

	/* What becomes a part of a path here must be one component. */
	if (name == NULL || name[0] == '\0' || strchr(name, '/') != NULL ||
	    strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
		g_free(name);
		return FALSE;
	}
	*ret = (TnCtlFile){
		.name = name,
		.target = decoded(object, "target"),
		.type = type_letter(type),
		.mode = (mode_t)number(object, "mode") & 07777,
		.uid = number(object, "uid"),
		.gid = number(object, "gid"),
		.size = count(object, "size"),
		.disk = count(object, "disk"),
		.inode = count(object, "inode"),
		.links = count(object, "links"),
		.mtime_ns = number(object, "mtime_ns"),
		.xattrs = json_object_get_boolean_member_with_default(object, "xattrs", FALSE),
	};
	return TRUE;
}

void tn_ctl_file_clear(TnCtlFile *file)
{
	g_clear_pointer(&file->name, g_free);
	g_clear_pointer(&file->target, g_free);
}

/* --- the walk ------------------------------------------------------------------------------------
 */

typedef struct Walking {
	const TnCtlWalk *walk;
	char *path;     /* of the present directory, below the start */
	GQueue pending; /* of paths of directories; owned */
	GList *here;    /* where the next subdirectory of the present one belongs */
} Walking;

/* Subdirectories go before what is pending, in their order: depth first. */
static void add_pending(Walking *walking, char *path)
{
	if (walking->here == NULL) {
		g_queue_push_head(&walking->pending, path);
		walking->here = walking->pending.head;
	} else {
		g_queue_insert_after(&walking->pending, walking->here, path);
		walking->here = walking->here->next;
	}
}

static gboolean visit_part(JsonObject *part, void *data, GError **error)
{
	Walking *walking = data;
	const TnCtlWalk *walk = walking->walk;
	JsonNode *node = json_object_get_member(part, "entries");
	JsonArray *entries =
		node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;

	for (guint i = 0; entries != NULL && i < json_array_get_length(entries); i++) {
		JsonObject *json = json_array_get_object_element(entries, i);
		g_autofree char *path = NULL;
		TnCtlFile file;
		gboolean go_on;

		if (json == NULL || !tn_ctl_file_read(json, &file))
			continue;
		path = tn_ctl_path_join(walking->path, file.name);
		go_on = walk->visit(path, &file, json, walk->data, error);
		if (go_on && walk->recursive && file.type == 'd')
			add_pending(walking, g_steal_pointer(&path));
		tn_ctl_file_clear(&file);
		if (!go_on)
			return FALSE;
	}
	return TRUE;
}

static gboolean list_directory(Walking *walking, GError **error)
{
	const TnCtlWalk *walk = walking->walk;
	g_autofree char *path = walking->path[0] == '\0'
					? g_strdup(walk->place->path)
					: tn_ctl_path_join(walk->place->path, walking->path);
	JsonObject *parameters = tn_ctl_place_parameters(walk->place, path);

	if (walk->xattrs)
		json_object_set_boolean_member(parameters, "xattrs", TRUE);
	walking->here = NULL;
	return tn_client_each(walk->client, "ListFiles", parameters, visit_part, walking, error);
}

/* A directory below the start may have gone or changed into something else. */
static gboolean list_below(Walking *walking, GError **error)
{
	const TnCtlWalk *walk = walking->walk;
	g_autoptr(GError) failure = NULL;

	if (walk->enter != NULL && !walk->enter(walking->path, walk->data, error))
		return FALSE;
	if (list_directory(walking, &failure))
		return TRUE;
	if (g_error_matches(failure, TN_CLIENT_ERROR, TN_CTL_NO_FILE)) {
		if (walk->lost != NULL)
			walk->lost(walking->path, failure->message, walk->data);
		return TRUE;
	}
	g_propagate_error(error, g_steal_pointer(&failure));
	return FALSE;
}

gboolean tn_ctl_walk(const TnCtlWalk *walk, GError **error)
{
	Walking walking = {.walk = walk, .path = g_strdup("")};
	gboolean ok;

	g_queue_init(&walking.pending);
	ok = list_directory(&walking, error);
	while (ok && walking.pending.head != NULL) {
		g_free(walking.path);
		walking.path = g_queue_pop_head(&walking.pending);
		ok = list_below(&walking, error);
	}
	g_queue_clear_full(&walking.pending, g_free);
	g_free(walking.path);
	return ok;
}

/* --- content -------------------------------------------------------------------------------------
 */

int tn_ctl_open_file(TnClient *client, const TnCtlPlace *place, const char *path, guint64 *ret_size,
		     GError **error)
{
	TN_AUTOFD fd = -1;
	struct stat st;
	g_autoptr(JsonObject) reply = tn_client_call_fd(
		client, "OpenFile", tn_ctl_place_parameters(place, path), &fd, error);

	if (reply == NULL)
		return -1;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED,
			    "daemon: sent something else than a file");
		return -1;
	}
	*ret_size = (guint64)st.st_size;
	return tn_steal_fd(&fd);
}

gboolean tn_ctl_next_data(int fd, guint64 at, guint64 size, guint64 *ret_start, guint64 *ret_end)
{
	off_t start, end;

	if (at >= size)
		return FALSE;
	start = lseek(fd, (off_t)at, SEEK_DATA);
	if (start < 0 && errno == ENXIO)
		return FALSE;
	/* A file system that cannot tell: all is data. */
	if (start < 0)
		start = (off_t)at;
	if ((guint64)start >= size)
		return FALSE;
	end = lseek(fd, start, SEEK_HOLE);
	*ret_start = (guint64)start;
	*ret_end = end <= start || (guint64)end > size ? size : (guint64)end;
	return TRUE;
}
