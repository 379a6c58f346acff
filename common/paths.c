/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "paths.h"

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((format(printf, 4, 5))) static int refuse(int error, char *why, size_t why_size,
							const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, why_size, format, arguments);
	va_end(arguments);
	return error;
}

/* An environment variable, or NULL when it is unset or empty. */
static const char *environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

bool tn_paths_are_explicit(const char *runtime_dir, const char *store_dir)
{
	return runtime_dir || store_dir || environment("TMPNEST_RUNTIME_DIR") ||
	       environment("TMPNEST_STORE_DIR");
}

bool tn_path_is_below(const char *path, const char *dir)
{
	size_t length = strlen(dir);

	/* "/" is the one normal path that ends in a slash */
	if (length == 1 && dir[0] == '/')
		return path[0] == '/';
	return strncmp(path, dir, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

bool tn_path_normalize(const char *path, char *ret, size_t size)
{
	size_t used = 0;

	if (path[0] != '/' || size < 2)
		return false;
	while (*path) {
		size_t length;

		while (*path == '/')
			path++;
		length = strcspn(path, "/");
		if (length == 0 || (length == 1 && path[0] == '.')) {
			/* nothing to add */
		} else if (length == 2 && path[0] == '.' && path[1] == '.') {
			while (used > 0 && ret[--used] != '/')
				;
		} else {
			if (used + 1 + length + 1 > size)
				return false;
			ret[used++] = '/';
			memmove(ret + used, path, length);
			used += length;
		}
		path += length;
	}
	if (used == 0)
		ret[used++] = '/';
	ret[used] = '\0';
	return true;
}

/* dir/name into ret; false when it does not fit. */
static bool join(const char *dir, const char *name, char *ret, size_t size)
{
	int n = snprintf(ret, size, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name);

	return n >= 0 && (size_t)n < size;
}

/* $XDG_STATE_HOME or its default, in ret. Relative values are ignored, as the standard says. */
static bool state_home(char *ret, size_t size)
{
	const char *value = environment("XDG_STATE_HOME");
	const char *home;

	if (value && value[0] == '/') {
		int n = snprintf(ret, size, "%s", value);

		return n >= 0 && (size_t)n < size;
	}
	home = environment("HOME");
	if (!home || home[0] != '/') {
		const struct passwd *entry = getpwuid(getuid());

		home = entry ? entry->pw_dir : NULL;
	}
	return home && home[0] == '/' && join(home, ".local/state", ret, size);
}

static bool default_runtime_dir(TnScope scope, char *ret, size_t size)
{
	const char *runtime_home = environment("XDG_RUNTIME_DIR");
	char state[PATH_MAX];

	if (scope == TN_SCOPE_SYSTEM)
		return join("/run", "tmpnest", ret, size);
	if (runtime_home && runtime_home[0] == '/')
		return join(runtime_home, "tmpnest", ret, size);
	return state_home(state, sizeof(state)) && join(state, "tmpnest-run", ret, size);
}

static bool default_store_dir(TnScope scope, char *ret, size_t size)
{
	char state[PATH_MAX];

	if (scope == TN_SCOPE_SYSTEM)
		return join("/var/lib", "tmpnest", ret, size);
	return state_home(state, sizeof(state)) && join(state, "tmpnest", ret, size);
}

/* Sandboxes get a /tmp of their own, and anybody could squat a name in the host's. */
static bool is_below_tmp(const char *path)
{
	return tn_path_is_below(path, "/tmp") || tn_path_is_below(path, "/var/tmp");
}

/* Checks one chosen directory and makes it normal in place. */
static int check_dir(char dir[PATH_MAX], const char *what, const char *variable, char *why,
		     size_t why_size)
{
	char normal[PATH_MAX];

	if (dir[0] != '/')
		return refuse(-EINVAL, why, why_size,
			      "%s: %s: not an absolute path (set %s to an absolute one)", what, dir,
			      variable);
	if (!tn_path_normalize(dir, normal, sizeof(normal)))
		return refuse(-ENAMETOOLONG, why, why_size,
			      "%s: %.64s...: path too long (set %s to a shorter one)", what, dir,
			      variable);
	if (is_below_tmp(normal))
		return refuse(-EINVAL, why, why_size,
			      "%s: %s: must not lie below /tmp or /var/tmp (set %s elsewhere)",
			      what, normal, variable);
	memcpy(dir, normal, strlen(normal) + 1);
	return 0;
}

/* The explicit value, the variable's, or false: use the default. */
static int choose(char ret[PATH_MAX], const char *explicit_value, const char *variable,
		  const char *what, char *why, size_t why_size)
{
	const char *value = explicit_value ? explicit_value : environment(variable);
	int n;

	if (!value)
		return 0;
	n = snprintf(ret, PATH_MAX, "%s", value);
	if (n < 0 || n >= PATH_MAX)
		return refuse(-ENAMETOOLONG, why, why_size,
			      "%s: %.64s...: path too long (set %s to a shorter one)", what, value,
			      variable);
	return 1;
}

/* Copies dir, of which a socket's path will be made. */
static int set_runtime_dir(TnPaths *paths, const char *dir, char *why, size_t why_size)
{
	static const char longest_name[] = "/control.sock";
	size_t length = strlen(dir);

	if (length + sizeof(longest_name) > sizeof(paths->runtime_dir))
		return refuse(-ENAMETOOLONG, why, why_size,
			      "socket: %s%s: longer than the 107 bytes that a socket's path may "
			      "have (set TMPNEST_RUNTIME_DIR to a shorter one)",
			      dir, longest_name);
	memcpy(paths->runtime_dir, dir, length + 1);
	return 0;
}

static int choose_runtime_dir(TnPaths *paths, const char *word, char *why, size_t why_size)
{
	static const char variable[] = "TMPNEST_RUNTIME_DIR";
	char dir[PATH_MAX];
	int r = choose(dir, word, variable, "runtime directory", why, why_size);

	if (r < 0)
		return r;
	if (r == 0 && !default_runtime_dir(paths->scope, dir, sizeof(dir)))
		return refuse(-EINVAL, why, why_size,
			      "runtime directory: none: no usable home directory (set %s)",
			      variable);
	r = check_dir(dir, "runtime directory", variable, why, why_size);
	return r < 0 ? r : set_runtime_dir(paths, dir, why, why_size);
}

static int choose_store_dir(TnPaths *paths, const char *word, char *why, size_t why_size)
{
	static const char variable[] = "TMPNEST_STORE_DIR";
	int r = choose(paths->store_dir, word, variable, "store", why, why_size);

	if (r < 0)
		return r;
	if (r == 0 && !default_store_dir(paths->scope, paths->store_dir, sizeof(paths->store_dir)))
		return refuse(-EINVAL, why, why_size,
			      "store: none: no usable home directory (set %s)", variable);
	return check_dir(paths->store_dir, "store", variable, why, why_size);
}

/* Fills in what follows from the directories; both checked. */
static int derive(TnPaths *paths, char *why, size_t why_size)
{
	if (tn_path_is_below(paths->runtime_dir, paths->store_dir) ||
	    tn_path_is_below(paths->store_dir, paths->runtime_dir))
		return refuse(-EINVAL, why, why_size,
			      "runtime directory: %s: must not contain the store %s, nor lie in it "
			      "(set TMPNEST_RUNTIME_DIR or TMPNEST_STORE_DIR)",
			      paths->runtime_dir, paths->store_dir);
	/* set_runtime_dir() has measured with the longest name already */
	if (!join(paths->runtime_dir, "attach.sock", paths->attach_socket,
		  sizeof(paths->attach_socket)) ||
	    !join(paths->runtime_dir, "control.sock", paths->control_socket,
		  sizeof(paths->control_socket)) ||
	    !join(paths->runtime_dir, "leases", paths->leases_dir, sizeof(paths->leases_dir)))
		return refuse(-ENAMETOOLONG, why, why_size, "runtime directory: path too long");
	return 0;
}

int tn_paths_init(TnPaths *ret, TnScope scope, const char *runtime_dir, const char *store_dir,
		  char *why, size_t why_size)
{
	TnPaths paths; /* not zeroed: every page of the launcher's stack costs a fault */
	int r;

	paths.scope = scope;
	r = choose_runtime_dir(&paths, runtime_dir, why, why_size);
	if (r == 0)
		r = choose_store_dir(&paths, store_dir, why, why_size);
	if (r == 0)
		r = derive(&paths, why, why_size);
	if (r == 0)
		*ret = paths;
	return r;
}

bool tn_paths_init_default(TnPaths *ret, TnScope scope)
{
	TnPaths paths;
	char dir[PATH_MAX];
	char why[1];

	paths.scope = scope;
	if (!default_runtime_dir(scope, dir, sizeof(dir)) ||
	    set_runtime_dir(&paths, dir, why, sizeof(why)) < 0 ||
	    !default_store_dir(scope, paths.store_dir, sizeof(paths.store_dir)) ||
	    derive(&paths, why, sizeof(why)) < 0)
		return false;
	*ret = paths;
	return true;
}
