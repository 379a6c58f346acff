/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kernel.h"

#include <stdio.h>
#include <sys/utsname.h>

bool tn_release_at_least(const char *release, unsigned major, unsigned minor)
{
	unsigned have_major, have_minor;

	if (sscanf(release, "%u.%u", &have_major, &have_minor) != 2)
		return false;
	return have_major > major || (have_major == major && have_minor >= minor);
}

bool tn_kernel_at_least(unsigned major, unsigned minor)
{
	struct utsname name;

	return uname(&name) == 0 && tn_release_at_least(name.release, major, minor);
}
