/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The mounts of image stores: an ext4 file system in a file, by a loop device that the kernel
 * takes away with its last user, however that ends. For the keeper of a root daemon.
 */
#pragma once

#include <stdint.h>

/* Makes the file system, by mke2fs(8), which is killed when it takes too long. 0 or -errno: -ENOPKG
 * there is none, -EIO it failed, -ETIMEDOUT. */
int tn_image_format(int image, uint64_t inodes);

/*
 * A detached mount, or -errno: -EBUSY when another loop device has the image already (two file
 * systems on one image would destroy it). The image's descriptor stays the caller's.
 */
int tn_image_mount(int image);

/* The image behind such a mount is larger now: the device and the file system follow. 0 or -errno.
 */
int tn_image_grown(int mount);
