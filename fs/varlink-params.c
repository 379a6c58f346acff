/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "varlink-private.h"

#include <string.h>

static gboolean holds(JsonNode *node, GType type)
{
	return JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == type;
}

static gboolean read_strings(JsonNode *node, const char ***ret)
{
	g_autofree const char **strings = NULL;
	JsonArray *array;
	guint n;

	if (!JSON_NODE_HOLDS_ARRAY(node))
		return FALSE;
	array = json_node_get_array(node);
	n = json_array_get_length(array);
	strings = g_new0(const char *, n + 1);
	for (guint i = 0; i < n; i++) {
		JsonNode *element = json_array_get_element(array, i);

		if (!holds(element, G_TYPE_STRING))
			return FALSE;
		strings[i] = json_node_get_string(element);
	}
	*ret = g_steal_pointer(&strings);
	return TRUE;
}

static gboolean read_value(JsonNode *node, const TnVarlinkParam *param)
{
	switch (param->type) {
	case TN_VARLINK_STRING:
		if (!holds(node, G_TYPE_STRING))
			return FALSE;
		*(const char **)param->target = json_node_get_string(node);
		return TRUE;
	case TN_VARLINK_INT:
		if (!holds(node, G_TYPE_INT64))
			return FALSE;
		*(gint64 *)param->target = json_node_get_int(node);
		return TRUE;
	case TN_VARLINK_BOOL:
		if (!holds(node, G_TYPE_BOOLEAN))
			return FALSE;
		*(gboolean *)param->target = json_node_get_boolean(node);
		return TRUE;
	case TN_VARLINK_STRINGS:
		return read_strings(node, param->target);
	}
	return FALSE;
}

/* The name of the first parameter that is wrong, or NULL. */
static const char *find_wrong(JsonObject *parameters, const TnVarlinkParam *params, size_t n_params)
{
	JsonObjectIter iter;
	const char *key;

	for (size_t i = 0; i < n_params; i++) {
		JsonNode *node = json_object_get_member(parameters, params[i].name);

		if (node == NULL || JSON_NODE_HOLDS_NULL(node)) {
			if (params[i].required)
				return params[i].name;
		} else if (!read_value(node, &params[i])) {
			return params[i].name;
		}
	}
	json_object_iter_init(&iter, parameters);
	while (json_object_iter_next(&iter, &key, NULL)) {
		size_t i = 0;

		while (i < n_params && strcmp(params[i].name, key) != 0)
			i++;
		if (i == n_params)
			return key;
	}
	return NULL;
}

gboolean tn_varlink_params(TnVarlinkCall *call, JsonObject *parameters,
			   const TnVarlinkParam *params, size_t n_params)
{
	const char *wrong = find_wrong(parameters, params, n_params);
	JsonObject *fields;

	if (wrong == NULL)
		return TRUE;
	for (size_t i = 0; i < n_params; i++) {
		if (params[i].type == TN_VARLINK_STRINGS)
			g_clear_pointer((const char ***)params[i].target, g_free);
	}
	fields = json_object_new();
	json_object_set_string_member(fields, "parameter", wrong);
	tn_varlink_fail_named(call, "org.varlink.service.InvalidParameter", fields);
	return FALSE;
}
