/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GetUsage: a walk through a nest, on a thread of its own, as it may take long. It ends
 * soon after its client has gone.
 */
#include "control-private.h"

#include "names.h"
#include "nest-look.h"

#include <errno.h>
#include <string.h>

#define TOP_DEFAULT 50
#define TOP_MOST 1000
/* As for listings: bytes of JSON after which a reply is sent. */
#define REPLY_BYTES 16384

/* Shared by the stream on the control thread and the walking thread. */
typedef struct Usage {
	gatomicrefcount refs;
	TnVarlinkCall *call; /* owned until the walk has been reported */
	TnNest *nest;        /* the walker's until then; owned */
	char *path, *shown;
	size_t most;
	atomic_bool cancel;
	/* the walker's until done, which only the control thread sets */
	int error;
	TnLookUsage found;
	gboolean done;
	/* how far the answer is */
	gboolean head_sent;
	size_t next_entry, next_file;
} Usage;

static void usage_unref(void *data)
{
	Usage *usage = data;

	if (!g_atomic_ref_count_dec(&usage->refs))
		return;
	tn_look_usage_clear(&usage->found);
	tn_nest_unref(usage->nest);
	tn_varlink_call_unref(usage->call);
	g_free(usage->path);
	g_free(usage->shown);
	g_free(usage);
}

/* The client has gone, or has everything. */
static void end_stream(void *data)
{
	Usage *usage = data;

	atomic_store(&usage->cancel, true);
	usage_unref(usage);
}

static JsonObject *use_json(const TnLookUse *use, const char *key)
{
	JsonObject *object = json_object_new();

	tn_control_set_name(object, key, use->name);
	json_object_set_string_member(object, "type", tn_control_file_type(use->type));
	tn_control_set_count(object, "bytes", use->bytes);
	tn_control_set_count(object, "inodes", use->inodes);
	return object;
}

static void add_uses(JsonObject *reply, const char *member, const char *key, const TnLookUse *uses,
		     size_t n, size_t *next, gsize *used)
{
	JsonArray *array = json_array_new();

	while (*next < n && *used < REPLY_BYTES) {
		*used += strlen(uses[*next].name) * 6 + 200;
		json_array_add_object_element(array, use_json(&uses[(*next)++], key));
	}
	json_object_set_array_member(reply, member, array);
}

static void add_head(JsonObject *reply, const TnLookUsage *found)
{
	tn_control_set_count(reply, "bytes", found->bytes);
	tn_control_set_count(reply, "inodes", found->inodes);
	tn_control_set_count(reply, "entries_total", found->entries_seen);
	tn_control_set_count(reply, "held_bytes", found->held_bytes);
	tn_control_set_count(reply, "held_inodes", found->held_inodes);
	json_object_set_boolean_member(reply, "complete", found->complete);
}

static gboolean produce(TnVarlinkCall *call, void *data)
{
	Usage *usage = data;
	const TnLookUsage *found = &usage->found;
	JsonObject *reply;
	gsize used = 0;

	if (!usage->done)
		return FALSE;
	if (usage->error < 0) {
		tn_control_fail_path(call, usage->shown, usage->error);
		return TRUE;
	}
	reply = json_object_new();
	if (!usage->head_sent)
		add_head(reply, found);
	usage->head_sent = TRUE;
	add_uses(reply, "entries", "name", found->entries, found->n_entries, &usage->next_entry,
		 &used);
	add_uses(reply, "files", "path", found->files, found->n_files, &usage->next_file, &used);
	tn_control_reply_part(call, reply,
			      usage->next_entry == found->n_entries &&
				      usage->next_file == found->n_files);
	return TRUE;
}

static gboolean report(void *data)
{
	Usage *usage = data;

	usage->done = TRUE;
	tn_varlink_call_wake(usage->call);
	return G_SOURCE_REMOVE;
}

void tn_control_walk(void *job, void *data)
{
	TnControl *control = data;
	Usage *usage = job;
	GSource *done = g_idle_source_new();

	if (!g_atomic_int_get(&control->stopping))
		usage->error = tn_nest_look_usage(usage->nest, usage->path, usage->most,
						  &usage->cancel, &usage->found);
	tn_nest_unref(g_steal_pointer(&usage->nest));
	g_source_set_priority(done, G_PRIORITY_DEFAULT);
	g_source_set_callback(done, report, usage, usage_unref);
	g_source_attach(done, control->context);
	g_source_unref(done);
}

void tn_control_get_usage(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	TnControl *control = data;
	const char *name = NULL, *path = "/tmp";
	gint64 owner = -1, top = TOP_DEFAULT;
	const TnVarlinkParam params[] = {
		{"name", TN_VARLINK_STRING, TRUE, &name},
		{"owner_uid", TN_VARLINK_INT, FALSE, &owner},
		{"path", TN_VARLINK_STRING, FALSE, &path},
		{"top", TN_VARLINK_INT, FALSE, &top},
	};
	TnControlError error = {NULL};
	g_autofree char *decoded = NULL;
	Usage *usage;
	TnNest *nest;

	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)))
		return;
	decoded = g_strdup(path);
	if (tn_name_decode(decoded) < 0 || top < 0 || top > TOP_MOST) {
		tn_varlink_fail(call, "InvalidArgument", name,
				"path is a name as listings give it, top at most 1000", "");
		return;
	}
	nest = tn_control_find(control, tn_varlink_call_peer(call), name, owner, &error);
	if (nest == NULL) {
		tn_control_fail(call, name, &error);
		return;
	}
	usage = g_new0(Usage, 1);
	g_atomic_ref_count_init(&usage->refs);
	g_atomic_ref_count_inc(&usage->refs);
	usage->call = tn_varlink_call_ref(call);
	usage->nest = nest;
	usage->path = g_steal_pointer(&decoded);
	usage->shown = g_strdup(path);
	usage->most = (size_t)top;
	tn_varlink_call_stream(call, produce, usage, end_stream);
	tn_jobs_push(control->walks, tn_varlink_call_peer(call)->uid, usage);
}
