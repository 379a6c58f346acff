/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pages of a process that has just been forked, made present before it needs them. */
#pragma once

/*
 * Program, C library, heap and stack of the calling process, each mapping in one call
 * (madvise(2), MADV_POPULATE_READ and MADV_POPULATE_WRITE, Linux 5.14). Under a hypervisor a page
 * fault may cost as much as twenty system calls, and a new worker has some hundreds of them
 * between a client and its answer. What cannot be done is left to the faults.
 */
void tn_prefault(void);

/* Some heap and stack of the calling thread, which has its own of both. */
void tn_prefault_thread(void);
