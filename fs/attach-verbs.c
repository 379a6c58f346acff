/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "attach-verbs.h"

#include "from-name.h"
#include "journal.h"
#include "log.h"
#include "macros.h"
#include "nest.h"
#include "state.h"
#include "sys.h"
#include "why.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define RECENT_MAX 256

/* A request that was carried out; the same id again means that its reply was lost. */
typedef struct TnRecent {
	uint8_t request_id[16];
	uid_t uid;
	uint16_t verb; /* 0: free */
	bool created, ephemeral;
	uint64_t nest_id, attachment_id;
} TnRecent;

/* A ring. It outlives the worker: the launcher asks the next one again. */
typedef struct TnRecents {
	TnRecent recent[RECENT_MAX];
	uint64_t next;
} TnRecents;

_Static_assert(sizeof(TnRecents) <= TN_STATE_RECENTS, "there is room for it in the state");

struct TnAttachVerbs {
	const TnWorkerEnv *env;
	TnRegistry *registry;
	TnRecents *recents; /* in the state, or own_recents */
	TnRecents own_recents;

	/* the records of the request in work; strings lie in its message */
	const char *deny[TN_ATTACH_RULES_MAX];
	const char *read_only[TN_ATTACH_RULES_MAX];
	TnMountPoint points[TN_ATTACH_RULES_MAX];
	size_t n_points;
	char from_name[TN_NAME_MAX + 1];
};

TnAttachVerbs *tn_attach_verbs_new(const TnWorkerEnv *env, TnRegistry *registry)
{
	TnAttachVerbs *verbs = calloc(1, sizeof(*verbs));

	if (!verbs)
		return NULL;
	verbs->env = env;
	verbs->registry = registry;
	verbs->recents = env->state ? (void *)env->state->recents : &verbs->own_recents;
	return verbs;
}

void tn_attach_verbs_free(TnAttachVerbs *verbs)
{
	free(verbs);
}

/* Replies */

static TnAttachReply reply_head(const TnAttachVerbs *verbs)
{
	const TnWorkerEnv *env = verbs->env;

	return (TnAttachReply){
		.instance_id = env->instance_id,
		.store_dev = env->store_dev,
		.store_ino = env->store_ino,
		.runtime_dev = env->runtime_dev,
		.runtime_ino = env->runtime_ino,
	};
}

void tn_attach_refuse(TnAttachVerbs *verbs, TnAttachCall *call, int status, const char *text)
{
	/* Nothing of ours but the version for one that may not talk to us. */
	TnAttachReply head = {.status = status};
	TnAttachWriter writer;

	if (text != call->text)
		snprintf(call->text, sizeof(call->text), "%s", text);
	call->status = status;
	tn_attach_begin_reply(&writer, call->reply, &head);
	tn_attach_add_string(&writer, TN_RECORD_TEXT, call->text);
	call->reply_size = (size_t)tn_attach_end(&writer);
}

static bool add_denied(const char *pattern, bool deny, bool built_in, void *data)
{
	if (deny)
		tn_attach_add_string(data, TN_RECORD_DENIED, pattern);
	return true;
}

/* Registers the announced mount points with call's attachment, and says what becomes of each. */
static int add_points(TnAttachVerbs *verbs, TnAttachCall *call, TnAttachWriter *writer)
{
	size_t done = 0;
	int r = tn_nest_pin(call->nest, call->attachment_id, verbs->points, verbs->n_points, &done);

	if (r == -EROFS)
		return tn_why(call->text, sizeof(call->text), r,
			      "mount point: %.300s: missing, and the nest is frozen (thaw it)",
			      verbs->points[done].path);
	if (r == -ELOOP)
		return tn_why(
			call->text, sizeof(call->text), r,
			"mount point: %.300s: a symlink in the nest leads elsewhere (remove it)",
			verbs->points[done].path);
	if (r < 0)
		return tn_why(call->text, sizeof(call->text), r == -EINVAL ? -EPROTO : r,
			      "mount point: %.300s: %s",
			      done < verbs->n_points ? verbs->points[done].path : "all",
			      r == -EINVAL ? "not a path below /tmp or /var/tmp" : strerror(-r));
	for (size_t i = 0; i < verbs->n_points; i++) {
		uint32_t state = verbs->points[i].state;

		tn_attach_add(writer, TN_RECORD_POINT_STATE, &state, sizeof(state));
	}
	return 0;
}

/* What the launcher leaves out for a rule is nothing that its caller would hear of. */
static void log_denied(const TnAttachVerbs *verbs, const TnAttachCall *call, bool created)
{
	char escaped[512];

	for (size_t i = 0; i < verbs->n_points; i++) {
		if (verbs->points[i].state != TN_POINT_DENIED)
			continue;
		tn_log(created ? TN_LOG_INFO : TN_LOG_DEBUG,
		       "attach: uid %u, pid %d: mount left out, the name is denied: %s",
		       (unsigned)call->peer.uid, (int)call->peer.pid,
		       tn_log_escape(verbs->points[i].path, escaped, sizeof(escaped)));
	}
}

/* The reply of an attachment, with its rules and mount points. 0 or -errno. */
static int compose(TnAttachVerbs *verbs, TnAttachCall *call, const TnAttachReply *head)
{
	TnAttachWriter writer;
	int r;

	tn_attach_begin_reply(&writer, call->reply, head);
	if (call->nest) {
		tn_nest_each_rule(call->nest, add_denied, &writer);
		r = verbs->n_points > 0 ? add_points(verbs, call, &writer) : 0;
		if (r < 0)
			return r;
		log_denied(verbs, call, head->flags & TN_ATTACHED_CREATED);
	}
	r = tn_attach_end(&writer);
	if (r < 0)
		return tn_why(call->text, sizeof(call->text), r,
			      "reply: the nest's rules do not fit in one message");
	call->reply_size = (size_t)r;
	return 0;
}

/* Requests seen before */

static bool has_id(const uint8_t id[16])
{
	static const uint8_t none[16];

	return memcmp(id, none, sizeof(none)) != 0;
}

static TnRecent *find_recent(TnAttachVerbs *verbs, uid_t uid, const TnAttachRequest *request)
{
	for (size_t i = 0; has_id(request->request_id) && i < RECENT_MAX; i++) {
		TnRecent *recent = &verbs->recents->recent[i];

		if (recent->verb == request->verb && recent->uid == uid &&
		    memcmp(recent->request_id, request->request_id, 16) == 0)
			return recent;
	}
	return NULL;
}

static void remember(TnAttachVerbs *verbs, const TnAttachCall *call, const TnAttachRequest *request,
		     uint64_t nest_id, bool created)
{
	TnRecent *recent = find_recent(verbs, call->peer.uid, request);

	if (!has_id(request->request_id))
		return;
	if (!recent) {
		recent = &verbs->recents->recent[verbs->recents->next % RECENT_MAX];
		verbs->recents->next = (verbs->recents->next + 1) % RECENT_MAX;
	}
	*recent = (TnRecent){
		.uid = call->peer.uid,
		.verb = request->verb,
		.created = created,
		.ephemeral = call->ephemeral,
		.nest_id = nest_id,
		.attachment_id = call->attachment_id,
	};
	memcpy(recent->request_id, request->request_id, sizeof(recent->request_id));
}

static void evict(TnAttachVerbs *verbs, TnNest *nest)
{
	uint32_t users;
	int r = tn_registry_evict(verbs->registry, nest, true, &users);

	if (r < 0)
		tn_log(TN_LOG_WARNING, "attach: nest without a user cannot be evicted: %s",
		       strerror(-r));
}

static void take_back(TnAttachVerbs *verbs, TnNest *nest, uint64_t attachment_id, bool ephemeral)
{
	tn_nest_detach(nest, attachment_id);
	if (ephemeral)
		evict(verbs, nest);
}

/* The first attempt of a repeated request; *ret_created: it had made the (named) nest. */
static void undo_first_attempt(TnAttachVerbs *verbs, TnRecent *first, bool *ret_created)
{
	TnNest *nest = tn_registry_find_id(verbs->registry, first->nest_id);

	*ret_created = nest && first->created && !first->ephemeral;
	if (nest)
		take_back(verbs, nest, first->attachment_id, first->ephemeral);
	tn_nest_unref(nest);
	first->verb = 0;
}

/* Verbs */

/* A nest named after a directory: the name follows from what the descriptor shows. */
static void read_from(TnAttachVerbs *verbs, const TnAttachCall *call, const TnAttachRecord *record,
		      TnNestSpec *spec)
{
	TnAttachFrom from;

	spec->from_path = tn_attach_from(record, &from);
	spec->from_fd = call->from;
	spec->from_dev = from.dev;
	spec->from_ino = from.ino;
	tn_from_name(spec->from_path, from.dev, from.ino, verbs->from_name);
	spec->name = verbs->from_name;
}

static void read_records(TnAttachVerbs *verbs, const TnAttachCall *call,
			 const TnAttachRequest *request, TnNestSpec *ret)
{
	TnAttachRecord record;
	size_t offset = 0;

	*ret = (TnNestSpec){
		.from_fd = -1,
		.uid = call->peer.uid,
		.gid = call->peer.gid,
		.keep = request->flags & TN_ATTACH_KEEP,
		.durable = request->flags & TN_ATTACH_DURABLE,
		.no_xattrs = request->flags & TN_ATTACH_NO_XATTRS,
		.writeback = request->flags & TN_ATTACH_WRITEBACK,
		.bytes = request->bytes,
		.inodes = request->inodes,
		.ttl = request->ttl,
		.idle_ttl = request->idle_ttl,
		.store = request->store,
		.deny = verbs->deny,
		.read_only = verbs->read_only,
	};
	verbs->n_points = 0;
	while (tn_attach_next(call->message, call->size, false, &offset, &record)) {
		if (record.type == TN_RECORD_NAME) {
			ret->name = record.data;
		} else if (record.type == TN_RECORD_DENY) {
			verbs->deny[ret->n_deny++] = record.data;
		} else if (record.type == TN_RECORD_READ_ONLY) {
			verbs->read_only[ret->n_read_only++] = record.data;
		} else if (record.type == TN_RECORD_MOUNT_POINT) {
			TnMountPoint *point = &verbs->points[verbs->n_points++];

			point->path = tn_attach_mount_point(&record, &point->kind);
		} else if (record.type == TN_RECORD_FROM) {
			read_from(verbs, call, &record, ret);
		}
	}
}

static int create_nest(TnAttachVerbs *verbs, TnAttachCall *call, const TnAttachRequest *request,
		       const TnNestSpec *spec, TnNest **ret)
{
	TnNestSpec with_id = *spec;
	char why[384] = "";
	int r;

	/* Noted before: a successor can tell by the id whether the nest came to be. */
	with_id.id = tn_random();
	remember(verbs, call, request, with_id.id, true);
	r = tn_registry_create(verbs->registry, &with_id, ret, why, sizeof(why));
	if (r == -EEXIST)
		return tn_why(call->text, sizeof(call->text), r, "nest: %s: exists already",
			      spec->name ? spec->name : "ephemeral");
	if (r < 0)
		return tn_why(call->text, sizeof(call->text), r, "nest: %s: %s",
			      spec->name ? spec->name : "ephemeral", why[0] ? why : strerror(-r));
	return 0;
}

/* The nest of that name, made when it is missing. */
static int find_or_create(TnAttachVerbs *verbs, TnAttachCall *call, const TnAttachRequest *request,
			  const TnNestSpec *spec, TnNest **ret, bool *ret_created)
{
	TnNest *nest = spec->name ? tn_registry_find(verbs->registry, spec->uid, spec->name) : NULL;
	int r = 0;

	/* Eight digits are no proof: another directory may give the same name. */
	if (nest && !tn_nest_is_from(nest, spec)) {
		tn_nest_unref(nest);
		return tn_why(call->text, sizeof(call->text), -EEXIST,
			      "nest: %s: exists already, for something else (evict it)",
			      spec->name);
	}
	*ret_created = !nest;
	if (!nest)
		r = create_nest(verbs, call, request, spec, &nest);
	if (r == 0)
		*ret = nest;
	return r;
}

static int attach_nest(TnAttachVerbs *verbs, TnAttachCall *call, const TnAttachRequest *request,
		       const TnNestSpec *spec, TnAttachment *ret, bool *ret_created)
{
	TnNest *nest = NULL;
	int r = -ENOENT;

	/* Twice: a nest that is found may be evicted before it is attached; then its name
	 * is free. */
	for (int attempt = 0; r == -ENOENT && attempt < 2; attempt++) {
		r = find_or_create(verbs, call, request, spec, &nest, ret_created);
		if (r < 0)
			return r;
		r = tn_nest_attach(nest, ret);
		if (r == 0) {
			call->nest = nest;
			return 0;
		}
		if (*ret_created && !spec->name)
			evict(verbs, nest);
		tn_nest_unref(nest);
	}
	if (r == -ENOENT)
		r = -EBUSY;
	return tn_why(call->text, sizeof(call->text), r, "nest: %s: %s",
		      spec->name ? spec->name : "ephemeral",
		      r == -EBUSY ? "it is being evicted (try again)" : strerror(-r));
}

static int do_attach(TnAttachVerbs *verbs, TnAttachCall *call, const TnAttachRequest *request)
{
	TnRecent *first = find_recent(verbs, call->peer.uid, request);
	TnAttachReply head = reply_head(verbs);
	TnAttachment attachment = {.mount = -1};
	bool created = false, created_before = false;
	TnNestSpec spec;
	int r = tn_peer_check_group(verbs->env, &call->peer, call->text, sizeof(call->text));

	if (r < 0)
		return r;
	if (first)
		undo_first_attempt(verbs, first, &created_before);
	read_records(verbs, call, request, &spec);
	call->ephemeral = !spec.name;
	r = attach_nest(verbs, call, request, &spec, &attachment, &created);
	if (r < 0)
		return r;
	created |= created_before;
	call->mount = attachment.mount;
	call->attachment_id = attachment.id;
	head.flags = (created ? (uint32_t)TN_ATTACHED_CREATED : 0) |
		     (attachment.frozen ? (uint32_t)TN_ATTACHED_FROZEN : 0);
	head.nest_id = tn_nest_id(call->nest);
	head.attachment_id = attachment.id;
	r = compose(verbs, call, &head);
	if (r < 0) {
		tn_attach_undo(verbs, call);
		return r;
	}
	tn_kill_point();
	remember(verbs, call, request, head.nest_id, created);
	return 0;
}

static int do_create(TnAttachVerbs *verbs, TnAttachCall *call, const TnAttachRequest *request)
{
	TnRecent *first = find_recent(verbs, call->peer.uid, request);
	TnAttachReply head = reply_head(verbs);
	TnNest *nest = NULL;
	TnNestSpec spec;
	int r = tn_peer_check_group(verbs->env, &call->peer, call->text, sizeof(call->text));

	if (r < 0)
		return r;
	read_records(verbs, call, request, &spec);
	/* Its first attempt made it, and only the reply was lost. */
	if (first)
		nest = tn_registry_find_id(verbs->registry, first->nest_id);
	if (!nest)
		r = create_nest(verbs, call, request, &spec, &nest);
	if (r < 0)
		return r;
	head.flags = TN_ATTACHED_CREATED;
	head.nest_id = tn_nest_id(nest);
	tn_nest_unref(nest);
	tn_kill_point();
	remember(verbs, call, request, head.nest_id, true);
	return compose(verbs, call, &head);
}

static int do_ping(TnAttachVerbs *verbs, TnAttachCall *call)
{
	TnAttachReply head = reply_head(verbs);

	return compose(verbs, call, &head);
}

/* Checks */

static bool has_from(const TnAttachCall *call)
{
	TnAttachRecord record;
	size_t offset = 0;

	while (tn_attach_next(call->message, call->size, false, &offset, &record))
		if (record.type == TN_RECORD_FROM)
			return true;
	return false;
}

/* A pipe's read end whose write end somebody holds: else its end would never show. */
static int check_lease(int lease, char *why, size_t why_size)
{
	int flags = fcntl(lease, F_GETFL);
	struct stat st;
	char byte;

	if (flags < 0 || tn_stranger_stat(lease, &st) < 0 || !S_ISFIFO(st.st_mode) ||
	    (flags & (O_ACCMODE | O_PATH)) != O_RDONLY)
		return tn_why(why, why_size, -EPROTO, "lease: not the read end of a fifo");
	if (fcntl(lease, F_SETFL, flags | O_NONBLOCK) < 0)
		return tn_why(why, why_size, -errno, "lease: %s", strerror(errno));
	if (read(lease, &byte, 1) == 0)
		return tn_why(why, why_size, -EPROTO, "lease: nobody holds its write end");
	return 0;
}

static int take_descriptors(TnAttachCall *call, const TnAttachRequest *request)
{
	bool lease = request->flags & TN_ATTACH_HAS_LEASE;
	bool from = has_from(call);
	size_t expected = 1U + lease + from;
	int r;

	if (call->n_fds != expected)
		return tn_why(call->text, sizeof(call->text), -EPROTO,
			      "request: %zu descriptors came, %zu belong to it", call->n_fds,
			      expected);
	if (lease) {
		r = check_lease(call->fds[1], call->text, sizeof(call->text));
		if (r < 0)
			return r;
		call->lease = tn_steal_fd(&call->fds[1]);
	}
	if (from)
		call->from = tn_steal_fd(&call->fds[1 + lease]);
	return 0;
}

/* The descriptor must be the directory that the record names: nobody ends another's nest. */
static int check_from(TnAttachCall *call)
{
	TnAttachRecord record;
	TnAttachFrom from = {0};
	size_t offset = 0;
	struct stat st;

	if (call->from < 0)
		return 0;
	while (tn_attach_next(call->message, call->size, false, &offset, &record)) {
		if (record.type == TN_RECORD_FROM)
			tn_attach_from(&record, &from);
	}
	if (tn_stranger_stat(call->from, &st) < 0 || !S_ISDIR(st.st_mode) ||
	    st.st_dev != from.dev || st.st_ino != from.ino)
		return tn_why(call->text, sizeof(call->text), -EPROTO,
			      "request: the descriptor is not the directory it names");
	return 0;
}

static int check_form(TnAttachCall *call, TnAttachRequest *ret)
{
	int r = tn_attach_check_request(call->message, call->size, ret);

	if (r == -EPROTONOSUPPORT)
		return tn_why(call->text, sizeof(call->text), r,
			      "versions differ: the daemon speaks %d, the caller %u (restart the "
			      "daemon after an update: tmpnest daemon restart)",
			      TN_ATTACH_VERSION, ret->version);
	if (r < 0)
		return tn_why(call->text, sizeof(call->text), r, "request: malformed");
	return 0;
}

static int check_and_do(TnAttachVerbs *verbs, TnAttachCall *call)
{
	TnAttachRequest request;
	int r = check_form(call, &request);

	if (r < 0)
		return r;
	r = tn_peer_check(verbs->env, call->sock, &call->peer, call->fds[0], call->text,
			  sizeof(call->text));
	if (r < 0 || (r = take_descriptors(call, &request)) < 0 || (r = check_from(call)) < 0)
		return r;
	switch (request.verb) {
	case TN_ATTACH_ATTACH:
		return do_attach(verbs, call, &request);
	case TN_ATTACH_CREATE:
		return do_create(verbs, call, &request);
	case TN_ATTACH_PING:
		return do_ping(verbs, call);
	default:
		return tn_why(call->text, sizeof(call->text), -EPROTO, "request: unknown verb");
	}
}

void tn_attach_answer(TnAttachVerbs *verbs, TnAttachCall *call)
{
	int r;

	call->status = 0;
	call->text[0] = '\0';
	call->mount = -1;
	call->nest = NULL;
	call->lease = -1;
	call->from = -1;
	r = check_and_do(verbs, call);
	if (r < 0 && !call->text[0])
		snprintf(call->text, sizeof(call->text), "request: %s", strerror(-r));
	if (r < 0)
		tn_attach_refuse(verbs, call, -r, call->text);
}

void tn_attach_undo(TnAttachVerbs *verbs, TnAttachCall *call)
{
	if (!call->nest)
		return;
	tn_close(&call->mount);
	take_back(verbs, call->nest, call->attachment_id, call->ephemeral);
	tn_nest_unref(call->nest);
	call->nest = NULL;
}

void tn_attach_call_clear(TnAttachCall *call)
{
	tn_close(&call->mount);
	tn_stranger_close(call->strangers, call->peer.uid, &call->lease);
	tn_stranger_close(call->strangers, call->peer.uid, &call->from);
	for (size_t i = 0; i < TN_SCM_MAX_FDS; i++)
		tn_stranger_close(call->strangers, call->peer.uid, &call->fds[i]);
	tn_nest_unref(call->nest);
	call->nest = NULL;
}
