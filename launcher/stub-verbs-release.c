/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-verbs.h"

#include <string.h>

/*
 * The holder may have died meanwhile: then there is nothing to compare a start time with, and
 * reclaiming is what finds its entries.
 */
static int release(const TnStubsArgs *args, TnStubs *stubs)
{
	TnStubHolder holder;
	bool by_holder = args->all || args->pid;
	int result, status = by_holder ? tn_stubs_args_holder(args, &stubs->self, &holder) : -1;

	if (status != -1)
		return status;
	result = tn_stubs_release(stubs, args->owner, by_holder ? &holder : NULL, NULL);
	return result < 0 ? tn_stubs_fail(args, args->ledger_path, tn_ledger_file_why(result)) : 0;
}

int tn_stubs_verb_release(int argc, char **argv)
{
	TnStubReport report;
	TnStubsArgs args;
	TnStubs stubs;
	int status = tn_stubs_args_init(
		&args, TN_KNOWS_OWNER | TN_KNOWS_PID | TN_KNOWS_ALL | TN_KNOWS_JSON, argc, argv);

	if (status == -1 && !args.owner == !args.all)
		status = tn_stubs_usage(args.verb, "give either --owner or --all");
	if (status == -1) {
		tn_stubs_args_open(&args, &stubs, &report);
		status = release(&args, &stubs);
		tn_stub_report_finish(&report, TN_STUB_REMOVED);
		tn_stubs_clear(&stubs);
	}
	tn_stubs_args_clear(&args);
	return status;
}

int tn_stubs_verb_reclaim(int argc, char **argv)
{
	TnStubReport report;
	TnStubsArgs args;
	TnStubs stubs;
	int status = tn_stubs_args_init(&args, TN_KNOWS_OWNER | TN_KNOWS_PID | TN_KNOWS_JSON, argc,
					argv);

	if (status == -1) {
		TnStubHolder holder;
		int result;

		tn_stubs_args_open(&args, &stubs, &report);
		/* with an owner what others may still use passes to it */
		if (args.owner)
			status = tn_stubs_args_holder(&args, &stubs.self, &holder);
		if (status == -1) {
			result = tn_stubs_reclaim(&stubs, args.owner, args.owner ? &holder : NULL);
			status = result < 0 ? tn_stubs_fail(&args, args.ledger_path,
							    tn_ledger_file_why(result))
					    : 0;
		}
		tn_stub_report_finish(&report, TN_STUB_REMOVED);
		tn_stubs_clear(&stubs);
	}
	tn_stubs_args_clear(&args);
	return status;
}
