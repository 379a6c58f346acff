/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How large a FUSE request and its reply can be. */
#pragma once

#define TN_MAX_WRITE (1024U * 1024)
/* A request: header, arguments and the data of a WRITE (linux/fuse.h, FUSE_MIN_READ_BUFFER). */
#define TN_REQUEST_SIZE (TN_MAX_WRITE + 4096U)
/* A reply: header and the data of a READ. */
#define TN_REPLY_SIZE (TN_MAX_WRITE + 4096U)
