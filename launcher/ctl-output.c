/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"

#include "message.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int tn_ctl_fail(const TnVerb *verb, GError *error)
{
	int status = error->code == TN_CTL_NO_FILE ? TN_CTL_FAILED : error->code;

	if (error->message[0] != '\0')
		tn_say("%s: %s", verb->name, error->message);
	g_error_free(error);
	return status;
}

static void print_node(JsonNode *node)
{
	g_autofree char *text = json_to_string(node, TRUE);

	puts(text);
	json_node_unref(node);
}

void tn_ctl_print_json(JsonObject *object)
{
	JsonNode *node = json_node_new(JSON_NODE_OBJECT);

	json_node_take_object(node, object);
	print_node(node);
}

void tn_ctl_print_json_array(JsonArray *array)
{
	JsonNode *node = json_node_new(JSON_NODE_ARRAY);

	json_node_take_array(node, array);
	print_node(node);
}

gboolean tn_ctl_colours(void)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && (no_color == NULL || no_color[0] == '\0') && term != NULL &&
	       strcmp(term, "dumb") != 0;
}
