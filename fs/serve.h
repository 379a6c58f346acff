/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The threads that answer the kernel, for all nests together: idle nests cost none.
 *
 * Each thread waits on one epoll set that holds the /dev/fuse descriptor of every live
 * connection, reads a request into its own buffer, has it dispatched, and reads on until
 * that device is empty. Edge-triggered, so a further request wakes a further thread.
 */
#pragma once

#include "registry.h"

/* Starts the threads (0: one per processor, 2 to 8). 0 or -errno. */
int tn_serve_new(TnServe **ret, unsigned n_threads);
/* Stops and joins them. Every nest must have been removed. Takes NULL. */
void tn_serve_free(TnServe *serve);

/* Serves the nest's device from now on; holds a reference on nest until tn_serve_remove(). 0 or
 * -errno. */
int tn_serve_add(TnServe *serve, TnNest *nest, int device);
/* Has a further thread look at the nest's device. From a serving thread that will wait for what
 * is in the queue: the edge for it may be the one that woke the caller. */
void tn_serve_wake(TnServe *serve, const TnNest *nest);
/* No thread touches the device any more when this returns. Not from a serving thread. */
void tn_serve_remove(TnServe *serve, TnNest *nest, int device);
