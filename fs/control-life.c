/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Freezing, rules, and the store as a whole. */
#include "control-private.h"

#include "why.h"

/* An entry takes less than 400 bytes of the 64 KiB, a name less than 300. */
#define EVICTED_PER_REPLY 100U
#define DAMAGED_PER_REPLY 40U

void tn_control_set_frozen(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	const char *name = NULL;
	gint64 owner = -1;
	gboolean frozen = FALSE;
	const TnVarlinkParam params[] = {
		{"name", TN_VARLINK_STRING, TRUE, &name},
		{"frozen", TN_VARLINK_BOOL, TRUE, &frozen},
		{"owner_uid", TN_VARLINK_INT, FALSE, &owner},
	};
	TnControlError error = {NULL};
	TnNest *nest;
	int r;

	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)))
		return;
	nest = tn_control_find(data, tn_varlink_call_peer(call), name, owner, &error);
	if (nest == NULL) {
		tn_control_fail(call, name, &error);
		return;
	}
	r = tn_nest_set_frozen(nest, frozen);
	if (r == 0) {
		tn_control_reply_nest(call, nest);
		return;
	}
	tn_nest_unref(nest);
	tn_control_error_from(&error, r, NULL);
	tn_control_fail(call, name, &error);
}

/* Takes the reference. */
static void change_rules(TnVarlinkCall *call, const char *name, TnNest *nest,
			 const TnRuleChange *change)
{
	TnControlError error = {NULL};
	char why[TN_WHY_MAX] = "";
	int r = tn_nest_change_rules(nest, change, why, sizeof(why));

	if (r == 0) {
		tn_control_reply_nest(call, nest);
		return;
	}
	tn_nest_unref(nest);
	tn_control_error_from(&error, r, why);
	tn_control_fail(call, name, &error);
}

void tn_control_change_rules(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	const char *name = NULL, *kind = NULL;
	g_autofree const char **add = NULL, **remove = NULL;
	gint64 owner = -1;
	const TnVarlinkParam params[] = {
		{"name", TN_VARLINK_STRING, TRUE, &name},
		{"kind", TN_VARLINK_STRING, TRUE, &kind},
		{"add", TN_VARLINK_STRINGS, FALSE, &add},
		{"remove", TN_VARLINK_STRINGS, FALSE, &remove},
		{"owner_uid", TN_VARLINK_INT, FALSE, &owner},
	};
	TnControlError error = {NULL};
	TnRuleChange change;
	TnNest *nest;

	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)))
		return;
	change = (TnRuleChange){
		.deny = g_strcmp0(kind, "deny") == 0,
		.add = add,
		.n_add = add != NULL ? g_strv_length((char **)add) : 0,
		.remove = remove,
		.n_remove = remove != NULL ? g_strv_length((char **)remove) : 0,
	};
	if (!change.deny && g_strcmp0(kind, "read_only") != 0) {
		tn_varlink_fail(call, "InvalidArgument", kind, "there is no such kind of rule",
				"deny or read_only");
		return;
	}
	nest = tn_control_find(data, tn_varlink_call_peer(call), name, owner, &error);
	if (nest == NULL)
		tn_control_fail(call, name, &error);
	else
		change_rules(call, name, nest, &change);
}

JsonObject *tn_control_store_json(TnControl *control)
{
	JsonObject *store = json_object_new();
	TnStoreInfo info;

	tn_registry_store_info(control->registry, &info);
	tn_control_set_count(store, "bytes_used", info.bytes_used);
	tn_control_set_limit(store, "bytes_limit", info.bytes_limit);
	tn_control_set_count(store, "inodes_used", info.inodes_used);
	tn_control_set_limit(store, "inodes_limit", info.inodes_limit);
	tn_control_set_count(store, "disk_free", info.disk_free);
	tn_control_set_limit(store, "disk_inodes_free", info.disk_inodes_free);
	tn_control_set_count(store, "reserve", info.reserve);
	tn_control_set_count(store, "refusals_total", info.refusals_total);
	tn_control_set_count(store, "wiping", info.wiping);
	tn_control_set_count(store, "stuck", info.stuck);
	tn_control_set_count(store, "damaged", info.damaged);
	return store;
}

static JsonObject *item_json(const TnGcItem *item)
{
	JsonObject *object = json_object_new();

	tn_control_set_text(object, "name", item->info.name);
	json_object_set_int_member(object, "owner_uid", item->info.owner_uid);
	tn_control_set_count(object, "bytes_used", item->info.bytes_used);
	tn_control_set_count(object, "inodes_used", item->info.inodes_used);
	json_object_set_string_member(object, "reason", item->why);
	return object;
}

static JsonObject *report_json(TnControl *control, const TnGcReport *report, gboolean all)
{
	JsonObject *reply = json_object_new();
	JsonArray *evicted = json_array_new(), *damaged = json_array_new();

	for (size_t i = 0; i < report->n_items && i < EVICTED_PER_REPLY; i++)
		json_array_add_object_element(evicted, item_json(&report->items[i]));
	for (size_t i = 0; i < report->n_damaged && i < DAMAGED_PER_REPLY; i++) {
		g_autofree char *name = g_utf8_make_valid(report->damaged[i], -1);

		json_array_add_string_element(damaged, name);
	}
	json_object_set_array_member(reply, "evicted", evicted);
	json_object_set_array_member(reply, "damaged", damaged);
	json_object_set_boolean_member(reply, "complete",
				       report->n_items <= EVICTED_PER_REPLY &&
					       report->n_damaged <= DAMAGED_PER_REPLY);
	if (all)
		json_object_set_object_member(reply, "store", tn_control_store_json(control));
	return reply;
}

void tn_control_collect_garbage(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	TnControl *control = data;
	const TnPeer *caller = tn_varlink_call_peer(call);
	gboolean dry_run = FALSE, damaged = FALSE;
	gint64 unused_for = 0;
	const TnVarlinkParam params[] = {
		{"dry_run", TN_VARLINK_BOOL, FALSE, &dry_run},
		{"damaged", TN_VARLINK_BOOL, FALSE, &damaged},
		{"unused_for", TN_VARLINK_INT, FALSE, &unused_for},
	};
	TnGcOptions options = {.all = caller->uid == 0 || caller->uid == control->env->uid};
	TnControlError error = {NULL};
	TnGcReport report;
	int r;

	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)))
		return;
	if (unused_for < 0) {
		tn_varlink_fail(call, "InvalidArgument", "unused_for", "not a time above zero", "");
		return;
	}
	if (damaged && !options.all) {
		tn_varlink_fail(call, "PermissionDenied", "damaged",
				"only root decides about damaged nests", "");
		return;
	}
	options.dry_run = dry_run;
	options.damaged = damaged;
	options.unused_for = (uint64_t)unused_for;
	r = tn_registry_gc(control->registry, caller->uid == 0 ? (uid_t)-1 : caller->uid, &options,
			   &report);
	if (r < 0) {
		tn_control_error_from(&error, r, NULL);
		tn_control_fail(call, "store", &error);
		return;
	}
	tn_varlink_reply(call, report_json(control, &report, options.all));
	tn_gc_report_clear(&report);
}
