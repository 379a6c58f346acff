/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The registry's one thread for what nobody waits for: superblocks that have ended, nests
 * whose time or origin has gone, the capacity of the store.
 */
#include "registry-private.h"

#include "log.h"
#include "macros.h"
#include "stranger.h"
#include "sys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

#define PATROL_SECONDS 1              /* how late a time to live may be noticed */
#define STAMP_NS INT64_C(60000000000) /* how often a use that goes on is written down */

/* The directory is gone: by its own link count, or after a restart by its path. */
static bool has_lost_its_origin(const TnFrom *from, bool may_wait)
{
	struct stat st;
	int r;

	if (!from->path)
		return false;
	if (from->fd >= 0)
		return tn_stranger_stat(from->fd, &st) == 0 && st.st_nlink == 0;
	if (!from->visible)
		return false;
	r = tn_stranger_look(from->path, may_wait, &st);
	if (r < 0)
		return r == -ENOENT;
	return st.st_dev != from->dev || st.st_ino != from->ino;
}

void tn_registry_wake_janitor(TnRegistry *registry)
{
	pthread_mutex_lock(&registry->janitor_lock);
	registry->wanted = true;
	pthread_cond_signal(&registry->janitor_wake);
	pthread_mutex_unlock(&registry->janitor_lock);
}

/* 0 also for what lies ahead: it came after the look at the clock, or the clock was set back. */
static uint64_t seconds_since(int64_t then, int64_t now)
{
	return now > then ? (uint64_t)(now - then) / 1000000000 : 0;
}

bool tn_janitor_has_expired(TnNest *nest, int64_t now, const char **ret_why)
{
	uint64_t age = seconds_since(nest->created_ns, now);
	uint64_t idle = seconds_since(atomic_load(&nest->arena.header->last_used_ns), now);
	bool aged, unused;

	/* Who freezes a nest wants to look at it. */
	if (atomic_load(&nest->frozen) || tn_nest_users(nest) > 0)
		return false;
	if (has_lost_its_origin(&nest->from, !nest->many_owners)) {
		*ret_why = "what it was named after has gone";
		return true;
	}
	pthread_mutex_lock(&nest->life);
	aged = age >= nest->ttl;
	unused = idle >= nest->idle_ttl;
	pthread_mutex_unlock(&nest->life);
	*ret_why = aged ? "its time to live is over" : "it was not used for long enough";
	return aged || unused;
}

/* An ephemeral nest whose superblock has ended. */
static bool has_served(TnNest *nest)
{
	bool served;

	pthread_mutex_lock(&nest->life);
	served = nest->ephemeral && !nest->keep && !atomic_load(&nest->frozen) &&
		 nest->attached_once && nest->device < 0;
	pthread_mutex_unlock(&nest->life);
	return served;
}

/* After a restart the description's time says when the nest was last used. */
static void stamp_use(TnNest *nest, int64_t now)
{
	int64_t used = atomic_load(&nest->arena.header->last_used_ns);
	bool in_use = tn_nest_users(nest) > 0;

	if (nest->store.mount >= 0 || (in_use && now - nest->stamped_ns < STAMP_NS))
		return;
	if (in_use)
		used = now;
	if (used == nest->stamped_ns)
		return;
	tn_describe_stamp(nest->home, used);
	nest->stamped_ns = used;
}

static void patrol_nest(TnRegistry *registry, TnNest *nest, int64_t now)
{
	uint64_t generation = atomic_exchange(&nest->ended, 0);
	const char *why;

	if (generation)
		tn_nest_end_superblock(nest, generation);
	if (has_served(nest)) {
		tn_registry_evict(registry, nest, true, NULL);
	} else if (!atomic_load(&nest->frozen) &&
		   has_lost_its_origin(&nest->from, !nest->many_owners)) {
		tn_registry_evict(registry, nest, true, NULL);
	} else if (tn_janitor_has_expired(nest, now, &why)) {
		if (tn_registry_evict(registry, nest, false, NULL) == 0)
			tn_log(TN_LOG_INFO, "nest %s of uid %u evicted: %s", nest->name,
			       (unsigned)nest->uid, why);
	} else {
		tn_nest_tighten(nest);
		stamp_use(nest, now);
	}
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
static bool await_work(TnRegistry *registry)
{
	struct timespec until;
	bool go_on;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATROL_SECONDS;
	pthread_mutex_lock(&registry->janitor_lock);
	while (!registry->wanted && !registry->stopping) {
		if (pthread_cond_timedwait(&registry->janitor_wake, &registry->janitor_lock,
					   &until))
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

	prctl(PR_SET_NAME, "tn-janitor");
	while (await_work(registry)) {
		patrol(registry);
		tn_registry_keep_capacity(registry);
	}
	return NULL;
}

int tn_janitor_start(TnRegistry *registry)
{
	int r = pthread_create(&registry->janitor, NULL, janitor_thread, registry);

	registry->janitor_runs = r == 0;
	return -r;
}

void tn_janitor_stop(TnRegistry *registry)
{
	pthread_mutex_lock(&registry->janitor_lock);
	registry->stopping = true;
	pthread_cond_signal(&registry->janitor_wake);
	pthread_mutex_unlock(&registry->janitor_lock);
	if (registry->janitor_runs)
		pthread_join(registry->janitor, NULL);
}
