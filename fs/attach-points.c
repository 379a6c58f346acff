/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "attach-points.h"

#include "macros.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Which subtree an absolute path's first components name; how many of them do. */
static size_t find_subtree(const char *const components[], size_t n, TnSubtree *ret)
{
	*ret = TN_SUBTREE_TMP;
	if (n >= 1 && strcmp(components[0], "tmp") == 0)
		return 1;
	if (n >= 2 && strcmp(components[0], "private") == 0 && strcmp(components[1], "tmp") == 0)
		return 2;
	if (n >= 2 && strcmp(components[0], "var") == 0 && strcmp(components[1], "tmp") == 0) {
		*ret = TN_SUBTREE_VAR_TMP;
		return 2;
	}
	return 0;
}

int tn_attach_point_state(const TnPolicy *policy, const char *path)
{
	const char *components[TN_RULE_DEPTH_MAX + 2];
	char copy[PATH_MAX], *part, *next = NULL;
	TnSubtree subtree = TN_SUBTREE_TMP;
	size_t n = 0, anchor;

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
		return -EPROTO;
	for (part = strtok_r(copy, "/", &next); part; part = strtok_r(NULL, "/", &next)) {
		if (strcmp(part, "..") == 0)
			return -EPROTO;
		/* No rule is deeper, and each holds for all below what it matches. */
		if (strcmp(part, ".") != 0 && n < TN_ARRAY_LEN(components))
			components[n++] = part;
	}
	anchor = path[0] == '/' ? find_subtree(components, n, &subtree) : 0;
	if (n == anchor)
		return -EPROTO;
	switch (tn_policy_match(policy, subtree, components + anchor, n - anchor)) {
	case TN_DENIED:
		return TN_POINT_DENIED;
	case TN_READ_ONLY:
		return TN_POINT_READ_ONLY;
	case TN_ALLOWED:
		break;
	}
	return TN_POINT_PINNED;
}
