/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The words users write: sizes, durations, nest names. Pure; any thread.
 *
 * SIZE is a number with an optional K, M, G or T (powers of 1024; "1.5G" is fine) or "max";
 * DURATION is a number with s, m, h or d; NAME is 1 to 64 of A-Za-z0-9._-,
 * not starting with "." or "-".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN_UNLIMITED UINT64_MAX /* "max" */
#define TN_NAME_MAX 64          /* bytes of a nest's name, without the NUL */

/* Bytes. 0, or -EINVAL (not a size) or -ERANGE (past 2^63); *ret untouched on failure. */
int tn_parse_size(const char *text, uint64_t *ret);

/* A plain count ("1000", "64K", "max") of inodes; as tn_parse_size(), but 0 is -EINVAL. */
int tn_parse_count(const char *text, uint64_t *ret);

/* Seconds. "max" is TN_UNLIMITED. 0, -EINVAL or -ERANGE. */
int tn_parse_duration(const char *text, uint64_t *ret);

bool tn_name_is_valid(const char *name);

/* "64M", "1.5G", "max": at most 15 characters, always NUL-terminated; returns buffer. */
#define TN_SIZE_TEXT_MAX 16
char *tn_format_size(uint64_t bytes, char buffer[TN_SIZE_TEXT_MAX]);

/*
 * "90s", "15m", "2h", "7d", "max": the largest unit of which there are two or exactly one,
 * rounded down.
 */
char *tn_format_duration(uint64_t seconds, char buffer[TN_SIZE_TEXT_MAX]);
