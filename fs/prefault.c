/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "prefault.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define MAPPING_MOST (4UL << 20) /* bytes; larger ones are not a program's */

/* Neither a shared mapping, nor one of the kernel's pages. */
static int advice_for(const char *permissions, const char *name)
{
	if (permissions[0] != 'r' || permissions[3] != 'p' || strncmp(name, "[v", 2) == 0)
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
