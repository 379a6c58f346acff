/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Listings. They hold ids and texts, never a reference on a nest, while a client takes
 * its time to read: an evicted nest must not stay because somebody lists it.
 */
#include "control-private.h"

#include <string.h>

/* A nest takes less than 900 bytes. */
#define NESTS_PER_REPLY 64
/* Bytes of JSON that the rules of one reply may take; the rest is for the nest itself. */
#define RULES_PER_REPLY (TN_VARLINK_MESSAGE_MAX / 2)
#define RECOUNT_TRIES 3

void tn_control_fail_expected_more(TnVarlinkCall *call)
{
	tn_varlink_fail(call, "ExpectedMore", "", "the answer does not fit one message",
			"call with more and take several replies");
}

void tn_control_reply_part(TnVarlinkCall *call, JsonObject *reply, gboolean last)
{
	if (last) {
		tn_varlink_reply(call, reply);
	} else if (tn_varlink_call_wants_more(call)) {
		tn_varlink_reply_continues(call, reply);
	} else {
		json_object_unref(reply);
		tn_control_fail_expected_more(call);
	}
}

typedef struct NestList {
	TnControl *control;
	GArray *ids; /* of uint64_t */
	guint next;
} NestList;

static void nest_list_free(void *data)
{
	NestList *list = data;

	g_array_unref(list->ids);
	g_free(list);
}

static gboolean find_info(const NestList *list, uint64_t id, TnNestInfo *ret)
{
	TnNest *nest = tn_registry_find_id(list->control->registry, id);

	if (nest == NULL)
		return tn_registry_going_info(list->control->registry, id, ret);
	tn_nest_info(nest, ret);
	tn_nest_unref(nest);
	return TRUE;
}

static gboolean produce_nests(TnVarlinkCall *call, void *data)
{
	NestList *list = data;
	g_autoptr(GString) reply = g_string_sized_new(TN_VARLINK_MESSAGE_MAX);
	gboolean first = TRUE;

	g_string_append(reply, "{\"nests\":[");
	for (guint i = 0; i < NESTS_PER_REPLY && list->next < list->ids->len; i++) {
		TnNestInfo info;

		if (!find_info(list, g_array_index(list->ids, uint64_t, list->next++), &info))
			continue;
		if (!first)
			g_string_append_c(reply, ',');
		first = FALSE;
		tn_control_nest_text(reply, &info);
	}
	g_string_append(reply, "]}");
	tn_varlink_reply_text(call, reply->str, list->next < list->ids->len);
	return TRUE;
}

/* Evicted ones are listed until they are wiped. */
static uint64_t *list_going(TnControl *control, const TnPeer *caller, size_t *ret_n)
{
	return tn_registry_list_going(control->registry, caller->uid == 0 ? (uid_t)-1 : caller->uid,
				      ret_n);
}

void tn_control_list_nests(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	TnControl *control = data;
	NestList *list;
	size_t n, n_going;

	if (!tn_varlink_params(call, parameters, NULL, 0))
		return;
	g_autofree TnNest **nests = tn_control_visible(control, tn_varlink_call_peer(call), &n);
	g_autofree uint64_t *going = list_going(control, tn_varlink_call_peer(call), &n_going);
	if (n + n_going > NESTS_PER_REPLY && !tn_varlink_call_wants_more(call)) {
		for (size_t i = 0; i < n; i++)
			tn_nest_unref(nests[i]);
		tn_control_fail_expected_more(call);
		return;
	}
	list = g_new0(NestList, 1);
	list->control = control;
	list->ids = g_array_sized_new(FALSE, FALSE, sizeof(uint64_t), (guint)n);
	for (size_t i = 0; i < n; i++) {
		uint64_t id = tn_nest_id(nests[i]);

		g_array_append_val(list->ids, id);
		tn_nest_unref(nests[i]);
	}
	g_array_append_vals(list->ids, going, (guint)n_going);
	tn_varlink_call_stream(call, produce_nests, list, nest_list_free);
}

typedef struct NestView {
	TnVarlinkCall *call; /* while a recount runs; owned */
	TnNest *nest;        /* until the answer has begun; owned */
	gboolean verify;
	int recount_error;
	uint64_t bytes, inodes;
	gboolean stable, matches;
	JsonObject *head; /* what the first reply has besides rules; owned */
	GQueue rules;     /* of JsonObject; owned */
} NestView;

static void nest_view_free(void *data)
{
	NestView *view = data;

	tn_varlink_call_unref(view->call);
	tn_nest_unref(view->nest);
	g_clear_pointer(&view->head, json_object_unref);
	g_queue_clear_full(&view->rules, (GDestroyNotify)json_object_unref);
	g_free(view);
}

static bool add_rule(const char *pattern, bool deny, bool built_in, void *data)
{
	NestView *view = data;
	JsonObject *rule = json_object_new();

	tn_control_set_text(rule, "pattern", pattern);
	json_object_set_string_member(rule, "kind", deny ? "deny" : "read_only");
	json_object_set_boolean_member(rule, "built_in", built_in);
	g_queue_push_tail(&view->rules, rule);
	return true;
}

static void add_count(const char *operation, uint64_t count, void *data)
{
	tn_control_set_count(data, operation, count);
}

static JsonObject *recount_json(const NestView *view)
{
	JsonObject *recount = json_object_new();

	tn_control_set_count(recount, "bytes", view->bytes);
	tn_control_set_count(recount, "inodes", view->inodes);
	json_object_set_boolean_member(recount, "stable", view->stable);
	json_object_set_boolean_member(recount, "matches", view->matches);
	return recount;
}

/* What a pattern takes as JSON at most: six bytes for one, as in \u0001. */
static gsize rule_size(JsonObject *rule)
{
	return strlen(json_object_get_string_member(rule, "pattern")) * 6 + 64;
}

static JsonObject *next_rules(NestView *view)
{
	JsonObject *reply = view->head != NULL ? g_steal_pointer(&view->head) : json_object_new();
	JsonArray *rules = json_array_new();
	gsize used = 0;

	while (view->rules.head != NULL) {
		gsize size = rule_size(view->rules.head->data);

		if (used > 0 && used + size > RULES_PER_REPLY)
			break;
		used += size;
		json_array_add_object_element(rules, g_queue_pop_head(&view->rules));
	}
	json_object_set_array_member(reply, "rules", rules);
	return reply;
}

static gboolean produce_view(TnVarlinkCall *call, void *data)
{
	NestView *view = data;
	JsonObject *reply = next_rules(view);

	tn_control_reply_part(call, reply, view->rules.head == NULL);
	return TRUE;
}

/* Takes view. */
static void answer_view(TnVarlinkCall *call, NestView *view)
{
	JsonObject *operations;
	TnNestInfo info;

	if (view->recount_error < 0) {
		TnControlError error = {NULL};

		tn_nest_info(view->nest, &info);
		tn_control_error_from(&error, view->recount_error, NULL);
		tn_control_fail(call, info.name, &error);
		nest_view_free(view);
		return;
	}
	operations = json_object_new();
	view->head = json_object_new();
	tn_nest_info(view->nest, &info);
	tn_nest_each_count(view->nest, add_count, operations);
	tn_nest_each_rule(view->nest, add_rule, view);
	json_object_set_object_member(view->head, "nest", tn_control_nest_json(&info));
	json_object_set_object_member(view->head, "operations", operations);
	if (view->verify)
		json_object_set_object_member(view->head, "recount", recount_json(view));
	tn_nest_unref(g_steal_pointer(&view->nest));
	tn_varlink_call_stream(call, produce_view, view, nest_view_free);
}

static gboolean recount_done(void *data)
{
	NestView **slot = data;
	NestView *view = g_steal_pointer(slot);
	TnVarlinkCall *call = g_steal_pointer(&view->call);

	answer_view(call, view);
	tn_varlink_call_unref(call);
	return G_SOURCE_REMOVE;
}

static void free_slot(void *data)
{
	NestView **slot = data;

	g_clear_pointer(slot, nest_view_free);
	g_free(slot);
}

/* A nest in use changes while it is counted: only two equal readings of the account decide. */
static void recount(NestView *view)
{
	TnNestInfo before, after;

	for (int i = 0; i < RECOUNT_TRIES && !view->stable; i++) {
		tn_nest_info(view->nest, &before);
		view->recount_error = tn_nest_recount(view->nest, &view->bytes, &view->inodes);
		if (view->recount_error < 0)
			return;
		tn_nest_info(view->nest, &after);
		view->stable = before.bytes_used == after.bytes_used &&
			       before.inodes_used == after.inodes_used;
		view->matches =
			view->bytes == after.bytes_used && view->inodes == after.inodes_used;
	}
}

void tn_control_recount(void *job, void *data)
{
	TnControl *control = data;
	NestView *view = job;
	GSource *done;
	NestView **slot;

	if (!g_atomic_int_get(&control->stopping))
		recount(view);
	slot = g_new0(NestView *, 1);
	*slot = view;
	done = g_idle_source_new();
	g_source_set_priority(done, G_PRIORITY_DEFAULT);
	g_source_set_callback(done, recount_done, slot, free_slot);
	g_source_attach(done, control->context);
	g_source_unref(done);
}

void tn_control_get_nest(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	TnControl *control = data;
	const char *name = NULL;
	gint64 owner = -1;
	gboolean verify = FALSE;
	const TnVarlinkParam params[] = {
		{"name", TN_VARLINK_STRING, TRUE, &name},
		{"owner_uid", TN_VARLINK_INT, FALSE, &owner},
		{"verify", TN_VARLINK_BOOL, FALSE, &verify},
	};
	TnControlError error = {NULL};
	NestView *view;
	TnNest *nest;

	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)))
		return;
	nest = tn_control_find(control, tn_varlink_call_peer(call), name, owner, &error);
	if (nest == NULL) {
		tn_control_fail(call, name, &error);
		return;
	}
	view = g_new0(NestView, 1);
	view->nest = nest;
	view->verify = verify;
	g_queue_init(&view->rules);
	if (!verify) {
		answer_view(call, view);
		return;
	}
	view->call = tn_varlink_call_ref(call);
	tn_jobs_push(control->recounts, tn_varlink_call_peer(call)->uid, view);
}
