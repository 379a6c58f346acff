/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a command as a child and outlives it, whatever signal arrives. For a process with
 * one thread.
 */
#pragma once

#include <sys/types.h>

typedef struct TnStubChild {
	pid_t pid;
	int gate; /* writing end: the child execs when a byte arrives, and ends when it closes */
} TnStubChild;

/*
 * Blocks SIGTERM, SIGINT, SIGHUP and SIGCHLD, and makes a child that waits to exec command. 0 or
 * -errno.
 */
int tn_stub_child_start(TnStubChild *child, char **command);
void tn_stub_child_go(TnStubChild *child);

/*
 * Waits for its end. SIGTERM, SIGINT and SIGHUP are passed on to it (but for those that
 * the terminal has sent to both), and it is the child that decides what they mean. Returns
 * its wait status.
 */
int tn_stub_child_wait(TnStubChild *child);

/* Ends as the child did: by the same signal, or returns its exit status. */
int tn_stub_die_as(int wait_status);
