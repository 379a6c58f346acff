/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bwrap-command.h"
#include "macros.h"
#include "message.h"
#include "paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_setenvs(const TnRunOptions *options, TnWords *ret)
{
	tn_words_add_all(ret, "--setenv", "TMPDIR", "/tmp", NULL);
	for (size_t i = 0; i + 1 < options->setenvs.n; i += 2)
		tn_words_add_all(ret, "--setenv", options->setenvs.items[i],
				 options->setenvs.items[i + 1], NULL);
}

static void add_mounts(const TnBwrapInput *input, TnWords *ret)
{
	const TnRunPlan *plan = input->plan;

	tn_words_add_all(ret, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", NULL);
	tn_words_add(ret, "--bind");
	tn_words_addf(ret, "%s/tmp", input->place->view);
	tn_words_add(ret, plan->tmp);
	if (plan->var_tmp) {
		tn_words_add(ret, "--bind");
		tn_words_addf(ret, "%s/var-tmp", input->place->view);
		tn_words_add(ret, plan->var_tmp);
	}
	for (size_t i = 0; i < plan->n_mounts; i++) {
		const TnRunMount *mount = &plan->mounts[i];

		if (!mount->dropped)
			tn_words_add_all(ret, mount->read_only ? "--ro-bind" : "--bind",
					 mount->source, mount->target, NULL);
	}
}

static void add_isolation(const TnBwrapInput *input, TnWords *ret)
{
	tn_words_add_all(ret, "--unshare-pid", "--unshare-ipc", NULL);
	if (input->options->unshare_net)
		tn_words_add(ret, "--unshare-net");
	/* root's payload could uncover what is covered; a user's has no capability to drop */
	if (input->is_root && !input->options->keep_caps)
		tn_words_add_all(ret, "--unshare-user", "--cap-drop", "ALL", NULL);
	if (input->die_with_parent)
		tn_words_add(ret, "--die-with-parent");
	/* bwrap takes one --seccomp only: without ours, another session keeps the terminal safe */
	if (input->seccomp < 0)
		tn_words_add(ret, "--new-session");
}

static void add_descriptor(TnWords *ret, const char *option, int fd)
{
	if (fd < 0)
		return;
	tn_words_add(ret, option);
	tn_words_addf(ret, "%d", fd);
}

void tn_shown_at(const TnShown *mounts, size_t n, const char *hidden, TnWords *ret)
{
	for (size_t i = 0; i < n; i++) {
		const char *source = mounts[i].source;
		const char *base = strcmp(mounts[i].target, "/") == 0 ? "" : mounts[i].target;
		char at[2 * PATH_MAX];
		bool is_hidden = false;

		if (!source || !tn_path_is_below(hidden, source))
			continue;
		snprintf(at, sizeof(at), "%s%s", base,
			 strcmp(source, "/") == 0 ? hidden : hidden + strlen(source));
		for (size_t j = i + 1; j < n; j++)
			is_hidden |= tn_path_is_below(at, mounts[j].target);
		if (!is_hidden)
			tn_words_add(ret, at);
	}
}

/* Everything that is mounted inside, in order; borrowed strings. */
static TnShown *list_shown(const TnRunPlan *plan, size_t *ret_n)
{
	static char root[] = "/";
	static char dev[] = "/dev";
	static char proc[] = "/proc";
	TnShown *list = calloc(5 + plan->n_mounts + plan->n_passed, sizeof(*list));
	size_t n = 0;

	if (!list)
		tn_out_of_memory();
	list[n++] = (TnShown){.source = root, .target = root};
	list[n++] = (TnShown){.target = dev};
	list[n++] = (TnShown){.target = proc};
	list[n++] = (TnShown){.target = plan->tmp};
	if (plan->var_tmp)
		list[n++] = (TnShown){.target = plan->var_tmp};
	for (size_t i = 0; i < plan->n_mounts; i++)
		if (!plan->mounts[i].dropped)
			list[n++] = (TnShown){plan->mounts[i].source, plan->mounts[i].target};
	for (size_t i = 0; i < plan->n_passed; i++)
		list[n++] = plan->passed[i];
	*ret_n = n;
	return list;
}

static void add_covers(const TnBwrapInput *input, TnWords *ret)
{
	size_t n;
	TN_AUTOFREE TnShown *shown = list_shown(input->plan, &n);
	TnWords covers = {0};

	tn_shown_at(shown, n, input->place->runtime, &covers);
	for (size_t i = 0; i < covers.n; i++)
		tn_words_add_all(ret, "--ro-bind", input->place->empty, covers.items[i], NULL);
	tn_words_clear(&covers);
}

static void add_shim(const TnBwrapInput *input, TnWords *ret)
{
	/* by descriptor, so that it does not matter what is visible inside */
	tn_words_addf(ret, "/proc/self/fd/%d", input->shim);
	if (input->started >= 0)
		tn_words_addf(ret, "%d", input->started);
	else
		tn_words_add(ret, "-");
}

void tn_bwrap_command(const TnBwrapInput *input, TnWords *ret)
{
	tn_words_add(ret, input->bwrap);
	add_mounts(input, ret);
	add_setenvs(input->options, ret);
	add_isolation(input, ret);
	tn_words_add_all(ret, "--chdir", input->plan->cwd, NULL);
	for (size_t i = 0; i < input->options->bwrap_args.n; i++)
		tn_words_add(ret, input->options->bwrap_args.items[i]);
	add_covers(input, ret);
	add_descriptor(ret, "--sync-fd", input->lease);
	add_descriptor(ret, "--seccomp", input->seccomp);
	add_descriptor(ret, "--json-status-fd", input->status);
	tn_words_add(ret, "--");
	if (input->shim >= 0)
		add_shim(input, ret);
	for (char **word = input->options->command; *word; word++)
		tn_words_add(ret, *word);
}
