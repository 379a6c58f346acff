/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files of the host's /tmp that the command cannot start without, the current directory,
 * and TMPDIR.
 *
 * Only what the runtime itself names is bound, never what an agent's command may have
 * named: the program, the script given to an interpreter, a runtime's own helper by its
 * well-known place, and files that --setenv points to. Only regular files: a host socket
 * below /tmp would be a way out.
 */
#include "splice-private.h"

#include "macros.h"
#include "paths.h"

#include <string.h>

/* The seccomp helper of sandbox-runtime, inside the shell text of the command. */
#define HELPER_DIR "/vendor/seccomp/"
#define HELPER_NAME "/apply-seccomp"

static bool is_runnable(TnFileKind kind)
{
	return kind == TN_FILE_EXECUTABLE;
}

static bool is_file(TnFileKind kind)
{
	return kind == TN_FILE_REGULAR || kind == TN_FILE_EXECUTABLE;
}

static void need(TnSplice *splice, const char *word, bool (*suits)(TnFileKind kind))
{
	const char *cwd = splice->facts->cwd ? splice->facts->cwd : "/";
	const char *path = tn_splice_normal(splice, cwd, word);
	const char *dest = path ? tn_splice_place(splice, path) : NULL;
	const TnSpliceView *view = dest ? tn_splice_view_above(splice, dest) : NULL;
	const char *real;

	if (!view || !view->shows_host || tn_splice_shows(splice, view, dest) ||
	    !suits(tn_splice_resolve(splice, word, &real)))
		return;
	for (size_t i = 0; i < splice->n_extras; i++)
		if (strcmp(splice->extras[i].dest, dest) == 0)
			return;
	if (tn_splice_add_extra(splice, (TnSpliceArea)(view - splice->views), "--ro-bind", real,
				dest))
		tn_splice_note(splice, TN_SPLICE_NEEDED,
			       tn_pool_printf(&splice->pool,
					      "%.512s: bound read-only, the command needs it",
					      dest));
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Programs that take a script's path as first word, by how they take program text instead. */
typedef enum Interpreter {
	NO_INTERPRETER,
	SHELL,    /* -c, also in a cluster: -lc */
	LANGUAGE, /* -c, -e, -m, -p, --eval ... */
} Interpreter;

static Interpreter interpreter_of(const char *program)
{
	static const char *const shells[] = {"sh", "bash", "dash", "zsh", "ksh"};
	static const char *const languages[] = {"node",    "deno", "bun", "python",
						"python3", "perl", "ruby"};
	const char *name = base_name(program);

	for (size_t i = 0; i < TN_ARRAY_LEN(shells); i++)
		if (strcmp(name, shells[i]) == 0)
			return SHELL;
	for (size_t i = 0; i < TN_ARRAY_LEN(languages); i++)
		if (strcmp(name, languages[i]) == 0)
			return LANGUAGE;
	return NO_INTERPRETER;
}

/* With such an option the next word is no script, or it cannot be told which one is. */
static bool takes_program_text(Interpreter interpreter, const char *option)
{
	if (option[1] == '-')
		return true;
	if (interpreter == SHELL)
		return strchr(option, 'c') || option[1] == '\0' || strchr("oO", option[1]);
	return option[1] == '\0' || strpbrk(option, "cempr");
}

static void need_script(TnSplice *splice)
{
	const TnBwrapLine *line = splice->line;
	Interpreter interpreter = interpreter_of(line->command[0]);

	for (size_t i = 1; i < line->n_command && interpreter; i++) {
		const char *word = line->command[i];

		if (word[0] != '-') {
			need(splice, word, is_file);
			return;
		}
		if (takes_program_text(interpreter, word))
			return;
	}
}

/* The path that ends at end, in shell text that starts at start: quoted, or up to a blank. */
static const char *path_before(const char *start, const char *end)
{
	const char *from = end;

	while (from > start && !strchr("'\"\n", from[-1]))
		from--;
	if (*from == '/')
		return from;
	from = end;
	while (from > start && !strchr(" \t\n'\"=;|&()<>`", from[-1]))
		from--;
	return from;
}

static void need_helpers(TnSplice *splice, const char *text)
{
	const char *at = text;

	while ((at = strstr(at, HELPER_DIR))) {
		const char *name = at + strlen(HELPER_DIR);
		const char *start = path_before(text, at);
		const char *path;

		name += strcspn(name, "/ \t\n'\"");
		at += strlen(HELPER_DIR);
		if (strncmp(name, HELPER_NAME, strlen(HELPER_NAME)) != 0 || *start != '/')
			continue;
		path = tn_pool_copy(&splice->pool, start,
				    (size_t)(name + strlen(HELPER_NAME) - start));
		if (!tn_splice_keep(splice, path))
			return;
		need(splice, path, is_runnable);
	}
}

/* "-javaagent:/path/agent.jar=options ..." */
static void need_java_agents(TnSplice *splice, const char *value)
{
	static const char prefix[] = "-javaagent:";
	const char *at = value;

	while ((at = strstr(at, prefix))) {
		const char *path;

		at += strlen(prefix);
		path = tn_pool_copy(&splice->pool, at, strcspn(at, " \t="));
		if (!tn_splice_keep(splice, path))
			return;
		if (path[0] == '/')
			need(splice, path, is_file);
	}
}

static void need_environment(TnSplice *splice)
{
	const TnBwrapLine *line = splice->line;

	for (size_t i = 0; i < line->n_ops; i++) {
		const char *name, *value;

		if (line->ops[i].option != TN_BWRAP_SETENV)
			continue;
		name = tn_bwrap_argument(line, &line->ops[i], 0);
		value = tn_bwrap_argument(line, &line->ops[i], 1);
		if (strcmp(name, "JAVA_TOOL_OPTIONS") == 0)
			need_java_agents(splice, value);
		else if (value[0] == '/' && strlen(value) < PATH_MAX)
			need(splice, value, is_file);
	}
}

void tn_splice_add_needs(TnSplice *splice)
{
	const TnBwrapLine *line = splice->line;
	bool any = false;

	for (int area = 0; area < TN_SPLICE_N_AREAS; area++)
		any |= splice->views[area].wanted && splice->views[area].shows_host;
	if (!any)
		return;
	if (strchr(line->command[0], '/') && strlen(line->command[0]) < PATH_MAX)
		need(splice, line->command[0], is_runnable);
	need_script(splice);
	for (size_t i = 0; i < line->n_command; i++)
		need_helpers(splice, line->command[i]);
	need_environment(splice);
}

void tn_splice_check_cwd(TnSplice *splice)
{
	const char *cwd = splice->facts->cwd;
	const TnSpliceView *view;

	if (!cwd || splice->line->summary.chdir)
		return;
	view = tn_splice_view_above(splice, cwd);
	if (!view || !view->shows_host || tn_splice_shows(splice, view, cwd))
		return;
	tn_splice_note(splice, TN_SPLICE_CWD_HIDDEN,
		       tn_pool_printf(&splice->pool,
				      "%.512s: the current directory is the host's, the command "
				      "would start elsewhere (bind it, give --chdir, or start from "
				      "another directory)",
				      cwd));
}

static const char *tmpdir_value(const TnSplice *splice)
{
	switch (splice->line->summary.tmpdir_state) {
	case TN_BWRAP_ENV_SET:
		return splice->line->summary.tmpdir;
	case TN_BWRAP_ENV_INHERITED:
		return splice->facts->tmpdir;
	case TN_BWRAP_ENV_UNSET:
		break;
	}
	return NULL;
}

bool tn_splice_must_set_tmpdir(TnSplice *splice, const TnSpliceReply *reply)
{
	const char *value = tmpdir_value(splice);
	const char *path = value && value[0] == '/' ? tn_splice_place(splice, value) : NULL;
	const TnSpliceView *view, *tmp = &splice->views[TN_SPLICE_TMP];
	const char *in_view, *real;

	if (!tmp->wanted || !path || strcmp(path, tmp->dest) == 0)
		return false;
	if (tn_splice_is_denied(splice, reply, path))
		return true;
	view = tn_splice_view_above(splice, path);
	if (!view) {
		const TnSpliceView everywhere = {.anchor = SIZE_MAX};

		return splice->root && strcmp(splice->root, "/") == 0 &&
		       !tn_splice_found(tn_splice_resolve(splice, path, &real)) &&
		       !tn_splice_shows(splice, &everywhere, path);
	}
	if (tn_splice_shows(splice, view, path))
		return false;
	in_view = tn_pool_join(&splice->pool, view == tmp ? "/tmp" : "/var/tmp",
			       tn_splice_rest(path, view->dest));
	return tn_splice_keep(splice, in_view) &&
	       !(reply->exists && reply->exists(reply->data, in_view));
}
