/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"

#include "text.h"
#include "units.h"

#include <stdio.h>

typedef struct Gc {
	const TnVerb *verb;
	TnCtlOptions options;
	gboolean dry_run, damaged;
	guint64 unused_for; /* seconds; 0: not given */
	JsonObject *result; /* of all calls */
} Gc;

static JsonArray *array(JsonObject *object, const char *key)
{
	JsonNode *node = json_object_get_member(object, key);

	return node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

static gint64 number(JsonObject *object, const char *key)
{
	return json_object_get_int_member_with_default(object, key, 0);
}

static void append(JsonObject *to, JsonObject *from, const char *key)
{
	JsonArray *target = array(to, key), *source = array(from, key);

	for (guint i = 0; source != NULL && i < json_array_get_length(source); i++)
		json_array_add_element(target, json_array_dup_element(source, i));
}

/* One call of several, when the answer is too long for one. FALSE: no more, or an error. */
static gboolean collect(Gc *gc, TnClient *client, GError **error)
{
	JsonObject *parameters = json_object_new();
	g_autoptr(JsonObject) reply = NULL;

	json_object_set_boolean_member(parameters, "dry_run", gc->dry_run);
	json_object_set_boolean_member(parameters, "damaged", gc->damaged);
	if (gc->unused_for > 0)
		json_object_set_int_member(parameters, "unused_for", (gint64)gc->unused_for);
	reply = tn_client_call(client, "CollectGarbage", parameters, error);
	if (reply == NULL)
		return FALSE;
	append(gc->result, reply, "evicted");
	append(gc->result, reply, "damaged");
	if (json_object_has_member(reply, "store"))
		json_object_set_member(gc->result, "store",
				       json_node_copy(json_object_get_member(reply, "store")));
	/* What was collected is gone: the next answer has other names. A dry run's would not. */
	return !gc->dry_run &&
	       !json_object_get_boolean_member_with_default(reply, "complete", TRUE);
}

static void print_evicted(const Gc *gc)
{
	JsonArray *evicted = array(gc->result, "evicted");

	for (guint i = 0; i < json_array_get_length(evicted); i++) {
		JsonObject *item = json_array_get_object_element(evicted, i);
		g_autofree char *name = tn_text_escape(
			json_object_get_string_member_with_default(item, "name", ""));
		g_autofree char *reason = tn_text_escape(
			json_object_get_string_member_with_default(item, "reason", ""));
		g_autofree char *size = tn_text_size((guint64)MAX(number(item, "bytes_used"), 0));

		printf("%s %s: %s, %s\n", gc->dry_run ? "would evict" : "evicted", name, size,
		       reason);
	}
}

static void print_damaged(const Gc *gc)
{
	JsonArray *damaged = array(gc->result, "damaged");

	for (guint i = 0; i < json_array_get_length(damaged); i++) {
		g_autofree char *name = tn_text_escape(json_array_get_string_element(damaged, i));

		if (gc->damaged)
			printf("%s damaged nests/%s\n", gc->dry_run ? "would wipe" : "wiped", name);
		else
			printf("damaged: nests/%s (the daemon's log says why; --damaged wipes "
			       "it)\n",
			       name);
	}
}

static void print_store(JsonObject *result)
{
	JsonObject *store;

	if (!json_object_has_member(result, "store"))
		return;
	store = json_object_get_object_member(result, "store");
	if (number(store, "wiping") > 0)
		printf("%" G_GINT64_FORMAT " evicted nests are being wiped\n",
		       number(store, "wiping"));
	if (number(store, "stuck") > 0)
		printf("%" G_GINT64_FORMAT
		       " entries of the trash cannot be removed (the daemon's log names them)\n",
		       number(store, "stuck"));
}

static int run(Gc *gc)
{
	GError *error = NULL;
	g_autoptr(TnClient) client = tn_client_open(&gc->options.choice, &error);

	while (client != NULL && collect(gc, client, &error))
		;
	if (gc->options.json && error == NULL) {
		tn_ctl_print_json(json_object_ref(gc->result));
	} else {
		print_evicted(gc);
		print_damaged(gc);
		print_store(gc->result);
	}
	return error != NULL ? tn_ctl_fail(gc->verb, error) : TN_CTL_OK;
}

int tn_verb_gc(const TnVerb *verb, int argc, char **argv)
{
	Gc gc = {.verb = verb};
	char *unused_for = NULL;
	const GOptionEntry entries[] = {
		{"dry-run", 'n', 0, G_OPTION_ARG_NONE, &gc.dry_run, "Only say what would go", NULL},
		{"unused-for", 0, 0, G_OPTION_ARG_FILENAME, &unused_for,
		 "Also what nobody has used for that long", "DURATION"},
		{"damaged", 0, 0, G_OPTION_ARG_NONE, &gc.damaged,
		 "Also what the daemon found damaged and left", NULL},
		{NULL},
	};
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 0, 0, &gc.options, &status))
		return status;
	if (unused_for != NULL && (tn_parse_duration(unused_for, &gc.unused_for) < 0 ||
				   gc.unused_for == 0 || gc.unused_for > G_MAXINT64))
		return tn_ctl_usage(verb, unused_for, "not a duration (90s, 15m, 2h, 7d)");
	gc.result = json_object_new();
	json_object_set_array_member(gc.result, "evicted", json_array_new());
	json_object_set_array_member(gc.result, "damaged", json_array_new());
	status = run(&gc);
	json_object_unref(gc.result);
	return status;
}
