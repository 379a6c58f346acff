/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread that has a channel to itself needs one system call to wait for a request and get
 * it, not three. That is best
 *
 * - as long as one client at a time has something to ask: a second one would have to wait for
 *   the first one's answer. Whose requests they are is counted.
 * - with several clients that keep the thread busy, where there are not more processors than
 *   the thread and its clients can use anyway: further threads would only take turns with it.
 *   That holds as long as its requests go through at speed; when they no longer do, because
 *   there are fewer or because one of them waits for a disk, all may read again.
 */
#include "serve-private.h"

#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <linux/fuse.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

TN_SYSCALLS = {{SYS_timerfd_settime}};

/* Interrupts a thread's read: its handler does nothing. */
#define KICK SIGURG

/* Of so many requests in turn, how many may come from another task than the one before. */
#define LOOKED_AT 32U
#define FEW_CHANGES 4U
#define MANY_CHANGES 12U
#define BUSY_NS INT64_C(4000000) /* a thread is busy that gets them within this time */
#define FEW_PROCESSORS 2U
#define MOVES_OF_A_CROWD 16U /* of all threads between two looks */

/*
 * The thread has the channel to itself from now on, unless others are needed for it. The lock
 * is held.
 */
static void begin_steady(TnServe *serve, TnServeThread *thread, TnServeChannel *channel)
{
	/* One thread at least is left for all others, besides those that wait for it. */
	if (channel->closing || channel->steady || serve->crowded || channel->users != 1 ||
	    serve->n_steady + serve->n_waiting + 1 >= serve->n_threads ||
	    epoll_ctl(serve->epoll, EPOLL_CTL_DEL, channel->device, NULL) < 0)
		return;
	if (tn_serve_set_blocking(channel->device, true) < 0) {
		tn_serve_channel_listen(serve, channel, EPOLL_CTL_ADD, true);
		return;
	}
	tn_serve_forget_miss(serve, channel);
	channel->wanted = false;
	channel->steady = true;
	thread->steady = channel;
	serve->n_steady++;
}

/*
 * Whoever is free reads from its channel again. The lock is held. The thread itself may be
 * about to read, or reading: its read ends at the next request, or by a kick.
 */
static void end_steady(TnServe *serve, TnServeThread *thread)
{
	TnServeChannel *channel = thread->steady;

	if (!channel || tn_serve_set_blocking(channel->device, false) < 0)
		return;
	/* Makes an event if there is something to read now. */
	if (!channel->closing && tn_serve_channel_listen(serve, channel, EPOLL_CTL_ADD, true) < 0) {
		tn_serve_set_blocking(channel->device, true);
		return;
	}
	channel->steady = false;
	thread->steady = NULL;
	thread->busy = false;
	serve->n_steady--;
}

void tn_serve_share(TnServe *serve, TnServeThread *thread)
{
	pthread_mutex_lock(&serve->lock);
	end_steady(serve, thread);
	pthread_mutex_unlock(&serve->lock);
}

static void on_kick(int signal)
{
	(void)signal;
}

int tn_serve_allow_kicks(void)
{
	struct sigaction action = {.sa_handler = on_kick};

	return sigaction(KICK, &action, NULL) < 0 ? -errno : 0;
}

static void kick(TnServeThread *thread)
{
	if (atomic_load(&thread->slot->state) == TN_SLOT_READING)
		pthread_kill(thread->thread, KICK);
}

void tn_serve_kick_readers(TnServe *serve, int device)
{
	for (unsigned i = 0; i < serve->n_threads; i++) {
		if (atomic_load(&serve->threads[i].device) == device)
			kick(&serve->threads[i]);
	}
}

void tn_serve_share_all(TnServe *serve)
{
	for (unsigned i = 0; i < serve->n_threads; i++) {
		TnServeThread *thread = &serve->threads[i];

		if (thread->steady) {
			end_steady(serve, thread);
			kick(thread);
		}
	}
}

/* --- several clients ----------------------------------------------------------------------- */

static void end_watched(TnServe *serve, int64_t now)
{
	for (unsigned i = 0; i < serve->n_threads; i++) {
		TnServeThread *thread = &serve->threads[i];

		if (thread->busy && now - thread->looked_ns > BUSY_NS) {
			end_steady(serve, thread);
			kick(thread);
		}
	}
}

void tn_serve_watch(TnServe *serve)
{
	struct itimerspec time = {.it_value.tv_nsec = BUSY_NS};

	if (serve->watching)
		return;
	timerfd_settime(serve->watch, 0, &time, NULL);
	serve->watching = true;
}

void tn_serve_watch_ended(TnServe *serve)
{
	bool goes_on;

	end_watched(serve, tn_monotonic());
	for (uint32_t i = 0; i < serve->n_channels; i++)
		serve->channels[i]->wanted = false;
	tn_serve_call_others(serve);
	serve->watching = false;
	goes_on = serve->n_missed > 0;
	for (unsigned i = 0; i < serve->n_threads; i++)
		goes_on |= serve->threads[i].busy;
	if (goes_on)
		tn_serve_watch(serve);
}

/* A thread that never leaves, beside those that are blocked, must leave one. The lock is held. */
static bool leaves_a_thread(const TnServe *serve, const TnServeChannel *channel)
{
	return serve->n_steady - channel->steady + serve->n_waiting +
		       tn_serve_count_blocked(serve, -1) + 1 <
	       serve->n_threads;
}

/* The thread is to have the channel to itself, as soon as it is alone there. */
static void be_busy(TnServe *serve, TnServeThread *thread, TnServeChannel *channel, int64_t now)
{
	pthread_mutex_lock(&serve->lock);
	if (channel->closing || serve->crowded || !leaves_a_thread(serve, channel)) {
		end_steady(serve, thread);
	} else {
		begin_steady(serve, thread, channel);
		thread->busy = channel->steady;
		thread->looked_ns = now;
		channel->wanted = !channel->steady && channel->users > 1;
		end_watched(serve, now);
		tn_serve_watch(serve);
	}
	pthread_mutex_unlock(&serve->lock);
}

static void be_for_one(TnServe *serve, TnServeThread *thread, TnServeChannel *channel)
{
	pthread_mutex_lock(&serve->lock);
	begin_steady(serve, thread, channel);
	thread->busy = false;
	pthread_mutex_unlock(&serve->lock);
}

static void judge(TnServeThread *thread, TnServeChannel *channel, int64_t now)
{
	const TnServeAskers *askers = &thread->askers;
	TnServe *serve = thread->serve;
	bool few = askers->changes <= FEW_CHANGES, many = askers->changes >= MANY_CHANGES;

	if (!few && serve->n_processors <= FEW_PROCESSORS && now - askers->since_ns < BUSY_NS)
		be_busy(serve, thread, channel, now);
	else if (channel->steady && (many || (thread->busy && !few)))
		tn_serve_share(serve, thread);
	else if (few && (!channel->steady || thread->busy))
		be_for_one(serve, thread, channel);
}

void tn_serve_look_at_asker(TnServeThread *thread, TnServeChannel *channel)
{
	const struct fuse_in_header *in = (const void *)thread->slot->request;
	TnServeAskers *askers = &thread->askers;
	int64_t now = atomic_load(&thread->slot->since_ns);

	if (in->pid != 0) { /* those of the kernel's own count for nobody */
		askers->changes += askers->last != 0 && askers->last != in->pid;
		askers->last = in->pid;
	}
	if (askers->requests == 0)
		askers->since_ns = now;
	if (++askers->requests < LOOKED_AT)
		return;
	judge(thread, channel, now);
	askers->requests = askers->changes = 0;
}

void tn_serve_look_at_steady(TnServe *serve)
{
	uint64_t moves = 0;

	for (unsigned i = 0; i < serve->n_threads; i++) {
		TnServeThread *thread = &serve->threads[i];
		uint64_t served = atomic_load(&thread->served), moved = atomic_load(&thread->moves);

		if (thread->steady && served == thread->served_before) {
			end_steady(serve, thread);
			kick(thread);
		}
		moves += moved - thread->moves_before;
		thread->served_before = served;
		thread->moves_before = moved;
	}
	serve->crowded = moves > MOVES_OF_A_CROWD;
	if (serve->crowded)
		tn_serve_share_all(serve);
}
