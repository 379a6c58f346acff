/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The one line that says why something failed. Pure; any thread.
 */
#pragma once

#include <stddef.h>

#define TN_WHY_MAX 512

/* Writes the line and returns error, so that a function can end with `return tn_why(...)`. */
int tn_why(char *why, size_t size, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
