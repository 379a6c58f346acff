/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wiper.h"

#include "describe.h"
#include "log.h"
#include "macros.h"
#include "sys.h"
#include "syscalls.h"
#include "wipe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ioprio.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

TN_SYSCALLS = {
	{SYS_getdents64},
	{SYS_setpriority},
	{SYS_ioprio_set},
};

#define STEPS 1024U /* between two looks at whether to stop */
#define NICE 10
#define IO_LEVEL 7 /* the lowest of the best-effort class: the idle class may starve for ever */
#define STOP_NS 2000000000LL /* how long a stop may be held up by wiping */

/* One nest on its way out. */
typedef struct Going {
	TnNestInfo info;  /* use: what is left */
	uint64_t entries; /* at the top of the trash */
	struct Going *next;
} Going;

struct TnWiper {
	TnWipe wipe; /* the thread's */
	pthread_t thread;
	bool runs;

	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t wake;
	bool wanted, stopping, retry;
	uint64_t stuck;
	Going *list; /* newest first */
	uint64_t n_going;
};

/* --- records; the caller holds the lock ------------------------------------------------------ */

static Going *find(TnWiper *wiper, uint64_t id)
{
	Going *going = wiper->list;

	while (going && going->info.id != id)
		going = going->next;
	return going;
}

/* Without memory for it the nest is wiped all the same, and not listed. */
static Going *add(TnWiper *wiper, const TnNestInfo *info)
{
	Going *going = calloc(1, sizeof(*going));

	if (!going)
		return NULL;
	going->info = *info;
	going->info.from = NULL;
	going->info.state = TN_NEST_EVICTING;
	going->next = wiper->list;
	wiper->list = going;
	wiper->n_going++;
	return going;
}

static void drop(TnWiper *wiper, const Going *going)
{
	Going **at = &wiper->list;

	while (*at && *at != going)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = going->next;
	wiper->n_going--;
	free((void *)going);
}

static void drop_all(TnWiper *wiper)
{
	while (wiper->list)
		drop(wiper, wiper->list);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void told(TnWipeEvent event, uint64_t id, uint64_t bytes, void *data)
{
	TnWiper *wiper = data;
	Going *going;

	pthread_mutex_lock(&wiper->lock);
	going = find(wiper, id);
	if (going && event == TN_WIPE_MOVED) {
		going->entries++;
	} else if (going && event == TN_WIPE_REMOVED) {
		going->info.bytes_used = less(going->info.bytes_used, bytes);
		going->info.inodes_used = less(going->info.inodes_used, 1);
	} else if (going) {
		going->info.inodes_used = less(going->info.inodes_used, 1);
		going->entries = less(going->entries, 1);
		if (going->entries == 0)
			drop(wiper, going);
	}
	pthread_mutex_unlock(&wiper->lock);
}

/* --- what an earlier daemon left ------------------------------------------------------------- */

/* Whose it was, if its description is still there. */
static void describe(int trash, const char *name, TnNestInfo *info)
{
	TN_AUTOFD home = tn_open_beneath(trash, name, O_RDONLY | O_DIRECTORY, 0);
	TnDescription description;

	if (home < 0 || tn_describe_load(home, &description) < 0)
		return;
	snprintf(info->name, sizeof(info->name), "%s", description.name);
	info->owner_uid = description.uid;
	info->owner_gid = description.gid;
	info->store = description.store;
	info->bytes_limit = description.bytes;
	info->inodes_limit = description.inodes;
	info->created_ns = description.created_ns;
	tn_description_clear(&description);
}

static void take_up(TnWiper *wiper, const char *name)
{
	uint64_t id = tn_wipe_id(name);
	Going *going = find(wiper, id);
	TnNestInfo info = {
		.id = id,
		.owner_uid = geteuid(),
		.owner_gid = getegid(),
		.store = TN_STORE_DIR,
		.bytes_limit = TN_UNLIMITED,
		.inodes_limit = TN_UNLIMITED,
		.ttl = TN_UNLIMITED,
		.idle_ttl = TN_UNLIMITED,
	};

	if (!id)
		return;
	snprintf(info.name, sizeof(info.name), "%016" PRIx64, id);
	describe(wiper->wipe.trash, name, &info);
	if (!going)
		going = add(wiper, &info);
	else if (strlen(name) == 16)
		going->info = info; /* the home itself knows best */
	if (going) {
		going->info.state = TN_NEST_EVICTING;
		going->entries++;
	}
}

static int take_up_all(TnWiper *wiper)
{
	int copy = tn_open_beneath(wiper->wipe.trash, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *item;

	if (!stream) {
		int r = copy < 0 ? copy : -errno;

		tn_close(&copy);
		return r;
	}
	while ((item = readdir(stream)))
		take_up(wiper, item->d_name);
	closedir(stream);
	return 0;
}

/* --- the thread --------------------------------------------------------------------------------
 */

static void be_humble(void)
{
	pid_t thread = (pid_t)syscall(SYS_gettid);

	if (setpriority(PRIO_PROCESS, (id_t)thread, NICE) < 0 ||
	    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, thread,
		    IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, IO_LEVEL)) < 0)
		tn_log(TN_LOG_WARNING, "wipe: its priority stays: %s", strerror(errno));
}

/* Waits for work; false when the thread is to end. */
static bool await_work(TnWiper *wiper, bool more)
{
	bool go_on, retry;

	pthread_mutex_lock(&wiper->lock);
	wiper->stuck = wiper->wipe.stuck;
	if (!more && !wiper->wanted)
		drop_all(wiper); /* nothing is left of any */
	while (!more && !wiper->wanted && !wiper->stopping)
		pthread_cond_wait(&wiper->wake, &wiper->lock);
	retry = wiper->retry;
	wiper->wanted = wiper->retry = false;
	go_on = !wiper->stopping;
	pthread_mutex_unlock(&wiper->lock);
	if (go_on && retry)
		tn_wipe_retry(&wiper->wipe);
	return go_on;
}

static void *wiper_thread(void *data)
{
	TnWiper *wiper = data;
	bool more = true;

	prctl(PR_SET_NAME, "tn-wiper");
	be_humble();
	while (await_work(wiper, more)) {
		int r = tn_wipe_some(&wiper->wipe, STEPS);

		if (r < 0)
			tn_log(TN_LOG_ERROR, "wipe: the trash cannot be read: %s", strerror(-r));
		more = r > 0;
	}
	return NULL;
}

/* --- for others --------------------------------------------------------------------------------
 */

int tn_wiper_new(TnWiper **ret, int trash)
{
	TnWiper *wiper = calloc(1, sizeof(*wiper));
	int r;

	if (!wiper)
		return -ENOMEM;
	pthread_mutex_init(&wiper->lock, NULL);
	pthread_cond_init(&wiper->wake, NULL);
	wiper->wipe = (TnWipe){.trash = trash, .tell = told, .data = wiper};
	tn_wipe_retry(&wiper->wipe);
	r = take_up_all(wiper);
	if (r < 0) {
		tn_wiper_free(wiper);
		return r;
	}
	*ret = wiper;
	return 0;
}

int tn_wiper_start(TnWiper *wiper)
{
	int r = pthread_create(&wiper->thread, NULL, wiper_thread, wiper);

	wiper->runs = r == 0;
	return -r;
}

static void wipe_a_while(TnWiper *wiper)
{
	int64_t until = tn_monotonic() + STOP_NS;

	while (tn_monotonic() < until) {
		if (tn_wipe_some(&wiper->wipe, STEPS) <= 0)
			return;
	}
}

void tn_wiper_free(TnWiper *wiper)
{
	if (!wiper)
		return;
	if (wiper->runs) {
		pthread_mutex_lock(&wiper->lock);
		wiper->stopping = true;
		pthread_cond_signal(&wiper->wake);
		pthread_mutex_unlock(&wiper->lock);
		pthread_join(wiper->thread, NULL);
		wipe_a_while(wiper);
	}
	drop_all(wiper);
	pthread_cond_destroy(&wiper->wake);
	pthread_mutex_destroy(&wiper->lock);
	free(wiper);
}

void tn_wiper_wake(TnWiper *wiper)
{
	pthread_mutex_lock(&wiper->lock);
	wiper->wanted = true;
	pthread_cond_signal(&wiper->wake);
	pthread_mutex_unlock(&wiper->lock);
}

void tn_wiper_add(TnWiper *wiper, const TnNestInfo *info)
{
	Going *going;

	pthread_mutex_lock(&wiper->lock);
	going = add(wiper, info);
	if (going) {
		going->info.inodes_used += 6; /* the home's own */
		going->entries = 1;
	}
	/* If it has gone already, the record goes when the thread finds nothing to do. */
	wiper->wanted = true;
	pthread_cond_signal(&wiper->wake);
	pthread_mutex_unlock(&wiper->lock);
}

void tn_wiper_retry(TnWiper *wiper)
{
	pthread_mutex_lock(&wiper->lock);
	wiper->wanted = wiper->retry = true;
	pthread_cond_signal(&wiper->wake);
	pthread_mutex_unlock(&wiper->lock);
}

void tn_wiper_state(TnWiper *wiper, TnWiperState *ret)
{
	*ret = (TnWiperState){0};
	pthread_mutex_lock(&wiper->lock);
	ret->going = wiper->n_going;
	ret->stuck = wiper->stuck;
	for (const Going *going = wiper->list; going; going = going->next) {
		if (going->info.store == TN_STORE_MEMORY)
			continue;
		ret->left.bytes += going->info.bytes_used;
		ret->left.inodes += going->info.inodes_used;
	}
	pthread_mutex_unlock(&wiper->lock);
}

uint64_t *tn_wiper_list(TnWiper *wiper, uid_t owner, size_t *ret_n)
{
	uint64_t *ids;
	size_t n = 0;

	pthread_mutex_lock(&wiper->lock);
	ids = calloc(wiper->n_going ? wiper->n_going : 1, sizeof(*ids));
	for (const Going *going = wiper->list; ids && going; going = going->next) {
		if (owner == (uid_t)-1 || going->info.owner_uid == owner)
			ids[n++] = going->info.id;
	}
	pthread_mutex_unlock(&wiper->lock);
	*ret_n = n;
	return ids;
}

bool tn_wiper_info(TnWiper *wiper, uint64_t id, TnNestInfo *ret)
{
	const Going *going;

	pthread_mutex_lock(&wiper->lock);
	going = find(wiper, id);
	if (going)
		*ret = going->info;
	pthread_mutex_unlock(&wiper->lock);
	return going != NULL;
}
