/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "run.h"
#include "attach-client.h"
#include "bwrap-command.h"
#include "cover.h"
#include "known-command.h"
#include "launch-stubs.h"
#include "locate.h"
#include "macros.h"
#include "message.h"
#include "namespaces.h"
#include "run-as.h"
#include "run-options.h"
#include "run-plan.h"
#include "run-report.h"
#include "seccomp-tty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SHIM "tmpnest-shim"

static const char usage[] =
	"Usage: tmpnest run [OPTION...] [--] CMD [ARG...]\n"
	"Runs CMD in a sandbox with the host read-only and a /tmp and /var/tmp of its own.\n"
	"\n"
	"The nest (without --nest a new one, gone with the sandbox):\n"
	"  --nest NAME             use this nest; made if missing\n"
	"  --quota SIZE            bytes it may hold: a number with K, M, G or T, or max\n"
	"  --inodes N              files it may hold\n"
	"  --ttl TIME              evict it this long after it was made: 90s, 15m, 2h, 7d\n"
	"  --idle-ttl TIME         evict it this long after its last use\n"
	"  --durable               keep it across a reboot\n"
	"  --writeback             the kernel keeps what is written for a while: faster, and a "
	"full\n"
	"                          nest is noticed late (tmpnest(1) says what it gives up)\n"
	"  --no-xattrs             no extended attributes in it: a request less per new file\n"
	"  --store KIND            dir, memory or image\n"
	"  --keep                  keep an unnamed one for a look afterwards\n"
	"  --deny PATH             a path below /tmp that must not exist (repeatable)\n"
	"  --read-only PATH        a path below /tmp that must not change (repeatable)\n"
	"\n"
	"The sandbox:\n"
	"  --workspace DIR         writable host directory (repeatable; default: the cwd)\n"
	"  --no-workspace          none\n"
	"  --bind HOST[:INSIDE]    writable host path (repeatable)\n"
	"  --ro-bind HOST[:INSIDE] the same, read-only\n"
	"  --setenv NAME=VALUE     set a variable (repeatable)\n"
	"  --net host|none         network (default: host)\n"
	"  --no-var-tmp            leave /var/tmp the host's, read-only\n"
	"  --bwrap-arg WORD        one more word for bwrap (repeatable)\n"
	"  --run-as NAME           as root: become this user first\n"
	"  --keep-caps             as root: keep capabilities; then nothing here is a boundary\n"
	"  --report                say at the end what was refused\n"
	"\n"
	"The daemon (default: the system's if it admits you, else yours):\n"
	"  --system, --user, --runtime-dir DIR, --store-dir DIR\n"
	"\n"
	"Exit status: CMD's own, 128+N for a signal, 125 tmpnest failed, 126 CMD cannot be\n"
	"executed, 127 CMD not found.\n";

/* What is found out before anything is changed. */
typedef struct Prepared {
	TnRunOptions options;
	TnRunPlan plan;
	char bwrap[PATH_MAX];
	int shim;
	int seccomp;
	int status;  /* for bwrap to report to, -1: nobody waits */
	int started; /* for the shim, likewise */
} Prepared;

static int open_shim(int *ret)
{
	char path[PATH_MAX];
	int r = tn_locate(SHIM, path);

	if (r < 0)
		return r;
	*ret = open(path, O_RDONLY | O_CLOEXEC);
	if (*ret < 0)
		return tn_fail(-errno, "locate: %s: %s", path, strerror(errno));
	return 0;
}

static int prepare(Prepared *prepared)
{
	const TnRunOptions *options = &prepared->options;
	int r = 0;

	if (options->keep_caps && geteuid() != 0)
		return tn_fail(-EPERM, "--keep-caps: only root has capabilities to keep");
	r = tn_locate_bwrap(prepared->bwrap);
	if (r == 0)
		r = open_shim(&prepared->shim);
	if (r == 0 && options->report)
		r = tn_report_locate();
	if (r == 0 && options->run_as)
		r = tn_run_as(options->run_as);
	if (r == 0)
		r = tn_run_plan(&prepared->plan, options);
	if (r == 0 && !prepared->plan.own_seccomp) {
		prepared->seccomp = tn_seccomp_tty_open();
		r = prepared->seccomp < 0 ? prepared->seccomp : 0;
	}
	return r;
}

static int attach(const Prepared *prepared, TnAttached *ret)
{
	const TnRunOptions *options = &prepared->options;
	TnAttachSpec spec = {
		.name = options->nest,
		.from_fd = -1,
		.bytes = options->bytes,
		.inodes = options->inodes,
		.ttl = options->ttl,
		.idle_ttl = options->idle_ttl,
		.store = options->store,
		.deny = &options->deny,
		.read_only = &options->read_only,
		.points = prepared->plan.points,
		.n_points = prepared->plan.n_points,
		.lease = prepared->plan.lease,
	};

	if (options->keep)
		spec.flags |= TN_ATTACH_KEEP;
	if (options->durable)
		spec.flags |= TN_ATTACH_DURABLE;
	if (options->writeback)
		spec.flags |= TN_ATTACH_WRITEBACK;
	if (options->no_xattrs)
		spec.flags |= TN_ATTACH_NO_XATTRS;
	if (!prepared->plan.var_tmp)
		spec.flags |= TN_ATTACH_NO_VAR_TMP;
	return tn_attach(ret, &options->daemon, &spec);
}

/* A descriptor that bwrap is to inherit. */
static int let_inherit(int fd)
{
	if (fd >= 0 && fcntl(fd, F_SETFD, 0) < 0)
		return tn_fail(-errno, "descriptor: %s", strerror(errno));
	return 0;
}

static int become_bwrap(const Prepared *prepared, TnAttached *attached, const TnPlace *place)
{
	TnBwrapInput input = {
		.bwrap = prepared->bwrap,
		.options = &prepared->options,
		.plan = &prepared->plan,
		.place = place,
		.is_root = geteuid() == 0,
		.lease = attached->lease.write_end,
		.seccomp = prepared->seccomp,
		.status = prepared->status,
		.started = prepared->started,
		.die_with_parent = prepared->status >= 0,
		.shim = prepared->shim,
	};
	TnWords words = {0};
	int r;

	/* somebody who waits wants to know that the command was reached */
	if (input.started < 0 && tn_command_is_known(input.plan, input.options))
		input.shim = -1;
	if ((r = let_inherit(input.lease)) < 0 || (r = let_inherit(input.seccomp)) < 0 ||
	    (r = let_inherit(input.shim)) < 0 || (r = let_inherit(input.status)) < 0 ||
	    (r = let_inherit(input.started)) < 0)
		return r;
	tn_bwrap_command(&input, &words);
	execv(prepared->bwrap, words.items);
	r = -errno;
	tn_words_clear(&words);
	return tn_fail(r, "bwrap: %s: cannot execute it: %s", prepared->bwrap, strerror(-r));
}

static void say_what_is_ignored(const TnRunOptions *options, const TnAttached *attached)
{
	if (options->nest && !(attached->head.flags & TN_ATTACHED_CREATED) &&
	    tn_run_options_shape_nest(options))
		tn_say("nest: %s: exists already: limits and rules given here are ignored (use "
		       "tmpnest limits and tmpnest deny)",
		       options->nest);
}

/* Only words for bwrap itself can mask what is not there: run's own options bind what is. */
static void hold_stubs(const TnRunOptions *options, const TnAttached *attached)
{
	TN_AUTOFREE TnStubMask *masks = NULL;
	const TnWords *words = &options->bwrap_args;

	if (words->n < 3)
		return;
	masks = calloc(words->n, sizeof(*masks));
	if (!masks)
		tn_out_of_memory();
	tn_launch_stubs(attached, masks, tn_launch_stub_masks(words->items, words->n, masks),
			false);
}

static int cover(const TnRunPlan *plan, TnAttached *attached, TnPlace *ret)
{
	TnWords writable = {0};
	int r;

	for (size_t i = 0; i < plan->n_mounts; i++) {
		if (!plan->mounts[i].read_only && plan->mounts[i].is_dir)
			tn_words_add(&writable, plan->mounts[i].source);
	}
	for (size_t i = 0; i < plan->n_passed; i++) {
		if (plan->passed[i].source)
			tn_words_add(&writable, plan->passed[i].source);
	}
	r = tn_cover(attached, &writable, ret);
	tn_words_clear(&writable);
	return r;
}

/* From the view to bwrap. Returns only on failure. */
static int enter(Prepared *prepared, TnAttached *attached)
{
	TnPlace place;
	int r = tn_run_plan_settle(&prepared->plan, attached);

	if (r == 0)
		hold_stubs(&prepared->options, attached);
	if (r == 0)
		r = tn_namespaces_enter();
	if (r == 0)
		r = cover(&prepared->plan, attached, &place);
	if (r == 0)
		r = tn_run_plan_check_sources(&prepared->plan, place.runtime, place.store);
	/* the cwd may have been covered, and must not stay below a cover */
	if (r == 0 && chdir(prepared->plan.cwd) < 0)
		r = tn_fail(-errno,
			    "current directory: %s: lies in a directory of tmpnest's own (start "
			    "from elsewhere)",
			    prepared->plan.cwd);
	if (r == 0)
		r = become_bwrap(prepared, attached, &place);
	return r;
}

static void warn_of_capabilities(const TnRunOptions *options)
{
	if (options->keep_caps)
		tn_say("--keep-caps: the command keeps root's capabilities: nothing here is a "
		       "boundary to it");
}

/* The same in a child, while this process waits. The exit status. */
static int enter_and_report(Prepared *prepared, TnAttached *attached)
{
	TnReport report = TN_REPORT_NONE;
	int status = TN_EXIT_FAILED;
	pid_t child = tn_report_begin(&report, attached);

	if (child == 0)
		child = tn_report_fork(&report, attached);
	if (child == 0) {
		prepared->status = report.status_write;
		prepared->started = report.started_write;
		enter(prepared, attached);
		tn_attached_clear(attached);
		_exit(TN_EXIT_FAILED);
	}
	if (child > 0)
		status = tn_report_end(&report, child);
	tn_report_clear(&report);
	return status;
}

int tn_run(char **argv)
{
	Prepared prepared = {.shim = -1, .seccomp = -1, .status = -1, .started = -1};
	int status = TN_EXIT_FAILED;
	TnAttached attached = TN_ATTACHED_NONE;
	char why[2 * PATH_MAX];
	int r = tn_run_options_parse(&prepared.options, argv, why, sizeof(why));

	if (r < 0) {
		tn_say("run: %s", why);
	} else if (prepared.options.help) {
		fputs(usage, stdout);
		return fflush(stdout) == 0 ? 0 : TN_EXIT_FAILED;
	} else {
		r = prepare(&prepared);
	}
	if (r == 0)
		r = attach(&prepared, &attached);
	if (r == 0) {
		warn_of_capabilities(&prepared.options);
		say_what_is_ignored(&prepared.options, &attached);
		if (prepared.options.report)
			status = enter_and_report(&prepared, &attached);
		else
			enter(&prepared, &attached);
		tn_attached_clear(&attached);
	}
	tn_close(&prepared.shim);
	tn_close(&prepared.seccomp);
	tn_run_plan_clear(&prepared.plan);
	tn_run_options_clear(&prepared.options);
	return status;
}
