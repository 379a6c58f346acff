/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fake-nests.h"
#include "keeper-link.h"

#include "nest-look.h"
#include "nest.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct TnNest {
	bool used;
	TnNestInfo info;
};

static struct Fake {
	pthread_mutex_t lock;
	TnNest nests[FAKE_NESTS_MAX];
	uint64_t last_id;
	int refs;
	TnNestSpec spec;
	int create_error, limits_error, recount_error;
	const char *create_why;
	uint64_t bytes, inodes, growth;
	unsigned n_rules;
	bool going;
	const char *pattern;
	int content;
	TnEventHub *hub;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock(void)
{
	pthread_mutex_lock(&fake.lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&fake.lock);
}

void fake_nests_reset(void)
{
	memset(fake.nests, 0, sizeof(fake.nests));
	fake.last_id = 0;
	fake.refs = 0;
	fake.create_error = fake.limits_error = fake.recount_error = 0;
	fake.bytes = fake.inodes = fake.growth = 0;
	fake.n_rules = 0;
	fake.content = -1;
	fake.going = false;
	fake.hub = NULL;
}

static TnNest *by_id(uint64_t id)
{
	for (size_t i = 0; i < FAKE_NESTS_MAX; i++) {
		if (fake.nests[i].used && fake.nests[i].info.id == id)
			return &fake.nests[i];
	}
	return NULL;
}

/* For a test's own nests. */
static TnNest *must_find(uint64_t id)
{
	TnNest *nest = by_id(id);

	if (!nest)
		abort();
	return nest;
}

static TnNest *by_name(uid_t owner, const char *name)
{
	for (size_t i = 0; i < FAKE_NESTS_MAX; i++) {
		TnNest *nest = &fake.nests[i];

		if (nest->used && nest->info.owner_uid == owner &&
		    strcmp(nest->info.name, name) == 0)
			return nest;
	}
	return NULL;
}

uint64_t fake_nests_add(uid_t owner, const char *name)
{
	TnNest *nest = fake.nests;

	while (nest->used)
		nest++;
	*nest = (TnNest){.used = true,
			 .info = {.id = ++fake.last_id,
				  .owner_uid = owner,
				  .owner_gid = owner,
				  .state = TN_NEST_IDLE,
				  .store = TN_STORE_DIR,
				  .bytes_limit = 1 << 30,
				  .inodes_limit = 1000,
				  .ttl = TN_UNLIMITED,
				  .idle_ttl = TN_UNLIMITED,
				  .created_ns = 1700000000123456789,
				  .last_used_ns = 1700000001000000000}};
	snprintf(nest->info.name, sizeof(nest->info.name), "%s", name);
	return nest->info.id;
}

int tn_nest_change_rules(TnNest *nest, const TnRuleChange *change, char *why, size_t why_size)
{
	if (change->n_add > 0 && strcmp(change->add[0], "..") == 0) {
		snprintf(why, why_size, "not a usable pattern");
		return -EINVAL;
	}
	return 0;
}

int tn_nest_set_frozen(TnNest *nest, bool frozen)
{
	lock();
	nest->info.state = frozen ? TN_NEST_FROZEN : TN_NEST_IDLE;
	unlock();
	return 0;
}

int tn_registry_gc(TnRegistry *registry, uid_t owner, const TnGcOptions *options, TnGcReport *ret)
{
	*ret = (TnGcReport){.items = calloc(FAKE_NESTS_MAX, sizeof(TnGcItem))};
	for (size_t i = 0; ret->items && i < FAKE_NESTS_MAX; i++) {
		TnNest *nest = &fake.nests[i];

		if (!nest->used || (owner != (uid_t)-1 && nest->info.owner_uid != owner) ||
		    nest->info.ttl != 0)
			continue;
		ret->items[ret->n_items++] = (TnGcItem){nest->info, "made to go"};
		nest->used = options->dry_run;
	}
	if (options->all) {
		ret->damaged = calloc(1, sizeof(char *));
		ret->damaged[0] = strdup("strange\xff");
		ret->n_damaged = 1;
	}
	return 0;
}

void tn_gc_report_clear(TnGcReport *report)
{
	for (size_t i = 0; i < report->n_damaged; i++)
		free(report->damaged[i]);
	free(report->damaged);
	free(report->items);
}

void tn_registry_store_info(TnRegistry *registry, TnStoreInfo *ret)
{
	*ret = (TnStoreInfo){.bytes_limit = TN_UNLIMITED, .inodes_limit = 7, .stuck = 3};
}

#define GOING_ID UINT64_C(0xfade)

void fake_nests_going(void)
{
	fake.going = true;
}

uint64_t *tn_registry_list_going(TnRegistry *registry, uid_t owner, size_t *ret_n)
{
	uint64_t *ids = calloc(1, sizeof(*ids));

	*ret_n = ids && fake.going;
	if (ids)
		ids[0] = GOING_ID;
	return ids;
}

bool tn_registry_going_info(TnRegistry *registry, uint64_t id, TnNestInfo *ret)
{
	if (id != GOING_ID)
		return false;
	*ret = (TnNestInfo){.id = id, .state = TN_NEST_EVICTING};
	strcpy(ret->name, "going");
	return true;
}

void fake_nests_set(uint64_t id, const TnNestInfo *info)
{
	must_find(id)->info = *info;
}

void fake_nests_get(uint64_t id, TnNestInfo *ret)
{
	lock();
	*ret = must_find(id)->info;
	unlock();
}

int fake_nests_refs(void)
{
	return fake.refs;
}

const TnNestSpec *fake_nests_last_spec(void)
{
	return &fake.spec;
}

void fake_nests_fail_create(int error, const char *why)
{
	fake.create_error = error;
	fake.create_why = why;
}

void fake_nests_fail_limits(int error)
{
	fake.limits_error = error;
}

void fake_nests_recount_finds(uint64_t bytes, uint64_t inodes, int error)
{
	fake.bytes = bytes;
	fake.inodes = inodes;
	fake.recount_error = error;
}

void fake_nests_grow_during_recount(uint64_t bytes)
{
	fake.growth = bytes;
}

void fake_nests_rules(unsigned n, const char *pattern)
{
	fake.n_rules = n;
	fake.pattern = pattern;
}

TnNest *tn_nest_ref(TnNest *nest)
{
	lock();
	fake.refs++;
	unlock();
	return nest;
}

void tn_nest_unref(TnNest *nest)
{
	lock();
	if (nest)
		fake.refs--;
	unlock();
}

uint64_t tn_nest_id(const TnNest *nest)
{
	return nest->info.id;
}

void tn_nest_info(TnNest *nest, TnNestInfo *ret)
{
	lock();
	*ret = nest->info;
	unlock();
}

static void set(uint64_t *value, uint64_t wanted)
{
	if (wanted)
		*value = wanted;
}

int tn_nest_set_limits(TnNest *nest, uint64_t bytes, uint64_t inodes, uint64_t ttl,
		       uint64_t idle_ttl)
{
	int r = fake.limits_error;

	fake.limits_error = 0;
	if (r)
		return r;
	lock();
	set(&nest->info.bytes_limit, bytes);
	set(&nest->info.inodes_limit, inodes);
	set(&nest->info.ttl, ttl);
	set(&nest->info.idle_ttl, idle_ttl);
	unlock();
	return 0;
}

void tn_nest_each_rule(TnNest *nest, TnRuleVisit visit, void *data)
{
	if (!visit("/tmp/claude", true, true, data))
		return;
	for (unsigned i = 0; i < fake.n_rules; i++) {
		if (!visit(fake.pattern, false, false, data))
			return;
	}
}

void tn_nest_each_count(TnNest *nest, TnCountVisit visit, void *data)
{
	visit("LOOKUP", 12, data);
	visit("WRITE", 3, data);
}

int tn_nest_recount(TnNest *nest, uint64_t *ret_bytes, uint64_t *ret_inodes)
{
	lock();
	nest->info.bytes_used += fake.growth;
	unlock();
	*ret_bytes = fake.bytes;
	*ret_inodes = fake.inodes;
	return fake.recount_error;
}

void fake_nests_content(int dir)
{
	fake.content = dir;
}

static int look(const char *path, int flags)
{
	const char *rest = strcmp(path, "/tmp") == 0 ? "." : path;
	int fd;

	if (strncmp(path, "/tmp/", 5) == 0)
		rest = path + 5;
	fd = openat(fake.content, rest, flags | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

int tn_nest_look(TnNest *nest, const char *path)
{
	return look(path, O_PATH);
}

int tn_nest_look_dir(TnNest *nest, const char *path)
{
	return look(path, O_RDONLY | O_DIRECTORY);
}

int tn_nest_look_file(TnNest *nest, const char *path)
{
	return look(path, O_RDONLY);
}

int tn_nest_look_usage(TnNest *nest, const char *path, size_t most, const atomic_bool *cancel,
		       TnLookUsage *ret)
{
	*ret = (TnLookUsage){.bytes = 8192, .inodes = 2, .complete = true};
	ret->entries = calloc(most + 1, sizeof(*ret->entries));
	ret->n_entries = ret->entries_seen = most;
	for (size_t i = 0; i < most; i++) {
		ret->entries[i] = (TnLookUse){.bytes = 4096, .inodes = 1, .type = S_IFREG};
		ret->entries[i].name = strdup(fake.pattern ? fake.pattern : "x");
	}
	return 0;
}

void tn_look_usage_clear(TnLookUsage *usage)
{
	for (size_t i = 0; i < usage->n_entries; i++)
		free(usage->entries[i].name);
	free(usage->entries);
}

TnEventHub *tn_registry_events(TnRegistry *registry)
{
	return fake.hub;
}

void fake_nests_hub(TnEventHub *hub)
{
	fake.hub = hub;
}

const TnStats *tn_registry_stats(const TnRegistry *registry)
{
	return NULL;
}

uint64_t tn_registry_restarts(const TnRegistry *registry)
{
	return 0;
}

void tn_registry_each_latency(const TnRegistry *registry, TnLatencyVisit visit, void *data)
{
}

/* With the lock held. */
static TnNest *take(TnNest *nest)
{
	if (nest)
		fake.refs++;
	return nest;
}

int tn_registry_create(TnRegistry *registry, const TnNestSpec *spec, TnNest **ret, char *why,
		       size_t why_size)
{
	int r = fake.create_error;

	fake.create_error = 0;
	if (r) {
		snprintf(why, why_size, "%s", fake.create_why);
		return r;
	}
	lock();
	fake.spec = *spec;
	if (by_name(spec->uid, spec->name))
		r = -EEXIST;
	else
		*ret = take(by_id(fake_nests_add(spec->uid, spec->name)));
	unlock();
	return r;
}

TnNest *tn_registry_find(TnRegistry *registry, uid_t owner, const char *name)
{
	TnNest *nest;

	lock();
	nest = take(by_name(owner, name));
	unlock();
	return nest;
}

TnNest *tn_registry_find_id(TnRegistry *registry, uint64_t id)
{
	TnNest *nest;

	lock();
	nest = take(by_id(id));
	unlock();
	return nest;
}

TnNest **tn_registry_list(TnRegistry *registry, uid_t owner, size_t *ret_n)
{
	TnNest **list = calloc(FAKE_NESTS_MAX, sizeof(*list));
	size_t n = 0;

	lock();
	for (size_t i = 0; i < FAKE_NESTS_MAX; i++) {
		TnNest *nest = &fake.nests[i];

		if (nest->used && (owner == (uid_t)-1 || nest->info.owner_uid == owner))
			list[n++] = take(nest);
	}
	unlock();
	*ret_n = n;
	return list;
}

int tn_registry_evict(TnRegistry *registry, TnNest *nest, bool force, uint32_t *ret_users)
{
	int r = 0;

	lock();
	*ret_users = nest->info.attachments;
	if (nest->info.attachments > 0 && !force)
		r = -EBUSY;
	else
		nest->used = false;
	unlock();
	return r;
}

int tn_keeper_upgrade(TnKeeperLink *link)
{
	return -ENOENT;
}
