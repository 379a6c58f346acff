/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads for what takes long (recounts, walks through nests), shared fairly between users: the
 * first job of one user comes before the second one of another, and each user that has jobs
 * adds a thread, up to a limit. Push and free on the control thread.
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

typedef struct TnJobs TnJobs;

/* run is called on a thread of its own, for each job once; `threads` of them for a single user. */
TnJobs *tn_jobs_new(guint threads, void (*run)(void *job, void *data), void *data);
void tn_jobs_push(TnJobs *jobs, uid_t uid, void *job);
/* Waits until all jobs have run. */
void tn_jobs_free(TnJobs *jobs);
