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

/* Starts the threads (0: one per processor, 2 to 8), and one more for what others wait for. 0 or
 * -errno. */
int tn_serve_new(TnServe **ret, unsigned n_threads);
/* Stops and joins them. Every nest must have been removed. Takes NULL. */
void tn_serve_free(TnServe *serve);

/* Serves the nest's device from now on; holds a reference on nest until tn_serve_remove(). 0 or
 * -errno. */
int tn_serve_add(TnServe *serve, TnNest *nest, int device);
/*
 * From a serving thread that will wait for what is in the queue of the nest's device: has a
 * further thread look there, as the edge for it may be the one that woke the caller. False,
 * and no wait, when no other thread would be left that does not wait.
 */
bool tn_serve_begin_wait(TnServe *serve, const TnNest *nest);
void tn_serve_end_wait(TnServe *serve);
/* No thread touches the device any more when this returns. Not from a serving thread. */
void tn_serve_remove(TnServe *serve, TnNest *nest, int device);
