/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl-tree.h"

#include <string.h>

gboolean tn_ctl_place(const TnVerb *verb, const TnCtlOptions *options, const char *owner,
		      TnCtlPlace *ret)
{
	const char *name = options->arguments[0];
	const char *colon = options->n_arguments == 1 ? strchr(name, ':') : NULL;

	ret->name = colon != NULL ? g_strndup(name, (gsize)(colon - name)) : g_strdup(name);
	if (colon != NULL)
		ret->path = g_strdup(colon + 1);
	else
		ret->path = g_strdup(options->n_arguments > 1 ? options->arguments[1] : "/tmp");
	if (ret->path[0] == '\0') {
		g_free(ret->path);
		ret->path = g_strdup("/tmp");
	}
	return tn_ctl_check_name(verb, ret->name) && tn_ctl_owner(verb, owner, &ret->owner);
}
