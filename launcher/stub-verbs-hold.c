/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "macros.h"
#include "stub-verbs.h"

#include <string.h>

static int hold(const TnStubsArgs *args, TnStubs *stubs)
{
	TN_AUTOFREE TnStubKind *kinds = NULL;
	TN_AUTOFREE TnStubWant *wants = NULL;
	TnStubPaths paths = {0};
	TnStubHolder holder;
	int result, status = tn_stubs_args_holder(args, &stubs->self, &holder);

	if (status == -1)
		status = tn_stubs_args_paths(args, &paths, &kinds);
	if (status != -1)
		return status;
	wants = calloc(paths.n_paths + 1, sizeof(*wants));
	for (size_t i = 0; wants && i < paths.n_paths; i++)
		wants[i] = (TnStubWant){paths.paths[i], kinds[i], args->filled};
	result = tn_stubs_hold(stubs, args->owner, &holder, false, wants, paths.n_paths);
	tn_stub_paths_clear(&paths);
	return result < 0 ? tn_stubs_fail(args, args->ledger_path, tn_ledger_file_why(result)) : 0;
}

int tn_stubs_verb_hold(int argc, char **argv)
{
	TnStubReport report;
	TnStubsArgs args;
	TnStubs stubs;
	int status = tn_stubs_args_init(&args,
					TN_KNOWS_OWNER | TN_KNOWS_PID | TN_KNOWS_PLACES |
						TN_KNOWS_FILLED | TN_KNOWS_JSON,
					argc, argv);

	if (status == -1 && !args.owner)
		status = tn_stubs_usage(args.verb, "give --owner");
	if (status == -1 && strlen(args.owner) > TN_LEDGER_RUN_ID_MAX)
		status = tn_stubs_usage(args.verb, "--owner is too long");
	if (status == -1) {
		tn_stubs_args_open(&args, &stubs, &report);
		status = hold(&args, &stubs);
		tn_stub_report_finish(&report, TN_STUB_CREATED);
		tn_stubs_clear(&stubs);
	}
	tn_stubs_args_clear(&args);
	return status;
}
