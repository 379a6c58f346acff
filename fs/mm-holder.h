/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A second process with the memory of this one, which does nothing.
 *
 * The last process that leaves an address space takes it down, in the middle of its exit and
 * before its parent hears of that (kernel/exit.c: exit_mm() comes before exit_notify()). For a
 * worker this takes longer than everything else between its death and its successor's first
 * answer. While a holder lives, the worker is gone as soon as its threads are.
 */
#pragma once

#include <sys/types.h>

/*
 * Starts one as a child of this process's parent and in its process group: who ends the group,
 * ends both. It dies with the parent, and a filter leaves it no system calls but waiting and
 * exiting, as whoever can write this memory can make it do anything. Before any other thread is
 * started; needs no_new_privs. 0 or -errno; where it cannot be filtered it ends at once.
 */
int tn_mm_holder_start(pid_t parent);
