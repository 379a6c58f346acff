/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The keeper becomes another program, or hands all it has to the service manager, and the
 * views go on: everything is in descriptors, and what they are is in the state (state.h).
 *
 * No worker runs at that time. For the keeper, in its only thread.
 */
#pragma once

#include "state.h"

#define TN_RESUME_VARIABLE "TMPNEST_RESUME" /* number of the state's descriptor, for main.c */

/*
 * Can `program` take over this state? Starts it with --check-state. 0, -EBADMSG (its records
 * are laid out in another way), or another -errno.
 */
int tn_keeper_check_program(const char *program, const TnState *state);

/*
 * Executes program with argv and all descriptors, as a plain user with the capabilities of
 * this namespace kept. Returns only on an error: -errno.
 */
int tn_keeper_become(const char *program, char *const argv[], const TnState *state);

/* What tn_keeper_become() had to leave open and raised is as in a fresh keeper again. */
void tn_keeper_became(void);

/*
 * Stores every open descriptor but the standard ones and `n` others with the service manager
 * at the other end of the socket path (sd_notify(3), FDSTORE=1). Number i is named "fi", the
 * state's "state-i". 0 or -errno.
 */
int tn_keeper_store_descriptors(const char *notify_socket, const TnState *state, const int others[],
				size_t n);

/*
 * Descriptors that a service manager gives back (LISTEN_FDS of sd_listen_fds(3)) get their
 * old numbers. The state's descriptor, -ENOENT when there is none, or another -errno.
 */
int tn_keeper_take_stored(void);
