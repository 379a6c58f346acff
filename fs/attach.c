/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "attach.h"

#include "attach-verbs.h"
#include "journal.h"
#include "lease-names.h"
#include "log.h"
#include "macros.h"
#include "nest.h"
#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

TN_SYSCALLS = {
	TN_CALL_EPOLL, {SYS_accept4}, {SYS_recvmsg}, {SYS_sendmsg}, {SYS_eventfd2},
};

#define MS INT64_C(1000000)
#define CONNECTIONS_MAX 64     /* that have not sent their request yet */
#define CONNECTIONS_PER_UID 16 /* on a daemon for many users */
#define REQUEST_NS (5000 * MS) /* from connect to the whole request */
#define PAUSE_NS (100 * MS)    /* without accepting, when descriptors run out */
#define ACCEPT_AT_ONCE 16
#define WARNINGS_PER_MINUTE 20
#define PRUNE_NS (60000 * MS) /* between looks for leases that nobody watched */

typedef enum TnSourceKind {
	SOURCE_STOP,
	SOURCE_LISTENER,
	SOURCE_CONNECTION,
	SOURCE_LEASE,
} TnSourceKind;

/* What an epoll event points to: the first member of its owner. */
typedef struct TnSource {
	TnSourceKind kind;
	int fd; /* -1: a free slot */
} TnSource;

typedef struct TnConnection {
	TnSource source;
	TnPeer peer;
	int64_t deadline;
} TnConnection;

typedef struct TnLease {
	TnSource source;
	uid_t uid;
	TnNest *nest; /* a reference */
	uint64_t attachment_id;
	struct TnLease *previous, *next;
} TnLease;

struct TnAttachServer {
	const TnWorkerEnv *env;
	TnRegistry *registry;
	TnAttachVerbs *verbs;
	TnStrangers *strangers;
	pthread_t thread;
	bool has_thread;

	int epoll;
	TnSource stop; /* eventfd */
	TnSource listener;
	bool listening;      /* the listener is looked at */
	int64_t pause_until; /* 0: no pause */
	int64_t prune_at;    /* by the wall clock, as the ages of names are */
	TnConnection connections[CONNECTIONS_MAX];
	size_t n_connections;
	TnLease *leases;

	int64_t warnings_since; /* the minute that is counted */
	unsigned n_warnings;

	uint8_t message[TN_ATTACH_MAX];
	uint8_t reply[TN_ATTACH_MAX];
};

static int watch(TnAttachServer *server, TnSource *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	return epoll_ctl(server->epoll, EPOLL_CTL_ADD, source->fd, &event) < 0 ? -errno : 0;
}

/* Closing removes a descriptor from an epoll set only when no copy of it is left. */
static void drop(TnAttachServer *server, TnSource *source)
{
	epoll_ctl(server->epoll, EPOLL_CTL_DEL, source->fd, NULL);
	tn_close(&source->fd);
}

/* Looks at the listener only while there is room for one more connection. */
static void update_listener(TnAttachServer *server)
{
	bool wanted = server->n_connections < CONNECTIONS_MAX && !server->pause_until;
	struct epoll_event event = {.events = wanted ? EPOLLIN : 0, .data.ptr = &server->listener};

	if (wanted != server->listening &&
	    epoll_ctl(server->epoll, EPOLL_CTL_MOD, server->listener.fd, &event) == 0)
		server->listening = wanted;
}

/* Refusals are worth a warning, but nobody may fill the log with them. */
static void log_failure(TnAttachServer *server, const TnAttachCall *call)
{
	bool refusal = call->status == EPERM;
	int64_t now = tn_monotonic();
	char escaped[512];

	if (refusal && now - server->warnings_since > 60000 * MS) {
		server->warnings_since = now;
		server->n_warnings = 0;
	}
	if (refusal && ++server->n_warnings > WARNINGS_PER_MINUTE)
		refusal = false;
	tn_log(refusal ? TN_LOG_WARNING : TN_LOG_DEBUG, "attach: uid %u, pid %d: error %d: %s",
	       call->peer.uid, call->peer.pid, call->status,
	       tn_log_escape(call->text, escaped, sizeof(escaped)));
}

/* Leases */

static void end_lease(TnAttachServer *server, TnLease *lease)
{
	/* In this order: the number is not to be found in a record once it is free. */
	tn_nest_detach(lease->nest, lease->attachment_id);
	drop(server, &lease->source);
	tn_nest_unref(lease->nest);
	if (lease->previous)
		lease->previous->next = lease->next;
	else
		server->leases = lease->next;
	if (lease->next)
		lease->next->previous = lease->previous;
	free(lease);
}

static size_t leases_of(const TnAttachServer *server, uid_t uid)
{
	size_t n = 0;

	for (const TnLease *lease = server->leases; lease; lease = lease->next)
		n += lease->uid == uid;
	return n;
}

/*
 * Watches the lease of an attachment; takes both. When it cannot (false: nothing is taken),
 * the end of the superblock stands in for it.
 */
static bool keep_lease(TnAttachServer *server, TnNest *nest, uint64_t attachment_id, int fd)
{
	TnLease *lease = calloc(1, sizeof(*lease));
	int r;

	if (!lease)
		return false;
	*lease = (TnLease){
		.source = {.kind = SOURCE_LEASE, .fd = fd},
		.uid = tn_nest_owner(nest),
		.nest = nest,
		.attachment_id = attachment_id,
		.next = server->leases,
	};
	/* No event is asked for: end-of-file (EPOLLHUP) always comes, data never matters. */
	r = watch(server, &lease->source, 0);
	if (r < 0) {
		tn_log(TN_LOG_WARNING, "attach: lease cannot be watched: %s", strerror(-r));
		free(lease);
		return false;
	}
	if (lease->next)
		lease->next->previous = lease;
	server->leases = lease;
	return true;
}

/* One that a killed worker was watching. */
static void keep_known_lease(TnNest *nest, uint64_t attachment_id, int lease, void *data)
{
	if (!keep_lease(data, tn_nest_ref(nest), attachment_id, lease))
		tn_nest_unref(nest);
}

static void keep_known_leases(TnAttachServer *server, TnRegistry *registry)
{
	size_t n;
	TnNest **nests = tn_registry_list(registry, (uid_t)-1, &n);

	for (size_t i = 0; i < n; i++) {
		tn_nest_each_lease(nests[i], keep_known_lease, server);
		tn_nest_unref(nests[i]);
	}
	free(nests);
}

/* Requests */

static void deliver(TnAttachServer *server, TnAttachCall *call)
{
	ssize_t n;

	if (call->nest)
		tn_nest_set_lease(call->nest, call->attachment_id, call->lease);
	tn_kill_point();
	n = tn_scm_send(call->sock, call->reply, call->reply_size, &call->mount,
			call->mount >= 0 ? 1 : 0);
	tn_kill_point();

	if (n < 0) {
		tn_log(TN_LOG_DEBUG, "attach: uid %u, pid %d: reply not delivered: %s",
		       call->peer.uid, call->peer.pid, strerror((int)-n));
		tn_attach_undo(server->verbs, call);
	} else if (call->nest && call->lease >= 0 &&
		   keep_lease(server, call->nest, call->attachment_id, call->lease)) {
		call->nest = NULL;
		call->lease = -1;
	} else if (call->nest && call->lease >= 0) {
		tn_nest_set_lease(call->nest, call->attachment_id, -1);
	}
}

static bool is_over_limit(const TnAttachServer *server, const TnAttachCall *call)
{
	return server->env->scope == TN_SCOPE_SYSTEM && call->peer.uid != 0 &&
	       leases_of(server, call->peer.uid) >=
		       tn_registry_sandboxes_per_user(server->registry);
}

static void discard(int *fd, void *data)
{
	TnAttachCall *call = data;

	tn_stranger_close(call->strangers, call->peer.uid, fd);
}

static TnAttachCall new_call(TnAttachServer *server, int sock, const TnPeer *peer)
{
	TnAttachCall call = {
		.sock = sock,
		.peer = *peer,
		.strangers = server->strangers,
		.message = server->message,
		.reply = server->reply,
		.mount = -1,
		.lease = -1,
		.from = -1,
	};

	for (size_t i = 0; i < TN_SCM_MAX_FDS; i++)
		call.fds[i] = -1;
	return call;
}

static void turn_away(TnAttachServer *server, int sock, const TnPeer *peer)
{
	TnAttachCall call = new_call(server, sock, peer);

	tn_attach_refuse(server->verbs, &call, EAGAIN,
			 "connection: too many of this user wait already (try again later)");
	log_failure(server, &call);
	deliver(server, &call);
}

/* Receives and answers what waits on sock. False: nothing is there yet. */
static bool serve_socket(TnAttachServer *server, int sock, const TnPeer *peer)
{
	TnAttachCall call = new_call(server, sock, peer);
	ssize_t n;

	/* Here and not only when it connects: it may have connected many times before. */
	if (!tn_stranger_may_send(server->strangers, peer->uid)) {
		turn_away(server, sock, peer);
		return true;
	}
	n = tn_scm_recv_with(sock, server->message, sizeof(server->message), call.fds, &call.n_fds,
			     discard, &call);
	if (n == -EAGAIN)
		return false;
	if (n == 0 || (n < 0 && n != -EMSGSIZE)) {
		tn_attach_call_clear(&call);
		return true;
	}
	call.size = n < 0 ? 0 : (size_t)n;
	if (n < 0)
		tn_attach_refuse(server->verbs, &call, EPROTO,
				 "request: too long, or with too many descriptors");
	else if (is_over_limit(server, &call))
		tn_attach_refuse(server->verbs, &call, EAGAIN,
				 "request: too many sandboxes of this user (try again later)");
	else
		tn_attach_answer(server->verbs, &call);
	if (call.status)
		log_failure(server, &call);
	deliver(server, &call);
	tn_attach_call_clear(&call);
	return true;
}

/* Connections */

static size_t connections_of(const TnAttachServer *server, uid_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		n += server->connections[i].source.fd >= 0 &&
		     server->connections[i].peer.uid == uid;
	return n;
}

static void end_connection(TnAttachServer *server, TnConnection *connection)
{
	drop(server, &connection->source);
	server->n_connections--;
}

/* Takes *sock when it is kept. */
static int keep_connection(TnAttachServer *server, int *sock, const TnPeer *peer)
{
	TnConnection *connection = server->connections;
	int r;

	if (server->n_connections == CONNECTIONS_MAX ||
	    (server->env->scope == TN_SCOPE_SYSTEM &&
	     connections_of(server, peer->uid) >= CONNECTIONS_PER_UID))
		return -EAGAIN;
	while (connection->source.fd >= 0)
		connection++;
	connection->source.fd = *sock;
	r = watch(server, &connection->source, EPOLLIN);
	if (r < 0) {
		connection->source.fd = -1;
		return r;
	}
	*sock = -1;
	connection->peer = *peer;
	connection->deadline = tn_monotonic() + REQUEST_NS;
	server->n_connections++;
	return 0;
}

/* One new client; its request is often there already. False: no more wait. */
static bool accept_one(TnAttachServer *server)
{
	TN_AUTOFD sock = accept4(server->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	TnPeer peer;

	if (sock < 0 && errno == EAGAIN)
		return false;
	if (sock < 0) {
		/* Of the errors of accept(2) only a lack of resources lasts. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			server->pause_until = tn_monotonic() + PAUSE_NS;
		tn_log(TN_LOG_DEBUG, "attach: accept: %s", strerror(errno));
		return false;
	}
	if (tn_peer_get(sock, &peer) < 0)
		return true;
	if (serve_socket(server, sock, &peer))
		return true;
	if (keep_connection(server, &sock, &peer) < 0)
		turn_away(server, sock, &peer);
	return true;
}

static void accept_some(TnAttachServer *server)
{
	for (int i = 0; i < ACCEPT_AT_ONCE && server->n_connections < CONNECTIONS_MAX; i++)
		if (!accept_one(server))
			break;
}

static void end_late_connections(TnAttachServer *server, int64_t now)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		TnConnection *connection = &server->connections[i];

		if (connection->source.fd >= 0 && now >= connection->deadline) {
			tn_log(TN_LOG_DEBUG, "attach: uid %u, pid %d: sent no request in time",
			       connection->peer.uid, connection->peer.pid);
			end_connection(server, connection);
		}
	}
}

/*
 * The names of leases whose end nobody saw: their launcher was killed before it asked, or
 * their worker died. Fresh ones are spared, so once at the start is not enough.
 */
static void prune_leases(TnAttachServer *server)
{
	int64_t now = tn_now();

	if (now < server->prune_at && server->prune_at - now <= PRUNE_NS)
		return;
	server->prune_at = now + PRUNE_NS;
	tn_lease_names_prune(server->env->runtime);
}

/* Loop */

static int next_timeout(const TnAttachServer *server)
{
	int64_t at = server->pause_until ? server->pause_until : tn_monotonic() + PRUNE_NS;
	int64_t left;

	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		const TnConnection *connection = &server->connections[i];

		if (connection->source.fd >= 0 && connection->deadline < at)
			at = connection->deadline;
	}
	left = at - tn_monotonic();
	return left <= 0 ? 0 : (int)((left + MS - 1) / MS);
}

/* False: stop. */
static bool handle(TnAttachServer *server, TnSource *source)
{
	switch (source->kind) {
	case SOURCE_STOP:
		return false;
	case SOURCE_LISTENER:
		accept_some(server);
		return true;
	case SOURCE_CONNECTION: {
		TnConnection *connection = (TnConnection *)source;

		if (serve_socket(server, source->fd, &connection->peer))
			end_connection(server, connection);
		return true;
	}
	case SOURCE_LEASE:
		tn_lease_name_remove(server->env->runtime, source->fd);
		end_lease(server, (TnLease *)source);
		return true;
	}
	return true;
}

static void *run(void *data)
{
	TnAttachServer *server = data;
	struct epoll_event events[32];
	bool go_on = true;

	while (go_on) {
		int n = epoll_wait(server->epoll, events, TN_ARRAY_LEN(events),
				   next_timeout(server));
		int64_t now;

		if (n < 0 && errno != EINTR) {
			tn_log(TN_LOG_ERROR, "attach: epoll: %s", strerror(errno));
			break;
		}
		/* Each source has one event at most, and only its own event frees it. */
		for (int i = 0; i < n; i++)
			go_on &= handle(server, events[i].data.ptr);
		now = tn_monotonic();
		if (server->pause_until && now >= server->pause_until)
			server->pause_until = 0;
		end_late_connections(server, now);
		update_listener(server);
		prune_leases(server);
	}
	return NULL;
}

static int open_set(TnAttachServer *server)
{
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	server->stop.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server->epoll < 0 || server->stop.fd < 0)
		return -errno;
	return 0;
}

static int start(TnAttachServer *server)
{
	int r;

	if ((r = watch(server, &server->stop, EPOLLIN)) < 0 ||
	    (r = watch(server, &server->listener, EPOLLIN)) < 0)
		return r;
	server->listening = true;
	r = pthread_create(&server->thread, NULL, run, server);
	server->has_thread = r == 0;
	return -r;
}

int tn_attach_server_new(TnAttachServer **ret, const TnWorkerEnv *env, TnRegistry *registry)
{
	TnAttachServer *server = calloc(1, sizeof(*server));
	int r;

	if (!server)
		return -ENOMEM;
	server->env = env;
	server->registry = registry;
	server->epoll = -1;
	server->stop = (TnSource){.kind = SOURCE_STOP, .fd = -1};
	server->listener = (TnSource){.kind = SOURCE_LISTENER, .fd = env->attach_listener};
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		server->connections[i].source = (TnSource){.kind = SOURCE_CONNECTION, .fd = -1};
	prune_leases(server);
	server->verbs = tn_attach_verbs_new(env, registry);
	server->strangers = tn_strangers_new();
	r = server->verbs && server->strangers ? open_set(server) : -ENOMEM;
	if (r == 0) {
		keep_known_leases(server, registry);
		r = start(server);
	}
	if (r < 0) {
		tn_attach_server_free(server);
		return r;
	}
	*ret = server;
	return 0;
}

void tn_attach_server_free(TnAttachServer *server)
{
	uint64_t one = 1;

	if (!server)
		return;
	if (server->has_thread && write(server->stop.fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(server->thread, NULL);
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (server->connections[i].source.fd >= 0)
			end_connection(server, &server->connections[i]);
	while (server->leases)
		end_lease(server, server->leases);
	tn_attach_verbs_free(server->verbs);
	tn_strangers_free(server->strangers);
	tn_close(&server->stop.fd);
	tn_close(&server->epoll);
	free(server);
}
