/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "events.h"

#include "macros.h"
#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

TN_SYSCALLS = {
	{SYS_eventfd2},
};

enum { CLASS_DENIED, CLASS_FULL, CLASS_LIFE, N_CLASSES };

#define N_KINDS (TN_EVENT_RESTART + 1)

/* How many of a class are kept, and how many a second may add. */
static const struct {
	uint32_t kept, per_second;
} classes[N_CLASSES] = {
	[CLASS_DENIED] = {64, 16},
	[CLASS_FULL] = {32, 8},
	[CLASS_LIFE] = {64, 64},
};

typedef struct Part {
	TnEvent *ring; /* NULL before the first */
	uint32_t next; /* where the next one goes */
	/* The second in the upper half, what it has taken in the lower. */
	_Atomic uint64_t share;
	_Atomic uint64_t dropped; /* since the last event that was kept */
} Part;

struct TnEvents {
	TnEventHub *hub;
	uint64_t nest_id;
	uid_t owner;
	char nest[TN_NAME_MAX + 1];
	pthread_mutex_t lock; /* guards the rings */
	uint64_t newest;      /* number of the newest event in them */
	Part parts[N_CLASSES];
	TnEvents *next; /* in the hub's list, guarded by the hub's lock */
};

struct TnEventHub {
	pthread_mutex_t lock; /* guards the list; taken before a ring's lock */
	TnEvents *list;
	TnEvents own; /* of the daemon; not in the list */
	_Atomic uint64_t last;
	_Atomic uint64_t dropped[N_KINDS];
	atomic_bool watched;
	int fd;
};

static unsigned class_of(TnEventKind kind)
{
	switch (kind) {
	case TN_EVENT_DENIED:
		return CLASS_DENIED;
	case TN_EVENT_QUOTA:
	case TN_EVENT_STORE_FULL:
		return CLASS_FULL;
	default:
		return CLASS_LIFE;
	}
}

static void init_events(TnEvents *events, TnEventHub *hub, uint64_t nest_id, uid_t owner,
			const char *nest)
{
	*events = (TnEvents){.hub = hub, .nest_id = nest_id, .owner = owner};
	strncpy(events->nest, nest, TN_NAME_MAX);
	pthread_mutex_init(&events->lock, NULL);
}

static void clear_events(TnEvents *events)
{
	for (unsigned i = 0; i < N_CLASSES; i++)
		free(events->parts[i].ring);
	pthread_mutex_destroy(&events->lock);
}

int tn_event_hub_new(TnEventHub **ret)
{
	TnEventHub *hub = calloc(1, sizeof(*hub));

	if (!hub)
		return -ENOMEM;
	hub->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (hub->fd < 0) {
		int r = -errno;

		free(hub);
		return r;
	}
	pthread_mutex_init(&hub->lock, NULL);
	init_events(&hub->own, hub, 0, (uid_t)-1, "");
	*ret = hub;
	return 0;
}

void tn_event_hub_free(TnEventHub *hub)
{
	if (!hub)
		return;
	clear_events(&hub->own);
	tn_close(&hub->fd);
	pthread_mutex_destroy(&hub->lock);
	free(hub);
}

TnEvents *tn_events_new(TnEventHub *hub, uint64_t nest_id, uid_t owner, const char *nest)
{
	TnEvents *events = hub ? malloc(sizeof(*events)) : NULL;

	if (!events)
		return NULL;
	init_events(events, hub, nest_id, owner, nest);
	pthread_mutex_lock(&hub->lock);
	events->next = hub->list;
	hub->list = events;
	pthread_mutex_unlock(&hub->lock);
	return events;
}

void tn_events_free(TnEvents *events)
{
	TnEvents **at;

	if (!events)
		return;
	pthread_mutex_lock(&events->hub->lock);
	at = &events->hub->list;
	while (*at != events)
		at = &(*at)->next;
	*at = events->next;
	pthread_mutex_unlock(&events->hub->lock);
	clear_events(events);
	free(events);
}

/* --- noting ------------------------------------------------------------------------------------
 */

/* One of this second's share. */
static bool take_share(Part *part, uint32_t per_second)
{
	uint64_t second = (uint64_t)tn_monotonic() / 1000000000 + 1;
	uint64_t now = atomic_load_explicit(&part->share, memory_order_relaxed), then;

	do {
		uint64_t taken = now >> 32 == second ? now & UINT32_MAX : 0;

		if (taken >= per_second)
			return false;
		then = second << 32 | (taken + 1);
	} while (!atomic_compare_exchange_weak_explicit(
		&part->share, &now, then, memory_order_relaxed, memory_order_relaxed));
	return true;
}

bool tn_events_admit(TnEvents *events, TnEventKind kind)
{
	unsigned class = class_of(kind);
	Part *part;

	if (!events)
		return false;
	part = &events->parts[class];
	if (take_share(part, classes[class].per_second))
		return true;
	atomic_fetch_add_explicit(&part->dropped, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&events->hub->dropped[kind], 1, memory_order_relaxed);
	return false;
}

static void wake_followers(TnEventHub *hub)
{
	uint64_t one = 1;

	/* Full or interrupted: it is readable in any case. */
	if (atomic_exchange(&hub->watched, false))
		(void)!write(hub->fd, &one, sizeof(one));
}

/* Caller holds the ring's lock. */
static TnEvent *next_place(Part *part, uint32_t kept)
{
	TnEvent *place;

	if (!part->ring)
		part->ring = calloc(kept, sizeof(TnEvent));
	if (!part->ring)
		return NULL;
	place = &part->ring[part->next];
	part->next = (part->next + 1) % kept;
	return place;
}

/* about: whose event it is, which for the daemon's ring is another nest than its own. */
static void note(TnEvents *events, const TnEvent *event, uint64_t nest_id, uid_t owner,
		 const char *nest)
{
	unsigned class = class_of(event->kind);
	Part *part = &events->parts[class];
	TnEvent *place;

	pthread_mutex_lock(&events->lock);
	place = next_place(part, classes[class].kept);
	if (place) {
		*place = *event;
		place->nest_id = nest_id;
		place->owner = owner;
		strncpy(place->nest, nest, TN_NAME_MAX);
		place->nest[TN_NAME_MAX] = '\0';
		place->dropped = atomic_exchange(&part->dropped, 0);
		place->time_ns = tn_now();
		/* Under the lock, so that numbers ascend within a ring. */
		place->number = events->newest = atomic_fetch_add(&events->hub->last, 1) + 1;
	}
	pthread_mutex_unlock(&events->lock);
	wake_followers(events->hub);
}

void tn_events_note(TnEvents *events, const TnEvent *event)
{
	note(events, event, events->nest_id, events->owner, events->nest);
}

void tn_events_add(TnEvents *events, TnEventKind kind)
{
	const TnEvent event = {.kind = kind};

	if (tn_events_admit(events, kind))
		tn_events_note(events, &event);
}

void tn_event_hub_add(TnEventHub *hub, TnEventKind kind, uint64_t nest_id, uid_t owner,
		      const char *nest)
{
	const TnEvent event = {.kind = kind};

	if (hub && tn_events_admit(&hub->own, kind))
		note(&hub->own, &event, nest_id, owner, nest ? nest : "");
}

/* --- reading -----------------------------------------------------------------------------------
 */

typedef struct Reading {
	const TnEventFilter *filter;
	uint64_t since;
	TnEvent *events; /* ascending by number */
	size_t n, most;
} Reading;

/* Keeps the `most` oldest: a newer one than all of them is not wanted when they are full. */
static void offer(Reading *reading, const TnEvent *event)
{
	const TnEventFilter *filter = reading->filter;
	size_t at = reading->n;

	if (event->number <= reading->since ||
	    (filter->nest_id && event->nest_id != filter->nest_id) ||
	    (filter->owner != (uid_t)-1 && event->owner != (uid_t)-1 &&
	     event->owner != filter->owner))
		return;
	while (at > 0 && reading->events[at - 1].number > event->number)
		at--;
	if (at == reading->most)
		return;
	if (reading->n < reading->most)
		reading->n++;
	memmove(&reading->events[at + 1], &reading->events[at],
		(reading->n - 1 - at) * sizeof(TnEvent));
	reading->events[at] = *event;
}

static void read_ring(Reading *reading, TnEvents *events)
{
	pthread_mutex_lock(&events->lock);
	for (unsigned class = 0; class < N_CLASSES && events->newest > reading->since; class ++) {
		const Part *part = &events->parts[class];

		for (uint32_t i = 0; part->ring && i < classes[class].kept; i++)
			offer(reading, &part->ring[i]);
	}
	pthread_mutex_unlock(&events->lock);
}

size_t tn_event_hub_read(TnEventHub *hub, const TnEventFilter *filter, uint64_t since, TnEvent *ret,
			 size_t most, uint64_t *ret_last)
{
	Reading reading = {.filter = filter, .since = since, .events = ret, .most = most};
	/* A number is given under its ring's lock, so what has one up to here is found below. */
	uint64_t last = atomic_load(&hub->last);

	read_ring(&reading, &hub->own);
	pthread_mutex_lock(&hub->lock);
	for (TnEvents *events = hub->list; events; events = events->next)
		if (!filter->nest_id || events->nest_id == filter->nest_id)
			read_ring(&reading, events);
	pthread_mutex_unlock(&hub->lock);
	if (reading.n == most && most > 0)
		last = ret[most - 1].number;
	/* What came while the rings were read belongs to the next time: one of another ring with
	 * a lower number may have been missed. */
	while (reading.n > 0 && ret[reading.n - 1].number > last)
		reading.n--;
	*ret_last = last > since ? last : since;
	return reading.n;
}

uint64_t tn_event_hub_last(TnEventHub *hub)
{
	return atomic_load(&hub->last);
}

int tn_event_hub_fd(const TnEventHub *hub)
{
	return hub->fd;
}

void tn_event_hub_watch(TnEventHub *hub)
{
	atomic_store(&hub->watched, true);
}

uint64_t tn_event_hub_dropped(TnEventHub *hub, TnEventKind kind)
{
	return atomic_load(&hub->dropped[kind]);
}
