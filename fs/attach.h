/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The attach server: one thread that answers launchers on RUNTIME/attach.sock and watches
 * the leases of running sandboxes. The protocol is in attach-proto.h.
 *
 * What clients can make it hold is bounded: connections that have not yet sent their
 * request, in number, per uid and in time; one reply at a time.
 */
#pragma once

#include "registry.h"
#include "worker.h"

typedef struct TnAttachServer TnAttachServer;

/* Starts the thread on env->attach_listener; env and registry are borrowed. 0 or -errno. */
int tn_attach_server_new(TnAttachServer **ret, const TnWorkerEnv *env, TnRegistry *registry);

/* Ends the thread; closes every connection and ends every lease. Takes NULL. */
void tn_attach_server_free(TnAttachServer *server);
