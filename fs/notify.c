/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "notify.h"

#include "macros.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int tn_notify_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = path ? strlen(path) : 0;
	TN_AUTOFD sock = -1;

	if (length < 2 || length >= sizeof(address.sun_path) || !strchr("/@", path[0]))
		return -EINVAL;
	memcpy(address.sun_path, path, length);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0 || connect(sock, (struct sockaddr *)&address,
				(socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		return -errno;
	return tn_steal_fd(&sock);
}
