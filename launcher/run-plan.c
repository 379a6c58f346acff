/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "run-plan.h"
#include "bwrap-args.h"
#include "macros.h"
#include "message.h"
#include "paths.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *copy(const char *text)
{
	char *result = strdup(text);

	if (!result)
		tn_out_of_memory();
	return result;
}

/* Room for one more item at the end of a list of n. */
static void *grow(void *list, size_t n, size_t item)
{
	void *result = reallocarray(list, n + 1, item);

	if (!result)
		tn_out_of_memory();
	return result;
}

/* The real path, or NULL with errno set; NULL only. */
static char *real_path(const char *path)
{
	char *result = realpath(path, NULL);

	if (!result && errno == ENOMEM)
		tn_out_of_memory();
	return result;
}

/*
 * Where the two directories of the view go. A link at /tmp cannot be followed while the
 * sandbox's root is being built, so it is the real path that is mounted over.
 */
static void find_tmp(TnRunPlan *plan, bool no_var_tmp)
{
	TN_AUTOFREE char *var_tmp = NULL;

	plan->tmp = real_path("/tmp");
	if (!plan->tmp)
		plan->tmp = copy("/tmp");
	var_tmp = no_var_tmp ? NULL : real_path("/var/tmp");
	/* one of them may be a link to the other: then one directory serves both */
	if (var_tmp && !tn_path_is_below(var_tmp, plan->tmp) &&
	    !tn_path_is_below(plan->tmp, var_tmp)) {
		plan->var_tmp = var_tmp;
		var_tmp = NULL;
	}
}

/* The path as the nest's rules spell it, when target lies in the view; false if it does not. */
static bool spell_point(const TnRunPlan *plan, const char *target, char ret[PATH_MAX])
{
	const char *base = NULL;
	const char *spelling = NULL;
	int n;

	if (tn_path_is_below(target, plan->tmp)) {
		base = plan->tmp;
		spelling = "/tmp";
	} else if (plan->var_tmp && tn_path_is_below(target, plan->var_tmp)) {
		base = plan->var_tmp;
		spelling = "/var/tmp";
	}
	if (!base)
		return false;
	n = snprintf(ret, PATH_MAX, "%s%s", spelling, target + strlen(base));
	return n >= 0 && n < PATH_MAX;
}

/* Takes source and target. */
static void add_mount(TnRunPlan *plan, char *source, char *target, bool read_only, bool is_dir)
{
	TnRunMount *mount;
	char spelling[PATH_MAX];

	plan->mounts = grow(plan->mounts, plan->n_mounts, sizeof(*plan->mounts));
	mount = &plan->mounts[plan->n_mounts++];
	*mount = (TnRunMount){
		.source = source,
		.target = target,
		.read_only = read_only,
		.is_dir = is_dir,
		.point = SIZE_MAX,
	};
	if (!spell_point(plan, target, spelling))
		return;
	plan->points = grow(plan->points, plan->n_points, sizeof(*plan->points));
	plan->points[plan->n_points] = (TnMountPoint){
		.kind = is_dir ? TN_MOUNT_POINT_DIR : TN_MOUNT_POINT_FILE,
		.path = copy(spelling),
	};
	mount->point = plan->n_points++;
}

static bool is_view_root(const TnRunPlan *plan, const char *path)
{
	return strcmp(path, plan->tmp) == 0 || (plan->var_tmp && strcmp(path, plan->var_tmp) == 0);
}

static int add_workspace(TnRunPlan *plan, const char *path)
{
	char *real = real_path(path);
	struct stat st;

	if (!real)
		return tn_fail(-errno, "workspace: %s: %s", path, strerror(errno));
	if (stat(real, &st) < 0 || !S_ISDIR(st.st_mode)) {
		free(real);
		return tn_fail(-ENOTDIR, "workspace: %s: not a directory (use --bind for a file)",
			       path);
	}
	if (strcmp(real, "/") == 0 || is_view_root(plan, real)) {
		free(real);
		return tn_fail(-EINVAL,
			       "workspace: %s: cannot be one (name a directory below it, or give "
			       "--no-workspace)",
			       path);
	}
	add_mount(plan, real, copy(real), false, true);
	return 0;
}

/* Nobody means to make the whole home directory writable just by standing in it. */
static int check_default_workspace(const char *cwd)
{
	const char *home = getenv("HOME");
	TN_AUTOFREE char *real = home && *home ? real_path(home) : NULL;

	if (strcmp(cwd, "/") == 0)
		return tn_fail(-EINVAL,
			       "workspace: /: would make the whole host writable (name one "
			       "with --workspace DIR, or give --no-workspace)");
	if (real && tn_path_is_below(real, cwd))
		return tn_fail(-EINVAL,
			       "workspace: %s: is or holds your home directory (name it with "
			       "--workspace %s if you mean it, or give --no-workspace)",
			       cwd, cwd);
	return 0;
}

static int add_workspaces(TnRunPlan *plan, const TnRunOptions *options)
{
	if (options->no_workspace)
		return 0;
	if (options->workspaces.n == 0) {
		int r;

		/* in /tmp itself the command simply starts in its own */
		if (is_view_root(plan, plan->cwd))
			return 0;
		r = check_default_workspace(plan->cwd);
		return r < 0 ? r : add_workspace(plan, plan->cwd);
	}
	for (size_t i = 0; i < options->workspaces.n; i++) {
		int r = add_workspace(plan, options->workspaces.items[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Does path exist inside, or can bwrap make it there? The root itself is read-only. */
static bool can_be_target(const TnRunPlan *plan, const char *path, const char *real)
{
	if (real || tn_path_is_below(path, plan->tmp) || tn_path_is_below(path, "/dev") ||
	    (plan->var_tmp && tn_path_is_below(path, plan->var_tmp)))
		return true;
	for (size_t i = 0; i < plan->n_mounts; i++)
		if (tn_path_is_below(path, plan->mounts[i].target))
			return true;
	return false;
}

/* Writes /tmp/x and /var/tmp/x by the real path of /tmp and /var/tmp. */
static bool respell(const TnRunPlan *plan, const char *inside, char ret[PATH_MAX])
{
	char normal[PATH_MAX];
	const char *base = "";
	const char *rest = normal;
	int n;

	if (!tn_path_normalize(inside, normal, sizeof(normal)))
		return false;
	if (tn_path_is_below(normal, "/tmp")) {
		base = plan->tmp;
		rest += strlen("/tmp");
	} else if (plan->var_tmp && tn_path_is_below(normal, "/var/tmp")) {
		base = plan->var_tmp;
		rest += strlen("/var/tmp");
	}
	n = snprintf(ret, PATH_MAX, "%s%s", base, rest);
	return n >= 0 && n < PATH_MAX;
}

static bool is_in_view(const TnRunPlan *plan, const char *path)
{
	return tn_path_is_below(path, plan->tmp) ||
	       (plan->var_tmp && tn_path_is_below(path, plan->var_tmp));
}

static int add_bind(TnRunPlan *plan, const TnBindOption *bind)
{
	const char *option = bind->read_only ? "--ro-bind" : "--bind";
	TN_AUTOFREE char *source = real_path(bind->host);
	TN_AUTOFREE char *real = NULL;
	char target[PATH_MAX];
	struct stat st;

	if (!source || stat(source, &st) < 0)
		return tn_fail(-errno, "%s: %s: %s", option, bind->host, strerror(errno));
	if (!respell(plan, bind->inside ? bind->inside : source, target))
		return tn_fail(-ENAMETOOLONG, "%s: %s: path too long", option, bind->host);
	if (strcmp(target, "/") == 0 || is_view_root(plan, target))
		return tn_fail(-EINVAL, "%s: %s: cannot be mounted over (name a path below it)",
			       option, target);
	/* what the host has below /tmp does not matter: the view lies over it */
	if (!is_in_view(plan, target)) {
		real = real_path(target);
		if (!can_be_target(plan, target, real))
			return tn_fail(
				-ENOENT,
				"%s: %s: does not exist, and the sandbox's root is read-only "
				"(bind to an existing path or below /tmp)",
				option, target);
	}
	add_mount(plan, source, copy(real ? real : target), bind->read_only, S_ISDIR(st.st_mode));
	source = NULL;
	return 0;
}

/* Is the cwd something else inside than it is here? */
static int check_cwd(const TnRunPlan *plan)
{
	bool hidden = is_in_view(plan, plan->cwd) || tn_path_is_below(plan->cwd, "/dev") ||
		      tn_path_is_below(plan->cwd, "/proc");

	if (is_view_root(plan, plan->cwd))
		return 0;
	for (size_t i = 0; i < plan->n_mounts; i++) {
		const TnRunMount *mount = &plan->mounts[i];

		if (!mount->dropped && tn_path_is_below(plan->cwd, mount->target))
			hidden = false;
	}
	if (!hidden)
		return 0;
	return tn_fail(-ENOENT,
		       "current directory: %s: does not exist inside the sandbox (add "
		       "--workspace %s, or start from elsewhere)",
		       plan->cwd, plan->cwd);
}

static void add_passed(TnRunPlan *plan, const TnBwrapLine *line, const TnBwrapOp *op)
{
	unsigned traits = tn_bwrap_traits(op->option);
	char target[PATH_MAX];

	if (!(traits & TN_BWRAP_MOUNTS) ||
	    !tn_path_normalize(tn_bwrap_dest(line, op), target, sizeof(target)))
		return;
	plan->passed = grow(plan->passed, plan->n_passed, sizeof(*plan->passed));
	plan->passed[plan->n_passed++] = (TnShown){
		.source = traits & TN_BWRAP_FROM_PATH ? real_path(tn_bwrap_argument(line, op, 0))
						      : NULL,
		.target = copy(target),
	};
}

static int no_blocks(void *data, int fd, const char **ret_block, size_t *ret_size)
{
	(void)data, (void)fd, (void)ret_block, (void)ret_size;
	return -EOPNOTSUPP;
}

static int judge_passed(TnRunPlan *plan, const TnBwrapLine *line)
{
	const TnBwrapSummary *summary = &line->summary;
	TnBwrapConcern concerns[TN_BWRAP_CONCERNS_MAX];
	size_t n = tn_bwrap_concerns(summary, geteuid(), concerns);

	for (size_t i = 0; i < n; i++)
		if (tn_bwrap_concern_refuses(concerns[i]))
			return tn_fail(-EINVAL, "bwrap-arg: %s",
				       tn_bwrap_concern_text(concerns[i]));
	plan->lease = !summary->sync_fd && !summary->as_pid_1;
	for (size_t i = 0; i < line->n_ops; i++) {
		plan->own_seccomp |= line->ops[i].option == TN_BWRAP_SECCOMP ||
				     line->ops[i].option == TN_BWRAP_ADD_SECCOMP_FD;
		add_passed(plan, line, &line->ops[i]);
	}
	return 0;
}

/* Reads the --bwrap-arg words: what they mount decides what has to be covered inside. */
static int read_passed(TnRunPlan *plan, const TnWords *words)
{
	TnBwrapLine line = {0};
	TnWords whole = {0};
	char why[TN_BWRAP_WHY_MAX];
	int r;

	plan->lease = true;
	if (words->n == 0)
		return 0;
	for (size_t i = 0; i < words->n; i++)
		tn_words_add(&whole, words->items[i]);
	tn_words_add_all(&whole, "--", "true", NULL);
	r = tn_bwrap_parse(&line, (const char *const *)whole.items, whole.n, no_blocks, NULL, why);
	if (r == -ENOMEM)
		tn_out_of_memory();
	if (r < 0)
		tn_say("bwrap-arg: %s", why);
	else if (r > 0 || line.n_command != 1)
		r = tn_fail(-EINVAL,
			    "bwrap-arg: must be options that leave the command to tmpnest");
	else
		r = judge_passed(plan, &line);
	tn_bwrap_clear(&line);
	tn_words_clear(&whole);
	return r;
}

int tn_run_plan(TnRunPlan *ret, const TnRunOptions *options)
{
	int r;

	*ret = (TnRunPlan){0};
	ret->cwd = getcwd(NULL, 0);
	if (!ret->cwd || ret->cwd[0] != '/')
		return tn_fail(-ENOENT, "current directory: %s (start from an existing one)",
			       ret->cwd ? "out of reach" : strerror(errno));
	/* the cwd may have been somebody else's: --run-as */
	if (chdir(ret->cwd) < 0)
		return tn_fail(-errno, "current directory: %s: %s (start from elsewhere)", ret->cwd,
			       strerror(errno));
	find_tmp(ret, options->no_var_tmp);
	r = add_workspaces(ret, options);
	for (size_t i = 0; r == 0 && i < options->n_binds; i++)
		r = add_bind(ret, &options->binds[i]);
	if (r == 0)
		r = check_cwd(ret);
	if (r == 0)
		r = read_passed(ret, &options->bwrap_args);
	return r;
}

int tn_run_plan_settle(TnRunPlan *plan, const TnAttached *attached)
{
	for (size_t i = 0; i < plan->n_mounts; i++) {
		TnRunMount *mount = &plan->mounts[i];

		if (mount->point == SIZE_MAX ||
		    tn_attached_point_state(attached, mount->point) != TN_POINT_DENIED)
			continue;
		mount->dropped = true;
		tn_say("mount: %s: not mounted: the nest denies this name",
		       plan->points[mount->point].path);
	}
	return check_cwd(plan) < 0 ? -EACCES : 0;
}

int tn_run_plan_check_sources(const TnRunPlan *plan, const char *runtime, const char *store)
{
	for (size_t i = 0; i < plan->n_mounts; i++) {
		const char *source = plan->mounts[i].source;

		if (tn_path_is_below(source, runtime) || tn_path_is_below(source, store))
			return tn_fail(-EINVAL,
				       "mount: %s: lies in a directory of tmpnest's own, which no "
				       "sandbox may see (name another one)",
				       source);
	}
	return 0;
}

void tn_run_plan_clear(TnRunPlan *plan)
{
	free(plan->cwd);
	free(plan->tmp);
	free(plan->var_tmp);
	for (size_t i = 0; i < plan->n_mounts; i++) {
		free(plan->mounts[i].source);
		free(plan->mounts[i].target);
	}
	for (size_t i = 0; i < plan->n_points; i++)
		free(plan->points[i].path);
	for (size_t i = 0; i < plan->n_passed; i++) {
		free(plan->passed[i].source);
		free(plan->passed[i].target);
	}
	free(plan->mounts);
	free(plan->points);
	free(plan->passed);
	*plan = (TnRunPlan){0};
}
