/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "macros.h"
#include "paths.h"
#include "stub-verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct Parser {
	TnStubsArgs *args;
	unsigned knows;
	char **words;
	int n_words, at;
} Parser;

int tn_stubs_usage(const char *verb, const char *why)
{
	fprintf(stderr, "tmpnest: stubs %s: %s (see tmpnest-stubs(1))\n", verb, why);
	return TN_STUBS_EXIT_USAGE;
}

int tn_stubs_fail(const TnStubsArgs *args, const char *object, const char *why)
{
	fprintf(stderr, "tmpnest: stubs %s: %s: %s\n", args->verb, object, why);
	return TN_STUBS_EXIT_FAILURE;
}

/* The word after the option, or after its "="; NULL when there is none. */
static const char *value_of(Parser *parser, const char *word)
{
	const char *equals = strchr(word, '=');

	if (equals)
		return equals + 1;
	return parser->at < parser->n_words ? parser->words[parser->at++] : NULL;
}

static bool is_option(const char *word, const char *name)
{
	size_t length = strlen(name);

	return strncmp(word, name, length) == 0 && (word[length] == '\0' || word[length] == '=');
}

/* Absolute, with links resolved where it exists: a stub's path never leads through one. */
static bool resolve(const char *path, char ret[PATH_MAX])
{
	char absolute[PATH_MAX], cwd[PATH_MAX];

	if (realpath(path, ret))
		return true;
	if (path[0] == '/')
		return tn_path_normalize(path, ret, PATH_MAX);
	return getcwd(cwd, sizeof(cwd)) &&
	       snprintf(absolute, sizeof(absolute), "%s/%s", cwd, path) < PATH_MAX &&
	       tn_path_normalize(absolute, ret, PATH_MAX);
}

static int add(char ***list, size_t *n, const char *text)
{
	char **more = reallocarray(*list, *n + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	*list = more;
	more[*n] = strdup(text);
	return more[*n] ? (++*n, 0) : -ENOMEM;
}

/* The path itself may be missing or a link; what it lies in is resolved. */
static bool resolve_stub(const char *path, char ret[PATH_MAX])
{
	char copy[PATH_MAX], dir[PATH_MAX];
	char *slash;

	if (snprintf(copy, sizeof(copy), "%s%s", path[0] == '/' ? "" : "./", path) >= PATH_MAX)
		return false;
	slash = strrchr(copy, '/');
	if (!slash[1])
		return false;
	*slash = '\0';
	return resolve(*copy ? copy : "/", dir) &&
	       snprintf(ret, PATH_MAX, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, slash + 1) <
		       PATH_MAX;
}

/* An option that takes all words up to the next option. */
static int take_list(Parser *parser, const char *word, bool stub_paths)
{
	TnStubsArgs *args = parser->args;
	const char *value = value_of(parser, word);

	if (!value)
		return tn_stubs_usage(args->verb, "an option lacks its value");
	do {
		char path[PATH_MAX];
		bool fits = stub_paths ? resolve_stub(value, path) : resolve(value, path);

		if (!fits)
			return tn_stubs_usage(args->verb, "a path is too long or is none");
		if ((stub_paths
			     ? add(&args->explicit_paths.paths, &args->explicit_paths.n_paths, path)
			     : add(&args->writable, &args->n_writable, path)) < 0)
			return tn_stubs_fail(args, "memory", strerror(ENOMEM));
		value = parser->at < parser->n_words ? parser->words[parser->at] : NULL;
	} while (value && strncmp(value, "--", 2) != 0 && ++parser->at);
	return -1;
}

static int take_pid(Parser *parser, const char *word)
{
	const char *value = value_of(parser, word);
	char *end = NULL;
	long pid;

	errno = 0;
	pid = value ? strtol(value, &end, 10) : 0;
	if (pid <= 0 || errno || *end || pid > INT32_MAX)
		return tn_stubs_usage(parser->args->verb, "--pid takes a process id");
	parser->args->pid = pid;
	return -1;
}

static int take_directory(Parser *parser, const char *word, char ret[PATH_MAX])
{
	const char *value = value_of(parser, word);

	if (!value || !*value || !resolve(value, ret))
		return tn_stubs_usage(parser->args->verb, "an option lacks its directory");
	return -1;
}

static int take_text(Parser *parser, const char *word, const char **ret)
{
	*ret = value_of(parser, word);
	if (!*ret || !**ret)
		return tn_stubs_usage(parser->args->verb, "an option lacks its value");
	return -1;
}

static int take_ledger(Parser *parser, const char *word)
{
	const char *value = value_of(parser, word);

	if (!value || tn_ledger_file_path(value, parser->args->ledger_path) < 0)
		return tn_stubs_usage(parser->args->verb, "--ledger takes an absolute path");
	return -1;
}

static int take_place(Parser *parser, const char *word)
{
	TnStubsArgs *args = parser->args;

	if (is_option(word, "--cwd"))
		return take_directory(parser, word, args->cwd);
	if (is_option(word, "--home"))
		return take_directory(parser, word, args->home);
	if (is_option(word, "--config-dir"))
		return take_directory(parser, word, args->config_dir);
	if (is_option(word, "--writable"))
		return take_list(parser, word, false);
	if (is_option(word, "--path"))
		return take_list(parser, word, true);
	if (is_option(word, "--profile"))
		return take_text(parser, word, &args->profile_name);
	return -2;
}

static int take_flag(Parser *parser, const char *word)
{
	const struct {
		const char *name;
		unsigned known;
		bool *target;
	} flags[] = {
		{"--all", TN_KNOWS_ALL, &parser->args->all},
		{"--filled", TN_KNOWS_FILLED, &parser->args->filled},
		{"--no-ledger", TN_KNOWS_NO_LEDGER, &parser->args->no_ledger},
		{"--json", TN_KNOWS_JSON, &parser->args->json},
		{"--verbose", TN_KNOWS_JSON, &parser->args->verbose},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(flags); i++) {
		if ((parser->knows & flags[i].known) && strcmp(word, flags[i].name) == 0) {
			*flags[i].target = true;
			return -1;
		}
	}
	return -2;
}

static int take_option(Parser *parser, const char *word)
{
	TnStubsArgs *args = parser->args;
	int status = take_flag(parser, word);

	if (status == -2 && (parser->knows & TN_KNOWS_PLACES))
		status = take_place(parser, word);
	if (status != -2)
		return status;
	if ((parser->knows & TN_KNOWS_OWNER) && is_option(word, "--owner"))
		return take_text(parser, word, &args->owner);
	if ((parser->knows & TN_KNOWS_PID) && is_option(word, "--pid"))
		return take_pid(parser, word);
	if ((parser->knows & TN_KNOWS_MOUNTINFO) && is_option(word, "--mountinfo"))
		return take_text(parser, word, &args->mountinfo);
	if (is_option(word, "--ledger"))
		return take_ledger(parser, word);
	if (is_option(word, "--runtime-dir"))
		return take_directory(parser, word, args->runtime_dir);
	fprintf(stderr, "tmpnest: stubs %s: %s: unknown option (see tmpnest-stubs(1))\n",
		args->verb, word);
	return TN_STUBS_EXIT_USAGE;
}

static int set_defaults(TnStubsArgs *args)
{
	const char *config = getenv("CLAUDE_CONFIG_DIR"), *home = getenv("HOME");
	TnScope scope = geteuid() == 0 ? TN_SCOPE_SYSTEM : TN_SCOPE_USER;
	char why[256];
	TnPaths paths;

	tn_stub_profiles_dir(args->profiles_dir);
	args->profile_name = "builtin";
	if (!getcwd(args->cwd, sizeof(args->cwd)))
		args->cwd[0] = '\0';
	if (home && *home)
		resolve(home, args->home);
	if (config && *config)
		resolve(config, args->config_dir);
	if (tn_paths_init(&paths, scope, NULL, NULL, why, sizeof(why)) == 0)
		snprintf(args->runtime_dir, sizeof(args->runtime_dir), "%s", paths.runtime_dir);
	if (tn_ledger_file_path(NULL, args->ledger_path) == -EINVAL)
		return tn_stubs_usage(args->verb, "TMPNEST_STUBS_LEDGER must be an absolute path");
	return -1;
}

int tn_stubs_args_init(TnStubsArgs *args, unsigned knows, int argc, char **argv)
{
	Parser parser = {.args = args, .knows = knows, .words = argv, .n_words = argc, .at = 1};
	int status;

	*args = (TnStubsArgs){.verb = argv[0]};
	status = set_defaults(args);
	while (status == -1 && parser.at < argc) {
		const char *word = argv[parser.at++];

		if (strcmp(word, "--") == 0 && (knows & TN_KNOWS_COMMAND)) {
			args->command = argv + parser.at;
			break;
		}
		if (strncmp(word, "--", 2) != 0)
			return tn_stubs_usage(args->verb, "it takes options only");
		status = take_option(&parser, word);
	}
	if (status == -1 && !args->ledger_path[0] && !args->no_ledger)
		return tn_stubs_usage(args->verb, "there is no home directory: give --ledger");
	return status;
}

void tn_stubs_args_clear(TnStubsArgs *args)
{
	for (size_t i = 0; i < args->n_writable; i++)
		free(args->writable[i]);
	free(args->writable);
	tn_stub_paths_clear(&args->explicit_paths);
}

static int load_profile(const TnStubsArgs *args, TnStubProfile *ret)
{
	char why[512] = "";

	if (tn_stub_profile_load(args->profiles_dir, args->profile_name, ret, why, sizeof(why)) < 0)
		return tn_stubs_fail(args, "profile", why);
	return -1;
}

static int copy_paths(const TnStubPaths *from, TnStubPaths *ret)
{
	for (size_t i = 0; i < from->n_paths; i++) {
		if (add(&ret->paths, &ret->n_paths, from->paths[i]) < 0)
			return -ENOMEM;
	}
	return 0;
}

int tn_stubs_args_paths(const TnStubsArgs *args, TnStubPaths *ret, TnStubKind **ret_kinds)
{
	TnStubPlaces places = {.cwd = args->cwd,
			       .home = args->home,
			       .config_dir = args->config_dir[0] ? args->config_dir : NULL,
			       .writable = (const char *const *)args->writable,
			       .n_writable = args->n_writable};
	TnStubProfile profile = {0};
	int result, status = load_profile(args, &profile);

	if (status != -1)
		return status;
	*ret = (TnStubPaths){0};
	if (args->explicit_paths.n_paths > 0)
		result = copy_paths(&args->explicit_paths, ret);
	else if (!places.cwd[0] || !places.home[0])
		result = -ENOTDIR;
	else
		result = tn_stub_paths_expand(&profile, &places, ret);
	if (result == 0 && ret_kinds) {
		*ret_kinds = calloc(ret->n_paths + 1, sizeof(**ret_kinds));
		for (size_t i = 0; *ret_kinds && i < ret->n_paths; i++)
			(*ret_kinds)[i] = tn_stub_kind_of(&profile, ret->paths[i]);
		result = *ret_kinds ? 0 : -ENOMEM;
	}
	tn_stub_profile_clear(&profile);
	if (result == -ENOTDIR)
		return tn_stubs_usage(args->verb, "give --cwd and --home");
	return result < 0 ? tn_stubs_fail(args, "paths", strerror(-result)) : -1;
}

void tn_stubs_args_open(const TnStubsArgs *args, TnStubs *stubs, TnStubReport *report)
{
	TnStubsOptions options = {.ledger_path = args->no_ledger ? NULL : args->ledger_path,
				  .profiles_dir = args->profiles_dir,
				  .runtime_dir = args->runtime_dir[0] ? args->runtime_dir : NULL,
				  .note = tn_stub_report_note,
				  .note_data = report};

	tn_stub_report_init(report, args->verb, args->json, args->verbose);
	tn_stubs_init(stubs, &options);
}

int tn_stubs_args_holder(const TnStubsArgs *args, const TnSelf *self, TnStubHolder *ret)
{
	int64_t pid = args->pid ? args->pid : getppid();
	char object[32];

	if (tn_holder_init(self, pid, ret) == 0)
		return -1;
	snprintf(object, sizeof(object), "process %" PRId64, pid);
	return tn_stubs_fail(args, object, "does not live (give --pid of one that does)");
}
