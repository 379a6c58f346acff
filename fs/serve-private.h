/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of the serving threads share. Included by serve*.c only.
 */
#pragma once

#include "dispatch.h"
#include "nest-private.h"
#include "serve.h"

#include <pthread.h>
#include <stdatomic.h>

/* A device that is served. Its address never changes while it is in the epoll set. */
typedef struct TnServeChannel {
	TnNest *nest;
	int device;
	uint32_t index;
	uint64_t serial; /* tells a reused TnServeChannel from the one an old event was for */
	uint32_t users;  /* threads that are busy with it */
	uint32_t waits;  /* those of them that wait for what another one does */
	bool missed;     /* a thread has turned away; makes no events until one may enter */
	bool wanted;     /* by a thread for itself: no further one enters */
	bool used;
	_Atomic bool closing; /* looked at without the lock between two requests */
	/*
	 * One thread has it to itself, out of the epoll set, and waits in read(2) for the next
	 * request: two system calls fewer for each. serve-steady.c says when.
	 */
	_Atomic bool steady;
} TnServeChannel;

/* Whose requests a thread has seen last: whether they come from one client or from several. */
typedef struct TnServeAskers {
	uint64_t serial; /* of the channel */
	uint32_t last;   /* its thread id; 0: none yet */
	unsigned requests, changes;
	int64_t since_ns; /* when the first of the requests came */
} TnServeAskers;

typedef struct TnServeThread {
	TnServe *serve;
	pthread_t thread;
	TnSlot *slot;
	TnIdentity identity;
	TnServeAskers askers;
	TnServeChannel *steady;               /* under the lock */
	_Atomic int device;                   /* that it reads from, or -1 */
	_Atomic uint64_t served;              /* requests, all in all */
	_Atomic uint64_t moves;               /* from one channel to another */
	uint64_t served_before, moves_before; /* when it was looked at last */
	bool mapped;                          /* its slot has all its pages */
	/* Odd while it reads a request or serves a FORGET; each such time has its own number. */
	_Atomic uint64_t turn;
	_Atomic bool busy; /* its own channel has several clients: see serve-steady.c */
	int64_t looked_ns; /* then, when it was seen to be getting on */
} TnServeThread;

struct TnServe {
	int epoll, stop; /* stop: an eventfd that wakes every thread, once */
	int watch;       /* a timer: a busy thread may be blocked */
	unsigned n_processors;
	_Atomic unsigned n_threads; /* grows under the lock */
	unsigned n_busy;            /* threads that are with a channel */
	unsigned n_missed;          /* channels that are missed */
	unsigned n_waiting;         /* the busy ones that wait for what another one does */
	unsigned n_steady;          /* threads that have a channel to themselves */
	uint64_t latest;            /* serial of the channel that was entered last */
	int64_t latest_ns;          /* when that was, */
	int64_t before_ns;          /* and when another one was */
	bool watching;              /* the timer runs */
	bool crowded;               /* more nests have something to ask than there are threads */
	TnServeThread threads[TN_SERVING_MOST];
	TnState *state;
	bool owns_state;

	pthread_mutex_t lock; /* guards the channels, the counts above and crowded */
	pthread_cond_t left;  /* a thread has left a closing channel */
	TnServeChannel **channels;
	uint32_t n_channels;
	uint64_t next_serial;
};

/* --- serve-channels.c: who may read from which device --- */

/* What an event of the epoll set carries for another thing than a channel. */
#define TN_SERVE_STOP_KEY UINT64_MAX
#define TN_SERVE_WATCH_KEY (UINT64_MAX - 1)

/* Puts the channel's device into the epoll set, or changes it there. 0 or -errno. */
int tn_serve_channel_listen(TnServe *serve, const TnServeChannel *channel, int operation, bool on);
/* The lock is held, here and in the next two. */
void tn_serve_forget_miss(TnServe *serve, TnServeChannel *channel);
/* On: makes an event also if there is something to read already. */
void tn_serve_arm(TnServe *serve, TnServeChannel *channel, bool on);
/* Where threads were turned away that may enter by now, or all that serve it are blocked. */
void tn_serve_call_others(TnServe *serve);
/* A thread comes with an event's key: the channel, or NULL when it may not enter. */
TnServeChannel *tn_serve_enter(TnServe *serve, uint64_t key);
/* It goes; more: there may be requests left, for whoever is next. */
void tn_serve_leave(TnServe *serve, TnServeChannel *channel, bool more);
/* The flag belongs to the open device, whichever descriptor or process sets it. 0 or -errno. */
int tn_serve_set_blocking(int device, bool blocking);
/* How long the thread has had its request, in nanoseconds; 0: it has none. */
int64_t tn_serve_request_age(const TnServeThread *thread);
/* Threads whose requests take so long that they wait for a disk: of one device, or -1 of all. */
unsigned tn_serve_count_blocked(const TnServe *serve, int device);

/* --- serve.c: the threads --- */

/* One more. The lock is held. 0 or -errno. */
int tn_serve_start_thread(TnServe *serve);

/* --- serve-steady.c: threads that have a channel to themselves --- */

/* Notes who asks, after each request; now and then the channel changes hands. */
void tn_serve_look_at_asker(TnServeThread *thread, TnServeChannel *channel);
/* Whoever is free reads from the thread's channel again. */
void tn_serve_share(TnServe *serve, TnServeThread *thread);
/* The lock is held, here and in what follows. The same for all threads. */
void tn_serve_share_all(TnServe *serve);
/* What the threads did since the last look decides who goes on having a channel to himself. */
void tn_serve_look_at_steady(TnServe *serve);
/* The timer is to run, if it does not. */
void tn_serve_watch(TnServe *serve);
/* The timer has run out. */
void tn_serve_watch_ended(TnServe *serve);
/* Those whose reads from the device may last. */
void tn_serve_kick_readers(TnServe *serve, int device);
/* Once for the process. 0 or -errno. */
int tn_serve_allow_kicks(void);
