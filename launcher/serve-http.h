/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The web side of `serve`: /metrics, a page, and its data as JSON. Reads only; nothing of a
 * request reaches the daemon but the id of a nest that is listed. One thread.
 */
#pragma once

#include "serve-state.h"

#include <libsoup/soup.h>

/* check_host: over TCP, where a page of somebody else could ask us by a name of its own. */
SoupServer *tn_serve_http_new(TnServeState *state, gboolean check_host);
