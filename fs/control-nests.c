/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control-private.h"

#include <errno.h>
#include <string.h>

void tn_control_error_clear(TnControlError *error)
{
	g_clear_pointer(&error->extra, json_object_unref);
	error->error = NULL;
}

void tn_control_fail(TnVarlinkCall *call, const char *name, TnControlError *error)
{
	tn_varlink_fail_with(call, error->error, name, error->reason, error->hint,
			     g_steal_pointer(&error->extra));
	tn_control_error_clear(error);
}

static void set_error(TnControlError *error, const char *name, const char *hint, const char *format,
		      ...) G_GNUC_PRINTF(4, 5);

static void set_error(TnControlError *error, const char *name, const char *hint, const char *format,
		      ...)
{
	va_list args;

	error->error = name;
	error->hint = hint;
	va_start(args, format);
	g_vsnprintf(error->reason, sizeof(error->reason), format, args);
	va_end(args);
}

void tn_control_error_from(TnControlError *error, int r, const char *why)
{
	static const struct {
		int r;
		const char *error, *reason, *hint;
	} known[] = {
		{-EEXIST, "NestExists", "there is one of that name",
		 "choose another name or evict it"},
		{-EINVAL, "InvalidArgument", "not acceptable", ""},
		{-EOPNOTSUPP, "NotSupported", "this daemon cannot do that", ""},
		{-ENOSPC, "NoSpace", "no room in the store",
		 "evict nests or enlarge the store's disk"},
		{-ENOENT, "NoSuchNest", "it was evicted meanwhile", ""},
		{-EACCES, "PermissionDenied", "not allowed", ""},
		{-EPERM, "PermissionDenied", "not allowed", ""},
	};
	gboolean has_why = why != NULL && why[0] != '\0';

	for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
		if (known[i].r != r)
			continue;
		set_error(error, known[i].error, known[i].hint, "%s",
			  has_why ? why : known[i].reason);
		return;
	}
	set_error(error, "Failed", "the daemon's log may say more", "%s",
		  has_why ? why : g_strerror(-r));
}

/* Every nest called name; more than one only for root on a daemon of many owners. */
static TnNest *find_any(TnControl *control, const char *name, TnControlError *error)
{
	size_t n = 0, n_found = 0;
	g_autofree TnNest **nests = tn_registry_list(control->registry, (uid_t)-1, &n);
	JsonArray *owners = json_array_new();
	TnNest *found = NULL;

	for (size_t i = 0; i < n; i++) {
		TnNestInfo info;

		tn_nest_info(nests[i], &info);
		if (strcmp(info.name, name) == 0 && info.state != TN_NEST_EVICTING) {
			json_array_add_int_element(owners, info.owner_uid);
			n_found++;
			if (found == NULL)
				found = tn_nest_ref(nests[i]);
		}
		tn_nest_unref(nests[i]);
	}
	if (n_found > 1) {
		tn_nest_unref(found);
		set_error(error, "AmbiguousName", "say whose it is",
			  "%zu users have a nest of that name", n_found);
		error->extra = json_object_new();
		json_object_set_array_member(error->extra, "owners", owners);
		return NULL;
	}
	json_array_unref(owners);
	if (found == NULL)
		set_error(error, "NoSuchNest", "tmpnest ls lists them", "there is no such nest");
	return found;
}

TnNest *tn_control_find(TnControl *control, const TnPeer *caller, const char *name, gint64 owner,
			TnControlError *error)
{
	TnNest *nest;

	if (!tn_name_is_valid(name)) {
		set_error(error, "InvalidArgument",
			  "1 to 64 of A-Za-z0-9._-, not starting with . or -",
			  "this is not a nest's name");
		return NULL;
	}
	if (caller->uid == 0 && owner < 0)
		return find_any(control, name, error);
	/* The same answer whether or not that user has one. */
	if (caller->uid != 0 && owner >= 0 && owner != caller->uid) {
		set_error(error, "PermissionDenied", "ask root or the owner",
			  "nests of uid %" G_GINT64_FORMAT " are not yours", owner);
		return NULL;
	}
	nest = tn_registry_find(control->registry, owner >= 0 ? (uid_t)owner : caller->uid, name);
	if (nest == NULL)
		set_error(error, "NoSuchNest", "tmpnest ls lists them", "there is no such nest");
	return nest;
}

TnNest **tn_control_visible(TnControl *control, const TnPeer *caller, size_t *ret_n)
{
	*ret_n = 0;
	return tn_registry_list(control->registry, caller->uid == 0 ? (uid_t)-1 : caller->uid,
				ret_n);
}
