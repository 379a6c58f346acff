/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "prefault.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAPPING_MOST (4UL << 20) /* bytes; larger ones are not a program's */

/* Heap, stack, and what takes views over: the program, the C library. */
static bool is_needed(const char *name)
{
	const char *base = strrchr(name, '/');

	return name[0] != '/' || strncmp(base, "/tmpnestd", 9) == 0 ||
	       strncmp(base, "/libc.", 6) == 0 || strncmp(base, "/ld-", 4) == 0;
}

/* Neither a shared mapping, nor one of the kernel's pages. */
static int advice_for(const char *permissions, const char *name)
{
	if (permissions[0] != 'r' || permissions[3] != 'p' || strncmp(name, "[v", 2) == 0 ||
	    !is_needed(name))
		return -1;
	return permissions[1] == 'w' ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
}

static void populate(const char *line)
{
	uintptr_t start, end;
	char permissions[5];
	int name = 0, advice;

	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %n", &start, &end, permissions,
		   &name) < 3 ||
	    end - start > MAPPING_MOST)
		return;
	advice = advice_for(permissions, name ? line + name : "");
	if (advice >= 0)
		(void)madvise((void *)start, end - start, advice);
}

void tn_prefault(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	if (!maps)
		return;
	while (fgets(line, sizeof(line), maps))
		populate(line);
	fclose(maps);
}

/* Memory of the thread's own, given back untouched by anybody else. */
#define HEAP_BYTES (96U * 1024) /* less than what malloc(3) maps apart or trims */
#define STACK_BYTES (48U * 1024)

void tn_prefault_thread(void)
{
	volatile char stack[STACK_BYTES];
	char *heap = malloc(HEAP_BYTES);

	for (size_t i = 0; i < sizeof(stack); i += 1024)
		stack[i] = 0;
	for (size_t i = 0; heap && i < HEAP_BYTES; i += 1024)
		((volatile char *)heap)[i] = 0;
	free(heap);
}
