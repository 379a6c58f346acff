/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-report.h"

#include "macros.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *list, *word;
} outcomes[] = {
	[TN_STUB_CREATED] = {"created", "created"},
	[TN_STUB_SHARED] = {"held", "held"},
	[TN_STUB_EXISTS] = {"existing", "existing"},
	[TN_STUB_SKIPPED] = {"skipped", "skipped"},
	[TN_STUB_REMOVED] = {"removed", "removed"},
	[TN_STUB_GONE] = {"gone", "gone"},
	[TN_STUB_KEPT] = {"kept", "kept"},
	[TN_STUB_RELEASED] = {"still_held", "still held"},
	[TN_STUB_ADOPTED] = {"adopted", "adopted"},
	[TN_STUB_LEFT] = {"left", "left"},
	[TN_STUB_MISSING] = {"missing", "missing"},
	[TN_STUB_LASTING] = {"lasting", "lasting"},
	[TN_STUB_WARNING] = {"warnings", "warning"},
};

void tn_stub_report_init(TnStubReport *report, const char *verb, bool as_json, bool verbose)
{
	*report = (TnStubReport){
		.verb = verb, .json = json_object(), .as_json = as_json, .verbose = verbose};
}

char *tn_stub_printable(const char *path)
{
	size_t size = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;

		if (c < 0x20 || c == 0x7f || c == '\\')
			fprintf(out, "\\x%02x", c);
		else
			fputc(c, out);
	}
	return fclose(out) == 0 ? text : NULL;
}

static json_t *list_of(TnStubReport *report, TnStubOutcome outcome)
{
	json_t *list = json_object_get(report->json, outcomes[outcome].list);

	if (!list) {
		list = json_array();
		json_object_set_new(report->json, outcomes[outcome].list, list);
	}
	return list;
}

void tn_stub_report_note(void *data, TnStubOutcome outcome, const char *path, const char *why)
{
	TnStubReport *report = data;
	/* a name that is no UTF-8 cannot be JSON as it is */
	TN_AUTOFREE char *printable = tn_stub_printable(path);
	json_t *name = json_string(path);

	if (!name)
		name = json_string_nocheck("(not UTF-8)");
	if (outcome == TN_STUB_WARNING)
		fprintf(stderr, "tmpnest: stubs %s: %s: %s\n", report->verb,
			printable ? printable : "", why);
	if (why)
		name = json_pack("{s:o,s:s}", "path", name, "why", why);
	json_array_append_new(list_of(report, outcome), name);
}

static void print_text(const TnStubReport *report, size_t outcome, bool with_word)
{
	size_t index;
	json_t *item;

	json_array_foreach(json_object_get(report->json, outcomes[outcome].list), index, item)
	{
		const json_t *path = json_is_object(item) ? json_object_get(item, "path") : item;
		const char *why = json_string_value(json_object_get(item, "why"));
		TN_AUTOFREE char *printable = tn_stub_printable(json_string_value(path));

		if (with_word)
			printf("%s %s%s%s\n", outcomes[outcome].word, printable, why ? ": " : "",
			       why ? why : "");
		else
			printf("%s\n", printable);
	}
}

void tn_stub_report_finish(TnStubReport *report, TnStubOutcome plain)
{
	if (report->as_json) {
		list_of(report, plain);
		json_dumpf(report->json, stdout, JSON_INDENT(1));
		putchar('\n');
	} else if (report->verbose) {
		for (size_t i = 0; i < TN_ARRAY_LEN(outcomes); i++)
			print_text(report, i, true);
	} else {
		print_text(report, plain, false);
	}
	json_decref(report->json);
	report->json = NULL;
}
