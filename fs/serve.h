/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The threads that answer the kernel, for all nests together: idle nests cost none.
 *
 * Each thread waits on one epoll set that holds the /dev/fuse descriptor of every live
 * connection, reads a request into its own buffer, has it dispatched, and reads on until
 * that device is empty. Edge-triggered, so a later request wakes a further thread.
 * One that serves a single client for a while waits in read(2) on that device instead.
 */
#pragma once

#include "registry.h"
#include "state.h"

/* Its threads' slots lie in `state`, which is borrowed; NULL: in one of its own. 0 or -errno. */
int tn_serve_new(TnServe **ret, TnState *state);
/*
 * Starts the threads (0: one per processor and one, 3 to 8; more when some wait for others or
 * are held up), after what a predecessor has left in their slots was taken over. 0 or -errno.
 */
int tn_serve_start(TnServe *serve, unsigned n_threads);
TnState *tn_serve_state(TnServe *serve);

/*
 * To be called now and then: starts a further thread when all are held up. False when one
 * has been for so long that only a new worker can help.
 */
bool tn_serve_look(TnServe *serve);
/* Stops and joins them. Every nest must have been removed. Takes NULL. */
void tn_serve_free(TnServe *serve);

/* Serves the nest's device from now on; holds a reference on nest until tn_serve_remove(). 0 or
 * -errno. */
int tn_serve_add(TnServe *serve, TnNest *nest, int device);
/*
 * For a serving thread that waits for a FORGET which the kernel has sent: between begin and
 * end another thread is left that does not wait, and looks at the nest's device (the edge for
 * what lies there may be the one that woke the caller). False: there are too many already.
 * What was sent before the begin has been done when tn_serve_has_settled() says so.
 */
typedef struct TnServeWait {
	bool read;                       /* the queue has been empty since */
	uint64_t turns[TN_SERVING_MOST]; /* what each thread did then; 0: no FORGET */
} TnServeWait;

bool tn_serve_begin_wait(TnServe *serve, const TnNest *nest, TnServeWait *wait);
bool tn_serve_has_settled(TnServe *serve, int device, TnServeWait *wait);
void tn_serve_end_wait(TnServe *serve, const TnNest *nest);
/* No thread touches the device any more when this returns. Not from a serving thread. */
void tn_serve_remove(TnServe *serve, TnNest *nest, int device);
