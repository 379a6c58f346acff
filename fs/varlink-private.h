/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Between varlink.c (server: accepts, admits, finds the method), varlink-conn.c (one
 * connection: bytes in and out) and varlink-call.c (one call: its replies).
 */
#pragma once

#include "stranger.h"
#include "varlink.h"

typedef struct TnVarlinkConn TnVarlinkConn;

struct TnVarlinkServer {
	TnVarlinkConfig config;
	GMainContext *context;
	GSource *listen; /* NULL while accepting is paused for want of descriptors */
	int listen_fd;
	GSource *pause;
	TnStrangers *strangers;
	GQueue conns; /* of TnVarlinkConn; owned */
};

struct TnVarlinkCall {
	gatomicrefcount refs;
	TnVarlinkConn *conn; /* NULL when the client has gone or the call is answered */
	TnPeer peer;
	gboolean more, oneway;
	TnVarlinkProduce produce;
	gboolean asleep; /* produce had nothing */
	void *produce_data;
	GDestroyNotify produce_destroy;
};

struct TnVarlinkConn {
	GSource source;
	TnVarlinkServer *server;
	int fd;
	void *tag;
	TnPeer peer;
	int ns_fd; /* came with the first message; -1 before and after */
	gboolean admitted;
	gboolean observer; /* may only look from now on */
	gboolean eof;      /* the client sends no more */
	gboolean closing;  /* no further calls; ends when the output is sent */
	gboolean dead;     /* to be dropped now */
	gboolean held;     /* not read now: what it sent before is still being closed */
	GByteArray *input;
	gsize scanned;                     /* bytes of input known to hold no NUL */
	gssize message;                    /* length of the complete message at its start, or -1 */
	GQueue output;                     /* of messages, see varlink-conn.c */
	gsize output_bytes, output_offset; /* all that waits; how much of the first is sent */
	TnVarlinkCall *call;               /* the one being answered; owned */
	void (*sent)(void *data);          /* once, when the reply has gone out */
	void *sent_data;
	/* Monotonic time by which the first message must have come, or a refusal be read. */
	gint64 deadline;
};

/* varlink-conn.c. Takes fd. */
TnVarlinkConn *tn_varlink_conn_new(TnVarlinkServer *server, int fd, const TnPeer *peer);
/* Closes and forgets it at once; not from inside its own dispatch. */
void tn_varlink_conn_drop(TnVarlinkConn *conn);
/* Queues one message; takes object, and fd (-1: none). -EMSGSIZE when it is too long to be sent. */
int tn_varlink_conn_send(TnVarlinkConn *conn, JsonObject *object, int fd);
/* The same with the message as text, which is taken. */
int tn_varlink_conn_send_text(TnVarlinkConn *conn, char *text, gsize length, int fd);
/* Looks again at what to wait for, after a reply or a wake. */
void tn_varlink_conn_update(TnVarlinkConn *conn);
/* Reads no more; closes as soon as what is queued has been sent. */
void tn_varlink_conn_close_soon(TnVarlinkConn *conn);

/* varlink.c. One complete message: admits, parses, calls the handler. */
void tn_varlink_server_message(TnVarlinkConn *conn, const char *text, gsize size);
/* A message of the server's own, outside a call; the connection closes after it. */
void tn_varlink_server_refuse(TnVarlinkConn *conn, const char *error, const char *reason,
			      const char *hint);

/* varlink-call.c. */
TnVarlinkCall *tn_varlink_call_new(TnVarlinkConn *conn, gboolean more, gboolean oneway);
/* The client has gone. */
void tn_varlink_call_cancel(TnVarlinkCall *call);
/* Takes parameters; a full error name ("org.varlink.service.MethodNotFound"). */
void tn_varlink_fail_named(TnVarlinkCall *call, const char *error, JsonObject *parameters);
/* An error's three fields. */
JsonObject *tn_varlink_error_fields(const char *name, const char *reason, const char *hint);
