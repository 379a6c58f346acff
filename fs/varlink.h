/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A Varlink server (varlink.org): calls and replies as JSON objects that end in a NUL,
 * over SOCK_STREAM Unix sockets, on one GMainContext. Everything here runs on the
 * thread of that context.
 *
 * What a client can make the daemon hold is bounded: one message of input, a short
 * queue of output, one call at a time; further calls wait in the socket. Connections
 * are limited per uid and in total, and one that says nothing is closed.
 *
 * A client is admitted by its first message, before anything of it is parsed.
 */
#pragma once

#include "peer.h"
#include "varlink-guard.h"

#include <json-glib/json-glib.h>
#include <sys/types.h>

typedef struct TnVarlinkServer TnVarlinkServer;
typedef struct TnVarlinkCall TnVarlinkCall;

/*
 * Decides about the client behind sock. ns_fd (borrowed, -1: none) is the descriptor
 * that came with its first message. 0, or -errno with one line in why: the client gets
 * PermissionDenied with that reason.
 */
typedef int (*TnVarlinkAdmit)(int sock, const TnPeer *peer, int ns_fd, char *why, size_t why_size,
			      void *data);

/*
 * Answers one call: exactly one tn_varlink_reply() or tn_varlink_fail(), at once or
 * later (then it keeps a reference on the call). parameters is never NULL; borrowed.
 */
typedef void (*TnVarlinkHandler)(TnVarlinkCall *call, JsonObject *parameters, void *data);

typedef struct TnVarlinkMethod {
	const char *name; /* without the interface */
	TnVarlinkHandler handler;
	gboolean observes; /* changes nothing and shows no content: for observers, too */
} TnVarlinkMethod;

typedef struct TnVarlinkConfig {
	const char *interface;   /* "org.tmpnest.Control"; errors are named after it */
	const char *description; /* the interface file's text */
	const TnVarlinkMethod *methods;
	size_t n_methods;
	void *data; /* for handlers and admit */
	TnVarlinkAdmit admit;
	unsigned max_per_uid;   /* 0: 16 */
	unsigned max_total;     /* 0: 512; root may use as many again as one uid */
	unsigned hello_seconds; /* 0: 10; time for the first message */
} TnVarlinkConfig;

/* Strings and tables in config stay the caller's and must outlive the server. */
TnVarlinkServer *tn_varlink_server_new(const TnVarlinkConfig *config, GMainContext *context);
/* Closes every connection; calls that are still answered later go nowhere. Takes NULL. */
void tn_varlink_server_free(TnVarlinkServer *server);

/* Accepts on this listening socket (made non-blocking); it stays the caller's. 0 or -errno. */
int tn_varlink_server_listen(TnVarlinkServer *server, int listen_fd);
/* One connected socket (taken, also on failure). 0, or -EUSERS when it was turned away. */
int tn_varlink_server_add(TnVarlinkServer *server, int fd);
unsigned tn_varlink_server_connections(const TnVarlinkServer *server);

TnVarlinkCall *tn_varlink_call_ref(TnVarlinkCall *call);
void tn_varlink_call_unref(TnVarlinkCall *call); /* takes NULL */
const TnPeer *tn_varlink_call_peer(const TnVarlinkCall *call);
gboolean tn_varlink_call_wants_more(const TnVarlinkCall *call);
/* The connection of this call may call nothing but methods that observe, from now on. */
void tn_varlink_call_observe_only(TnVarlinkCall *call);

/* To be said before the reply: done(data) runs when the client has it, or has gone. */
void tn_varlink_call_when_sent(TnVarlinkCall *call, void (*done)(void *data), void *data);

/* The last or only reply. Takes parameters (NULL: none). */
void tn_varlink_reply(TnVarlinkCall *call, JsonObject *parameters);
/* The last or only reply, with a descriptor by SCM_RIGHTS. Takes parameters and fd. */
void tn_varlink_reply_fd(TnVarlinkCall *call, JsonObject *parameters, int fd);
/* One of several; only when the caller wants more. Takes parameters. */
void tn_varlink_reply_continues(TnVarlinkCall *call, JsonObject *parameters);
/* Either of them, with the parameters as the text of one JSON object: cheaper for long lists. */
void tn_varlink_reply_text(TnVarlinkCall *call, const char *parameters, gboolean continues);

/*
 * An error of the interface, by its short name, with the three fields that every error
 * of ours has: on which object, why, what to do ("" when nothing can be said).
 */
void tn_varlink_fail(TnVarlinkCall *call, const char *error, const char *name, const char *reason,
		     const char *hint);
/* The same with more fields: takes extra, a JSON object (NULL: none). */
void tn_varlink_fail_with(TnVarlinkCall *call, const char *error, const char *name,
			  const char *reason, const char *hint, JsonObject *extra);

/*
 * Answers in several replies no faster than the client reads: produce is called when
 * there is room for one more, and sends exactly one reply (the call ends with
 * tn_varlink_reply() or a failure), or none and returns FALSE: then it is called again
 * after tn_varlink_call_wake(). destroy(data) runs when the call ends: inside the
 * last reply, or when the client went away.
 */
typedef gboolean (*TnVarlinkProduce)(TnVarlinkCall *call, void *data);
void tn_varlink_call_stream(TnVarlinkCall *call, TnVarlinkProduce produce, void *data,
			    GDestroyNotify destroy);
void tn_varlink_call_wake(TnVarlinkCall *call);

typedef enum TnVarlinkType {
	TN_VARLINK_STRING,  /* target: const char * (the parameters' own); NULL when absent */
	TN_VARLINK_INT,     /* target: gint64, left alone when absent */
	TN_VARLINK_BOOL,    /* target: gboolean, likewise */
	TN_VARLINK_STRINGS, /* target: const char **, an array with NULL at its end: g_free() it */
} TnVarlinkType;

typedef struct TnVarlinkParam {
	const char *name;
	TnVarlinkType type;
	gboolean required;
	void *target;
} TnVarlinkParam;

/*
 * Reads the parameters of a call; null counts as absent. FALSE when one is missing,
 * unknown or of another type: the call is answered with InvalidParameter then, and no
 * STRINGS target needs freeing.
 */
gboolean tn_varlink_params(TnVarlinkCall *call, JsonObject *parameters,
			   const TnVarlinkParam *params, size_t n_params);
