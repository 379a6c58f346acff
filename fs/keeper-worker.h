/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The processes that the keeper forks: the worker, and one in waiting that takes over at
 * once when the worker dies. Each leads a process group of its own, in which it may have left
 * somebody behind (mm-holder.h). Keeper's only thread; errors are -errno.
 */
#pragma once

#include "worker.h"

#include <sys/types.h>

typedef int (*TnWorkerMain)(TnWorkerEnv *env);

typedef struct TnWorkerProcess {
	pid_t pid;                   /* 0: none, or it has ended */
	pid_t group;                 /* 0: none; stays after its end */
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

/* Kills all of a group; takes 0. Does not wait: tn_worker_group_reap() when a child has ended. */
void tn_worker_group_kill(pid_t group);
/* Takes notice of each of its members that has ended; *group becomes 0 when there is none left. */
void tn_worker_group_reap(pid_t *group);
/* Kills all of it and waits for their end; *group becomes 0. Takes one that is 0. */
void tn_worker_group_end(pid_t *group);

/* Ends it if it lives, with its group, and closes what belonged to it. */
void tn_worker_process_end(TnWorkerProcess *process);

/* Worker's side: returns 0 when it is to serve, -errno otherwise. */
int tn_worker_wait_for_turn(int link_socket);
