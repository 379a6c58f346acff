/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lease.h"
#include "macros.h"
#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int new_pipe(TnLease *ret)
{
	int ends[2];
	int error;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
		error = errno;
		return tn_fail(-error, "lease: cannot make a pipe: %s", strerror(error));
	}
	ret->read_end = ends[0];
	ret->write_end = ends[1];
	return 0;
}

int tn_lease_new(TnLease *ret, const char *leases_dir, const uint8_t id[16])
{
	TnLease lease = TN_LEASE_NONE;
	char name[33];
	int error, n;

	for (size_t i = 0; i < 16; i++)
		snprintf(name + 2 * i, 3, "%02x", id[i]);
	n = snprintf(lease.path, sizeof(lease.path), "%s/%s", leases_dir, name);
	if (n < 0 || n >= (int)sizeof(lease.path))
		lease.path[0] = '\0';
	*ret = lease;

	if (lease.path[0] == '\0' || mkfifo(lease.path, 0600) < 0) {
		ret->path[0] = '\0';
		return new_pipe(ret);
	}
	/* in this order: opening the write end of a FIFO wants a reader */
	ret->read_end = open(lease.path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (ret->read_end >= 0)
		ret->write_end = open(lease.path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (ret->write_end >= 0)
		return 0;
	error = errno;
	tn_fail(-error, "lease: %s: cannot open it: %s", lease.path, strerror(error));
	tn_lease_abandon(ret);
	return -error;
}

void tn_lease_abandon(TnLease *lease)
{
	tn_close(&lease->read_end);
	tn_close(&lease->write_end);
	if (lease->path[0])
		unlink(lease->path);
	lease->path[0] = '\0';
}
