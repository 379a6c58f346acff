/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages with descriptors over Unix sockets (unix(7), SCM_RIGHTS). Any thread.
 * Received descriptors are close-on-exec from birth (MSG_CMSG_CLOEXEC).
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define TN_SCM_MAX_FDS 4

/* Sends one message; the descriptors stay the caller's. Bytes sent, or -errno. */
ssize_t tn_scm_send(int sock, const void *data, size_t size, const int *fds, size_t n_fds);

/*
 * Receives one message into data. Fills fds[] (unused ones -1) and *ret_n_fds; the
 * descriptors become the caller's. Bytes received (0 = end of file), or -errno:
 * -EMSGSIZE when the message or its descriptors were cut short; whatever came is
 * closed then.
 */
ssize_t tn_scm_recv(int sock, void *data, size_t size, int fds[TN_SCM_MAX_FDS], size_t *ret_n_fds);

/* The same; what is not handed on goes to discard(), which takes it (-1: nothing). */
typedef void (*TnScmDiscard)(int *fd, void *data);
ssize_t tn_scm_recv_with(int sock, void *data, size_t size, int fds[TN_SCM_MAX_FDS],
			 size_t *ret_n_fds, TnScmDiscard discard, void *discard_data);
