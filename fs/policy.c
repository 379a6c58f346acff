/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy.h"

#include "macros.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

typedef struct Rule {
	TnSubtree subtree;
	TnVerdict verdict;
	bool built_in;
	size_t n;
	char *absolute; /* "/tmp/a/b" */
	char *storage;  /* the components, NUL-separated */
	const char **components;
} Rule;

struct TnPolicy {
	Rule *rules;
	size_t n_rules, allocated;
	size_t depth;
	bool has_read_only;
};

/* Longest first, so that /private/tmp is not taken for a folder "private". */
static const struct Anchor {
	const char *prefix;
	TnSubtree subtree;
} anchors[] = {
	{"/private/var/tmp/", TN_SUBTREE_VAR_TMP},
	{"/private/tmp/", TN_SUBTREE_TMP},
	{"/var/tmp/", TN_SUBTREE_VAR_TMP},
	{"/tmp/", TN_SUBTREE_TMP},
};

/* A pattern with its slashes folded: "//tmp//x/" is "/tmp/x/". */
static char *fold_slashes(const char *pattern)
{
	char *folded = malloc(strlen(pattern) + 2);
	char *out = folded;

	if (!folded)
		return NULL;
	for (const char *in = pattern; *in; in++) {
		if (*in == '/' && out > folded && out[-1] == '/')
			continue;
		*out++ = *in;
	}
	*out = '\0';
	return folded;
}

/* Finds the subtree of a folded pattern and the text below it; NULL when it lies elsewhere. */
static const char *below_anchor(const char *folded, TnSubtree *ret)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(anchors); i++) {
		size_t length = strlen(anchors[i].prefix);

		/* "/tmp" itself, with or without the last slash, is no place below it. */
		if (strncmp(folded, anchors[i].prefix, length - 1) == 0 &&
		    folded[length - 1] == '\0')
			return NULL;
		if (strncmp(folded, anchors[i].prefix, length) == 0) {
			*ret = anchors[i].subtree;
			return folded + length;
		}
	}
	*ret = TN_SUBTREE_TMP;
	return folded[0] == '/' ? folded + 1 : folded;
}

static void rule_clear(Rule *rule)
{
	free(rule->absolute);
	free(rule->storage);
	free(rule->components);
	*rule = (Rule){0};
}

/* Cuts rule->storage at its slashes. */
static int rule_split(Rule *rule)
{
	char *rest = rule->storage, *component;

	rule->components = calloc(TN_RULE_DEPTH_MAX, sizeof(*rule->components));
	if (!rule->components)
		return -ENOMEM;
	while ((component = strsep(&rest, "/"))) {
		if (*component == '\0' && !rest && rule->n > 0)
			break; /* a trailing slash */
		if (*component == '\0' || strcmp(component, ".") == 0 ||
		    strcmp(component, "..") == 0 || strlen(component) > 255)
			return -EINVAL;
		if (rule->n == TN_RULE_DEPTH_MAX)
			return -EINVAL;
		rule->components[rule->n++] = component;
	}
	return rule->n > 0 ? 0 : -EINVAL;
}

static char *absolute_pattern(TnSubtree subtree, const char *below)
{
	const char *root = subtree == TN_SUBTREE_TMP ? "/tmp/" : "/var/tmp/";
	size_t head = strlen(root), tail = strlen(below);
	char *text = malloc(head + tail + 1);

	if (!text)
		return NULL;
	memcpy(text, root, head);
	memcpy(text + head, below, tail + 1);
	while (text[head + tail - 1] == '/')
		text[head + --tail] = '\0';
	return text;
}

static int rule_init(Rule *rule, const char *pattern, TnVerdict verdict)
{
	TN_AUTOFREE char *folded = fold_slashes(pattern);
	const char *below;

	if (!folded)
		return -ENOMEM;
	below = below_anchor(folded, &rule->subtree);
	if (!below || *below == '\0' || *below == '/')
		return -EINVAL;
	rule->verdict = verdict;
	rule->absolute = absolute_pattern(rule->subtree, below);
	rule->storage = strdup(below);
	if (!rule->absolute || !rule->storage)
		return -ENOMEM;
	return rule_split(rule);
}

static bool is_same(const Rule *a, const Rule *b)
{
	return a->verdict == b->verdict && strcmp(a->absolute, b->absolute) == 0;
}

static bool is_known(const TnPolicy *policy, const Rule *rule)
{
	for (size_t i = 0; i < policy->n_rules; i++) {
		if (is_same(&policy->rules[i], rule))
			return true;
	}
	return false;
}

/* Takes the rule on success. */
static int append(TnPolicy *policy, Rule *rule)
{
	if (policy->n_rules == policy->allocated) {
		size_t wanted = policy->allocated ? 2 * policy->allocated : 4;
		Rule *grown = reallocarray(policy->rules, wanted, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		policy->rules = grown;
		policy->allocated = wanted;
	}
	policy->rules[policy->n_rules++] = *rule;
	if (rule->n > policy->depth)
		policy->depth = rule->n;
	if (rule->verdict == TN_READ_ONLY)
		policy->has_read_only = true;
	return 0;
}

int tn_policy_add(TnPolicy *policy, const char *pattern, bool deny)
{
	Rule rule = {0};
	int r;

	if (policy->n_rules >= TN_RULES_MAX)
		return -E2BIG;
	r = rule_init(&rule, pattern, deny ? TN_DENIED : TN_READ_ONLY);
	if (r == 0 && !is_known(policy, &rule)) {
		r = append(policy, &rule);
		if (r == 0)
			return 0;
	}
	rule_clear(&rule);
	return r;
}

TnPolicy *tn_policy_new(void)
{
	TnPolicy *policy = calloc(1, sizeof(*policy));

	if (!policy)
		return NULL;
	if (tn_policy_add(policy, "/tmp/claude", true) < 0) {
		tn_policy_free(policy);
		return NULL;
	}
	policy->rules[0].built_in = true;
	return policy;
}

void tn_policy_free(TnPolicy *policy)
{
	if (!policy)
		return;
	for (size_t i = 0; i < policy->n_rules; i++)
		rule_clear(&policy->rules[i]);
	free(policy->rules);
	free(policy);
}

TnPolicy *tn_policy_copy(const TnPolicy *policy)
{
	TnPolicy *copy = tn_policy_new();

	/* The built-in rule is the first of both, and known. */
	for (size_t i = 0; copy && i < policy->n_rules; i++) {
		const Rule *rule = &policy->rules[i];

		if (tn_policy_add(copy, rule->absolute, rule->verdict == TN_DENIED) < 0) {
			tn_policy_free(copy);
			return NULL;
		}
	}
	return copy;
}

static void summarize(TnPolicy *policy)
{
	policy->depth = 0;
	policy->has_read_only = false;
	for (size_t i = 0; i < policy->n_rules; i++) {
		if (policy->rules[i].n > policy->depth)
			policy->depth = policy->rules[i].n;
		policy->has_read_only |= policy->rules[i].verdict == TN_READ_ONLY;
	}
}

int tn_policy_remove(TnPolicy *policy, const char *pattern, bool deny)
{
	Rule like = {0};
	int r = rule_init(&like, pattern, deny ? TN_DENIED : TN_READ_ONLY);
	size_t i = 0;

	while (r == 0 && i < policy->n_rules && !is_same(&policy->rules[i], &like))
		i++;
	rule_clear(&like);
	if (r < 0)
		return r;
	if (i == policy->n_rules)
		return -ENOENT;
	if (policy->rules[i].built_in)
		return -EPERM;
	rule_clear(&policy->rules[i]);
	policy->n_rules--;
	memmove(&policy->rules[i], &policy->rules[i + 1],
		(policy->n_rules - i) * sizeof(policy->rules[0]));
	summarize(policy);
	return 0;
}

bool tn_policy_component_matches(const char *pattern, const char *name)
{
	if (strpbrk(pattern, "*?[\\"))
		return fnmatch(pattern, name, FNM_NOESCAPE) == 0;
	return strcmp(pattern, name) == 0;
}

/* True when the first n components of the rule match the given ones. */
static bool prefix_matches(const Rule *rule, const char *const components[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!tn_policy_component_matches(rule->components[i], components[i]))
			return false;
	}
	return true;
}

/* The first of the strictest rules that match, or NULL. */
static const Rule *find_strictest(const TnPolicy *policy, TnSubtree subtree,
				  const char *const components[], size_t n)
{
	TnVerdict strictest = TN_ALLOWED;
	const Rule *found = NULL;

	for (size_t i = 0; i < policy->n_rules; i++) {
		const Rule *rule = &policy->rules[i];

		if (rule->verdict > strictest && rule->subtree == subtree && rule->n <= n &&
		    prefix_matches(rule, components, rule->n)) {
			strictest = rule->verdict;
			found = rule;
		}
	}
	return found;
}

TnVerdict tn_policy_match(const TnPolicy *policy, TnSubtree subtree, const char *const components[],
			  size_t n)
{
	const Rule *rule = find_strictest(policy, subtree, components, n);

	return rule ? rule->verdict : TN_ALLOWED;
}

const char *tn_policy_find(const TnPolicy *policy, TnSubtree subtree,
			   const char *const components[], size_t n)
{
	const Rule *rule = find_strictest(policy, subtree, components, n);

	return rule ? rule->absolute : NULL;
}

size_t tn_policy_depth(const TnPolicy *policy)
{
	return policy->depth;
}

bool tn_policy_has_read_only(const TnPolicy *policy)
{
	return policy->has_read_only;
}

bool tn_policy_each_below(const TnPolicy *policy, TnSubtree subtree, const char *const components[],
			  size_t n, TnPolicyBelow visit, void *data)
{
	for (size_t i = 0; i < policy->n_rules; i++) {
		const Rule *rule = &policy->rules[i];

		if (rule->subtree == subtree && rule->n > n &&
		    prefix_matches(rule, components, n) &&
		    visit(rule->components + n, rule->n - n, rule->verdict, data))
			return true;
	}
	return false;
}

void tn_policy_each(const TnPolicy *policy, TnPolicyVisit visit, void *data)
{
	for (size_t i = 0; i < policy->n_rules; i++) {
		const Rule *rule = &policy->rules[i];

		if (!visit(rule->absolute, rule->verdict == TN_DENIED, rule->built_in, data))
			return;
	}
}
