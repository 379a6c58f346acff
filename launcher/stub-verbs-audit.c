/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "macros.h"
#include "stub-audit.h"
#include "stub-verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct Output {
	json_t *denied_only, *profile_only;
} Output;

static void note_denied_only(void *data, const char *path)
{
	json_array_append_new(((Output *)data)->denied_only, json_string(path));
}

static void note_profile_only(void *data, const char *path)
{
	json_array_append_new(((Output *)data)->profile_only, json_string(path));
}

static void print_list(const json_t *list, const char *what)
{
	size_t index;
	json_t *path;

	json_array_foreach(list, index, path)
	{
		TN_AUTOFREE char *printable = tn_stub_printable(json_string_value(path));

		printf("%s %s\n", what, printable);
	}
}

static int expand(const TnStubsArgs *args, const TnAudit *audit, TnStubPaths *paths,
		  TnStubPaths *also)
{
	TnStubsArgs with_mounts = *args;
	TnStubPlaces places = {.cwd = args->cwd,
			       .home = args->home,
			       .config_dir = args->config_dir[0] ? args->config_dir : NULL,
			       .writable = (const char *const *)audit->writable,
			       .n_writable = audit->n_writable};
	TnStubProfile profile = {0};
	char why[512];
	int status;

	/* the sandbox's own mounts say best what is writable in it */
	if (args->n_writable == 0) {
		with_mounts.writable = audit->writable;
		with_mounts.n_writable = audit->n_writable;
	}
	status = tn_stubs_args_paths(&with_mounts, paths, NULL);
	if (status != -1)
		return status;
	if (tn_stub_profile_load(args->profiles_dir, args->profile_name, &profile, why,
				 sizeof(why)) < 0)
		return tn_stubs_fail(args, "profile", why);
	status = tn_stub_paths_expand_also(&profile, &places, also);
	tn_stub_profile_clear(&profile);
	return status < 0 ? tn_stubs_fail(args, "profile", strerror(-status)) : -1;
}

static int audit(const TnStubsArgs *args, const char *mountinfo)
{
	Output output = {json_array(), json_array()};
	TnStubPaths paths = {0}, also = {0};
	json_t *object;
	TnAudit table;
	size_t n = 0;
	int status, result = tn_audit_read(mountinfo, &table);

	if (result < 0) {
		json_decref(output.denied_only);
		json_decref(output.profile_only);
		return tn_stubs_fail(args, mountinfo,
				     result == -EBADMSG ? "is no mountinfo" : strerror(-result));
	}
	status = expand(args, &table, &paths, &also);
	if (status == -1)
		n = tn_audit_compare(&table, &paths, &also, note_denied_only, note_profile_only,
				     &output);
	object = json_pack("{s:o,s:o}", "denied_only", output.denied_only, "profile_only",
			   output.profile_only);
	if (status == -1 && args->json) {
		json_dumpf(object, stdout, JSON_INDENT(1));
		putchar('\n');
	} else if (status == -1) {
		print_list(output.denied_only, "denied, not in the profile:");
		print_list(output.profile_only, "in the profile, not denied:");
	}
	json_decref(object);
	tn_stub_paths_clear(&paths);
	tn_stub_paths_clear(&also);
	tn_audit_clear(&table);
	return status == -1 ? n > 0 : status;
}

int tn_stubs_verb_audit(int argc, char **argv)
{
	TnStubsArgs args;
	int status = tn_stubs_args_init(
		&args, TN_KNOWS_PID | TN_KNOWS_PLACES | TN_KNOWS_JSON | TN_KNOWS_MOUNTINFO, argc,
		argv);

	if (status == -1 && !args.pid == !args.mountinfo)
		status = tn_stubs_usage(args.verb, "give either --pid or --mountinfo");
	if (status == -1) {
		char by_pid[64];

		snprintf(by_pid, sizeof(by_pid), "/proc/%" PRId64 "/mountinfo", args.pid);
		status = audit(&args, args.pid ? by_pid : args.mountinfo);
	}
	tn_stubs_args_clear(&args);
	return status;
}
