/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "backing.h"

#include <errno.h>
#include <sys/ioctl.h>

/* As in linux/fuse.h since protocol 7.40; the oldest headers that we build with have it not. */
typedef struct BackingMap {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
} BackingMap;

#define BACKING_OPEN _IOW(229, 1, BackingMap)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

int tn_backing_open(int device, int file)
{
	BackingMap map = {.fd = file};
	int id = ioctl(device, BACKING_OPEN, &map);

	if (id < 0)
		return -errno;
	return id > 0 ? id : -EIO;
}

int tn_backing_close(int device, int32_t id)
{
	uint32_t number = (uint32_t)id;

	return ioctl(device, BACKING_CLOSE, &number) < 0 ? -errno : 0;
}
