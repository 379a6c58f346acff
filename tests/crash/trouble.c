/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trouble.h"

#include "macros.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#define SETTLE_TRIES 400

KillFile *trouble_map(const char *path)
{
	TN_AUTOFD fd = open(path, O_RDWR);
	void *base =
		fd < 0 ? MAP_FAILED
		       : mmap(NULL, sizeof(KillFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return base == MAP_FAILED ? NULL : base;
}

const char *trouble_check_account(const struct statvfs *at_start)
{
	static char text[128];
	struct statvfs st;

	for (int i = 0; i < SETTLE_TRIES; i++) {
		if (statvfs(".", &st) == 0 && st.f_bfree == at_start->f_bfree &&
		    st.f_ffree == at_start->f_ffree)
			return NULL;
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
	snprintf(text, sizeof(text), "%lld blocks and %lld inodes are missing",
		 (long long)(at_start->f_bfree - st.f_bfree),
		 (long long)(at_start->f_ffree - st.f_ffree));
	return text;
}
