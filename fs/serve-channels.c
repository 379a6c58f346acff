/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The devices that are served, each a channel: which thread may enter one, and how it comes and
 * goes while threads read from it.
 */
#include "serve-private.h"

#include "macros.h"
#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>

TN_SYSCALLS = {TN_CALL_EPOLL, TN_CALL_POLL};

#define BLOCKED_NS INT64_C(2000000)   /* one that takes longer waits for a disk, not a processor */
#define COMPANY_NS INT64_C(100000000) /* a nest has company while another asked so lately */
#define KICK_AGAIN_NS 2000000L        /* a kick may have come just before the read */

#define CHANNELS_MOST (1U << 24)

/* The events' data: index and the low bits of the serial. */
static uint64_t event_key(uint32_t index, uint64_t serial)
{
	return serial << 24 | index;
}

int tn_serve_channel_listen(TnServe *serve, const TnServeChannel *channel, int operation, bool on)
{
	struct epoll_event event = {
		.events = (on ? EPOLLIN : 0U) | EPOLLET,
		.data.u64 = event_key(channel->index, channel->serial),
	};

	return epoll_ctl(serve->epoll, operation, channel->device, &event) < 0 ? -errno : 0;
}

void tn_serve_forget_miss(TnServe *serve, TnServeChannel *channel)
{
	serve->n_missed -= channel->missed;
	channel->missed = false;
}

void tn_serve_arm(TnServe *serve, TnServeChannel *channel, bool on)
{
	if (channel->steady)
		return; /* it is not in the set */
	tn_serve_channel_listen(serve, channel, EPOLL_CTL_MOD, on);
	tn_serve_forget_miss(serve, channel);
	serve->n_missed += !on;
	channel->missed = !on;
}

/* True when another nest has asked for something lately. The lock is held. */
static bool has_company(const TnServe *serve, const TnServeChannel *channel)
{
	int64_t other = channel->serial == serve->latest ? serve->before_ns : serve->latest_ns;

	return serve->n_steady > 0 || (other != 0 && tn_monotonic() - other < COMPANY_NS);
}

int64_t tn_serve_request_age(const TnServeThread *thread)
{
	return atomic_load(&thread->slot->state) == TN_SLOT_READ
		       ? tn_monotonic() - atomic_load(&thread->slot->since_ns)
		       : 0;
}

unsigned tn_serve_count_blocked(const TnServe *serve, int device)
{
	unsigned n = 0;

	for (unsigned i = 0; i < serve->n_threads; i++)
		n += (device < 0 || atomic_load(&serve->threads[i].device) == device) &&
		     tn_serve_request_age(&serve->threads[i]) > BLOCKED_NS;
	return n;
}

/* True when nobody gets any further there, if anybody is there at all. */
static bool is_blocked(const TnServe *serve, const TnServeChannel *channel)
{
	return channel->users <= channel->waits + tn_serve_count_blocked(serve, channel->device);
}

/*
 * The fairness between nests, with the turns of drain(): one that nobody serves gets any
 * thread; a further thread only while that leaves another one free. So a nest whose requests
 * are many, or block, never has all threads. One that has company takes a further thread only
 * while that leaves a processor too: its own clients want one, and so does the company.
 * The lock is held.
 */
static bool may_enter(const TnServe *serve, const TnServeChannel *channel)
{
	if (channel->users <= channel->waits)
		return true;
	if (channel->wanted && !is_blocked(serve, channel))
		return false;
	if (serve->n_busy + 1 >= serve->n_threads)
		return false;
	return !has_company(serve, channel) ||
	       serve->n_busy + 2 < serve->n_threads + tn_serve_count_blocked(serve, -1);
}

/* The lock is held. */
static void note_entry(TnServe *serve, const TnServeChannel *channel)
{
	if (serve->latest != channel->serial)
		serve->before_ns = serve->latest_ns;
	serve->latest = channel->serial;
	serve->latest_ns = tn_monotonic();
}

/*
 * The channel of an event, entered by this thread; NULL when it has gone since, or has its
 * share of threads: then the next of them to leave looks again.
 */
TnServeChannel *tn_serve_enter(TnServe *serve, uint64_t key)
{
	uint32_t index = (uint32_t)(key & (CHANNELS_MOST - 1));
	TnServeChannel *channel = NULL;

	pthread_mutex_lock(&serve->lock);
	if (index < serve->n_channels) {
		channel = serve->channels[index];
		if (!channel->used || channel->closing || channel->steady ||
		    event_key(index, channel->serial) != key)
			channel = NULL;
	}
	if (channel && !may_enter(serve, channel)) {
		/* Without an event for each further request: the free thread sleeps. */
		tn_serve_arm(serve, channel, false);
		tn_serve_watch(serve);
		channel = NULL;
	}
	if (channel) {
		channel->users++;
		serve->n_busy++;
		note_entry(serve, channel);
	}
	pthread_mutex_unlock(&serve->lock);
	return channel;
}

/* Those that were turned away and may enter by now. The lock is held. */
static void call_missed(TnServe *serve)
{
	for (uint32_t i = 0; serve->n_missed > 0 && i < serve->n_channels; i++) {
		TnServeChannel *channel = serve->channels[i];

		if (channel->missed && !channel->closing && may_enter(serve, channel))
			tn_serve_arm(serve, channel, true);
	}
}

/*
 * Two requests that come at once make one edge: the second may lie there while the thread that
 * the edge has woken waits for a disk.
 */
void tn_serve_call_others(TnServe *serve)
{
	call_missed(serve);
	for (uint32_t i = 0; i < serve->n_channels; i++) {
		TnServeChannel *channel = serve->channels[i];

		if (channel->users > channel->waits && !channel->closing && !channel->missed &&
		    is_blocked(serve, channel))
			tn_serve_arm(serve, channel, true);
	}
}

void tn_serve_leave(TnServe *serve, TnServeChannel *channel, bool more)
{
	pthread_mutex_lock(&serve->lock);
	channel->users--;
	serve->n_busy--;
	if (channel->users == 0)
		channel->wanted = false;
	if (channel->closing)
		pthread_cond_broadcast(&serve->left);
	else if (more || channel->missed)
		tn_serve_arm(serve, channel, true);
	call_missed(serve);
	pthread_mutex_unlock(&serve->lock);
}

/* Index of a free channel, or -ENOMEM. Caller holds the lock. */
static int channel_find_free(TnServe *serve)
{
	TnServeChannel **grown;

	for (uint32_t i = 0; i < serve->n_channels; i++) {
		if (!serve->channels[i]->used)
			return (int)i;
	}
	if (serve->n_channels == CHANNELS_MOST)
		return -ENOMEM;
	grown = reallocarray(serve->channels, serve->n_channels + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	serve->channels = grown;
	grown[serve->n_channels] = calloc(1, sizeof(TnServeChannel));
	if (!grown[serve->n_channels])
		return -ENOMEM;
	return (int)serve->n_channels++;
}

/* The flag belongs to the open device, whichever descriptor or process sets it. */
int tn_serve_set_blocking(int device, bool blocking)
{
	int flags = fcntl(device, F_GETFL);

	if (flags < 0)
		return -errno;
	if (blocking == !(flags & O_NONBLOCK))
		return 0;
	flags ^= O_NONBLOCK;
	return fcntl(device, F_SETFL, flags) < 0 ? -errno : 0;
}

int tn_serve_add(TnServe *serve, TnNest *nest, int device)
{
	TnServeChannel *channel;
	int index, r = 0;

	pthread_mutex_lock(&serve->lock);
	index = channel_find_free(serve);
	if (index < 0) {
		pthread_mutex_unlock(&serve->lock);
		return index;
	}
	channel = serve->channels[index];
	*channel = (TnServeChannel){
		.nest = tn_nest_ref(nest),
		.device = device,
		.index = (uint32_t)index,
		.serial = serve->next_serial++,
		.used = true,
	};
	pthread_mutex_unlock(&serve->lock);
	/* Not under the lock, which the thread that is woken wants. A killed worker may have left
	 * the device blocking. */
	r = tn_serve_set_blocking(device, false);
	if (r == 0)
		r = tn_serve_channel_listen(serve, channel, EPOLL_CTL_ADD, true);
	if (r < 0) {
		pthread_mutex_lock(&serve->lock);
		*channel = (TnServeChannel){0};
		pthread_mutex_unlock(&serve->lock);
		tn_nest_unref(nest);
	}
	return r;
}

/* The lock is held. */
static void wake(TnServe *serve, const TnNest *nest)
{
	tn_serve_share_all(serve);
	for (uint32_t i = 0; i < serve->n_channels; i++) {
		TnServeChannel *channel = serve->channels[i];

		if (channel->used && !channel->closing && channel->nest == nest)
			tn_serve_arm(serve, channel, true);
	}
}

/* Adds to the waiting threads of a nest. The lock is held. */
static void count_wait(TnServe *serve, const TnNest *nest, int change)
{
	serve->n_waiting += (unsigned)change;
	for (uint32_t i = 0; i < serve->n_channels; i++) {
		TnServeChannel *channel = serve->channels[i];

		if (channel->used && channel->nest == nest && (change > 0 || channel->waits > 0))
			channel->waits += (uint32_t)change;
	}
}

bool tn_serve_begin_wait(TnServe *serve, const TnNest *nest, TnServeWait *wait)
{
	bool begun;

	*wait = (TnServeWait){0};
	pthread_mutex_lock(&serve->lock);
	wake(serve, nest);
	begun = serve->n_threads > 0 &&
		(serve->n_waiting + 1 < serve->n_threads || tn_serve_start_thread(serve) == 0);
	if (begun)
		count_wait(serve, nest, 1);
	pthread_mutex_unlock(&serve->lock);
	return begun;
}

/* The thread's turn, 0 when it reads from another device. */
static uint64_t turn_at(const TnServeThread *thread, int device)
{
	return atomic_load(&thread->device) == device ? atomic_load(&thread->turn) : 0;
}

bool tn_serve_has_settled(TnServe *serve, int device, TnServeWait *wait)
{
	struct pollfd queue = {.fd = device, .events = POLLIN};

	if (!wait->read) {
		if (poll(&queue, 1, 0) > 0)
			return false;
		wait->read = true;
		for (unsigned i = 0; i < serve->n_threads; i++)
			wait->turns[i] = turn_at(&serve->threads[i], device);
		/* One that has been steady may read for long: nothing is in the queue. */
		pthread_mutex_lock(&serve->lock);
		tn_serve_kick_readers(serve, device);
		pthread_mutex_unlock(&serve->lock);
	}
	for (unsigned i = 0; i < serve->n_threads; i++) {
		if (wait->turns[i] % 2 && atomic_load(&serve->threads[i].turn) == wait->turns[i])
			return false;
	}
	return true;
}

void tn_serve_end_wait(TnServe *serve, const TnNest *nest)
{
	pthread_mutex_lock(&serve->lock);
	count_wait(serve, nest, -1);
	pthread_mutex_unlock(&serve->lock);
}

void tn_serve_remove(TnServe *serve, TnNest *nest, int device)
{
	TnServeChannel *channel = NULL;

	pthread_mutex_lock(&serve->lock);
	for (uint32_t i = 0; i < serve->n_channels; i++) {
		TnServeChannel *candidate = serve->channels[i];

		if (candidate->used && candidate->nest == nest && candidate->device == device)
			channel = candidate;
	}
	if (!channel) {
		pthread_mutex_unlock(&serve->lock);
		return;
	}
	channel->closing = true;
	tn_serve_forget_miss(serve, channel);
	if (channel->steady)
		tn_serve_set_blocking(device, false);
	else
		epoll_ctl(serve->epoll, EPOLL_CTL_DEL, device, NULL);
	while (channel->users > 0) {
		tn_serve_kick_readers(serve, device);
		tn_cond_wait_for(&serve->left, &serve->lock, KICK_AGAIN_NS);
	}
	*channel = (TnServeChannel){0};
	pthread_mutex_unlock(&serve->lock);
	tn_nest_unref(nest);
}
