/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a worker has its keeper do because it takes mount rights (keeper-link.h). */
#pragma once

#include "keeper-proto.h"
#include "worker.h"

/*
 * Does one request and fills the answer but for its result, which it returns: 0 or -errno, -EPROTO
 * for one that is not among them. Keeper's only thread.
 */
int tn_keeper_service(const TnWorkerEnv *env, const TnKeeperRequest *request,
		      TnKeeperAnswer *answer);
