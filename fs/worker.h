/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker: serves the kernel, the attach socket and the control socket with the least
 * privileges, and may be killed at any instant. Forked by the keeper, never executed.
 */
#pragma once

#include "data-path.h"
#include "keeper-link.h"
#include "paths.h"
#include "state.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * What the keeper knows when it starts a worker; the worker has a copy of its own. The
 * descriptors are the keeper's: the worker uses them and never closes them.
 */
typedef struct TnWorkerEnv {
	const TnPaths *paths;
	TnScope scope;
	uid_t uid; /* effective ids of the daemon, as it was started */
	gid_t gid;
	uint64_t userns_dev, userns_ino; /* the user namespace that the daemon was started in */
	uint64_t store_dev, store_ino;
	uint64_t runtime_dev, runtime_ino;
	uint64_t instance_id; /* random, one per keeper */
	pid_t keeper_pid;
	bool use_peer_pidfd;   /* root: ask the kernel for the peer's own namespace too */
	unsigned n_threads;    /* that answer the kernel; 0 = one per processor */
	uint64_t idle_timeout; /* seconds without a nest before a stop; TN_UNLIMITED: never */

	int store, runtime;     /* directories */
	int attach_listener;    /* SOCK_SEQPACKET, non-blocking */
	int control_listener;   /* SOCK_STREAM, non-blocking */
	int link_socket;        /* to the keeper */
	int stop_event;         /* readable: stop now */
	TnState *state;         /* what a killed worker has left, and what this one will leave */
	bool takes_over;        /* there was another worker before */
	bool in_waiting;        /* ... which serves still: its end is waited for */
	bool use_resend;        /* ask the kernel for requests that it had read and lost */
	TnDataPath data_path;   /* the best that this daemon could offer a nest */
	bool probe_passthrough; /* false: as if no kernel offered it */
	int keepers[4];         /* descriptors that only the keeper uses; they stay open */
#define TN_KEEPERS_LINK 3       /* its end of the link */
	/* Made by the worker itself, before any of its servers. */
	TnKeeperLink *keeper;
	int refusals; /* tells of what its system call filter refuses; -1: nothing does */
} TnWorkerEnv;

/* Lets any part of the worker end the daemon ("daemon stop"). */
typedef struct TnWorkerStop TnWorkerStop;

/* Asks for a clean stop and returns at once; any thread, any number of times. */
void tn_worker_stop(TnWorkerStop *stop);

/* The whole life of a worker process; returns its exit status. Called in the cloned child. */
int tn_worker_main(TnWorkerEnv *env);
