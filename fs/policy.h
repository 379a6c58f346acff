/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Deny and read-only rules: patterns on the path below /tmp or /var/tmp. Pure: no I/O,
 * no lock; a TnPolicy is immutable once built, so any thread may read it.
 *
 * A pattern is a path of components; each component may hold *, ? and [...] as in
 * fnmatch(3), which never cross a "/". "x", "/x" and "/tmp/x" anchor at the view's tmp,
 * "/var/tmp/x" at var-tmp; "/private/tmp/x" is the same as "/tmp/x". A rule holds for the
 * name it matches and for everything below.
 *
 * Matching works on the components of the real place, as the node table knows it, not on
 * the string that a program used.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TnPolicy TnPolicy;

/* The two subtrees of a view. */
typedef enum TnSubtree {
	TN_SUBTREE_NONE = 0, /* the view's root itself */
	TN_SUBTREE_TMP = 1,
	TN_SUBTREE_VAR_TMP = 2,
} TnSubtree;

typedef enum TnVerdict {
	TN_ALLOWED = 0,
	TN_READ_ONLY = 1,
	TN_DENIED = 2, /* the strictest of all matching rules counts */
} TnVerdict;

#define TN_RULES_MAX 1024    /* rules of one nest */
#define TN_RULE_DEPTH_MAX 64 /* components of one pattern */

/* Holds the built-in rule: /tmp/claude is denied. NULL when out of memory. */
TnPolicy *tn_policy_new(void);
void tn_policy_free(TnPolicy *policy); /* takes NULL */

/*
 * Adds a rule. A second one with the same pattern and kind is no error. 0, or -EINVAL
 * (empty, ".." or "." component, component past 255 bytes, too deep, a path that lies
 * elsewhere: not below /tmp or /var/tmp), -E2BIG (too many rules), -ENOMEM.
 */
int tn_policy_add(TnPolicy *policy, const char *pattern, bool deny);

/* A copy. NULL when out of memory. */
TnPolicy *tn_policy_copy(const TnPolicy *policy);

/* Takes a rule away. 0, -ENOENT (there is none), -EPERM (built in), -EINVAL or -ENOMEM. */
int tn_policy_remove(TnPolicy *policy, const char *pattern, bool deny);

/* The verdict for the place subtree/components[0]/.../components[n-1]. */
TnVerdict tn_policy_match(const TnPolicy *policy, TnSubtree subtree, const char *const components[],
			  size_t n);

/* The pattern of the strictest rule that matches, or NULL. */
const char *tn_policy_find(const TnPolicy *policy, TnSubtree subtree,
			   const char *const components[], size_t n);

/* Components that a caller must supply to tn_policy_match(): a deeper place needs no more. */
size_t tn_policy_depth(const TnPolicy *policy);

/* True when some rule is a read-only one, so that changes by node need a look at its place. */
bool tn_policy_has_read_only(const TnPolicy *policy);

/*
 * Rules that match strictly *below* the place (which the place's own name leads to):
 * calls visit with the remaining pattern components; stops and returns true when visit
 * does. Used when a directory is about to be renamed from or to the place.
 */
typedef bool (*TnPolicyBelow)(const char *const *pattern, size_t n, TnVerdict verdict, void *data);
bool tn_policy_each_below(const TnPolicy *policy, TnSubtree subtree, const char *const components[],
			  size_t n, TnPolicyBelow visit, void *data);

/* True when name matches the one pattern component. */
bool tn_policy_component_matches(const char *pattern, const char *name);

/* Every rule, as an absolute pattern ("/tmp/claude"); stops when visit returns false. */
typedef bool (*TnPolicyVisit)(const char *pattern, bool deny, bool built_in, void *data);
void tn_policy_each(const TnPolicy *policy, TnPolicyVisit visit, void *data);
