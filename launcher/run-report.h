/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tmpnest run --report`: stays as the parent of bwrap, passes on signals, and says at the
 * end what the nest refused meanwhile.
 */
#pragma once

#include "attach-client.h"

#include <signal.h>
#include <sys/types.h>

typedef struct TnReport {
	TnPaths paths;
	uint64_t nest_id;
	char before[64]; /* the nest's counts at the start, as the verb gave them */
	int view;        /* keeps an ephemeral nest until it has been looked at */
	int status_read, status_write;
	int started_write; /* of the same pipe, for the shim */
	sigset_t mask;     /* the caller's */
} TnReport;

#define TN_REPORT_NONE \
	((TnReport){.view = -1, .status_read = -1, .status_write = -1, .started_write = -1})

/* Is the program there that looks at the nest? 0, or -errno, said. */
int tn_report_locate(void);

/*
 * Before bwrap starts: status_write is for its --json-status-fd, started_write for the
 * shim. 0, or -errno, said.
 * *ret is to be cleared either way.
 */
int tn_report_begin(TnReport *ret, const TnAttached *attached);

/*
 * Forks: 0 in the child, which has the signals of before; in the parent, which from now
 * on holds none of the sandbox's descriptors in *attached, the pid; or -errno, said.
 */
pid_t tn_report_fork(TnReport *report, TnAttached *attached);

/*
 * Waits for child, which becomes bwrap, then reports on stderr. The exit status: the
 * command's, or TN_EXIT_FAILED when bwrap ended before it had started the command.
 */
int tn_report_end(TnReport *report, pid_t child);

void tn_report_clear(TnReport *report);
