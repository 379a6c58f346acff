/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One request of a launcher: checked, carried out, its reply composed. Moves no message
 * itself; on the attach server's thread.
 */
#pragma once

#include "attach-proto.h"
#include "peer.h"
#include "registry.h"
#include "scm.h"
#include "stranger.h"
#include "worker.h"

typedef struct TnAttachVerbs TnAttachVerbs;

/* The request, and what became of it. */
typedef struct TnAttachCall {
	int sock; /* for the peer check */
	TnPeer peer;
	TnStrangers *strangers; /* borrowed */
	const void *message;
	size_t size;
	int fds[TN_SCM_MAX_FDS]; /* the caller closes those that are left */
	size_t n_fds;

	int status;             /* 0 or the positive errno of the reply */
	char text[512];         /* the reason, "" for none */
	uint8_t *reply;         /* TN_ATTACH_MAX bytes, by the caller */
	size_t reply_size;      /* never 0 */
	int mount;              /* to send with it and to close, or -1 */
	TnNest *nest;           /* a reference, when an attachment was made */
	uint64_t attachment_id; /* likewise */
	bool ephemeral;         /* the nest was made for this attachment alone */
	int lease;              /* taken out of fds, or -1 */
	int from;               /* likewise: the directory that the nest is named after */
} TnAttachCall;

/* env and registry are borrowed. NULL when out of memory. */
TnAttachVerbs *tn_attach_verbs_new(const TnWorkerEnv *env, TnRegistry *registry);
void tn_attach_verbs_free(TnAttachVerbs *verbs);

/* Fills the second half of call; every outcome has a reply. */
void tn_attach_answer(TnAttachVerbs *verbs, TnAttachCall *call);

/* A reply without a request to look at: text says why. */
void tn_attach_refuse(TnAttachVerbs *verbs, TnAttachCall *call, int status, const char *text);

/* The reply could not be delivered: takes the attachment back, with a nest made for it. */
void tn_attach_undo(TnAttachVerbs *verbs, TnAttachCall *call);

/* Gives back what call holds: mount, nest, lease, descriptors. */
void tn_attach_call_clear(TnAttachCall *call);
