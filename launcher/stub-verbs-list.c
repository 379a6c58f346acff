/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "macros.h"
#include "stub-files.h"
#include "stub-verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const states[] = {
	[TN_HOLDER_ALIVE] = "alive",
	[TN_HOLDER_DEAD] = "dead",
	[TN_HOLDER_UNKNOWN] = "unknown",
};

static const char *stub_state(const TnLedgerEntry *entry)
{
	const char *name;
	TN_AUTOFD dir_fd = tn_stub_open_parent(entry->path, &name);
	int result = dir_fd < 0 ? dir_fd : tn_stub_check(dir_fd, name, entry);

	if (result == 0)
		return "present";
	return result == -ENOENT ? "gone" : "changed";
}

static void add_time(json_t *object, int64_t ms)
{
	time_t seconds = ms / 1000;
	struct tm parts;
	char text[32];

	if (ms > 0 && gmtime_r(&seconds, &parts) &&
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts) > 0)
		json_object_set_new(object, "created", json_string(text));
	else
		json_object_set_new(object, "created", json_null());
}

static json_t *describe(TnStubs *stubs, const TnLedgerEntry *entry)
{
	json_t *object = json_object();
	const TnStubHolder *holder = &entry->holder;

	json_object_set_new(object, "path", json_string(entry->path));
	json_object_set_new(object, "kind",
			    json_string(entry->kind == TN_STUB_DIR ? "dir" : "file"));
	json_object_set_new(object, "stub", json_string(stub_state(entry)));
	json_object_set_new(object, "filled", json_boolean(entry->filled));
	json_object_set_new(object, "owner", json_string(entry->run_id));
	json_object_set_new(object, "pid", json_integer(holder->pid));
	json_object_set_new(object, "holder",
			    json_string(states[tn_holder_state(&stubs->self, holder)]));
	json_object_set_new(object, "lease",
			    holder->lease ? json_string(holder->lease) : json_null());
	json_object_set_new(object, "adopted", json_boolean(entry->adopted));
	add_time(object, entry->created_ms);
	return object;
}

static void print_line(const json_t *object)
{
	TN_AUTOFREE char *path =
		tn_stub_printable(json_string_value(json_object_get(object, "path")));
	TN_AUTOFREE char *owner =
		tn_stub_printable(json_string_value(json_object_get(object, "owner")));

	printf("%-8s %-8s %8" JSON_INTEGER_FORMAT " %-16s %s\n",
	       json_string_value(json_object_get(object, "stub")),
	       json_string_value(json_object_get(object, "holder")),
	       json_integer_value(json_object_get(object, "pid")), owner, path);
}

static int list(const TnStubsArgs *args, TnStubs *stubs)
{
	json_t *array = json_array(), *object;
	size_t index;
	int result = tn_stubs_lock(stubs);

	if (result < 0) {
		json_decref(array);
		return tn_stubs_fail(args, args->ledger_path, tn_ledger_file_why(result));
	}
	for (size_t i = 0; i < stubs->file.ledger->n_entries; i++)
		json_array_append_new(array, describe(stubs, &stubs->file.ledger->entries[i]));
	tn_stubs_unlock(stubs);
	if (args->json) {
		json_dumpf(array, stdout, JSON_INDENT(1));
		putchar('\n');
	} else {
		if (json_array_size(array) > 0)
			printf("%-8s %-8s %8s %-16s %s\n", "STUB", "HOLDER", "PID", "OWNER",
			       "PATH");
		json_array_foreach(array, index, object) print_line(object);
	}
	json_decref(array);
	return 0;
}

int tn_stubs_verb_list(int argc, char **argv)
{
	TnStubReport report;
	TnStubsArgs args;
	TnStubs stubs;
	int status = tn_stubs_args_init(&args, TN_KNOWS_JSON, argc, argv);

	if (status == -1) {
		tn_stubs_args_open(&args, &stubs, &report);
		status = list(&args, &stubs);
		json_decref(report.json);
		tn_stubs_clear(&stubs);
	}
	tn_stubs_args_clear(&args);
	return status;
}

int tn_stubs_verb_missing(int argc, char **argv)
{
	TnStubPaths paths = {0};
	TnStubReport report;
	TnStubsArgs args;
	TnStubs stubs;
	int status = tn_stubs_args_init(&args, TN_KNOWS_PLACES | TN_KNOWS_JSON, argc, argv);

	if (status == -1)
		status = tn_stubs_args_paths(&args, &paths, NULL);
	if (status == -1) {
		int result;

		tn_stubs_args_open(&args, &stubs, &report);
		result = tn_stubs_missing(&stubs, (const char *const *)paths.paths, paths.n_paths);
		status = result < 0 ? tn_stubs_fail(&args, args.ledger_path,
						    tn_ledger_file_why(result))
				    : 0;
		tn_stub_report_finish(&report, TN_STUB_MISSING);
		tn_stubs_clear(&stubs);
	}
	tn_stub_paths_clear(&paths);
	tn_stubs_args_clear(&args);
	return status;
}

int tn_stubs_verb_paths(int argc, char **argv)
{
	TnStubPaths paths = {0};
	TnStubsArgs args;
	int status = tn_stubs_args_init(&args, TN_KNOWS_PLACES | TN_KNOWS_JSON, argc, argv);

	if (status == -1)
		status = tn_stubs_args_paths(&args, &paths, NULL);
	if (status == -1) {
		json_t *array = json_array();

		for (size_t i = 0; i < paths.n_paths; i++) {
			TN_AUTOFREE char *printable = tn_stub_printable(paths.paths[i]);

			json_array_append_new(array, json_string(paths.paths[i]));
			if (!args.json)
				printf("%s\n", printable);
		}
		if (args.json) {
			json_dumpf(array, stdout, JSON_INDENT(1));
			putchar('\n');
		}
		json_decref(array);
		status = 0;
	}
	tn_stub_paths_clear(&paths);
	tn_stubs_args_clear(&args);
	return status;
}
