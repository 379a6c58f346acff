/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GetEvents: what happened, once or as it happens. A follower that does not read is asked
 * for nothing more; what the rings lose meanwhile it does not get.
 */
#include "control-private.h"

#include "events.h"
#include "names.h"

#include <glib-unix.h>
#include <string.h>

/* One takes less than 3 KiB as JSON, whatever a sandbox called its files. */
#define EVENTS_PER_REPLY 16

typedef struct Following {
	TnControl *control;
	TnVarlinkCall *call; /* borrowed: it outlives its stream */
	TnEventFilter filter;
	guint64 since;
	gboolean follow;
} Following;

static void following_free(void *data)
{
	Following *following = data;

	g_queue_remove(&following->control->followers, following);
	g_free(following);
}

static const char *kind_name(TnEventKind kind)
{
	static const char *const names[] = {
		[TN_EVENT_DENIED] = "denied",          [TN_EVENT_QUOTA] = "quota_hit",
		[TN_EVENT_STORE_FULL] = "store_full",  [TN_EVENT_ATTACH] = "attach",
		[TN_EVENT_DETACH] = "detach",          [TN_EVENT_EVICT] = "evict",
		[TN_EVENT_RESTART] = "worker_restart",
	};

	return kind < G_N_ELEMENTS(names) ? names[kind] : "other";
}

static void add_request(JsonObject *json, const TnEvent *event)
{
	json_object_set_int_member(json, "pid", event->pid);
	json_object_set_int_member(json, "uid", event->uid);
	tn_control_set_name(json, "process", event->process);
	json_object_set_string_member(json, "operation", event->operation);
	json_object_set_string_member(json, "error", g_strerror(event->error));
	if (event->rule[0] != '\0')
		tn_control_set_name(json, "rule", event->rule);
	if (event->path[0] != '\0')
		tn_control_set_name(json, "path", event->path);
}

static JsonObject *event_json(const TnEvent *event)
{
	JsonObject *json = json_object_new();

	tn_control_set_count(json, "number", event->number);
	tn_control_set_time(json, "time", event->time_ns);
	json_object_set_string_member(json, "event", kind_name(event->kind));
	if (event->nest_id != 0) {
		char id[17];

		g_snprintf(id, sizeof(id), "%016" G_GINT64_MODIFIER "x", event->nest_id);
		json_object_set_string_member(json, "nest_id", id);
		tn_control_set_text(json, "nest", event->nest);
		json_object_set_int_member(json, "owner_uid", event->owner);
	}
	if (event->operation[0] != '\0')
		add_request(json, event);
	else if (event->rule[0] != '\0')
		tn_control_set_name(json, "rule", event->rule);
	if (event->dropped > 0)
		tn_control_set_count(json, "dropped", event->dropped);
	return json;
}

static gboolean produce_events(TnVarlinkCall *call, void *data)
{
	Following *following = data;
	TnEventHub *hub = tn_registry_events(following->control->registry);
	TnEvent events[EVENTS_PER_REPLY];
	JsonObject *reply;
	JsonArray *array;
	size_t n = 0;

	/* Before the look, so that what comes after it wakes us. */
	if (following->follow && hub != NULL)
		tn_event_hub_watch(hub);
	if (hub != NULL)
		n = tn_event_hub_read(hub, &following->filter, following->since, events,
				      EVENTS_PER_REPLY, &following->since);
	if (n == 0 && following->follow)
		return FALSE;
	reply = json_object_new();
	array = json_array_new();
	for (size_t i = 0; i < n; i++)
		json_array_add_object_element(array, event_json(&events[i]));
	json_object_set_array_member(reply, "events", array);
	tn_control_set_count(reply, "next", following->since);
	if (n < EVENTS_PER_REPLY && !following->follow)
		tn_varlink_reply(call, reply);
	else if (tn_varlink_call_wants_more(call))
		tn_varlink_reply_continues(call, reply);
	else
		tn_varlink_reply(call, reply); /* "next" leads on */
	return TRUE;
}

void tn_control_get_events(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	TnControl *control = data;
	const TnPeer *caller = tn_varlink_call_peer(call);
	const char *name = NULL;
	gint64 owner = -1, since = 0;
	gboolean follow = FALSE;
	const TnVarlinkParam params[] = {
		{"name", TN_VARLINK_STRING, FALSE, &name},
		{"owner_uid", TN_VARLINK_INT, FALSE, &owner},
		{"since", TN_VARLINK_INT, FALSE, &since},
		{"follow", TN_VARLINK_BOOL, FALSE, &follow},
	};
	TnEventFilter filter = {.owner = caller->uid == 0 ? (uid_t)-1 : caller->uid};
	Following *following;

	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)))
		return;
	if (name != NULL) {
		TnControlError error = {NULL};
		TnNest *nest = tn_control_find(control, caller, name, owner, &error);

		if (nest == NULL) {
			tn_control_fail(call, name, &error);
			return;
		}
		filter.nest_id = tn_nest_id(nest);
		tn_nest_unref(nest);
	}
	if (follow && !tn_varlink_call_wants_more(call)) {
		tn_control_fail_expected_more(call);
		return;
	}
	following = g_new0(Following, 1);
	*following = (Following){
		.control = control,
		.call = call,
		.filter = filter,
		.since = since > 0 ? (guint64)since : 0,
		.follow = follow,
	};
	g_queue_push_tail(&control->followers, following);
	tn_varlink_call_stream(call, produce_events, following, following_free);
}

static gboolean on_event(gint fd, GIOCondition condition, gpointer data)
{
	TnControl *control = data;
	guint64 value;

	(void)condition;
	(void)!read(fd, &value, sizeof(value));
	for (const GList *l = control->followers.head; l != NULL; l = l->next)
		tn_varlink_call_wake(((Following *)l->data)->call);
	return G_SOURCE_CONTINUE;
}

void tn_control_events_start(TnControl *control)
{
	TnEventHub *hub = tn_registry_events(control->registry);
	GSource *source;

	g_queue_init(&control->followers);
	if (hub == NULL)
		return;
	source = g_unix_fd_source_new(tn_event_hub_fd(hub), G_IO_IN);
	g_source_set_callback(source, G_SOURCE_FUNC(on_event), control, NULL);
	g_source_attach(source, control->context);
	control->event_source = source;
}

void tn_control_events_stop(TnControl *control)
{
	if (control->event_source == NULL)
		return;
	g_source_destroy(control->event_source);
	g_clear_pointer(&control->event_source, g_source_unref);
}
