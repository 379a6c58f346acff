/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve-private.h"

#include "dispatch.h"
#include "journal.h"
#include "log.h"
#include "macros.h"
#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>

TN_SYSCALLS = {
	TN_CALL_EPOLL,  {SYS_eventfd2}, {SYS_timerfd_create}, {SYS_setfsuid},
	{SYS_setfsgid}, {SYS_geteuid},  {SYS_getegid},
};

#define THREADS_AT_START_MOST 8U
#define HELD_UP_NS INT64_C(200000000) /* a request that takes longer holds its thread up */
#define TURN_REQUESTS 32U             /* of one nest, before others have their turn */
#define TURN_NS INT64_C(1000000)      /* likewise */
#define STUCK_NS INT64_C(60000000000) /* one that takes longer is not going to end */

/* --- one thread ---------------------------------------------------------------------------- */

/* Writes the reply to the device its request came from. */
static void send_reply(const TnServeChannel *channel, const TnSlot *slot)
{
	ssize_t n;

	do {
		n = write(channel->device, slot->reply, slot->reply_size);
	} while (n < 0 && errno == EINTR);
	/* ENOENT: the request was interrupted meanwhile and nobody waits for the answer. */
	if (n < 0 && errno == ENOENT)
		tn_dispatch_undelivered(channel->nest, slot->request, slot->reply);
	else if (n < 0 && errno != ENODEV && errno != ECONNABORTED)
		tn_log(TN_LOG_ERROR, "reply: %s", strerror(errno));
}

static bool is_forget(const TnSlot *slot, ssize_t size)
{
	const struct fuse_in_header *in = (const void *)slot->request;

	return size >= (ssize_t)sizeof(*in) &&
	       (in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET);
}

/* Such a request waits for a disk, whatever the store. */
static bool is_slow(const TnSlot *slot)
{
	const struct fuse_in_header *in = (const void *)slot->request;

	return in->opcode == FUSE_FSYNC || in->opcode == FUSE_FSYNCDIR;
}

/* For what lies behind a slow request: the edge for it may be the one that woke this thread. */
static void let_others_in(TnServeThread *thread, TnServeChannel *channel)
{
	TnServe *serve = thread->serve;

	tn_serve_share(serve, thread);
	pthread_mutex_lock(&serve->lock);
	if (!channel->closing)
		tn_serve_arm(serve, channel, true);
	pthread_mutex_unlock(&serve->lock);
}

/* Keeps errno. */
static void end_turn(TnServeThread *thread)
{
	uint64_t turn = atomic_load(&thread->turn);

	if (turn % 2)
		atomic_store(&thread->turn, turn + 1);
}

/*
 * The next request into the slot, so that at any instant a successor can tell whether there
 * is one: the kernel copies the header first, and copies on whatever signal comes.
 */
static ssize_t read_request(const TnServeChannel *channel, TnSlot *slot)
{
	struct fuse_in_header *in = (void *)slot->request;
	ssize_t n;

	tn_journal_start(&slot->journal);
	in->len = 0;
	atomic_store(&slot->attempts, 0);
	atomic_store(&slot->state, TN_SLOT_READING);
	n = read(channel->device, slot->request, sizeof(slot->request));
	if (n <= 0) {
		int error = errno;

		atomic_store(&slot->state, TN_SLOT_IDLE);
		errno = error;
		return n;
	}
	slot->request_size = (uint64_t)n;
	atomic_store(&slot->since_ns, tn_monotonic());
	atomic_store(&slot->state, TN_SLOT_READ);
	return n;
}

/* What an idle thread keeps of its slot's buffers, and how long it has to wait for that. */
#define SLOT_LASTING (64UL * 1024)
#define SLOT_IDLE_MS 2500

/*
 * The kernel copies a request into pages that are there: on one that it finds absent while
 * the worker is being killed the copy fails, and the client gets an I/O error.
 */
static void map_buffers(TnServeThread *thread)
{
	TnSlot *slot = thread->slot;

	if (thread->mapped)
		return;
	(void)madvise(slot, sizeof(*slot) - sizeof(slot->reply), MADV_POPULATE_WRITE);
	thread->mapped = true;
}

static void give_memory_back(TnServeThread *thread)
{
	TnSlot *slot = thread->slot;

	madvise(slot->request + SLOT_LASTING, sizeof(slot->request) - SLOT_LASTING, MADV_REMOVE);
	madvise(slot->reply + SLOT_LASTING, sizeof(slot->reply) - SLOT_LASTING, MADV_REMOVE);
	thread->mapped = false;
}

/*
 * Serves what the device holds, or as long as the channel is its own; of one that is not, this
 * turn's share: then *ret_more. False when the superblock has ended.
 */
static bool drain(TnServeThread *thread, TnServeChannel *channel, bool *ret_more)
{
	TnSlot *slot = thread->slot;
	int64_t begun = 0;

	slot->device = channel->device;
	slot->nest_id = tn_nest_id(channel->nest);
	atomic_store(&thread->device, channel->device);
	for (unsigned served = 0; !channel->closing; served++) {
		ssize_t n;

		if (served > 0 && atomic_load(&slot->since_ns) - begun > TURN_NS)
			served = TURN_REQUESTS;
		if (served >= TURN_REQUESTS && !channel->steady) {
			*ret_more = true;
			return true;
		}

		atomic_fetch_or(&thread->turn, 1);
		n = read_request(channel, slot);
		if (!is_forget(slot, n))
			end_turn(thread);
		if (n < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (n < 0)
			return errno != ENODEV && errno != ECONNABORTED;
		if (n == 0)
			return false; /* a device never says this, but a test's socket does */
		if (!begun)
			begun = atomic_load(&slot->since_ns);
		if (is_slow(slot))
			let_others_in(thread, channel);
		tn_kill_point();
		slot->reply_size = tn_dispatch(channel->nest, &thread->identity, slot->request,
					       (size_t)n, slot->reply);
		tn_kill_point();
		atomic_store(&slot->state, TN_SLOT_REPLIED);
		tn_kill_point();
		if (slot->reply_size > 0)
			send_reply(channel, slot);
		tn_kill_point();
		atomic_store(&slot->state, TN_SLOT_IDLE);
		end_turn(thread);
		atomic_fetch_add_explicit(&thread->served, 1, memory_order_relaxed);
		tn_serve_look_at_asker(thread, channel);
	}
	return true;
}

static bool serve_channel(TnServeThread *thread, TnServeChannel *channel, bool *ret_more)
{
	bool goes_on;

	if (thread->askers.serial != channel->serial) {
		thread->askers = (TnServeAskers){.serial = channel->serial};
		atomic_fetch_add_explicit(&thread->moves, 1, memory_order_relaxed);
	}
	goes_on = drain(thread, channel, ret_more);
	atomic_store(&thread->device, -1);
	if (channel->steady)
		tn_serve_share(thread->serve, thread);
	return goes_on;
}

static void *serve_thread(void *data)
{
	TnServeThread *thread = data;
	TnServe *serve = thread->serve;

	prctl(PR_SET_NAME, "tn-serve");
	tn_journal_enter(&thread->slot->journal);
	/* One that another serving thread has started has that one's. */
	setfsgid(thread->identity.gid);
	setfsuid(thread->identity.uid);
	for (;;) {
		struct epoll_event event;
		int n = epoll_wait(serve->epoll, &event, 1, thread->mapped ? SLOT_IDLE_MS : -1);
		TnServeChannel *channel;
		bool more = false;

		if (n < 0 && errno != EINTR) {
			tn_log(TN_LOG_ERROR, "serve: epoll_wait: %s", strerror(errno));
			return NULL;
		}
		if (n == 0)
			give_memory_back(thread);
		if (n <= 0)
			continue;
		if (event.data.u64 == TN_SERVE_STOP_KEY)
			return NULL;
		if (event.data.u64 == TN_SERVE_WATCH_KEY) {
			pthread_mutex_lock(&serve->lock);
			tn_serve_watch_ended(serve);
			pthread_mutex_unlock(&serve->lock);
			continue;
		}
		channel = tn_serve_enter(serve, event.data.u64);
		if (!channel)
			continue;
		map_buffers(thread);
		if (!serve_channel(thread, channel, &more))
			tn_nest_ended(channel->nest);
		tn_serve_leave(serve, channel, more);
	}
}

/* --- life ---------------------------------------------------------------------------------- */

static int make_epoll(TnServe *serve)
{
	struct epoll_event stop = {.events = EPOLLIN, .data.u64 = TN_SERVE_STOP_KEY};
	struct epoll_event watch = {.events = EPOLLIN | EPOLLET, .data.u64 = TN_SERVE_WATCH_KEY};

	serve->epoll = epoll_create1(EPOLL_CLOEXEC);
	serve->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	serve->watch = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (serve->epoll < 0 || serve->stop < 0 || serve->watch < 0 ||
	    epoll_ctl(serve->epoll, EPOLL_CTL_ADD, serve->stop, &stop) < 0 ||
	    epoll_ctl(serve->epoll, EPOLL_CTL_ADD, serve->watch, &watch) < 0)
		return -errno;
	return 0;
}

static unsigned choose_threads(unsigned processors, unsigned wanted)
{
	/* One more than can work at a time: see may_enter(). */
	if (wanted == 0)
		wanted = (processors > 2 ? processors : 2) + 1;
	return wanted < THREADS_AT_START_MOST ? wanted : THREADS_AT_START_MOST;
}

/* One more. The lock is held, or nobody else is there. */
int tn_serve_start_thread(TnServe *serve)
{
	TnServeThread *thread = &serve->threads[serve->n_threads];
	int r;

	if (serve->n_threads == TN_SERVING_MOST)
		return -EAGAIN;
	thread->serve = serve;
	thread->slot = &serve->state->slots[serve->n_threads];
	thread->slot->journal.share = serve->n_threads;
	if (atomic_load(&serve->state->slots_end) <= serve->n_threads)
		atomic_store(&serve->state->slots_end, serve->n_threads + 1);
	thread->identity = (TnIdentity){.uid = geteuid(), .gid = getegid()};
	atomic_store(&thread->device, -1);
	r = pthread_create(&thread->thread, NULL, serve_thread, thread);
	if (r)
		return -r;
	serve->n_threads++;
	return 0;
}

int tn_serve_start(TnServe *serve, unsigned n_threads)
{
	unsigned wanted = choose_threads(serve->n_processors, n_threads);
	int r = 0;

	pthread_mutex_lock(&serve->lock);
	while (r == 0 && serve->n_threads < wanted)
		r = tn_serve_start_thread(serve);
	pthread_mutex_unlock(&serve->lock);
	return r;
}

int tn_serve_new(TnServe **ret, TnState *state)
{
	TnServe *serve = calloc(1, sizeof(*serve));
	int r;

	if (!serve)
		return -ENOMEM;
	serve->epoll = serve->stop = serve->watch = -1;
	serve->n_processors = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	serve->state = state;
	serve->owns_state = !state;
	pthread_mutex_init(&serve->lock, NULL);
	pthread_cond_init(&serve->left, NULL);
	r = state ? 0 : tn_state_new(&serve->state);
	if (r == 0)
		r = make_epoll(serve);
	if (r == 0)
		r = tn_serve_allow_kicks();
	if (r < 0) {
		tn_serve_free(serve);
		return r;
	}
	*ret = serve;
	return 0;
}

TnState *tn_serve_state(TnServe *serve)
{
	return serve->state;
}

bool tn_serve_look(TnServe *serve)
{
	unsigned taken = 0, held_up = 0;
	bool stuck = false;

	pthread_mutex_lock(&serve->lock);
	tn_serve_look_at_steady(serve);
	for (unsigned i = 0; i < serve->n_threads; i++) {
		const TnServeThread *thread = &serve->threads[i];
		int64_t busy = tn_serve_request_age(thread);

		held_up += busy > HELD_UP_NS;
		taken += busy > HELD_UP_NS || thread->steady;
		stuck |= busy > STUCK_NS;
	}
	if (taken == serve->n_threads ||
	    (held_up > 0 && taken + 1 >= serve->n_threads)) { /* see may_enter() */
		if (tn_serve_start_thread(serve) < 0 && taken == serve->n_threads)
			tn_log(TN_LOG_WARNING, "serve: all %u threads are held up", taken);
	}
	tn_serve_call_others(serve);
	pthread_mutex_unlock(&serve->lock);
	return !stuck;
}

void tn_serve_free(TnServe *serve)
{
	uint64_t one = 1;

	if (!serve)
		return;
	if (serve->n_threads > 0 && write(serve->stop, &one, sizeof(one)) < 0)
		tn_log(TN_LOG_ERROR, "serve: stop: %s", strerror(errno));
	for (unsigned i = 0; i < serve->n_threads; i++)
		pthread_join(serve->threads[i].thread, NULL);
	if (serve->owns_state)
		tn_state_free(serve->state);
	for (uint32_t i = 0; i < serve->n_channels; i++)
		free(serve->channels[i]);
	free(serve->channels);
	tn_close(&serve->epoll);
	tn_close(&serve->stop);
	tn_close(&serve->watch);
	pthread_cond_destroy(&serve->left);
	pthread_mutex_destroy(&serve->lock);
	free(serve);
}
