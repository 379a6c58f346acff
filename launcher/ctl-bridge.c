/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `bridge`: standard input and output as a connection to the daemon, for programs that
 * cannot pass descriptors. The proof of who calls goes with the first message; descriptors
 * in replies end here, so OpenFile is of no use through it.
 */
#include "ctl.h"

#include "macros.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHUNK 65536

typedef struct Direction {
	int from, to;
	guint8 buffer[CHUNK];
	size_t filled, sent;
	gboolean at_end; /* no more comes */
	gboolean is_socket;
} Direction;

static gboolean has_data(const Direction *direction)
{
	return direction->sent < direction->filled;
}

/* FALSE: the other side has gone. */
static gboolean move_some(Direction *direction, short from_events, short to_events)
{
	ssize_t n;

	if (!has_data(direction) && from_events != 0 && !direction->at_end) {
		n = read(direction->from, direction->buffer, CHUNK);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			n = 0;
		direction->at_end = n == 0;
		direction->filled = n > 0 ? (size_t)n : 0;
		direction->sent = 0;
		if (direction->at_end && direction->is_socket)
			shutdown(direction->to, SHUT_WR);
	}
	if (has_data(direction) && to_events != 0) {
		n = write(direction->to, direction->buffer + direction->sent,
			  direction->filled - direction->sent);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return FALSE;
		direction->sent += n > 0 ? (size_t)n : 0;
	}
	return TRUE;
}

/* Until the daemon closes. */
static void relay(int sock)
{
	g_autofree Direction *up = g_new0(Direction, 1), *down = g_new0(Direction, 1);

	*up = (Direction){.from = STDIN_FILENO, .to = sock, .is_socket = TRUE};
	*down = (Direction){.from = sock, .to = STDOUT_FILENO};
	while (!down->at_end || has_data(down)) {
		gboolean reads = !up->at_end && !has_data(up);
		struct pollfd p[3] = {
			{.fd = reads ? STDIN_FILENO : -1, .events = POLLIN},
			{.fd = sock,
			 .events = (short)((has_data(up) ? POLLOUT : 0) |
					   (has_data(down) ? 0 : POLLIN))},
			{.fd = has_data(down) ? STDOUT_FILENO : -1, .events = POLLOUT},
		};

		if (poll(p, 3, -1) < 0 && errno != EINTR)
			return;
		if (!move_some(up, p[0].revents, (short)(p[1].revents & (POLLOUT | POLLERR))) ||
		    !move_some(down, (short)(p[1].revents & (POLLIN | POLLHUP | POLLERR)),
			       p[2].revents))
			return;
	}
}

int tn_verb_bridge(const TnVerb *verb, int argc, char **argv)
{
	g_autoptr(TnClient) client = NULL;
	TnCtlOptions options;
	GError *error = NULL;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, NULL, 0, 0, &options, &status))
		return status;
	client = tn_client_open(&options.choice, &error);
	if (client == NULL)
		return tn_ctl_fail(verb, error);
	relay(tn_client_socket(client));
	return TN_CTL_OK;
}
