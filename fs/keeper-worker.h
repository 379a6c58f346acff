/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The processes that the keeper forks: the worker, and one in waiting that takes over at
 * once when the worker dies. Keeper's only thread; errors are -errno.
 */
#pragma once

#include "worker.h"

#include <sys/types.h>

typedef int (*TnWorkerMain)(TnWorkerEnv *env);

typedef struct TnWorkerProcess {
	pid_t pid;                   /* 0: none */
	int link;                    /* our end; the worker's is link_socket */
	int link_socket, stop_event; /* used by it, closed by us */
} TnWorkerProcess;

#define TN_WORKER_NONE ((TnWorkerProcess){.link = -1, .link_socket = -1, .stop_event = -1})

/*
 * Forks a worker that has env, with its own channels; in_waiting: it prepares itself and then
 * waits for tn_worker_process_go(). 0 or -errno, with *ret as TN_WORKER_NONE.
 */
int tn_worker_process_start(TnWorkerProcess *ret, const TnWorkerEnv *env, TnWorkerMain worker_main,
			    bool in_waiting);

/* Its turn has come. 0 or -errno: it is not to be had. */
int tn_worker_process_go(const TnWorkerProcess *process);

/* True when it had ended; its exit status is in *ret_status. Its channels stay open. */
bool tn_worker_process_reap(TnWorkerProcess *process, int *ret_status);

/* Closes what belonged to it. */
void tn_worker_process_close(TnWorkerProcess *process);

/* Kills it if it lives, waits for its end and closes what belonged to it. */
void tn_worker_process_end(TnWorkerProcess *process);

/* Worker's side: returns 0 when it is to serve, -errno otherwise. */
int tn_worker_wait_for_turn(int link_socket);
