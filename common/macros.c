/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "macros.h"

#include <errno.h>

void tn_close(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		close(*fd);
		errno = saved;
	}
	*fd = -1;
}
