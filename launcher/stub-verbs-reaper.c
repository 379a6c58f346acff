/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-verbs.h"
#include "stubs.h"

#include <string.h>

int tn_stubs_verb_reaper(int argc, char **argv)
{
	TnStubsOptions options = {0};
	TnStubsArgs args;
	int status = tn_stubs_args_init(&args, 0, argc, argv);

	if (status == -1) {
		int result;

		options.ledger_path = args.ledger_path;
		options.profiles_dir = args.profiles_dir;
		options.runtime_dir = args.runtime_dir[0] ? args.runtime_dir : NULL;
		result = tn_stubs_reap(&options);
		status = result < 0 ? tn_stubs_fail(&args, args.ledger_path,
						    tn_ledger_file_why(result))
				    : 0;
	}
	tn_stubs_args_clear(&args);
	return status;
}
