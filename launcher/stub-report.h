/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Collects what a verb did and prints it, as text or as one JSON object.
 */
#pragma once

#include "stub-hold.h"

#include <jansson.h>

typedef struct TnStubReport {
	const char *verb;
	json_t *json; /* one list per outcome */
	bool as_json, verbose;
} TnStubReport;

void tn_stub_report_init(TnStubReport *report, const char *verb, bool as_json, bool verbose);

/* A TnStubNote. Warnings go to stderr at once. */
void tn_stub_report_note(void *report, TnStubOutcome outcome, const char *path, const char *why);

/*
 * Prints to stdout and frees. Text is one path a line of the outcome `plain`; with verbose
 * every path with what happened to it.
 */
void tn_stub_report_finish(TnStubReport *report, TnStubOutcome plain);

/* A path with control characters escaped, for terminals; malloc()ed. */
char *tn_stub_printable(const char *path);
