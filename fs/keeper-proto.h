/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The messages between a worker (keeper-link.c) and its keeper (keeper.c), one
 * SOCK_SEQPACKET message each, always a request and then its answer. Both ends are the
 * same binary, and descriptors are numbers in the table that both share.
 */
#pragma once

#include <stdint.h>

typedef enum TnKeeperOp {
	TN_KEEPER_MOUNT = 1,     /* fd: device or -1, uid, gid -> mount, device */
	TN_KEEPER_MEMORY_NEW,    /* bytes, inodes -> mount */
	TN_KEEPER_MEMORY_RESIZE, /* fd: mount, bytes, inodes */
	TN_KEEPER_IMAGE_FORMAT,  /* fd: the image, inodes */
	TN_KEEPER_IMAGE_MOUNT,   /* fd: the image -> mount */
	TN_KEEPER_IMAGE_GROWN,   /* fd: mount */
	TN_KEEPER_BACKING_OPEN,  /* fd: device, file, nest, node -> id, also in the state */
	TN_KEEPER_BACKING_CLOSE, /* fd: device, id */
	TN_KEEPER_PEER_USERNS,   /* fd: pidfd -> dev, ino */
	TN_KEEPER_UPGRADE,       /* the program anew, under running views; answered before */
	TN_KEEPER_REFUSALS,      /* fd: tells of system calls that the filter refuses; taken */
	TN_KEEPER_READY,         /* the worker serves */
	TN_KEEPER_FAILED,        /* the worker could not start; text says why */
	TN_KEEPER_STOPPING,      /* the worker ends on purpose, and the daemon with it */
} TnKeeperOp;

typedef struct TnKeeperRequest {
	uint32_t op; /* TnKeeperOp */
	int32_t fd;
	uint32_t uid, gid;
	int32_t file, id;
	uint32_t node, reserved;
	uint64_t nest;
	uint64_t bytes, inodes;
	char text[256];
} TnKeeperRequest;

typedef struct TnKeeperAnswer {
	int32_t result; /* 0 or -errno */
	int32_t mount, device;
	int32_t id;
	uint64_t dev, ino;
} TnKeeperAnswer;
