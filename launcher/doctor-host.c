/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "doctor.h"

#include "locate.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

gboolean tn_doctor_version_at_least(const char *text, guint major, guint minor)
{
	guint have_major, have_minor;

	if (sscanf(text, "bubblewrap %u.%u", &have_major, &have_minor) != 2)
		return FALSE;
	return have_major > major || (have_major == major && have_minor >= minor);
}

void tn_doctor_bwrap(GPtrArray *checks)
{
	char path[PATH_MAX];
	char *words[] = {path, (char *)"--version", NULL};
	g_autofree char *out = NULL, *shown = NULL;
	gboolean recent;

	if (tn_locate_bwrap(path) < 0) {
		tn_doctor_add(checks, "bubblewrap", TN_CHECK_MISSING, g_strdup("no bwrap"),
			      g_strdup("install the package bubblewrap"));
		return;
	}
	if (!g_spawn_sync(NULL, words, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out, NULL,
			  NULL, NULL))
		out = g_strdup("does not run");
	g_strstrip(out);
	shown = tn_text_escape(out);
	recent = tn_doctor_version_at_least(out, 0, 4);
	tn_doctor_add(checks, "bubblewrap", recent ? TN_CHECK_OK : TN_CHECK_MISSING,
		      g_strdup_printf("%s, %s", path, shown),
		      recent ? NULL : g_strdup("bubblewrap 0.4 or later"));
}

void tn_doctor_programs(GPtrArray *checks)
{
	static const char *const programs[] = {"tmpnestd", "tmpnest-shim"};
	char path[PATH_MAX] = "";

	for (size_t i = 0; i < G_N_ELEMENTS(programs); i++) {
		if (tn_locate(programs[i], path) < 0) {
			tn_doctor_add(checks, "programs", TN_CHECK_MISSING,
				      g_strdup_printf("no %s", programs[i]),
				      g_strdup("build or install all of tmpnest"));
			return;
		}
	}
	tn_doctor_add(checks, "programs", TN_CHECK_OK,
		      g_strdup("tmpnestd and tmpnest-shim are there"), NULL);
}

/* A view is mounted nowhere but in sandboxes, so a process that sees one is in one. */
gboolean tn_doctor_sandbox(GPtrArray *checks)
{
	g_autofree char *mounts = NULL;

	if (!g_file_get_contents("/proc/self/mountinfo", &mounts, NULL, NULL) ||
	    strstr(mounts, " - fuse.tmpnest ") == NULL)
		return FALSE;
	tn_doctor_add(
		checks, "sandbox", TN_CHECK_WARNING, g_strdup("this is inside a tmpnest sandbox"),
		g_strdup(
			"no daemon can be reached from here, and none started: call from outside"));
	return TRUE;
}

/* The first of path and its parents that exists. The caller's. */
static char *existing_parent(const char *path)
{
	char *dir = g_strdup(path);
	struct stat st;

	while (stat(dir, &st) < 0 && strcmp(dir, "/") != 0) {
		char *parent = g_path_get_dirname(dir);

		g_free(dir);
		dir = parent;
	}
	return dir;
}

static void check_dir(GPtrArray *checks, const char *name, const char *path)
{
	g_autofree char *dir = existing_parent(path);
	g_autofree char *shown = tn_text_escape(path);
	gboolean there = strcmp(dir, path) == 0;
	struct stat st;

	if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode)) {
		tn_doctor_add(
			checks, name, TN_CHECK_MISSING,
			g_strdup_printf("%s: not a directory", shown),
			g_strdup("move it away, or choose another with TMPNEST_RUNTIME_DIR and "
				 "TMPNEST_STORE_DIR"));
	} else if (access(dir, R_OK | W_OK | X_OK) < 0) {
		g_autofree char *why = tn_text_escape(dir);

		tn_doctor_add(
			checks, name, TN_CHECK_MISSING,
			g_strdup_printf("%s: %s: %s", shown, why, g_strerror(errno)),
			g_strdup("choose others with TMPNEST_RUNTIME_DIR and TMPNEST_STORE_DIR"));
	} else {
		tn_doctor_add(checks, name, TN_CHECK_OK,
			      g_strdup_printf("%s%s", shown, there ? "" : " (to be made)"), NULL);
	}
}

void tn_doctor_dirs(GPtrArray *checks, const TnDaemonChoice *choice)
{
	TnPaths paths[TN_DAEMONS_MAX];
	char why[PATH_MAX + 256] = "";
	int n = tn_daemon_candidates(choice, geteuid(), paths, why, sizeof(why));

	if (n < 0) {
		tn_doctor_add(
			checks, "directories", TN_CHECK_MISSING, tn_text_escape(why),
			g_strdup("choose others with TMPNEST_RUNTIME_DIR and TMPNEST_STORE_DIR"));
		return;
	}
	/* The last is the one that the caller would start. */
	check_dir(checks, "runtime directory", paths[n - 1].runtime_dir);
	check_dir(checks, "store", paths[n - 1].store_dir);
}
