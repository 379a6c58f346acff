/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "run-options.h"
#include "macros.h"
#include "message.h"
#include "units.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum OptionId {
	OPTION_BIND,
	OPTION_BWRAP_ARG,
	OPTION_DENY,
	OPTION_DURABLE,
	OPTION_HELP,
	OPTION_IDLE_TTL,
	OPTION_INODES,
	OPTION_KEEP,
	OPTION_KEEP_CAPS,
	OPTION_NEST,
	OPTION_NET,
	OPTION_NO_VAR_TMP,
	OPTION_NO_WORKSPACE,
	OPTION_NO_XATTRS,
	OPTION_WRITEBACK,
	OPTION_QUOTA,
	OPTION_READ_ONLY,
	OPTION_REPORT,
	OPTION_RO_BIND,
	OPTION_RUN_AS,
	OPTION_RUNTIME_DIR,
	OPTION_SETENV,
	OPTION_STORE,
	OPTION_STORE_DIR,
	OPTION_SYSTEM,
	OPTION_TTL,
	OPTION_USER,
	OPTION_WORKSPACE,
} OptionId;

typedef struct Option {
	const char *name;
	OptionId id;
	bool has_value;
} Option;

static const Option options_known[] = {
	{"bind", OPTION_BIND, true},
	{"bwrap-arg", OPTION_BWRAP_ARG, true},
	{"deny", OPTION_DENY, true},
	{"durable", OPTION_DURABLE, false},
	{"help", OPTION_HELP, false},
	{"idle-ttl", OPTION_IDLE_TTL, true},
	{"inodes", OPTION_INODES, true},
	{"keep", OPTION_KEEP, false},
	{"keep-caps", OPTION_KEEP_CAPS, false},
	{"nest", OPTION_NEST, true},
	{"net", OPTION_NET, true},
	{"no-var-tmp", OPTION_NO_VAR_TMP, false},
	{"no-workspace", OPTION_NO_WORKSPACE, false},
	{"no-xattrs", OPTION_NO_XATTRS, false},
	{"writeback", OPTION_WRITEBACK, false},
	{"quota", OPTION_QUOTA, true},
	{"read-only", OPTION_READ_ONLY, true},
	{"report", OPTION_REPORT, false},
	{"ro-bind", OPTION_RO_BIND, true},
	{"run-as", OPTION_RUN_AS, true},
	{"runtime-dir", OPTION_RUNTIME_DIR, true},
	{"setenv", OPTION_SETENV, true},
	{"store", OPTION_STORE, true},
	{"store-dir", OPTION_STORE_DIR, true},
	{"system", OPTION_SYSTEM, false},
	{"ttl", OPTION_TTL, true},
	{"user", OPTION_USER, false},
	{"workspace", OPTION_WORKSPACE, true},
};

/* Where the one line goes that says what is wrong. */
typedef struct Why {
	char *text;
	size_t size;
} Why;

__attribute__((format(printf, 2, 3))) static int refuse(const Why *why, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why->text, why->size, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

typedef int (*UnitParser)(const char *text, uint64_t *ret);

/* Zero on the wire means "the default", so nobody may ask for it by number. */
static int parse_limit(UnitParser parse, const char *option, const char *value, const char *form,
		       uint64_t *ret, const Why *why)
{
	uint64_t number;
	int r = parse(value, &number);

	if (r == -ERANGE)
		return refuse(why, "--%s: %s: too large (use max for no limit)", option, value);
	if (r < 0 || number == 0)
		return refuse(why, "--%s: %s: not a valid value (give %s, or max)", option, value,
			      form);
	*ret = number;
	return 0;
}

static int parse_store(const char *value, TnStoreKind *ret, const Why *why)
{
	return tn_store_kind_parse(value, ret)
		       ? 0
		       : refuse(why, "--store: %s: no such kind (give dir, memory or image)",
				value);
}

static int parse_net(const char *value, bool *ret_unshare, const Why *why)
{
	if (strcmp(value, "host") == 0)
		*ret_unshare = false;
	else if (strcmp(value, "none") == 0)
		*ret_unshare = true;
	else
		return refuse(why, "--net: %s: no such network (give host or none)", value);
	return 0;
}

/* The last ":/" in value, where INSIDE begins: HOST may hold colons, INSIDE is absolute. */
static const char *find_inside(const char *value)
{
	const char *found = NULL;

	for (const char *p = value; (p = strstr(p, ":/")); p++)
		found = p;
	return found;
}

static int parse_bind(TnRunOptions *options, const char *name, const char *value, bool read_only,
		      const Why *why)
{
	const char *split = find_inside(value);
	size_t length = split ? (size_t)(split - value) : strlen(value);
	TnBindOption *bind;

	if (length == 0)
		return refuse(why, "--%s: %s: no host path (give HOST or HOST:INSIDE)", name,
			      value);
	options->binds =
		reallocarray(options->binds, options->n_binds + 1, sizeof(*options->binds));
	if (!options->binds)
		tn_out_of_memory();
	bind = &options->binds[options->n_binds++];
	*bind = (TnBindOption){.host = strndup(value, length), .read_only = read_only};
	bind->inside = split ? strdup(split + 1) : NULL;
	if (!bind->host || (split && !bind->inside))
		tn_out_of_memory();
	return 0;
}

static int parse_setenv(TnRunOptions *options, const char *value, const Why *why)
{
	size_t length = strcspn(value, "=");

	if (length == 0 || value[length] != '=')
		return refuse(why, "--setenv: %s: not of the form NAME=VALUE", value);
	tn_words_addf(&options->setenvs, "%.*s", (int)length, value);
	tn_words_add(&options->setenvs, value + length + 1);
	return 0;
}

static int add_path(TnWords *list, const char *name, const char *value, const Why *why)
{
	if (*value == '\0')
		return refuse(why, "--%s: empty (give a path)", name);
	tn_words_add(list, value);
	return 0;
}

static int apply_value(TnRunOptions *options, const Option *option, const char *value,
		       const Why *why)
{
	const char *name = option->name;

	switch (option->id) {
	case OPTION_NEST:
		if (!tn_name_is_valid(value))
			return refuse(why,
				      "--nest: %s: not a nest's name (1 to %d of A-Za-z0-9._-, not "
				      "starting with . or -)",
				      value, TN_NAME_MAX);
		options->nest = value;
		return 0;
	case OPTION_QUOTA:
		return parse_limit(tn_parse_size, name, value,
				   "bytes, or a number with K, M, G or T", &options->bytes, why);
	case OPTION_INODES:
		return parse_limit(tn_parse_count, name, value, "a number above 0",
				   &options->inodes, why);
	case OPTION_TTL:
		return parse_limit(tn_parse_duration, name, value, "a number with s, m, h or d",
				   &options->ttl, why);
	case OPTION_IDLE_TTL:
		return parse_limit(tn_parse_duration, name, value, "a number with s, m, h or d",
				   &options->idle_ttl, why);
	case OPTION_STORE:
		return parse_store(value, &options->store, why);
	case OPTION_DENY:
		return add_path(&options->deny, name, value, why);
	case OPTION_READ_ONLY:
		return add_path(&options->read_only, name, value, why);
	case OPTION_WORKSPACE:
		return add_path(&options->workspaces, name, value, why);
	case OPTION_BIND:
		return parse_bind(options, name, value, false, why);
	case OPTION_RO_BIND:
		return parse_bind(options, name, value, true, why);
	case OPTION_SETENV:
		return parse_setenv(options, value, why);
	case OPTION_NET:
		return parse_net(value, &options->unshare_net, why);
	case OPTION_BWRAP_ARG:
		tn_words_add(&options->bwrap_args, value);
		return 0;
	case OPTION_RUN_AS:
		options->run_as = value;
		return 0;
	case OPTION_RUNTIME_DIR:
		options->daemon.runtime_dir = value;
		return 0;
	case OPTION_STORE_DIR:
		options->daemon.store_dir = value;
		return 0;
	default:
		return refuse(why, "--%s: takes no value", name);
	}
}

static void apply_switch(TnRunOptions *options, OptionId id)
{
	switch (id) {
	case OPTION_DURABLE:
		options->durable = true;
		break;
	case OPTION_HELP:
		options->help = true;
		break;
	case OPTION_NO_XATTRS:
		options->no_xattrs = true;
		break;
	case OPTION_WRITEBACK:
		options->writeback = true;
		break;
	case OPTION_KEEP:
		options->keep = true;
		break;
	case OPTION_KEEP_CAPS:
		options->keep_caps = true;
		break;
	case OPTION_NO_VAR_TMP:
		options->no_var_tmp = true;
		break;
	case OPTION_NO_WORKSPACE:
		options->no_workspace = true;
		break;
	case OPTION_REPORT:
		options->report = true;
		break;
	case OPTION_SYSTEM:
		options->daemon.system = true;
		break;
	case OPTION_USER:
		options->daemon.user = true;
		break;
	default:
		break;
	}
}

/* The option whose name is the first length bytes of name, or NULL. */
static const Option *find_option(const char *name, size_t length)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(options_known); i++)
		if (strlen(options_known[i].name) == length &&
		    strncmp(options_known[i].name, name, length) == 0)
			return &options_known[i];
	return NULL;
}

/* One option at *words, which moves behind what was used. */
static int parse_option(TnRunOptions *options, char ***words, const Why *why)
{
	const char *word = *(*words)++;
	size_t length = strcspn(word + 2, "=");
	const Option *option = find_option(word + 2, length);
	const char *value = word[2 + length] == '=' ? word + 2 + length + 1 : NULL;

	if (!option)
		return refuse(why, "%.*s: unknown option (see tmpnest run --help)", (int)length + 2,
			      word);
	if (!option->has_value) {
		if (value)
			return refuse(why, "--%s: takes no value", option->name);
		apply_switch(options, option->id);
		return 0;
	}
	if (!value) {
		value = **words;
		if (!value)
			return refuse(why, "--%s: needs a value (see tmpnest run --help)",
				      option->name);
		(*words)++;
	}
	return apply_value(options, option, value, why);
}

static int check_together(const TnRunOptions *options, const Why *why)
{
	if (options->help)
		return 0;
	if (!*options->command)
		return refuse(why, "no command given (tmpnest run [OPTIONS] [--] CMD [ARG...])");
	if (options->daemon.system && options->daemon.user)
		return refuse(why, "--system and --user exclude each other (give one)");
	if (options->durable && !options->nest && !options->keep)
		return refuse(why, "--durable: an ephemeral nest ends with its sandbox (add --nest "
				   "NAME)");
	if (options->no_workspace && options->workspaces.n > 0)
		return refuse(why, "--no-workspace and --workspace exclude each other (give one)");
	if (options->run_as && options->keep_caps)
		return refuse(why, "--run-as and --keep-caps exclude each other (give one)");
	return 0;
}

int tn_run_options_parse(TnRunOptions *ret, char **argv, char *why_text, size_t why_size)
{
	Why why = {why_text, why_size};
	char **words = argv;
	int r;

	*ret = (TnRunOptions){0};
	while (*words && (*words)[0] == '-' && (*words)[1] != '\0') {
		if (strcmp(*words, "--") == 0) {
			words++;
			break;
		}
		if (strcmp(*words, "-h") == 0) {
			ret->help = true;
			words++;
			continue;
		}
		if ((*words)[1] != '-')
			return refuse(&why, "%s: unknown option (see tmpnest run --help)", *words);
		r = parse_option(ret, &words, &why);
		if (r < 0)
			return r;
	}
	ret->command = words;
	return check_together(ret, &why);
}

void tn_run_options_clear(TnRunOptions *options)
{
	tn_words_clear(&options->deny);
	tn_words_clear(&options->read_only);
	tn_words_clear(&options->workspaces);
	tn_words_clear(&options->setenvs);
	tn_words_clear(&options->bwrap_args);
	for (size_t i = 0; i < options->n_binds; i++) {
		free(options->binds[i].host);
		free(options->binds[i].inside);
	}
	free(options->binds);
	*options = (TnRunOptions){0};
}

bool tn_run_options_shape_nest(const TnRunOptions *options)
{
	return options->bytes || options->inodes || options->ttl || options->idle_ttl ||
	       options->durable || options->no_xattrs || options->writeback ||
	       options->store != TN_STORE_DEFAULT || options->deny.n > 0 ||
	       options->read_only.n > 0;
}
