/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scm.h"
#include "macros.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/*
 * Room for more descriptors than we accept: with exactly TN_SCM_MAX_FDS the padding of
 * the control buffer would decide whether a surplus one is cut off or let through.
 */
#define RECEIVE_FDS 16

typedef union TnControl {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * RECEIVE_FDS)];
} TnControl;

ssize_t tn_scm_send(int sock, const void *data, size_t size, const int *fds, size_t n_fds)
{
	struct iovec part = {.iov_base = (void *)data, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	TnControl control;
	ssize_t sent;

	if (n_fds > TN_SCM_MAX_FDS)
		return -EINVAL;
	if (n_fds > 0) {
		struct cmsghdr *head;

		memset(&control, 0, sizeof(control));
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(head), fds, sizeof(int) * n_fds);
	}
	do
		sent = sendmsg(sock, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

/* Moves the descriptors of message into fds; discards those beyond TN_SCM_MAX_FDS. How many came.
 */
static size_t take_fds(struct msghdr *message, int fds[TN_SCM_MAX_FDS], TnScmDiscard discard,
		       void *data)
{
	size_t n_fds = 0;

	for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head;
	     head = CMSG_NXTHDR(message, head)) {
		size_t n_here;

		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		n_here = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n_here; i++, n_fds++) {
			int fd;

			memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(fd));
			if (n_fds < TN_SCM_MAX_FDS)
				fds[n_fds] = fd;
			else
				discard(&fd, data);
		}
	}
	return n_fds;
}

static void discard_now(int *fd, void *data)
{
	(void)data;
	tn_close(fd);
}

ssize_t tn_scm_recv(int sock, void *data, size_t size, int fds[TN_SCM_MAX_FDS], size_t *ret_n_fds)
{
	return tn_scm_recv_with(sock, data, size, fds, ret_n_fds, discard_now, NULL);
}

ssize_t tn_scm_recv_with(int sock, void *data, size_t size, int fds[TN_SCM_MAX_FDS],
			 size_t *ret_n_fds, TnScmDiscard discard, void *discard_data)
{
	struct iovec part = {.iov_base = data, .iov_len = size};
	TnControl control;
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t received;
	size_t n_fds;

	for (size_t i = 0; i < TN_SCM_MAX_FDS; i++)
		fds[i] = -1;
	*ret_n_fds = 0;
	do
		received = recvmsg(sock, &message, MSG_CMSG_CLOEXEC);
	while (received < 0 && errno == EINTR);
	if (received < 0)
		return -errno;

	n_fds = take_fds(&message, fds, discard, discard_data);
	if (n_fds > TN_SCM_MAX_FDS || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		for (size_t i = 0; i < TN_SCM_MAX_FDS; i++)
			discard(&fds[i], discard_data);
		return -EMSGSIZE;
	}
	*ret_n_fds = n_fds;
	return received;
}
