/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-paths.h"

#include "macros.h"
#include "paths.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* data/stubs, embedded by the build */
extern const char tn_stub_profile_builtin[];
extern const char tn_stub_profile_sdk[];

static const struct {
	const char *name, *text;
} embedded[] = {
	{"builtin", tn_stub_profile_builtin},
	{"claude-agent-sdk-0.3.332", tn_stub_profile_sdk},
};

static const char *const wheres[] = {"cwd",    "project", "config", "default-config",
				     "global", "home"};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A relative path that stays below its place. */
static bool relative_is_sound(const char *path)
{
	char joined[PATH_MAX], normal[PATH_MAX];

	return *path && snprintf(joined, sizeof(joined), "/%s", path) < PATH_MAX &&
	       tn_path_normalize(joined, normal, sizeof(normal)) && strcmp(joined, normal) == 0;
}

static bool strings_are_sound(const json_t *array, bool names_only)
{
	size_t index;
	json_t *value;

	if (!json_is_array(array))
		return false;
	json_array_foreach(array, index, value)
	{
		const char *text = json_string_value(value);

		if (!text || !relative_is_sound(text) || (names_only && strchr(text, '/')))
			return false;
	}
	return true;
}

static bool set_is_sound(const json_t *set)
{
	const char *where = json_string_value(json_object_get(set, "where"));

	if (!where || !strings_are_sound(json_object_get(set, "paths"), false))
		return false;
	for (size_t i = 0; i < TN_ARRAY_LEN(wheres); i++) {
		if (strcmp(where, wheres[i]) == 0)
			return true;
	}
	return false;
}

static const char *what_is_wrong(const json_t *profile)
{
	const json_t *sets = json_object_get(profile, "sets");
	const json_t *also = json_object_get(profile, "also_denied");
	size_t index;
	json_t *set;

	if (!json_is_string(json_object_get(profile, "name")) ||
	    !json_is_string(json_object_get(profile, "source")) ||
	    !json_is_string(json_object_get(profile, "version")))
		return "it must name itself, its source and its version";
	if (!strings_are_sound(json_object_get(profile, "directories"), true))
		return "\"directories\" must be a list of names";
	if (!json_is_array(sets))
		return "\"sets\" must be a list";
	json_array_foreach(sets, index, set)
	{
		if (!set_is_sound(set))
			return "each set needs a known \"where\" and relative \"paths\"";
	}
	json_array_foreach(also, index, set)
	{
		if (!set_is_sound(set))
			return "each set of \"also_denied\" needs \"where\" and \"paths\"";
	}
	return NULL;
}

int tn_stub_profile_parse(const char *text, size_t size, TnStubProfile *ret, char *why,
			  size_t why_size)
{
	json_error_t error;
	json_t *json = json_loadb(text, size, 0, &error);
	const char *wrong;

	if (!json) {
		snprintf(why, why_size, "line %d: %s", error.line, error.text);
		return -EBADMSG;
	}
	wrong = what_is_wrong(json);
	if (wrong) {
		snprintf(why, why_size, "%s", wrong);
		json_decref(json);
		return -EBADMSG;
	}
	ret->json = json;
	return 0;
}

static int load_file(const char *path, TnStubProfile *ret, char *why, size_t why_size)
{
	TN_AUTOFREE char *text = NULL;
	FILE *file = fopen(path, "re");
	size_t size = 0;
	ssize_t got;

	if (!file) {
		int error = errno;

		snprintf(why, why_size, "%s: %s", path, strerror(error));
		return -error;
	}
	/* JSON holds no NUL, so one "line" is the whole file */
	got = getdelim(&text, &size, '\0', file);
	fclose(file);
	return tn_stub_profile_parse(got > 0 ? text : "", got > 0 ? (size_t)got : 0, ret, why,
				     why_size);
}

int tn_stub_profile_load(const char *dir, const char *name, TnStubProfile *ret, char *why,
			 size_t why_size)
{
	char path[PATH_MAX];
	int result;

	if (strchr(name, '/'))
		return load_file(name, ret, why, why_size);
	if (snprintf(path, sizeof(path), "%s/%s.json", dir, name) >= PATH_MAX) {
		snprintf(why, why_size, "its path is too long");
		return -ENAMETOOLONG;
	}
	result = load_file(path, ret, why, why_size);
	for (size_t i = 0; result == -ENOENT && i < TN_ARRAY_LEN(embedded); i++) {
		if (strcmp(embedded[i].name, name) == 0)
			return tn_stub_profile_parse(embedded[i].text, strlen(embedded[i].text),
						     ret, why, why_size);
	}
	return result;
}

void tn_stub_profile_clear(TnStubProfile *profile)
{
	json_decref(profile->json);
	profile->json = NULL;
}

void tn_stub_profiles_dir(char ret[PATH_MAX])
{
	const char *chosen = getenv("TMPNEST_STUBS_PROFILES");

	snprintf(ret, PATH_MAX, "%s", chosen && chosen[0] == '/' ? chosen : TN_STUB_PROFILES_DIR);
}

static int add_joined(TnStubPaths *paths, const char *dir, const char *relative)
{
	TN_AUTOFREE char *joined = NULL;
	char **more;

	if (asprintf(&joined, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, relative) < 0) {
		joined = NULL;
		return -ENOMEM;
	}
	if (strlen(joined) >= PATH_MAX)
		return 0;
	more = reallocarray(paths->paths, paths->n_paths + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	paths->paths = more;
	paths->paths[paths->n_paths++] = joined;
	joined = NULL;
	return 0;
}

static int add_set(TnStubPaths *paths, const char *dir, const json_t *relatives)
{
	size_t index;
	json_t *relative;
	int result = 0;

	json_array_foreach(relatives, index, relative)
	{
		if (result == 0)
			result = add_joined(paths, dir, json_string_value(relative));
	}
	return result;
}

static bool is_writable(const TnStubPlaces *places, const char *dir)
{
	for (size_t i = 0; i < places->n_writable; i++) {
		if (tn_path_is_below(dir, places->writable[i]))
			return true;
	}
	return false;
}

static int add_project(TnStubPaths *paths, const TnStubPlaces *places, const json_t *relatives)
{
	char dir[PATH_MAX];
	int result = add_set(paths, places->cwd, relatives);

	snprintf(dir, sizeof(dir), "%s", places->cwd);
	while (result == 0 && strcmp(dir, "/") != 0) {
		char *slash = strrchr(dir, '/');

		slash[slash == dir] = '\0';
		if (is_writable(places, dir))
			result = add_set(paths, dir, relatives);
	}
	return result;
}

static int add_where(TnStubPaths *paths, const TnStubPlaces *places, const json_t *set)
{
	const char *where = json_string_value(json_object_get(set, "where"));
	const json_t *relatives = json_object_get(set, "paths");
	char default_config[PATH_MAX + 16];

	snprintf(default_config, sizeof(default_config), "%s/.claude", places->home);
	if (strcmp(where, "cwd") == 0)
		return add_set(paths, places->cwd, relatives);
	if (strcmp(where, "project") == 0)
		return add_project(paths, places, relatives);
	if (strcmp(where, "home") == 0)
		return add_set(paths, places->home, relatives);
	if (strcmp(where, "config") == 0)
		return add_set(paths, places->config_dir ? places->config_dir : default_config,
			       relatives);
	if (strcmp(where, "global") == 0)
		return add_set(paths, places->config_dir ? places->config_dir : places->home,
			       relatives);
	return places->config_dir ? 0 : add_set(paths, default_config, relatives);
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int expand(const json_t *sets, const TnStubPlaces *places, TnStubPaths *ret)
{
	TnStubPaths paths = {0};
	size_t index, kept = 0;
	json_t *set;

	json_array_foreach(sets, index, set)
	{
		int result = add_where(&paths, places, set);

		if (result < 0) {
			tn_stub_paths_clear(&paths);
			return result;
		}
	}
	if (paths.n_paths)
		qsort(paths.paths, paths.n_paths, sizeof(*paths.paths), compare_paths);
	for (size_t i = 0; i < paths.n_paths; i++) {
		if (kept && strcmp(paths.paths[kept - 1], paths.paths[i]) == 0)
			free(paths.paths[i]);
		else
			paths.paths[kept++] = paths.paths[i];
	}
	paths.n_paths = kept;
	*ret = paths;
	return 0;
}

int tn_stub_paths_expand(const TnStubProfile *profile, const TnStubPlaces *places, TnStubPaths *ret)
{
	return expand(json_object_get(profile->json, "sets"), places, ret);
}

int tn_stub_paths_expand_also(const TnStubProfile *profile, const TnStubPlaces *places,
			      TnStubPaths *ret)
{
	return expand(json_object_get(profile->json, "also_denied"), places, ret);
}

void tn_stub_paths_clear(TnStubPaths *paths)
{
	for (size_t i = 0; i < paths->n_paths; i++)
		free(paths->paths[i]);
	free(paths->paths);
	*paths = (TnStubPaths){0};
}

TnStubKind tn_stub_kind_of(const TnStubProfile *profile, const char *path)
{
	size_t index;
	json_t *name;

	json_array_foreach(json_object_get(profile->json, "directories"), index, name)
	{
		if (strcmp(json_string_value(name), base_name(path)) == 0)
			return TN_STUB_DIR;
	}
	return TN_STUB_FILE;
}

static void add_names(TnStubNames *names, const TnStubProfile *profile)
{
	size_t i, j;
	json_t *set, *path;

	json_array_foreach(json_object_get(profile->json, "sets"), i, set)
	{
		json_array_foreach(json_object_get(set, "paths"), j, path) json_object_set_new(
			names->names, base_name(json_string_value(path)), json_true());
	}
}

void tn_stub_names_load(TnStubNames *ret, const char *dir)
{
	DIR *listing = opendir(dir);
	struct dirent *entry;

	ret->names = json_object();
	json_object_set_new(ret->names, TN_STUB_INNER_NAME, json_true());
	for (size_t i = 0; i < TN_ARRAY_LEN(embedded); i++) {
		TnStubProfile profile = {0};
		char why[256];

		if (tn_stub_profile_parse(embedded[i].text, strlen(embedded[i].text), &profile, why,
					  sizeof(why)) == 0)
			add_names(ret, &profile);
		tn_stub_profile_clear(&profile);
	}
	while (listing && (entry = readdir(listing))) {
		char name[NAME_MAX + 1], why[256];
		TnStubProfile profile = {0};
		char *suffix;

		snprintf(name, sizeof(name), "%s", entry->d_name);
		suffix = strrchr(name, '.');
		if (!suffix || strcmp(suffix, ".json") != 0)
			continue;
		*suffix = '\0';
		if (tn_stub_profile_load(dir, name, &profile, why, sizeof(why)) == 0)
			add_names(ret, &profile);
		tn_stub_profile_clear(&profile);
	}
	if (listing)
		closedir(listing);
}

bool tn_stub_names_has(const TnStubNames *names, const char *path)
{
	return json_object_get(names->names, base_name(path)) != NULL;
}

void tn_stub_names_clear(TnStubNames *names)
{
	json_decref(names->names);
	names->names = NULL;
}

const char *tn_stub_text(const char *path)
{
	const char *name = base_name(path), *suffix = strrchr(name, '.');

	if (suffix && strcmp(suffix, ".json") == 0)
		return "{}";
	return "# tmpnest stub\n";
}
