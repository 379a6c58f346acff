/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control-private.h"

#include "config.h"
#include "kernel.h"
#include "sys.h"
#include "why.h"

#include <errno.h>
#include <string.h>

#define ABSENT INT64_MIN
#define NAMES_PER_CALL 100

typedef struct Limits {
	gint64 bytes, inodes, ttl, idle_ttl;
} Limits;

static const Limits limits_absent = {ABSENT, ABSENT, ABSENT, ABSENT};

/* null keeps or takes the default (0 for the nest), -1 lifts; 0 and the rest mean nothing. */
static gboolean read_limit(gint64 value, uint64_t *ret)
{
	if (value == ABSENT)
		*ret = 0;
	else if (value == -1)
		*ret = TN_UNLIMITED;
	else if (value > 0)
		*ret = (uint64_t)value;
	else
		return FALSE;
	return TRUE;
}

static gboolean read_limits(TnVarlinkCall *call, const char *name, const Limits *limits,
			    TnNestSpec *ret)
{
	if (read_limit(limits->bytes, &ret->bytes) && read_limit(limits->inodes, &ret->inodes) &&
	    read_limit(limits->ttl, &ret->ttl) && read_limit(limits->idle_ttl, &ret->idle_ttl))
		return TRUE;
	tn_varlink_fail(call, "InvalidArgument", name, "a limit is a number above zero",
			"-1 for none, null to leave it");
	return FALSE;
}

void tn_control_reply_nest(TnVarlinkCall *call, TnNest *nest)
{
	JsonObject *reply = json_object_new();
	TnNestInfo info;

	tn_nest_info(nest, &info);
	tn_nest_unref(nest);
	json_object_set_object_member(reply, "nest", tn_control_nest_json(&info));
	tn_varlink_reply(call, reply);
}

static size_t count_strings(const char *const *strings)
{
	size_t n = 0;

	while (strings != NULL && strings[n] != NULL)
		n++;
	return n;
}

/* The caller's ids are those of the nest; a user daemon can serve one group only. */
static gboolean check_group(TnControl *control, TnVarlinkCall *call, const char *name)
{
	char why[TN_WHY_MAX] = "";
	int r = tn_peer_check_group(control->env, tn_varlink_call_peer(call), why, sizeof(why));

	if (r == 0)
		return TRUE;
	tn_varlink_fail(call, "PermissionDenied", name, why, "");
	return FALSE;
}

static void create(TnControl *control, TnVarlinkCall *call, const TnNestSpec *spec)
{
	TnControlError error = {NULL};
	char why[TN_WHY_MAX] = "";
	TnNest *nest = NULL;
	int r;

	if (!tn_name_is_valid(spec->name))
		r = tn_why(why, sizeof(why), -EINVAL,
			   "a name is 1 to 64 of A-Za-z0-9._-, not starting with . or -");
	else
		r = tn_registry_create(control->registry, spec, &nest, why, sizeof(why));
	if (r == 0) {
		tn_control_reply_nest(call, nest);
		return;
	}
	tn_control_error_from(&error, r, why);
	tn_control_fail(call, spec->name, &error);
}

static void create_nest(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	const TnPeer *caller = tn_varlink_call_peer(call);
	const char *name = NULL, *store = NULL;
	g_autofree const char **deny = NULL, **read_only = NULL;
	gboolean durable = FALSE, xattrs = TRUE, writeback = FALSE;
	Limits limits = limits_absent;
	const TnVarlinkParam params[] = {
		{"name", TN_VARLINK_STRING, TRUE, &name},
		{"bytes_limit", TN_VARLINK_INT, FALSE, &limits.bytes},
		{"inodes_limit", TN_VARLINK_INT, FALSE, &limits.inodes},
		{"ttl", TN_VARLINK_INT, FALSE, &limits.ttl},
		{"idle_ttl", TN_VARLINK_INT, FALSE, &limits.idle_ttl},
		{"durable", TN_VARLINK_BOOL, FALSE, &durable},
		{"xattrs", TN_VARLINK_BOOL, FALSE, &xattrs},
		{"writeback", TN_VARLINK_BOOL, FALSE, &writeback},
		{"store", TN_VARLINK_STRING, FALSE, &store},
		{"deny", TN_VARLINK_STRINGS, FALSE, &deny},
		{"read_only", TN_VARLINK_STRINGS, FALSE, &read_only},
	};
	TnNestSpec spec = {.uid = caller->uid, .gid = caller->gid};

	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)) ||
	    !read_limits(call, name, &limits, &spec) || !check_group(data, call, name))
		return;
	if (store != NULL && !tn_store_kind_parse(store, &spec.store)) {
		tn_varlink_fail(call, "InvalidArgument", name, "there is no such kind of store",
				"dir, memory or image");
		return;
	}
	spec.name = name;
	spec.durable = durable;
	spec.no_xattrs = !xattrs;
	spec.writeback = writeback;
	spec.deny = deny;
	spec.n_deny = count_strings(deny);
	spec.read_only = read_only;
	spec.n_read_only = count_strings(read_only);
	create(data, call, &spec);
}

static void set_limits(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	const char *name = NULL;
	gint64 owner = -1;
	Limits limits = limits_absent;
	const TnVarlinkParam params[] = {
		{"name", TN_VARLINK_STRING, TRUE, &name},
		{"owner_uid", TN_VARLINK_INT, FALSE, &owner},
		{"bytes_limit", TN_VARLINK_INT, FALSE, &limits.bytes},
		{"inodes_limit", TN_VARLINK_INT, FALSE, &limits.inodes},
		{"ttl", TN_VARLINK_INT, FALSE, &limits.ttl},
		{"idle_ttl", TN_VARLINK_INT, FALSE, &limits.idle_ttl},
	};
	TnControlError error = {NULL};
	TnNestSpec spec = {NULL};
	TnNest *nest;
	int r;

	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)) ||
	    !read_limits(call, name, &limits, &spec))
		return;
	nest = tn_control_find(data, tn_varlink_call_peer(call), name, owner, &error);
	if (nest == NULL) {
		tn_control_fail(call, name, &error);
		return;
	}
	r = tn_nest_set_limits(nest, spec.bytes, spec.inodes, spec.ttl, spec.idle_ttl);
	if (r == 0) {
		tn_control_reply_nest(call, nest);
		return;
	}
	tn_nest_unref(nest);
	tn_control_error_from(&error, r,
			      r == -EPERM ? "the daemon has no CAP_SYS_RESOURCE, without which an "
					    "image cannot grow"
					  : NULL);
	tn_control_fail(call, name, &error);
}

static int evict(TnControl *control, TnNest *nest, gboolean force, TnControlError *error)
{
	uint32_t users = 0;
	int r = tn_registry_evict(control->registry, nest, force, &users);

	if (r == -EBUSY) {
		error->error = "InUse";
		error->hint = "end them, or evict with force";
		g_snprintf(error->reason, sizeof(error->reason), "%u sandbox%s use%s it", users,
			   users == 1 ? "" : "es", users == 1 ? "s" : "");
		error->extra = json_object_new();
		json_object_set_int_member(error->extra, "attachments", users);
	} else if (r < 0) {
		tn_control_error_from(error, r, NULL);
	}
	return r;
}

/* Takes what error holds. */
static JsonObject *evict_result(const char *name, TnControlError *error)
{
	JsonObject *result = json_object_new();
	g_autofree char *full = NULL;

	tn_control_set_text(result, "name", name);
	json_object_set_boolean_member(result, "evicted", error->error == NULL);
	if (error->error == NULL)
		return result;
	full = g_strconcat(TN_CONTROL_INTERFACE ".", error->error, NULL);
	json_object_set_string_member(result, "error", full);
	tn_control_set_text(result, "reason", error->reason);
	json_object_set_string_member(result, "hint", error->hint);
	if (error->extra != NULL && json_object_has_member(error->extra, "attachments"))
		json_object_set_int_member(result, "attachments",
					   json_object_get_int_member(error->extra, "attachments"));
	tn_control_error_clear(error);
	return result;
}

static void evict_nests(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	g_autofree const char **names = NULL;
	gint64 owner = -1;
	gboolean force = FALSE;
	const TnVarlinkParam params[] = {
		{"names", TN_VARLINK_STRINGS, TRUE, &names},
		{"owner_uid", TN_VARLINK_INT, FALSE, &owner},
		{"force", TN_VARLINK_BOOL, FALSE, &force},
	};
	JsonArray *results;
	JsonObject *reply;

	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)))
		return;
	if (count_strings(names) > NAMES_PER_CALL) {
		tn_varlink_fail(call, "InvalidArgument", "names", "more than 100 names",
				"send them in several calls");
		return;
	}
	results = json_array_new();
	for (size_t i = 0; names[i] != NULL; i++) {
		TnControlError error = {NULL};
		const TnPeer *caller = tn_varlink_call_peer(call);
		TnNest *nest = tn_control_find(data, caller, names[i], owner, &error);

		if (nest != NULL)
			evict(data, nest, force, &error);
		tn_nest_unref(nest);
		json_array_add_object_element(results, evict_result(names[i], &error));
	}
	reply = json_object_new();
	json_object_set_array_member(reply, "results", results);
	tn_varlink_reply(call, reply);
}

/* Nests that caller may see, and the sandboxes in them. */
static size_t count_use(TnControl *control, const TnPeer *caller, uint64_t *ret_attachments)
{
	size_t n;
	g_autofree TnNest **nests = tn_control_visible(control, caller, &n);

	*ret_attachments = 0;
	for (size_t i = 0; i < n; i++) {
		TnNestInfo info;

		tn_nest_info(nests[i], &info);
		*ret_attachments += info.attachments;
		tn_nest_unref(nests[i]);
	}
	return n;
}

static JsonObject *features_json(const TnControl *control)
{
	JsonObject *features = json_object_new();
	gboolean has_6_9 = tn_kernel_at_least(6, 9);

	json_object_set_boolean_member(features, "peer_pidfd", control->env->use_peer_pidfd);
	json_object_set_boolean_member(features, "fuse_passthrough", has_6_9);
	json_object_set_boolean_member(features, "fuse_resend", has_6_9);
	return features;
}

static void status(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	TnControl *control = data;
	const TnWorkerEnv *env = control->env;
	JsonObject *reply;
	uint64_t attachments;
	size_t n_nests;
	char instance[17];

	if (!tn_varlink_params(call, parameters, NULL, 0))
		return;
	n_nests = count_use(control, tn_varlink_call_peer(call), &attachments);
	reply = json_object_new();
	g_snprintf(instance, sizeof(instance), "%016" G_GINT64_MODIFIER "x", env->instance_id);
	json_object_set_string_member(reply, "scope",
				      env->scope == TN_SCOPE_SYSTEM ? "system" : "user");
	json_object_set_int_member(reply, "uid", env->uid);
	json_object_set_int_member(reply, "keeper_pid", env->keeper_pid);
	json_object_set_int_member(reply, "worker_pid", getpid());
	tn_control_set_count(reply, "worker_restarts", tn_registry_restarts(control->registry));
	json_object_set_string_member(reply, "instance", instance);
	json_object_set_string_member(reply, "version", TN_VERSION);
	tn_control_set_text(reply, "runtime_dir", env->paths->runtime_dir);
	tn_control_set_text(reply, "store_dir", env->paths->store_dir);
	tn_control_set_time(reply, "started", control->started_ns);
	json_object_set_int_member(reply, "uptime",
				   (tn_monotonic() - control->started_mono_ns) / 1000000000);
	tn_control_set_count(reply, "nests", n_nests);
	tn_control_set_count(reply, "attachments", attachments);
	json_object_set_int_member(reply, "connections",
				   tn_varlink_server_connections(control->server));
	json_object_set_object_member(reply, "features", features_json(control));
	if (tn_varlink_call_peer(call)->uid == 0 || tn_varlink_call_peer(call)->uid == env->uid)
		json_object_set_object_member(reply, "store", tn_control_store_json(control));
	tn_varlink_reply(call, reply);
}

static void stop_worker(void *data)
{
	TnControl *control = data;

	tn_worker_stop(control->stop);
}

static void stop(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	TnControl *control = data;
	const TnPeer *caller = tn_varlink_call_peer(call);
	gboolean force = FALSE;
	const TnVarlinkParam params[] = {{"force", TN_VARLINK_BOOL, FALSE, &force}};
	uint64_t attachments;

	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)))
		return;
	if (caller->uid != 0 && caller->uid != control->env->uid) {
		tn_varlink_fail(call, "PermissionDenied", "daemon",
				"only root stops a system daemon", "");
		return;
	}
	count_use(control, caller, &attachments);
	if (attachments > 0 && !force) {
		JsonObject *extra = json_object_new();
		g_autofree char *reason = g_strdup_printf(
			"%" G_GUINT64_FORMAT " sandbox%s use%s its nests", attachments,
			attachments == 1 ? "" : "es", attachments == 1 ? "s" : "");

		tn_control_set_count(extra, "attachments", attachments);
		tn_varlink_fail_with(call, "InUse", "daemon", reason,
				     "end them, or stop it with force", extra);
		return;
	}
	tn_varlink_call_when_sent(call, stop_worker, control);
	tn_varlink_reply(call, NULL);
}

static void upgrade(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	TnControl *control = data;
	const TnPeer *caller = tn_varlink_call_peer(call);
	int r;

	if (!tn_varlink_params(call, parameters, NULL, 0))
		return;
	if (caller->uid != 0 && caller->uid != control->env->uid) {
		tn_varlink_fail(call, "PermissionDenied", "daemon",
				"only root replaces a system daemon", "");
		return;
	}
	r = tn_keeper_upgrade(control->env->keeper);
	if (r == -EBADMSG)
		tn_varlink_fail(call, "InvalidArgument", "daemon",
				"the program at its path cannot take over the running views",
				"end the sandboxes, then stop and start the daemon");
	else if (r < 0)
		tn_varlink_fail(call, "InvalidArgument", "daemon", strerror(-r),
				"is the program still at its path?");
	else
		tn_varlink_reply(call, NULL);
}

static void observe(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	(void)data;
	if (!tn_varlink_params(call, parameters, NULL, 0))
		return;
	tn_varlink_call_observe_only(call);
	tn_varlink_reply(call, NULL);
}

static const TnVarlinkMethod methods[] = {
	{"ListNests", tn_control_list_nests, TRUE},
	{"GetNest", tn_control_get_nest, TRUE},
	{"ListFiles", tn_control_list_files},
	{"StatFile", tn_control_stat_file},
	{"OpenFile", tn_control_open_file},
	{"GetXattrs", tn_control_get_xattrs},
	{"GetUsage", tn_control_get_usage, TRUE},
	{"GetEvents", tn_control_get_events, TRUE},
	{"GetMetrics", tn_control_get_metrics, TRUE},
	{"Observe", observe},
	{"CreateNest", create_nest},
	{"SetLimits", set_limits},
	{"EvictNests", evict_nests},
	{"SetFrozen", tn_control_set_frozen},
	{"ChangeRules", tn_control_change_rules},
	{"CollectGarbage", tn_control_collect_garbage},
	{"Status", status, TRUE},
	{"Stop", stop},
	{"Upgrade", upgrade},
};

const TnVarlinkMethod *tn_control_methods(size_t *ret_n)
{
	*ret_n = G_N_ELEMENTS(methods);
	return methods;
}
