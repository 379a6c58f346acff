/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Scope helpers that every part of tmpnest shares; no GLib, no state, any thread.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define TN_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Closes *fd unless it is negative and leaves -1 behind; errno is preserved. */
void tn_close(int *fd);

/* Takes the descriptor out of *fd, so that the scope no longer closes it. */
static inline int tn_steal_fd(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}

static inline void tn_free_pointer(void *pointer)
{
	free(*(void **)pointer);
}

/* int descriptor, closed at the end of the scope */
#define TN_AUTOFD __attribute__((cleanup(tn_close))) int
/* malloc()ed pointer, freed at the end of the scope */
#define TN_AUTOFREE __attribute__((cleanup(tn_free_pointer)))

/* Overflow-checked arithmetic on sizes: true when the result does not fit. */
#define tn_add_overflows(a, b, ret) __builtin_add_overflow((a), (b), (ret))
#define tn_mul_overflows(a, b, ret) __builtin_mul_overflow((a), (b), (ret))
