/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `lsof`: who holds what in a nest. Looked for by the caller in /proc, by the device number
 * that the daemon names: a descriptor's mount tells its device (proc(5), fdinfo, mountinfo),
 * so that nothing of the view itself is touched and a view that hangs stops nobody.
 */
#include "ctl.h"

#include "macros.h"
#include "table.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Search {
	char *device; /* "0:52" */
	TnTable *table;
	JsonArray *json; /* NULL: a table */
	guint found;
	/* of the present process */
	long pid;
	char *process;
	GHashTable *mounts; /* ids of its mounts of the device, and where they are */
} Search;

static char *read_proc(long pid, const char *name)
{
	g_autofree char *path = g_strdup_printf("/proc/%ld/%s", pid, name);
	char *text = NULL;

	return g_file_get_contents(path, &text, NULL, NULL) ? text : NULL;
}

/* The mounts of the device that the process sees; NULL when there are none. */
static GHashTable *find_mounts(const Search *search)
{
	g_autofree char *text = read_proc(search->pid, "mountinfo");
	g_auto(GStrv) lines = text != NULL ? g_strsplit(text, "\n", -1) : NULL;
	g_autoptr(GHashTable) mounts = NULL;

	for (gsize i = 0; lines != NULL && lines[i] != NULL; i++) {
		g_auto(GStrv) words = g_strsplit(lines[i], " ", 6);

		if (g_strv_length(words) < 6 || strcmp(words[2], search->device) != 0)
			continue;
		if (mounts == NULL)
			mounts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
		g_hash_table_insert(mounts, g_strdup(words[0]), g_strdup(words[4]));
	}
	return g_steal_pointer(&mounts);
}

static void add(Search *search, const char *what, const char *path)
{
	g_autofree char *shown = tn_text_escape(path);

	search->found++;
	if (search->json != NULL) {
		JsonObject *row = json_object_new();
		g_autofree char *process = tn_text_escape(search->process);

		json_object_set_int_member(row, "pid", search->pid);
		json_object_set_string_member(row, "process", process);
		json_object_set_string_member(row, "descriptor", what);
		json_object_set_string_member(row, "path", shown);
		json_array_add_object_element(search->json, row);
		return;
	}
	tn_table_add(search->table, TN_TINT_NONE, g_strdup_printf("%ld", search->pid));
	tn_table_add(search->table, TN_TINT_NONE, tn_text_escape(search->process));
	tn_table_add(search->table, TN_TINT_NONE, g_strdup(what));
	tn_table_add(search->table, TN_TINT_NONE, g_steal_pointer(&shown));
}

/* The id of the mount that an fdinfo's text names; the caller's. */
static char *mount_id(const char *fdinfo)
{
	const char *found = fdinfo != NULL ? strstr(fdinfo, "mnt_id:") : NULL;

	if (found == NULL)
		return NULL;
	found += strlen("mnt_id:");
	found += strspn(found, " \t");
	return g_strndup(found, strspn(found, "0123456789"));
}

static char *link_target(const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	target[n > 0 ? n : 0] = '\0';
	return g_strdup(target);
}

static void look_at_descriptor(Search *search, const char *fd)
{
	g_autofree char *info_name = g_strconcat("fdinfo/", fd, NULL);
	g_autofree char *info = read_proc(search->pid, info_name);
	g_autofree char *id = mount_id(info), *path = NULL, *target = NULL;

	if (id == NULL || !g_hash_table_contains(search->mounts, id))
		return;
	path = g_strdup_printf("/proc/%ld/fd/%s", search->pid, fd);
	target = link_target(path);
	add(search, fd, target);
}

/* cwd, root and the program itself: by a descriptor of our own on the same mount. */
static void look_at_link(Search *search, const char *name)
{
	g_autofree char *path = g_strdup_printf("/proc/%ld/%s", search->pid, name);
	TN_AUTOFD fd = open(path, O_PATH | O_CLOEXEC);
	g_autofree char *text = NULL, *info = NULL, *id = NULL, *target = NULL;

	if (fd < 0)
		return;
	text = g_strdup_printf("fdinfo/%d", fd);
	info = read_proc((long)getpid(), text);
	id = mount_id(info);
	if (id == NULL || !g_hash_table_contains(search->mounts, id))
		return;
	target = link_target(path);
	add(search, name, target);
}

/* Mapped files: "start-end perms offset MAJOR:MINOR inode path", the device in hexadecimal. */
static void look_at_maps(Search *search)
{
	g_autofree char *text = read_proc(search->pid, "maps");
	g_auto(GStrv) lines = text != NULL ? g_strsplit(text, "\n", -1) : NULL;
	g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

	for (gsize i = 0; lines != NULL && lines[i] != NULL; i++) {
		unsigned major, minor;
		g_autofree char *device = NULL;
		int at = 0;

		if (sscanf(lines[i], "%*s %*s %*s %x:%x %*u %n", &major, &minor, &at) < 2 ||
		    at == 0)
			continue;
		device = g_strdup_printf("%u:%u", major, minor);
		if (strcmp(device, search->device) == 0 &&
		    g_hash_table_add(seen, g_strdup(lines[i] + at)))
			add(search, "mem", lines[i] + at);
	}
}

/* The path that a socket was bound to, when it lies where the device is mounted. */
static gboolean lies_in_view(const Search *search, const char *path)
{
	GHashTableIter iter;
	gpointer place;

	g_hash_table_iter_init(&iter, search->mounts);
	while (g_hash_table_iter_next(&iter, NULL, &place)) {
		if (g_str_has_prefix(path, place) && path[strlen(place)] == '/')
			return TRUE;
	}
	return FALSE;
}

static void look_at_socket(Search *search, const char *fd, const char *inode, char **lines)
{
	for (gsize i = 0; lines != NULL && lines[i] != NULL; i++) {
		char number[32] = "";
		int at = 0;

		if (sscanf(lines[i], "%*s %*s %*s %*s %*s %*s %31s %n", number, &at) < 1 || at == 0)
			continue;
		if (strcmp(number, inode) == 0 && lies_in_view(search, lines[i] + at))
			add(search, fd, lines[i] + at);
	}
}

static void look_at_descriptors(Search *search)
{
	g_autofree char *path = g_strdup_printf("/proc/%ld/fd", search->pid);
	g_autofree char *sockets = read_proc(search->pid, "net/unix");
	g_auto(GStrv) lines = sockets != NULL ? g_strsplit(sockets, "\n", -1) : NULL;
	DIR *dir = opendir(path);
	const struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		g_autofree char *link = NULL, *target = NULL;

		if (entry->d_name[0] == '.')
			continue;
		link = g_strconcat(path, "/", entry->d_name, NULL);
		target = link_target(link);
		if (g_str_has_prefix(target, "socket:[")) {
			target[strlen(target) - 1] = '\0';
			look_at_socket(search, entry->d_name, target + strlen("socket:["), lines);
		} else {
			look_at_descriptor(search, entry->d_name);
		}
	}
	if (dir != NULL)
		closedir(dir);
}

static void look_at_process(Search *search)
{
	search->mounts = find_mounts(search);
	if (search->mounts == NULL)
		return;
	search->process = read_proc(search->pid, "comm");
	if (search->process != NULL)
		g_strchomp(search->process);
	else
		search->process = g_strdup("?");
	look_at_link(search, "cwd");
	look_at_link(search, "root");
	look_at_link(search, "exe");
	look_at_descriptors(search);
	look_at_maps(search);
	g_clear_pointer(&search->process, g_free);
	g_clear_pointer(&search->mounts, g_hash_table_unref);
}

static gboolean look_at_all(Search *search, GError **error)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;

	if (proc == NULL) {
		g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED, "/proc: cannot read: %s",
			    g_strerror(errno));
		return FALSE;
	}
	while ((entry = readdir(proc)) != NULL) {
		search->pid = strtol(entry->d_name, NULL, 10);
		if (search->pid > 0)
			look_at_process(search);
	}
	closedir(proc);
	return TRUE;
}

static void print(Search *search, const char *name)
{
	g_autofree char *text = NULL;

	if (search->json != NULL) {
		tn_ctl_print_json_array(g_steal_pointer(&search->json));
	} else if (search->found > 0) {
		text = tn_table_text(search->table);
		fputs(text, stdout);
	} else {
		printf("no process that you may look at holds anything in %s\n", name);
	}
}

int tn_verb_lsof(const TnVerb *verb, int argc, char **argv)
{
	static const char *const columns[] = {">PID", "PROCESS", "FD", "PATH", NULL};
	char *owner_text = NULL;
	const GOptionEntry entries[] = {TN_CTL_OWNER_ENTRY(owner_text), {NULL}};
	g_autoptr(TnClient) client = NULL;
	g_autoptr(JsonObject) reply = NULL;
	g_autoptr(TnTable) table = NULL;
	JsonObject *parameters;
	Search search = {NULL};
	TnCtlOptions options;
	GError *error = NULL;
	gint64 owner;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 1, 1, &options, &status))
		return status;
	if (!tn_ctl_owner(verb, owner_text, &owner) ||
	    !tn_ctl_check_name(verb, options.arguments[0]))
		return TN_CTL_USAGE;
	client = tn_client_open(&options.choice, &error);
	if (client != NULL) {
		parameters = json_object_new();
		json_object_set_string_member(parameters, "name", options.arguments[0]);
		if (owner >= 0)
			json_object_set_int_member(parameters, "owner_uid", owner);
		reply = tn_client_call_more(client, "GetNest", parameters, &error);
	}
	if (reply == NULL)
		return tn_ctl_fail(verb, error);
	search.device = g_strdup(json_object_get_string_member_with_default(
		json_object_get_object_member(reply, "nest"), "device", "none"));
	search.table = table = tn_table_new(columns, tn_ctl_colours());
	search.json = options.json ? json_array_new() : NULL;
	if (look_at_all(&search, &error))
		print(&search, options.arguments[0]);
	g_free(search.device);
	return error != NULL ? tn_ctl_fail(verb, error) : TN_CTL_OK;
}
