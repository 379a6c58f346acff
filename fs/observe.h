/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where requests tell operators of themselves: how long each took, and what was refused, to
 * whom. Each is one call in one place. Any serving thread.
 */
#pragma once

#include "dispatch.h"

/* Around the operation of a request, by the thread that serves it. */
int64_t tn_observe_begin(const TnRequest *request);
void tn_observe_end(const TnRequest *request, int64_t begun);

/*
 * The request that this thread serves was refused: by a rule, at node or (name not NULL) at
 * that name in it; by the quota; by the store's disk. Takes the table lock.
 */
void tn_observe_denied(TnNest *nest, uint32_t node, const char *name, int error);
void tn_observe_quota(TnNest *nest);
void tn_observe_store_full(TnNest *nest);
