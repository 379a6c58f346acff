/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service manager's notification socket (sd_notify(3)), without its library. */
#pragma once

/* A datagram socket connected to `path` (NOTIFY_SOCKET; NULL is none), or -errno. */
int tn_notify_connect(const char *path);
