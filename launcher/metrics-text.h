/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Figures of a daemon in the Prometheus text format (0.0.4). Pure; one thread.
 */
#pragma once

#include "nest-row.h"

/*
 * nests: of ListNests; daemon: of GetMetrics; status: of Status. NULL for all three: the
 * daemon does not answer. The caller's.
 */
char *tn_metrics_text(const TnNestRows *nests, JsonObject *daemon, JsonObject *status);
