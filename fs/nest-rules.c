/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rules that change while sandboxes use the nest. A TnPolicy is never changed: a new one
 * takes its place while no request is being served. What the kernel knows from before, of
 * the places that the change is about, is taken from it before and after: written back,
 * unmapped, its names dropped. Open files there are refused by tn_check_revoked().
 */
#include "describe.h"
#include "log.h"
#include "macros.h"
#include "nest-private.h"
#include "ops.h"
#include "registry-private.h"
#include "sys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define NODES_AT_A_TIME 64U

/* --- what the kernel knows ----------------------------------------------------------------------
 */

/* One name to be dropped, or (name empty) one inode. */
typedef struct Stale {
	uint64_t id; /* of the inode, or of the directory that the name is in */
	char name[NAME_MAX + 1];
} Stale;

typedef struct StaleList {
	Stale *items;
	size_t n, allocated;
	bool short_of_memory;
} StaleList;

static void add_stale(StaleList *list, uint64_t id, const char *name)
{
	if (list->n == list->allocated) {
		size_t wanted = list->allocated ? 2 * list->allocated : NODES_AT_A_TIME;
		Stale *grown = reallocarray(list->items, wanted, sizeof(*grown));

		if (!grown) {
			list->short_of_memory = true;
			return;
		}
		list->items = grown;
		list->allocated = wanted;
	}
	list->items[list->n].id = id;
	strcpy(list->items[list->n++].name, name); /* at most NAME_MAX: dispatch checks */
}

static bool is_matched(TnNest *nest, const TnPolicy *delta, uint32_t parent, const char *name)
{
	const char *components[TN_RULE_DEPTH_MAX];
	TnSubtree subtree;
	size_t n = tn_node_place(nest->table, parent, name, components, tn_policy_depth(delta),
				 &subtree);

	return tn_policy_match(delta, subtree, components, n) != TN_ALLOWED;
}

static bool is_next_component(const char *const *pattern, size_t n, TnVerdict verdict, void *data)
{
	(void)pattern;
	(void)verdict;
	(void)data;
	return n == 1;
}

/* May a name in this directory match? */
static bool lists_matched(TnNest *nest, const TnPolicy *delta, uint32_t directory)
{
	const char *components[TN_RULE_DEPTH_MAX];
	TnSubtree subtree;
	size_t n = tn_node_place(nest->table, directory, NULL, components, TN_RULE_DEPTH_MAX,
				 &subtree);

	return tn_policy_each_below(delta, subtree, components, n, is_next_component, NULL);
}

typedef struct Search {
	TnNest *nest;
	const TnPolicy *delta;
	StaleList *list;
} Search;

/* What lies below a dropped name goes with it. */
static void add_name(uint32_t parent, const char *name, void *data)
{
	Search *search = data;

	if (is_matched(search->nest, search->delta, parent, name) &&
	    !is_matched(search->nest, search->delta, parent, NULL))
		add_stale(search->list, tn_node_at(search->nest->table, parent)->id, name);
}

static void add_node(Search *search, uint32_t index)
{
	TnNest *nest = search->nest;
	const TnNode *node = tn_node_at(nest->table, index);

	if (index == TN_ROOT_INDEX || !node->links)
		return;
	if (is_matched(nest, search->delta, index, NULL) ||
	    (node->type == S_IFDIR && lists_matched(nest, search->delta, index)))
		add_stale(search->list, node->id, "");
	tn_node_each_name(nest->table, index, add_name, search);
}

static void drop(int device, const Stale *stale)
{
	struct fuse_notify_inval_inode_out inode = {.ino = stale->id};
	struct fuse_notify_inval_entry_out entry = {
		.parent = stale->id,
		.namelen = (uint32_t)strlen(stale->name),
	};
	bool is_name = stale->name[0] != '\0';
	size_t size = is_name ? sizeof(entry) : sizeof(inode);
	size_t name_size = is_name ? entry.namelen + 1 : 0;
	struct fuse_out_header header = {
		.error = is_name ? FUSE_NOTIFY_INVAL_ENTRY : FUSE_NOTIFY_INVAL_INODE,
		.len = (uint32_t)(sizeof(header) + size + name_size),
	};
	struct iovec parts[] = {
		{&header, sizeof(header)},
		{is_name ? (void *)&entry : (void *)&inode, size},
		{(void *)(uintptr_t)stale->name, name_size},
	};

	/* ENOENT: it has forgotten that meanwhile. */
	if (writev(device, parts, TN_ARRAY_LEN(parts)) < 0 && errno != ENOENT &&
	    errno != ENOTCONN && errno != ENODEV)
		tn_log(TN_LOG_WARNING, "rules: what the kernel knows of a file stays: %s",
		       strerror(errno));
}

/* Caller holds the life lock: threads that answer the kernel meanwhile do not need it. */
static void drop_known(TnNest *nest, const TnPolicy *delta)
{
	StaleList list = {NULL};
	Search search = {.nest = nest, .delta = delta, .list = &list};
	uint32_t index = 0;

	if (nest->device < 0)
		return;
	do {
		list.n = 0;
		pthread_mutex_lock(&nest->table_lock);
		while (list.n < NODES_AT_A_TIME && (index = tn_node_next(nest->table, index)))
			add_node(&search, index);
		pthread_mutex_unlock(&nest->table_lock);
		for (size_t i = 0; i < list.n; i++)
			drop(nest->device, &list.items[i]);
	} while (index);
	if (list.short_of_memory)
		tn_log(TN_LOG_ERROR, "nest %s: rules: out of memory: some names stay known",
		       nest->name);
	free(list.items);
}

/* --- the change --------------------------------------------------------------------------------
 */

static int take_away(TnPolicy *policy, const TnRuleChange *change, char *why, size_t why_size)
{
	for (size_t i = 0; i < change->n_remove; i++) {
		int r = tn_policy_remove(policy, change->remove[i], change->deny);
		char shown[160];

		if (r < 0) {
			snprintf(why, why_size, "%s rule: %s: %s",
				 change->deny ? "deny" : "read-only",
				 tn_log_escape(change->remove[i], shown, sizeof(shown)),
				 r == -ENOENT  ? "there is none of that pattern"
				 : r == -EPERM ? "built in, it stays"
					       : "not a usable pattern");
			return r == -ENOENT ? -EINVAL : r;
		}
	}
	return 0;
}

/* The rules that come and go, alone. */
static int build_delta(const TnRuleChange *change, TnPolicy **ret, char *why, size_t why_size)
{
	TnPolicy *delta = tn_policy_new();
	int r = delta ? 0 : -ENOMEM;

	if (r == 0)
		r = tn_registry_add_rules(delta, change->add, change->n_add, change->deny, why,
					  why_size);
	if (r == 0)
		r = tn_registry_add_rules(delta, change->remove, change->n_remove, change->deny,
					  why, why_size);
	if (r < 0)
		tn_policy_free(delta);
	else
		*ret = delta;
	return r;
}

/* Dropping a name would take the mounts of running sandboxes along. */
static int check_pins(TnNest *nest, const TnPolicy *delta, const TnRuleChange *change, char *why,
		      size_t why_size)
{
	bool held = false;

	if (!change->deny)
		return 0;
	pthread_mutex_lock(&nest->table_lock);
	for (const TnPin *pin = nest->pins.first; pin && !held; pin = pin->next)
		held = tn_policy_match(delta, pin->subtree, pin->components, pin->n) != TN_ALLOWED;
	pthread_mutex_unlock(&nest->table_lock);
	if (!held)
		return 0;
	snprintf(why, why_size, "a running sandbox has a mount there (end it first)");
	return -EBUSY;
}

static int swap(TnNest *nest, void *data)
{
	TnPolicy **policy = data, *old = nest->policy;

	nest->policy = *policy;
	*policy = old;
	atomic_store(&nest->revokes, true);
	return 0;
}

/* Caller holds the life lock. Takes *policy, or what it replaced, back by *policy. */
static int install(TnNest *nest, TnPolicy **policy, const TnPolicy *delta)
{
	int r;

	drop_known(nest, delta);
	r = tn_nest_between_requests(nest, swap, policy);
	if (r < 0)
		return r;
	r = tn_describe_save(nest);
	if (r < 0) {
		tn_nest_between_requests(nest, swap, policy);
		return r;
	}
	drop_known(nest, delta);
	return 0;
}

int tn_nest_change_rules(TnNest *nest, const TnRuleChange *change, char *why, size_t why_size)
{
	TnPolicy *delta = NULL, *policy;
	int r = build_delta(change, &delta, why, why_size);

	if (r < 0)
		return r;
	pthread_mutex_lock(&nest->life);
	policy = tn_policy_copy(nest->policy);
	r = !policy ? -ENOMEM : nest->evicting ? -ENOENT : 0;
	if (r == 0)
		r = check_pins(nest, delta, change, why, why_size);
	if (r == 0)
		r = take_away(policy, change, why, why_size);
	if (r == 0)
		r = tn_registry_add_rules(policy, change->add, change->n_add, change->deny, why,
					  why_size);
	if (r == 0)
		r = install(nest, &policy, delta);
	pthread_mutex_unlock(&nest->life);
	tn_policy_free(policy);
	tn_policy_free(delta);
	return r;
}

int tn_check_revoked(TnNest *nest, uint32_t index)
{
	if (!atomic_load_explicit(&nest->revokes, memory_order_relaxed) || index == TN_ROOT_INDEX ||
	    tn_verdict_of_node(nest, index) != TN_DENIED)
		return 0;
	return tn_refused(nest, index, NULL, -EACCES);
}
