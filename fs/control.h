/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control interface of the worker: org.tmpnest.Control over Varlink on
 * RUNTIME/control.sock, for `tmpnest ls` and every other operator verb.
 *
 * One thread of its own with a GMainContext; recounts of a nest go to a few more, so that
 * a big one delays nobody else. The only part of the daemon that uses GLib.
 */
#pragma once

#include "registry.h"
#include "worker.h"

typedef struct TnControl TnControl;

/*
 * Starts the thread and serves env->control_listener. env, registry and stop are
 * borrowed until tn_control_free(). Any thread but not before threads may exist. 0 or -errno.
 */
int tn_control_new(TnControl **ret, const TnWorkerEnv *env, TnRegistry *registry,
		   TnWorkerStop *stop);
/* Closes every connection and joins the threads. Not from a control thread. Takes NULL. */
void tn_control_free(TnControl *control);
