/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For fuzz targets: a broken promise ends the program in every build. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define PROMISE(holds) \
	do { \
		if (!(holds)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds); \
			abort(); \
		} \
	} while (0)
