/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "attach-points.h"

#include "macros.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The rest of path below prefix, or NULL when it does not lie there. */
static char *below(char *path, const char *prefix)
{
	size_t length = strlen(prefix);

	if (strncmp(path, prefix, length) != 0 || (path[length] != '/' && path[length] != '\0'))
		return NULL;
	return path + length;
}

static char *find_subtree(char *path, TnSubtree *ret)
{
	static const struct {
		const char *prefix;
		TnSubtree subtree;
	} anchors[] = {
		{"/var/tmp", TN_SUBTREE_VAR_TMP},
		{"/private/tmp", TN_SUBTREE_TMP},
		{"/tmp", TN_SUBTREE_TMP},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(anchors); i++) {
		char *rest = below(path, anchors[i].prefix);

		if (rest) {
			*ret = anchors[i].subtree;
			return rest;
		}
	}
	*ret = TN_SUBTREE_TMP;
	return path;
}

int tn_attach_point_state(const TnPolicy *policy, const char *path)
{
	const char *components[TN_RULE_DEPTH_MAX];
	char copy[PATH_MAX], *rest, *part, *next = NULL;
	TnSubtree subtree;
	size_t n = 0;

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
		return -EPROTO;
	rest = find_subtree(copy, &subtree);
	for (part = strtok_r(rest, "/", &next); part; part = strtok_r(NULL, "/", &next)) {
		if (strcmp(part, "..") == 0)
			return -EPROTO;
		/* No rule is deeper, and each holds for all below what it matches. */
		if (strcmp(part, ".") != 0 && n < TN_ARRAY_LEN(components))
			components[n++] = part;
	}
	if (n == 0)
		return -EPROTO;
	switch (tn_policy_match(policy, subtree, components, n)) {
	case TN_DENIED:
		return TN_POINT_DENIED;
	case TN_READ_ONLY:
		return TN_POINT_READ_ONLY;
	case TN_ALLOWED:
		break;
	}
	return TN_POINT_PINNED;
}
