/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "doctor.h"

static void free_check(void *data)
{
	TnCheck *check = data;

	g_free(check->found);
	g_free(check->hint);
	g_free(check);
}

GPtrArray *tn_doctor_new(void)
{
	return g_ptr_array_new_with_free_func(free_check);
}

void tn_doctor_add(GPtrArray *checks, const char *name, TnCheckStatus status, char *found,
		   char *hint)
{
	TnCheck *check = g_new0(TnCheck, 1);

	*check = (TnCheck){.name = name, .status = status, .found = found, .hint = hint};
	g_ptr_array_add(checks, check);
}
