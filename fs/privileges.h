/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a worker may do. For its first thread, before it has others: they inherit it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Keeps only the capabilities that serving files for other ids needs, for good: no exec
 * brings one back. With change_ids the kernel is told to leave them alone when a thread
 * changes its file-system ids (setfsuid(2)). 0, or -errno with one line in why.
 */
int tn_privileges_drop(bool change_ids, char *why, size_t why_size);
