/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GetMetrics: what concerns the daemon as a whole. Nests have their own figures in
 * ListNests; what all users do together only the daemon's own user and root may see.
 */
#include "control-private.h"

#include "events.h"
#include "stats.h"
#include "syscalls.h"

#include <sys/statvfs.h>

TN_SYSCALLS = {
	{SYS_fstatfs},
};

static void add_store(JsonObject *reply, int store)
{
	struct statvfs disk;

	if (fstatvfs(store, &disk) < 0)
		return;
	tn_control_set_count(reply, "store_bytes_size", (guint64)disk.f_blocks * disk.f_frsize);
	tn_control_set_count(reply, "store_bytes_free", (guint64)disk.f_bavail * disk.f_frsize);
	tn_control_set_count(reply, "store_inodes_free", disk.f_favail);
}

static void add_latency(const char *operation, const TnLatency *latency, void *data)
{
	JsonObject *json = json_object_new();
	JsonArray *buckets = json_array_new();

	for (guint i = 0; i < TN_STATS_BUCKETS; i++)
		json_array_add_int_element(buckets, (gint64)atomic_load(&latency->buckets[i]));
	json_object_set_string_member(json, "operation", operation);
	tn_control_set_count(json, "sum_ns", atomic_load(&latency->sum_ns));
	json_object_set_array_member(json, "buckets", buckets);
	json_array_add_object_element(data, json);
}

static void add_whole(TnControl *control, JsonObject *reply)
{
	const TnStats *stats = tn_registry_stats(control->registry);
	TnEventHub *hub = tn_registry_events(control->registry);
	JsonArray *latencies = json_array_new();
	JsonObject *dropped = json_object_new();

	if (stats != NULL) {
		tn_control_set_count(reply, "attached_total", atomic_load(&stats->attached));
		tn_control_set_count(reply, "detached_total", atomic_load(&stats->detached));
		tn_control_set_count(reply, "evicted_total", atomic_load(&stats->evicted));
	}
	tn_registry_each_latency(control->registry, add_latency, latencies);
	json_object_set_array_member(reply, "latencies", latencies);
	if (hub != NULL) {
		tn_control_set_count(dropped, "denied", tn_event_hub_dropped(hub, TN_EVENT_DENIED));
		tn_control_set_count(dropped, "quota_hit",
				     tn_event_hub_dropped(hub, TN_EVENT_QUOTA));
		tn_control_set_count(dropped, "store_full",
				     tn_event_hub_dropped(hub, TN_EVENT_STORE_FULL));
	}
	json_object_set_object_member(reply, "events_dropped", dropped);
	json_object_set_int_member(reply, "connections",
				   tn_varlink_server_connections(control->server));
}

void tn_control_get_metrics(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	TnControl *control = data;
	const TnPeer *caller = tn_varlink_call_peer(call);
	JsonObject *reply;

	if (!tn_varlink_params(call, parameters, NULL, 0))
		return;
	reply = json_object_new();
	tn_control_set_time(reply, "started", control->started_ns);
	tn_control_set_count(reply, "worker_restarts", tn_registry_restarts(control->registry));
	add_store(reply, control->env->store);
	if (caller->uid == 0 || caller->uid == control->env->uid)
		add_whole(control, reply);
	tn_varlink_reply(call, reply);
}
