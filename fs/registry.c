/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "registry.h"

#include "describe.h"
#include "log.h"
#include "macros.h"
#include "nest-private.h"
#include "recount.h"
#include "registry-private.h"
#include "sys.h"
#include "wipe.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

/* Descriptors of all nests together; see DESCRIPTORS in docs/architecture.md. */
#define DIRS_MOST 1024U
#define FILES_MOST 2048U

#define WIPE_STEPS 256U                  /* between two looks at more urgent work */
#define PATROL_SECONDS 1                 /* how late a time to live may be noticed */
#define EVICT_PATIENCE_NS 300000000LL    /* for a sandbox that is just ending */
#define EVICT_LOOK_NS 2000000L
#define STOP_WIPE_NS 2000000000LL        /* how long a stop may be held up by wiping */

struct TnRegistry {
	TnRegistryConfig config;
	int nests, trash; /* directories of the store */
	TnFdCache *dirs, *files;
	char boot_id[TN_BOOT_ID_MAX];

	pthread_mutex_t lock; /* guards the list; taken before any nest's locks */
	TnNest *list;         /* newest first; one reference each */
	size_t count;
	int64_t empty_since; /* CLOCK_MONOTONIC, 0 while there is a nest */

	pthread_t janitor;
	bool janitor_runs;
	pthread_mutex_t janitor_lock; /* guards the two below */
	pthread_cond_t janitor_wake;
	bool wanted, stopping;
	TnWipe wipe;
};

/* --- the list ------------------------------------------------------------------------------ */

static void list_add(TnRegistry *registry, TnNest *nest)
{
	nest->next = registry->list;
	registry->list = nest;
	registry->count++;
	registry->empty_since = 0;
}

/* False when it was not listed. The list's reference becomes the caller's. */
static bool list_remove(TnRegistry *registry, TnNest *nest)
{
	TnNest **at = &registry->list;

	while (*at && *at != nest)
		at = &(*at)->next;
	if (!*at)
		return false;
	*at = nest->next;
	if (--registry->count == 0)
		registry->empty_since = tn_monotonic();
	return true;
}

static TnNest *find(TnRegistry *registry, uid_t owner, const char *name)
{
	TnNest *nest = registry->list;

	while (nest && (nest->uid != owner || strcmp(nest->name, name) != 0))
		nest = nest->next;
	return nest;
}

TnNest *tn_registry_find(TnRegistry *registry, uid_t owner, const char *name)
{
	TnNest *nest;

	pthread_mutex_lock(&registry->lock);
	nest = find(registry, owner, name);
	if (nest)
		tn_nest_ref(nest);
	pthread_mutex_unlock(&registry->lock);
	return nest;
}

TnNest *tn_registry_find_id(TnRegistry *registry, uint64_t id)
{
	TnNest *nest;

	pthread_mutex_lock(&registry->lock);
	nest = registry->list;
	while (nest && nest->id != id)
		nest = nest->next;
	if (nest)
		tn_nest_ref(nest);
	pthread_mutex_unlock(&registry->lock);
	return nest;
}

TnNest **tn_registry_list(TnRegistry *registry, uid_t owner, size_t *ret_n)
{
	TnNest **array;
	size_t n = 0;

	pthread_mutex_lock(&registry->lock);
	array = calloc(registry->count ? registry->count : 1, sizeof(TnNest *));
	for (TnNest *nest = registry->list; array && nest; nest = nest->next) {
		if (owner == (uid_t)-1 || nest->uid == owner)
			array[n++] = tn_nest_ref(nest);
	}
	pthread_mutex_unlock(&registry->lock);
	for (size_t i = 0; i < n / 2; i++) { /* oldest first */
		TnNest *other = array[i];

		array[i] = array[n - 1 - i];
		array[n - 1 - i] = other;
	}
	*ret_n = n;
	if (n == 0) {
		free(array);
		return NULL;
	}
	return array;
}

size_t tn_registry_count(TnRegistry *registry, int64_t *ret_empty_ns)
{
	size_t count;

	pthread_mutex_lock(&registry->lock);
	count = registry->count;
	*ret_empty_ns = count ? 0 : tn_monotonic() - registry->empty_since;
	pthread_mutex_unlock(&registry->lock);
	return count;
}

/* --- creation ------------------------------------------------------------------------------ */

static bool has_control_bytes(const char *text)
{
	for (; *text; text++) {
		if (iscntrl((unsigned char)*text))
			return true;
	}
	return false;
}

static int add_rules(TnPolicy *policy, const char *const *patterns, size_t n, bool deny,
                     char *why, size_t why_size)
{
	for (size_t i = 0; i < n; i++) {
		int r = has_control_bytes(patterns[i]) ? -EINVAL
		                                       : tn_policy_add(policy, patterns[i], deny);

		if (r < 0) {
			snprintf(why, why_size, "%s rule: %s (give a path below /tmp or /var/tmp)",
			         deny ? "deny" : "read-only",
			         r == -E2BIG ? "too many rules" : "not a usable pattern");
			return r == -E2BIG ? -EINVAL : r;
		}
	}
	return 0;
}

static int build_policy(const TnNestSpec *spec, TnPolicy **ret, char *why, size_t why_size)
{
	TnPolicy *policy = tn_policy_new();
	int r;

	if (!policy)
		return -ENOMEM;
	r = add_rules(policy, spec->deny, spec->n_deny, true, why, why_size);
	if (r == 0)
		r = add_rules(policy, spec->read_only, spec->n_read_only, false, why, why_size);
	if (r < 0) {
		tn_policy_free(policy);
		return r;
	}
	*ret = policy;
	return 0;
}

/* A directory of its own for a new nest. A descriptor, or -errno. */
static int make_home(TnRegistry *registry, uint64_t id)
{
	char name[20];

	snprintf(name, sizeof(name), "%016" PRIx64, id);
	if (mkdirat(registry->nests, name, 0700) < 0)
		return -errno;
	return tn_open_beneath(registry->nests, name, O_RDONLY | O_DIRECTORY, 0);
}

static void discard_home(TnRegistry *registry, const char *name)
{
	if (renameat2(registry->nests, name, registry->trash, name, RENAME_NOREPLACE) < 0)
		tn_log(TN_LOG_ERROR, "evict: %s: cannot move to the trash: %s", name, strerror(errno));
	tn_registry_wake_janitor(registry);
}

static void discard_home_of(TnRegistry *registry, uint64_t id)
{
	char name[20];

	snprintf(name, sizeof(name), "%016" PRIx64, id);
	discard_home(registry, name);
}

static int open_store(TnRegistry *registry, const TnNestSpec *spec, TnNestParts *parts)
{
	TnStoreKind kind = spec->store ? spec->store : registry->config.default_store;

	if (kind == TN_STORE_MEMORY)
		return tn_store_open_memory(&parts->store, registry->config.keeper, parts->bytes,
		                            parts->inodes, spec->uid, spec->gid);
	return tn_store_open(&parts->store, kind, parts->home, spec->uid, spec->gid);
}

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
	return value ? value : otherwise;
}

static void clear_from(TnFrom *from)
{
	tn_close(&from->fd);
	free(from->path);
	*from = (TnFrom){.fd = -1};
}

static void fill_parts(TnRegistry *registry, const TnNestSpec *spec, const char *name,
                       TnNestParts *ret)
{
	*ret = (TnNestParts){
		.config = &registry->config,
		.registry = registry,
		.id = tn_random(),
		.name = name,
		.uid = spec->uid,
		.gid = spec->gid,
		.ephemeral = !spec->name,
		.keep = spec->keep,
		.durable = spec->durable,
		.bytes = or_default(spec->bytes, registry->config.default_bytes),
		.inodes = or_default(spec->inodes, registry->config.default_inodes),
		.ttl = or_default(spec->ttl, TN_UNLIMITED),
		.idle_ttl = or_default(spec->idle_ttl, TN_UNLIMITED),
		.created_ns = tn_now(),
		.dirs = registry->dirs,
		.files = registry->files,
		.from = {.fd = -1},
		.home = -1,
		.store = {.data = -1, .orphans = -1, .mount = -1},
	};
}

/* Keeps what the nest is named after. 0 or -errno, nothing to clear then. */
static int keep_from(const TnNestSpec *spec, TnFrom *ret)
{
	struct stat st;

	if (spec->from_fd < 0 || !spec->from_path)
		return 0;
	*ret = (TnFrom){
		.fd = fcntl(spec->from_fd, F_DUPFD_CLOEXEC, 3),
		.path = strdup(spec->from_path),
		.dev = spec->from_dev,
		.ino = spec->from_ino,
		.visible = stat(spec->from_path, &st) == 0 && st.st_dev == spec->from_dev &&
			   st.st_ino == spec->from_ino,
	};
	if (ret->fd >= 0 && ret->path)
		return 0;
	clear_from(ret);
	return -ENOMEM;
}

/* The directory is gone: by its own link count, or after a restart by its path. */
static bool has_lost_its_origin(const TnFrom *from)
{
	struct stat st;

	if (!from->path)
		return false;
	if (from->fd >= 0)
		return fstat(from->fd, &st) == 0 && st.st_nlink == 0;
	if (!from->visible)
		return false;
	if (lstat(from->path, &st) < 0)
		return errno == ENOENT;
	return st.st_dev != from->dev || st.st_ino != from->ino;
}

/* Everything but the list. Takes parts->policy on success. */
static int build_nest(TnRegistry *registry, const TnNestSpec *spec, TnNestParts *parts,
                      TnNest **ret)
{
	int r;

	r = keep_from(spec, &parts->from);
	if (r < 0)
		return r;
	parts->home = make_home(registry, parts->id);
	if (parts->home < 0) {
		clear_from(&parts->from);
		return parts->home;
	}
	r = open_store(registry, spec, parts);
	if (r == 0)
		r = tn_nest_new(ret, parts);
	if (r == 0) {
		pthread_mutex_lock(&(*ret)->life);
		r = tn_describe_save(*ret);
		pthread_mutex_unlock(&(*ret)->life);
		if (r == 0)
			return 0;
		(*ret)->policy = NULL; /* stays the caller's */
		tn_nest_unref(*ret);
	} else {
		clear_from(&parts->from);
		tn_store_clear(&parts->store);
		tn_close(&parts->home);
	}
	discard_home_of(registry, parts->id);
	return r;
}

static int check_spec(TnRegistry *registry, const TnNestSpec *spec, char *why, size_t why_size)
{
	TnStoreKind kind = spec->store ? spec->store : registry->config.default_store;

	if (spec->name && !tn_name_is_valid(spec->name)) {
		snprintf(why, why_size, "not a nest name (1 to 64 of A-Z a-z 0-9 . _ -)");
		return -EINVAL;
	}
	if (!tn_store_ops(kind)) {
		snprintf(why, why_size, "this daemon has no such store (use dir or memory)");
		return -ENOTSUP;
	}
	if (spec->durable && kind == TN_STORE_MEMORY) {
		snprintf(why, why_size, "a memory store cannot be durable (use --store dir)");
		return -EINVAL;
	}
	if (spec->from_path && has_control_bytes(spec->from_path)) {
		snprintf(why, why_size, "the directory it is named after has a strange name");
		return -EINVAL;
	}
	if (spec->name && find(registry, spec->uid, spec->name)) {
		snprintf(why, why_size, "a nest of that name exists");
		return -EEXIST;
	}
	return 0;
}

static int create(TnRegistry *registry, const TnNestSpec *spec, TnNest **ret, char *why,
                  size_t why_size)
{
	char name[TN_NAME_MAX + 1];
	TnNestParts parts;
	TnPolicy *policy;
	int r = check_spec(registry, spec, why, why_size);

	if (r == 0)
		r = build_policy(spec, &policy, why, why_size);
	if (r < 0)
		return r;
	do {
		snprintf(name, sizeof(name), "run-%06x", (unsigned)(tn_random() & 0xffffff));
	} while (!spec->name && find(registry, spec->uid, name));
	fill_parts(registry, spec, spec->name ? spec->name : name, &parts);
	parts.policy = policy;
	r = build_nest(registry, spec, &parts, ret);
	if (r < 0) {
		snprintf(why, why_size, "the store refused a new nest: %s", strerror(-r));
		tn_policy_free(policy);
		return r;
	}
	list_add(registry, *ret);
	tn_nest_ref(*ret);
	return 0;
}

int tn_registry_create(TnRegistry *registry, const TnNestSpec *spec, TnNest **ret, char *why,
                       size_t why_size)
{
	int r;

	pthread_mutex_lock(&registry->lock);
	r = create(registry, spec, ret, why, why_size);
	pthread_mutex_unlock(&registry->lock);
	return r;
}

/* --- eviction ------------------------------------------------------------------------------- */

/* A command that has just returned may still be ending: gives that a moment. */
static uint32_t users_after_a_moment(TnNest *nest)
{
	int64_t until = tn_monotonic() + EVICT_PATIENCE_NS;
	uint32_t users = tn_nest_users(nest);

	while (users > 0 && tn_monotonic() < until) {
		nanosleep(&(struct timespec){.tv_nsec = EVICT_LOOK_NS}, NULL);
		users = tn_nest_users(nest);
	}
	return users;
}

int tn_registry_evict(TnRegistry *registry, TnNest *nest, bool force, uint32_t *ret_users)
{
	uint32_t users = force ? 0 : users_after_a_moment(nest);
	bool listed;

	if (ret_users)
		*ret_users = users;
	if (users > 0)
		return -EBUSY;
	pthread_mutex_lock(&registry->lock);
	listed = list_remove(registry, nest);
	pthread_mutex_unlock(&registry->lock);
	if (!listed)
		return 0; /* another eviction was faster */
	tn_nest_stop(nest);
	discard_home_of(registry, nest->id);
	tn_nest_unref(nest);
	return 0;
}

/* --- the janitor ----------------------------------------------------------------------------- */

void tn_registry_wake_janitor(TnRegistry *registry)
{
	pthread_mutex_lock(&registry->janitor_lock);
	registry->wanted = true;
	pthread_cond_signal(&registry->janitor_wake);
	pthread_mutex_unlock(&registry->janitor_lock);
}

static bool has_expired(TnNest *nest, int64_t now)
{
	uint64_t age = (uint64_t)(now - nest->created_ns) / 1000000000;
	uint64_t idle = (uint64_t)(now - atomic_load(&nest->arena.header->last_used_ns)) / 1000000000;
	bool expired;

	if (now < nest->created_ns || tn_nest_users(nest) > 0)
		return false;
	pthread_mutex_lock(&nest->life);
	expired = age >= nest->ttl || idle >= nest->idle_ttl;
	pthread_mutex_unlock(&nest->life);
	return expired;
}

static void patrol_nest(TnRegistry *registry, TnNest *nest, int64_t now)
{
	uint64_t generation = atomic_exchange(&nest->ended, 0);

	if (generation && tn_nest_end_superblock(nest, generation) && nest->ephemeral && !nest->keep)
		tn_registry_evict(registry, nest, true, NULL);
	else if (has_lost_its_origin(&nest->from))
		tn_registry_evict(registry, nest, true, NULL);
	else if (has_expired(nest, now))
		tn_registry_evict(registry, nest, false, NULL);
}

static void patrol(TnRegistry *registry)
{
	size_t n;
	TnNest **nests = tn_registry_list(registry, (uid_t)-1, &n);
	int64_t now = tn_now();

	for (size_t i = 0; i < n; i++) {
		patrol_nest(registry, nests[i], now);
		tn_nest_unref(nests[i]);
	}
	free(nests);
}

/* Waits for work; false when the registry ends. */
static bool await_work(TnRegistry *registry, bool more_to_wipe)
{
	struct timespec until;
	bool go_on;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATROL_SECONDS;
	pthread_mutex_lock(&registry->janitor_lock);
	while (!registry->wanted && !registry->stopping && !more_to_wipe) {
		if (pthread_cond_timedwait(&registry->janitor_wake, &registry->janitor_lock, &until))
			break;
	}
	registry->wanted = false;
	go_on = !registry->stopping;
	pthread_mutex_unlock(&registry->janitor_lock);
	return go_on;
}

static void *janitor_thread(void *data)
{
	TnRegistry *registry = data;
	bool more = true;

	prctl(PR_SET_NAME, "tn-janitor");
	/* Wiping waits for whoever works; ending superblocks is short. */
	setpriority(PRIO_PROCESS, 0, 10);
	while (await_work(registry, more)) {
		patrol(registry);
		more = tn_wipe_some(&registry->wipe, WIPE_STEPS) > 0;
	}
	return NULL;
}

/* --- loading --------------------------------------------------------------------------------- */

/* Does the description's nest live on in this daemon? Others are wiped. */
static bool survives(TnRegistry *registry, const TnDescription *description, const char *name)
{
	char expected[20];

	snprintf(expected, sizeof(expected), "%016" PRIx64, description->id);
	if (strcmp(expected, name) != 0 || find(registry, description->uid, description->name))
		return false;
	if (description->store == TN_STORE_MEMORY || (description->ephemeral && !description->keep))
		return false;
	if (!registry->config.many_owners && description->uid != geteuid())
		return false;
	return description->durable || strcmp(description->boot_id, registry->boot_id) == 0;
}

static int restore(TnRegistry *registry, int home, TnDescription *description, TnNest **ret)
{
	TnNestSpec spec = {
		.name = description->name,
		.from_fd = -1,
		.uid = description->uid,
		.gid = description->gid,
		.keep = description->keep,
		.durable = description->durable,
		.bytes = description->bytes,
		.inodes = description->inodes,
		.ttl = description->ttl,
		.idle_ttl = description->idle_ttl,
	};
	TnUsage usage = {0};
	TnNestParts parts;
	int r;

	fill_parts(registry, &spec, description->name, &parts);
	parts.id = description->id;
	parts.created_ns = description->created_ns;
	parts.home = home;
	parts.from = description->from;
	parts.policy = description->policy;
	r = tn_store_open(&parts.store, description->store, home, spec.uid, spec.gid);
	if (r == 0)
		r = tn_recount_store(&parts.store, &usage);
	if (r == 0)
		r = tn_nest_new(ret, &parts);
	if (r < 0) {
		tn_store_clear(&parts.store);
		return r;
	}
	description->policy = NULL;
	description->from.path = NULL;
	tn_quota_charge((*ret)->account, usage.bytes, usage.inodes);
	atomic_store(&(*ret)->arena.header->xattr_bytes, usage.xattr_bytes);
	(*ret)->ephemeral = description->ephemeral;
	(*ret)->detached = true;
	return 0;
}

/* What a killed worker left of unlinked files goes before the store is counted. */
static void empty_orphans(int home)
{
	TN_AUTOFD orphans = tn_open_beneath(home, "orphans", O_RDONLY | O_DIRECTORY, 0);
	TnWipe wipe = {.trash = orphans};

	while (orphans >= 0 && tn_wipe_some(&wipe, WIPE_STEPS) > 0)
		;
}

static int load_one(TnRegistry *registry, const char *name)
{
	TN_AUTOFD home = tn_open_beneath(registry->nests, name, O_RDONLY | O_DIRECTORY, 0);
	TnDescription description = {0};
	TnNest *nest;
	int r;

	if (home < 0)
		return home;
	r = tn_describe_load(home, &description);
	if (r == 0 && !survives(registry, &description, name))
		r = -ESTALE;
	if (r == 0) {
		empty_orphans(home);
		r = restore(registry, home, &description, &nest);
	}
	tn_description_clear(&description);
	if (r < 0)
		return r;
	tn_steal_fd(&home);
	list_add(registry, nest);
	return 0;
}

static int load_all(TnRegistry *registry)
{
	int copy = tn_open_beneath(registry->nests, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *item;

	if (!stream) {
		int r = copy < 0 ? copy : -errno;

		tn_close(&copy);
		return r;
	}
	while ((item = readdir(stream))) {
		char shown[128];
		int r;

		if (item->d_name[0] == '.')
			continue;
		r = load_one(registry, item->d_name);
		if (r < 0 && r != -ESTALE)
			tn_log(TN_LOG_WARNING, "load: %s: %s; it is wiped",
			       tn_log_escape(item->d_name, shown, sizeof(shown)), strerror(-r));
		if (r < 0)
			discard_home(registry, item->d_name);
	}
	closedir(stream);
	return 0;
}

/* --- life ------------------------------------------------------------------------------------ */

/*
 * A directory of the store that nobody enters by its path: mode 0000, so that even a
 * process of the daemon's own user needs the capability that only the worker has.
 */
static int open_closed_dir(int store, const char *name)
{
	TN_AUTOFD fd = tn_open_dir_make(store, name, 0700);

	if (fd >= 0 && fchmod(fd, 0) < 0)
		return -errno;
	return tn_steal_fd(&fd);
}

static int open_dirs(TnRegistry *registry)
{
	registry->nests = open_closed_dir(registry->config.store_fd, "nests");
	registry->trash = open_closed_dir(registry->config.store_fd, "trash");
	registry->wipe.trash = registry->trash;
	return registry->nests < 0 ? registry->nests : registry->trash < 0 ? registry->trash : 0;
}

static int start(TnRegistry *registry)
{
	int r = open_dirs(registry);

	if (r == 0)
		r = tn_fdcache_new(&registry->dirs, DIRS_MOST);
	if (r == 0)
		r = tn_fdcache_new(&registry->files, FILES_MOST);
	if (r == 0)
		r = load_all(registry);
	if (r < 0)
		return r;
	r = pthread_create(&registry->janitor, NULL, janitor_thread, registry);
	registry->janitor_runs = r == 0;
	return -r;
}

int tn_registry_new(TnRegistry **ret, const TnRegistryConfig *config)
{
	TnRegistry *registry = calloc(1, sizeof(*registry));
	int r;

	if (!registry)
		return -ENOMEM;
	registry->config = *config;
	registry->nests = registry->trash = -1;
	registry->empty_since = tn_monotonic();
	pthread_mutex_init(&registry->lock, NULL);
	pthread_mutex_init(&registry->janitor_lock, NULL);
	pthread_cond_init(&registry->janitor_wake, NULL);
	tn_boot_id(registry->boot_id);
	r = start(registry);
	if (r < 0) {
		tn_registry_free(registry);
		return r;
	}
	*ret = registry;
	return 0;
}

static void stop_janitor(TnRegistry *registry)
{
	pthread_mutex_lock(&registry->janitor_lock);
	registry->stopping = true;
	pthread_cond_signal(&registry->janitor_wake);
	pthread_mutex_unlock(&registry->janitor_lock);
	if (registry->janitor_runs)
		pthread_join(registry->janitor, NULL);
}

/* What is left in the trash then is the next start's work. */
static void wipe_a_while(TnRegistry *registry)
{
	int64_t until = tn_monotonic() + STOP_WIPE_NS;

	while (registry->trash >= 0 && tn_monotonic() < until) {
		if (tn_wipe_some(&registry->wipe, WIPE_STEPS) <= 0)
			return;
	}
}

void tn_registry_free(TnRegistry *registry)
{
	if (!registry)
		return;
	stop_janitor(registry);
	while (registry->list) {
		TnNest *nest = registry->list;

		registry->list = nest->next;
		tn_nest_stop(nest);
		if (nest->ephemeral && !nest->keep)
			discard_home_of(registry, nest->id);
		tn_nest_unref(nest);
	}
	wipe_a_while(registry);
	tn_fdcache_free(registry->dirs);
	tn_fdcache_free(registry->files);
	tn_close(&registry->nests);
	tn_close(&registry->trash);
	pthread_cond_destroy(&registry->janitor_wake);
	pthread_mutex_destroy(&registry->janitor_lock);
	pthread_mutex_destroy(&registry->lock);
	free(registry);
}
