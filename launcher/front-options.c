/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "front-options.h"

#include "macros.h"
#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX ((size_t)256 * 1024)

/* Scratch directories whose life is the worker's: LibreChat's code interpreter. */
static const char *const built_in_globs[] = {"*/librechat-code-srt-*"};

static int set_text(char **ret, const char *value)
{
	free(*ret);
	*ret = strdup(value);
	if (!*ret)
		tn_out_of_memory();
	return 0;
}

static int set_nest(TnFrontOptions *options, const char *value)
{
	return tn_name_is_valid(value) ? set_text(&options->nest, value) : -EINVAL;
}

static int set_quota(TnFrontOptions *options, const char *value)
{
	return tn_parse_size(value, &options->bytes);
}

static int set_inodes(TnFrontOptions *options, const char *value)
{
	return tn_parse_count(value, &options->inodes);
}

static int set_ttl(TnFrontOptions *options, const char *value)
{
	return tn_parse_duration(value, &options->ttl);
}

static int set_idle_ttl(TnFrontOptions *options, const char *value)
{
	return tn_parse_duration(value, &options->idle_ttl);
}

static int set_store(TnFrontOptions *options, const char *value)
{
	return tn_store_kind_parse(value, &options->store) ? 0 : -EINVAL;
}

/* A colon list; empty parts mean nothing. */
static int add_paths(TnWords *words, const char *value)
{
	while (*value) {
		size_t length = strcspn(value, ":");

		if (length > 0 && length < PATH_MAX)
			tn_words_addf(words, "%.*s", (int)length, value);
		value += length + (value[length] == ':');
	}
	return 0;
}

static int add_deny(TnFrontOptions *options, const char *value)
{
	return add_paths(&options->deny, value);
}

static int add_read_only(TnFrontOptions *options, const char *value)
{
	return add_paths(&options->read_only, value);
}

static int add_nest_from(TnFrontOptions *options, const char *value)
{
	static const char prefix[] = "bind:";

	if (strcmp(value, "none") == 0) {
		options->no_built_in = true;
		tn_words_clear(&options->globs);
		return 0;
	}
	if (strncmp(value, prefix, strlen(prefix)) != 0 || !value[strlen(prefix)])
		return -EINVAL;
	tn_words_add(&options->globs, value + strlen(prefix));
	return 0;
}

static int set_bool(bool *ret, const char *value)
{
	static const char *const words[] = {"0", "1", "no", "yes", "false", "true"};

	for (size_t i = 0; i < TN_ARRAY_LEN(words); i++) {
		if (strcmp(value, words[i]) == 0) {
			*ret = i % 2;
			return 0;
		}
	}
	return -EINVAL;
}

static int set_var_tmp(TnFrontOptions *options, const char *value)
{
	return set_bool(&options->var_tmp, value);
}

static int set_verbose(TnFrontOptions *options, const char *value)
{
	return set_bool(&options->verbose, value);
}

static int set_view(TnFrontOptions *options, const char *value)
{
	static const char *const words[] = {
		[TN_FRONT_VIEW_ALWAYS] = "always",
		[TN_FRONT_VIEW_POSSIBLE] = "possible",
		[TN_FRONT_VIEW_NEVER] = "never",
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(words); i++) {
		if (strcmp(value, words[i]) == 0) {
			options->view = (TnFrontWhen)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int set_program(TnFrontOptions *options, const char *value)
{
	return value[0] == '/' ? set_text(&options->program, value) : -EINVAL;
}

typedef struct Key {
	const char *section, *name;
	const char *variable; /* NULL: not by the environment */
	int (*set)(TnFrontOptions *options, const char *value);
	const char *wanted;
	bool trusted_only; /* not in a file that a sandbox may be able to write */
} Key;

static const Key keys[] = {
	{"nest", "name", "TMPNEST_NEST", set_nest,
	 "1 to 64 of A-Za-z0-9._-, not starting with . or -"},
	{"nest", "quota", "TMPNEST_QUOTA", set_quota, "a number with K, M, G or T, or max"},
	{"nest", "inodes", "TMPNEST_INODES", set_inodes, "a number, or max"},
	{"nest", "ttl", "TMPNEST_TTL", set_ttl, "90s, 15m, 2h or 7d"},
	{"nest", "idle_ttl", "TMPNEST_IDLE_TTL", set_idle_ttl, "90s, 15m, 2h or 7d"},
	{"nest", "store", "TMPNEST_STORE", set_store, "dir, memory or image"},
	{"nest", "deny", "TMPNEST_DENY", add_deny, "paths below /tmp with colons between"},
	{"nest", "read_only", "TMPNEST_READ_ONLY", add_read_only,
	 "paths below /tmp with colons between"},
	{"bwrap", "nest_from", "TMPNEST_NEST_FROM", add_nest_from, "bind:GLOB, or none"},
	{"bwrap", "var_tmp", "TMPNEST_VAR_TMP", set_var_tmp, "yes or no"},
	{"bwrap", "verbose", "TMPNEST_VERBOSE", set_verbose, "yes or no"},
	{"bwrap", "program", NULL, set_program, "an absolute path", .trusted_only = true},
	{"bwrap", "view", "TMPNEST_VIEW", set_view, "always, possible or never",
	 .trusted_only = true},
};

typedef struct Reader {
	TnFrontOptions *options;
	const char *name;
	bool trusted;
	bool said;
} Reader;

static int take_line(void *user, const char *section, const char *name, const char *value)
{
	Reader *reader = user;

	if (strcmp(section, "nest") != 0 && strcmp(section, "bwrap") != 0)
		return 1;
	for (size_t i = 0; i < TN_ARRAY_LEN(keys); i++) {
		const Key *key = &keys[i];

		if (strcmp(key->section, section) != 0 || strcmp(key->name, name) != 0)
			continue;
		if (key->trusted_only && !reader->trusted)
			return 1;
		if (key->set(reader->options, value) == 0)
			return 1;
		tn_say("%s: [%s] %s: not %s: %.200s", reader->name, section, name, key->wanted,
		       value);
		reader->said = true;
		return 0;
	}
	/* perhaps of a newer version: no reason not to start */
	tn_say("%s: [%s] %.200s: unknown, ignored", reader->name, section, name);
	return 1;
}

int tn_front_options_parse(TnFrontOptions *options, const char *text, const char *name,
			   bool trusted)
{
	Reader reader = {.options = options, .name = name, .trusted = trusted};
	int line = ini_parse_string(text, take_line, &reader);

	if (line == 0)
		return 0;
	if (!reader.said)
		tn_say("%s:%d: neither [SECTION] nor KEY = VALUE", name, line);
	return -EINVAL;
}

int tn_front_options_environment(TnFrontOptions *options, const char *(*look)(const char *name))
{
	for (size_t i = 0; i < TN_ARRAY_LEN(keys); i++) {
		const char *value = keys[i].variable ? look(keys[i].variable) : NULL;

		if (!value || !*value)
			continue;
		/* The environment's rule comes before those of the files. */
		if (keys[i].set == add_nest_from)
			tn_words_clear(&options->globs);
		if (keys[i].set(options, value) < 0)
			return tn_fail(-EINVAL, "%s: %.200s: not %s", keys[i].variable, value,
				       keys[i].wanted);
	}
	return 0;
}

/* The whole file; no file is no failure. */
static int read_file(TnFrontOptions *options, const char *path, bool trusted)
{
	TN_AUTOFD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	TN_AUTOFREE char *text = NULL;
	size_t used = 0;
	ssize_t n = 1;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
		return 0;
	text = malloc(FILE_MAX + 1);
	if (!text)
		tn_out_of_memory();
	while (fd >= 0 && n > 0 && used < FILE_MAX) {
		n = read(fd, text + used, FILE_MAX - used);
		used += n > 0 ? (size_t)n : 0;
	}
	if (fd < 0 || n < 0)
		return tn_fail(-errno, "%s: cannot be read: %s", path, strerror(errno));
	if (used == FILE_MAX)
		return tn_fail(-EFBIG, "%s: larger than %zu KiB", path, FILE_MAX / 1024);
	text[used] = '\0';
	return tn_front_options_parse(options, text, path, trusted);
}

static const char *environment(const char *name)
{
	return getenv(name);
}

static int read_users_file(TnFrontOptions *options)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	char path[PATH_MAX];
	int n;

	if (config && config[0] == '/')
		n = snprintf(path, sizeof(path), "%s/tmpnest/tmpnest.conf", config);
	else if (home && home[0] == '/')
		n = snprintf(path, sizeof(path), "%s/.config/tmpnest/tmpnest.conf", home);
	else
		return 0;
	return n < 0 || n >= (int)sizeof(path) ? 0 : read_file(options, path, false);
}

int tn_front_options_load(TnFrontOptions *options)
{
	int r = read_file(options, "/etc/tmpnest/tmpnest.conf", true);

	if (r == 0)
		r = read_users_file(options);
	if (r == 0)
		r = tn_front_options_environment(options, environment);
	for (size_t i = 0; r == 0 && !options->no_built_in && i < TN_ARRAY_LEN(built_in_globs); i++)
		tn_words_add(&options->globs, built_in_globs[i]);
	return r;
}

void tn_front_options_clear(TnFrontOptions *options)
{
	free(options->nest);
	free(options->program);
	tn_words_clear(&options->globs);
	tn_words_clear(&options->deny);
	tn_words_clear(&options->read_only);
	*options = (TnFrontOptions){0};
}
