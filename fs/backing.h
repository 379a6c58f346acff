/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files of a store that a FUSE connection may be told to read and write by itself
 * (FUSE_DEV_IOC_BACKING_OPEN, Linux 6.9). For the keeper: the kernel asks for CAP_SYS_ADMIN,
 * and does all I/O on the file with the rights of who called.
 */
#pragma once

#include <stdint.h>

/* The id of file (O_PATH is enough) on the connection behind device; > 0 or -errno. */
int tn_backing_open(int device, int file);
/* 0 or -errno: -ENOENT no such id. Files that are open with it stay usable. */
int tn_backing_close(int device, int32_t id);
