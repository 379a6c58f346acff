/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A client of the daemon's control interface (org.tmpnest.Control over Varlink). Blocking,
 * one thread per client.
 *
 * Errors are TN_CLIENT_ERROR with an exit status of ctl.h as code and
 * "OBJECT: WHY (what to do)" as message; what the daemon says is escaped.
 */
#pragma once

#include "daemon-choice.h"

#include "json-scan.h"
#include <glib.h>

#include <json-glib/json-glib.h>

typedef struct TnClient TnClient;

#define TN_CLIENT_ERROR tn_client_error_quark()
GQuark tn_client_error_quark(void);

/*
 * Connects to the first daemon of the choice that runs and admits the caller. Root takes
 * the ids of a user daemon's owner first, for the rest of the process.
 */
TnClient *tn_client_open(const TnDaemonChoice *choice, GError **error);
void tn_client_free(TnClient *client); /* takes NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TnClient, tn_client_free)

/* Where the daemon lives. */
const TnPaths *tn_client_paths(const TnClient *client);

/* The connection, admitted and idle, for one that speaks the protocol itself; the client's. */
int tn_client_socket(const TnClient *client);

/* How long to wait for one reply; 0: for ever. 30 at first. */
void tn_client_set_timeout(TnClient *client, unsigned seconds);

/*
 * Calls one method, by its short name, with parameters (taken; NULL: none). The reply's
 * parameters, the caller's to unref; NULL on an error.
 */
JsonObject *tn_client_call(TnClient *client, const char *method, JsonObject *parameters,
			   GError **error);
/*
 * The same with `more`: the replies are joined into one object, arrays of the same name
 * one after the other.
 */
JsonObject *tn_client_call_more(TnClient *client, const char *method, JsonObject *parameters,
				GError **error);

/*
 * The same, but each reply goes to visit as it comes; FALSE from visit (with *error set)
 * ends the call, after which the client must be freed.
 */
typedef gboolean (*TnClientPart)(JsonObject *part, void *data, GError **error);
gboolean tn_client_each(TnClient *client, const char *method, JsonObject *parameters,
			TnClientPart visit, void *data, GError **error);

/*
 * The same for the elements of one array in the replies, as text and without a tree: for lists of
 * thousands. element lives as long as the call of visit.
 */
typedef void (*TnClientElement)(const TnJsonText *element, void *data);
gboolean tn_client_each_element(TnClient *client, const char *method, JsonObject *parameters,
				const char *array, TnClientElement visit, void *data,
				GError **error);

/* A call whose reply carries a descriptor; *ret_fd becomes the caller's. */
JsonObject *tn_client_call_fd(TnClient *client, const char *method, JsonObject *parameters,
			      int *ret_fd, GError **error);

/*
 * The exit status and the line for an error of the interface (its full name and its
 * fields). Pure.
 */
int tn_client_error_status(const char *name);

/* Waits until the daemon has closed the connection. FALSE after that many seconds. */
gboolean tn_client_wait_end(TnClient *client, unsigned seconds);
