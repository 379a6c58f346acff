/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What keeper and worker may do, in the stages that docs/security.md ("Privileges") lists.
 * Each is for a process with one thread: the threads to come inherit it. 0, or -errno with
 * one line in why.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The keeper, when its namespaces and directories are there: no_new_privs, no core file, no
 * locked memory; of its capabilities those that mounts, and the workers to come, need, and
 * only the former effective. root: it keeps what many users need as well.
 */
int tn_privileges_keeper(bool root, char *why, size_t why_size);

/*
 * The worker: only what serving files for other ids needs.
 */
int tn_privileges_worker(bool root, char *why, size_t why_size);

/*
 * The worker's system call filter, for all its threads, before it reads anything of others. A
 * descriptor that tells the keeper of refused calls, or -1 (said when there is no filter).
 */
int tn_privileges_filter(void);
