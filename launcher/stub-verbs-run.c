/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "macros.h"
#include "stub-signals.h"
#include "stub-verbs.h"

#include <string.h>

/*
 * The child is the holder: if this process is killed, the stubs stay as long as what
 * uses them.
 */
static int hold_for(const TnStubsArgs *args, TnStubs *stubs, pid_t pid)
{
	TN_AUTOFREE TnStubKind *kinds = NULL;
	TN_AUTOFREE TnStubWant *wants = NULL;
	TnStubPaths paths = {0};
	TnStubHolder holder;
	int result, status = tn_stubs_args_paths(args, &paths, &kinds);

	if (status != -1)
		return status;
	wants = calloc(paths.n_paths + 1, sizeof(*wants));
	for (size_t i = 0; wants && i < paths.n_paths; i++)
		wants[i] = (TnStubWant){paths.paths[i], kinds[i], args->filled};
	result = tn_holder_init(&stubs->self, pid, &holder);
	if (result == 0)
		result = tn_stubs_hold(stubs, args->owner, &holder, false, wants, paths.n_paths);
	tn_stub_paths_clear(&paths);
	if (result < 0)
		return tn_stubs_fail(args, args->no_ledger ? "hold" : args->ledger_path,
				     strerror(-result));
	return -1;
}

static int run(const TnStubsArgs *args, TnStubs *stubs)
{
	TnStubHolder holder;
	TnStubChild child;
	int result = tn_stub_child_start(&child, args->command);
	int status, wait_status;

	if (result < 0)
		return tn_stubs_fail(args, args->command[0], strerror(-result));
	/* taken while it lives: afterwards its start time is gone */
	tn_holder_init(&stubs->self, child.pid, &holder);
	status = hold_for(args, stubs, child.pid);
	if (status == -1)
		tn_stub_child_go(&child);
	wait_status = tn_stub_child_wait(&child);
	if (status != -1)
		return status;
	result = tn_stubs_release(stubs, args->owner, &holder, NULL);
	if (result < 0)
		tn_stubs_fail(args, "release", strerror(-result));
	return tn_stub_die_as(wait_status);
}

int tn_stubs_verb_run(int argc, char **argv)
{
	TnStubReport report;
	TnStubsArgs args;
	TnStubs stubs;
	int status = tn_stubs_args_init(&args,
					TN_KNOWS_OWNER | TN_KNOWS_PLACES | TN_KNOWS_FILLED |
						TN_KNOWS_NO_LEDGER | TN_KNOWS_COMMAND,
					argc, argv);

	if (status == -1 && (!args.owner || !args.command || !args.command[0]))
		status = tn_stubs_usage(args.verb, "give --owner and -- COMMAND");
	if (status == -1) {
		tn_stubs_args_open(&args, &stubs, &report);
		status = run(&args, &stubs);
		json_decref(report.json);
		tn_stubs_clear(&stubs);
	}
	tn_stubs_args_clear(&args);
	return status;
}
