/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What happened in nests, for operators: the newest of it, in rings of fixed size, one for
 * each nest and one for the daemon. A sandbox that is refused thousands of times a second
 * neither grows anything nor pushes out who attached: each class of events has its own part
 * of the ring and its own share of a second; what is beyond that is only counted, and the
 * next event says how many there were.
 *
 * Any thread; locked inside, never for long. Refusals beyond the share take no lock.
 */
#pragma once

#include "units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct TnEventHub TnEventHub; /* all rings of a daemon, numbers, followers */
typedef struct TnEvents TnEvents;     /* one ring */

typedef enum TnEventKind {
	TN_EVENT_DENIED,     /* a rule refused an operation */
	TN_EVENT_QUOTA,      /* the nest's quota refused one */
	TN_EVENT_STORE_FULL, /* the disk of the store refused one */
	TN_EVENT_ATTACH,
	TN_EVENT_DETACH,
	TN_EVENT_EVICT,
	TN_EVENT_RESTART, /* the worker was replaced */
} TnEventKind;

#define TN_EVENT_PATH_MAX 200
#define TN_EVENT_RULE_MAX 96

/* What a ring holds of one event. Texts that do not fit are cut, a path at its head. */
typedef struct TnEvent {
	uint64_t number; /* from 1, of the whole daemon, ascending */
	int64_t time_ns; /* CLOCK_REALTIME */
	TnEventKind kind;
	uint64_t nest_id; /* 0: the daemon */
	uid_t owner;      /* of the nest; (uid_t)-1: everybody's business */
	char nest[TN_NAME_MAX + 1];
	uint64_t dropped; /* events of this class that came before it and were not kept */
	/* of a refused operation */
	pid_t pid; /* 0: unknown */
	uid_t uid;
	int error; /* errno */
	char process[16];
	char operation[16];
	char rule[TN_EVENT_RULE_MAX];
	char path[TN_EVENT_PATH_MAX];
} TnEvent;

/* 0 or -errno. Rings must be freed before their hub. */
int tn_event_hub_new(TnEventHub **ret);
void tn_event_hub_free(TnEventHub *hub); /* takes NULL */

/* The ring of a nest; its memory comes with its first event. NULL without memory or hub. */
TnEvents *tn_events_new(TnEventHub *hub, uint64_t nest_id, uid_t owner, const char *nest);
void tn_events_free(TnEvents *events); /* takes NULL */

/*
 * May one more event of this kind be noted now? If so, tn_events_note() is to follow. False,
 * and counted: too many in this second.
 */
bool tn_events_admit(TnEvents *events, TnEventKind kind);
/* Fills in number, time, nest and dropped. */
void tn_events_note(TnEvents *events, const TnEvent *event);

/* Admits and notes an event that is no more than its kind; events may be NULL. */
void tn_events_add(TnEvents *events, TnEventKind kind);
/* The same in the daemon's own ring, about a nest that may go (nest NULL: about the daemon). */
void tn_event_hub_add(TnEventHub *hub, TnEventKind kind, uint64_t nest_id, uid_t owner,
		      const char *nest);

/* What a reader may see: owner (uid_t)-1: everything; nest_id 0: all nests. */
typedef struct TnEventFilter {
	uid_t owner;
	uint64_t nest_id;
} TnEventFilter;

/*
 * The events after number `since`, oldest first, at most `most`; how many. *ret_last: the
 * number to go on from.
 */
size_t tn_event_hub_read(TnEventHub *hub, const TnEventFilter *filter, uint64_t since, TnEvent *ret,
			 size_t most, uint64_t *ret_last);

/* The number of the newest event, 0 before the first. */
uint64_t tn_event_hub_last(TnEventHub *hub);

/*
 * An eventfd that becomes readable with the next event after tn_event_hub_watch(); the
 * hub's. To be read (8 bytes) before the events are.
 */
int tn_event_hub_fd(const TnEventHub *hub);
void tn_event_hub_watch(TnEventHub *hub);

/* All that were counted only, by kind. */
uint64_t tn_event_hub_dropped(TnEventHub *hub, TnEventKind kind);
