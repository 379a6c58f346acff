/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fake-registry.h"

#include "macros.h"
#include "nest.h"
#include "pins.h"
#include "policy.h"
#include "serve.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define NESTS_MAX 64
#define RULES_MAX 8

struct TnNest {
	bool used;
	uint64_t id;
	uid_t uid;
	char name[TN_NAME_MAX + 1];
	bool ephemeral;
	uint64_t attachments[64]; /* running ones; 0: free */
	char rules[RULES_MAX][64];
	bool rule_denies[RULES_MAX];
	size_t n_rules;
};

static TnNest nests[NESTS_MAX];
static uint64_t last_id;
static int64_t empty_since; /* 0: not looked at yet */
TnFake tn_fake;

void tn_fake_reset(void)
{
	memset(nests, 0, sizeof(nests));
	tn_fake = (TnFake){0};
}

TnNest *tn_nest_ref(TnNest *nest)
{
	tn_fake.refs++;
	return nest;
}

void tn_nest_unref(TnNest *nest)
{
	if (nest)
		tn_fake.refs--;
}

uint64_t tn_nest_id(const TnNest *nest)
{
	return nest->id;
}

int tn_nest_attach(TnNest *nest, TnAttachment *ret)
{
	TN_AUTOFD other = -1;
	int ends[2], error = tn_fake.attach_error;

	tn_fake.attach_error = 0;
	if (error)
		return error;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	other = ends[1];
	*ret = (TnAttachment){.id = ++last_id, .mount = ends[0]};
	for (size_t i = 0; i < TN_ARRAY_LEN(nest->attachments); i++) {
		if (nest->attachments[i])
			continue;
		nest->attachments[i] = ret->id;
		tn_fake.attached++;
		return 0;
	}
	tn_close(&ends[0]);
	return -ENOSPC;
}

void tn_nest_detach(TnNest *nest, uint64_t attachment_id)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(nest->attachments); i++)
		if (attachment_id && nest->attachments[i] == attachment_id) {
			nest->attachments[i] = 0;
			tn_fake.detached++;
		}
}

void tn_nest_each_rule(TnNest *nest, TnRuleVisit visit, void *data)
{
	char huge[PATH_MAX];

	if (!visit("/tmp/claude", true, true, data))
		return;
	for (size_t i = 0; i < nest->n_rules; i++)
		if (!visit(nest->rules[i], nest->rule_denies[i], false, data))
			return;
	memset(huge, 'x', sizeof(huge));
	memcpy(huge, "/tmp/", 5);
	huge[sizeof(huge) - 1] = '\0';
	for (unsigned i = 0; i < tn_fake.huge_rules; i++)
		if (!visit(huge, true, false, data))
			return;
}

static bool add_rule(const char *pattern, bool deny, bool built_in, void *data)
{
	return built_in || tn_policy_add(data, pattern, deny) == 0;
}

/* Judges by the rules as the real one does, and registers nothing. */
int tn_nest_pin(TnNest *nest, uint64_t attachment_id, TnMountPoint *points, size_t n,
		size_t *ret_done)
{
	TnPolicy *policy = tn_policy_new();
	int r = policy ? 0 : -ENOMEM;

	if (policy)
		tn_nest_each_rule(nest, add_rule, policy);
	for (size_t i = 0; r == 0 && i < n; i++) {
		TnPin *pin;

		*ret_done = i;
		r = tn_pin_new(&pin, points[i].kind, points[i].path);
		if (r < 0)
			break;
		switch (tn_policy_match(policy, pin->subtree, pin->components, pin->n)) {
		case TN_DENIED:
			points[i].state = TN_POINT_DENIED;
			break;
		case TN_READ_ONLY:
			points[i].state = TN_POINT_READ_ONLY;
			break;
		default:
			points[i].state = TN_POINT_PINNED;
		}
		tn_pin_free(pin);
	}
	tn_policy_free(policy);
	return r;
}

bool tn_nest_is_from(const TnNest *nest, const TnNestSpec *spec)
{
	return true;
}

int tn_registry_new(TnRegistry **ret, const TnRegistryConfig *config)
{
	*ret = (TnRegistry *)nests;
	return 0;
}

void tn_registry_free(TnRegistry *registry)
{
}

int tn_registry_create(TnRegistry *registry, const TnNestSpec *spec, TnNest **ret, char *why,
		       size_t why_size)
{
	TnNest *nest = nests;
	int error = tn_fake.create_error;

	tn_fake.create_error = 0;
	if (error) {
		snprintf(why, why_size, "made to fail");
		return error;
	}
	if (spec->name && tn_registry_find(registry, spec->uid, spec->name)) {
		tn_fake.refs--;
		return -EEXIST;
	}
	while (nest->used)
		nest++;
	*nest = (TnNest){.used = true, .id = ++last_id, .uid = spec->uid, .ephemeral = !spec->name};
	snprintf(nest->name, sizeof(nest->name), "%s", spec->name ? spec->name : "e");
	for (size_t i = 0; i < spec->n_deny + spec->n_read_only && i < RULES_MAX; i++) {
		nest->rule_denies[i] = i < spec->n_deny;
		snprintf(nest->rules[i], sizeof(nest->rules[i]), "%s",
			 i < spec->n_deny ? spec->deny[i] : spec->read_only[i - spec->n_deny]);
		nest->n_rules++;
	}
	tn_fake.created++;
	*ret = tn_nest_ref(nest);
	return 0;
}

TnNest *tn_registry_find(TnRegistry *registry, uid_t owner, const char *name)
{
	for (TnNest *nest = nests; nest < nests + NESTS_MAX; nest++)
		if (nest->used && !nest->ephemeral && nest->uid == owner &&
		    strcmp(nest->name, name) == 0)
			return tn_nest_ref(nest);
	return NULL;
}

TnNest *tn_registry_find_id(TnRegistry *registry, uint64_t id)
{
	for (TnNest *nest = nests; nest < nests + NESTS_MAX; nest++)
		if (nest->used && nest->id == id)
			return tn_nest_ref(nest);
	return NULL;
}

int tn_registry_evict(TnRegistry *registry, TnNest *nest, bool force, uint32_t *ret_users)
{
	if (nest->used)
		tn_fake.evicted++;
	nest->used = false;
	*ret_users = 0;
	return 0;
}

size_t tn_registry_count(TnRegistry *registry, int64_t *ret_empty_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < NESTS_MAX; i++)
		n += nests[i].used;
	if (n || !empty_since)
		empty_since = tn_monotonic();
	*ret_empty_ns = n ? 0 : tn_monotonic() - empty_since;
	return n;
}

int tn_serve_new(TnServe **ret, TnState *state)
{
	return 0;
}

int tn_serve_start(TnServe *serve, unsigned n_threads)
{
	return 0;
}

void tn_serve_free(TnServe *serve)
{
}

bool tn_serve_look(TnServe *serve)
{
	return true;
}

/* --- leases: a successor's business, which nests of this kind have not -------------------------- */

uid_t tn_nest_owner(const TnNest *nest)
{
	return nest->uid;
}

void tn_nest_set_lease(TnNest *nest, uint64_t attachment_id, int lease)
{
}

void tn_nest_each_lease(TnNest *nest, TnLeaseVisit visit, void *data)
{
}

TnNest **tn_registry_list(TnRegistry *registry, uid_t owner, size_t *ret_n)
{
	*ret_n = 0;
	return NULL;
}

uint64_t tn_registry_sandboxes_per_user(TnRegistry *registry)
{
	(void)registry;
	return UINT64_MAX;
}
