/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `top`: nests as they fill, on a terminal of 80x24 or more. Names and paths are escaped
 * before they reach the screen.
 */
#include "ctl.h"

#include "names.h"
#include "text.h"
#include "top-model.h"
#include "units.h"

#include <curses.h>
#include <string.h>
#include <unistd.h>

#define LOOK_MS 2000
#define EVENTS_SHOWN 50

typedef enum View { VIEW_LIST, VIEW_NEST } View;

typedef struct Screen {
	TnClient *client;
	TnTop *top;
	View view;
	char *selected;   /* id of the nest under the cursor, or NULL */
	guint first;      /* row at the top of the list */
	GPtrArray *lines; /* of the nest's page */
	char *said;       /* one line at the bottom */
	gboolean ended;
	GError *error;
} Screen;

static const char *const sort_names[TN_TOP_SORTS] = {
	"use", "growth", "operations", "latency", "denied", "name",
};

static void say(Screen *screen, char *text)
{
	g_free(screen->said);
	screen->said = text;
}

/* --- the daemon
 * ------------------------------------------------------------------------------------ */

static void look(Screen *screen)
{
	g_autoptr(JsonObject) list =
		tn_client_call_more(screen->client, "ListNests", NULL, &screen->error);

	if (list == NULL)
		screen->ended = TRUE;
	else
		tn_top_update(screen->top, list, g_get_monotonic_time());
}

static const TnTopRow *selected_row(const Screen *screen)
{
	gint index = screen->selected != NULL ? tn_top_find(screen->top, screen->selected) : -1;

	return index >= 0 ? tn_top_row(screen->top, (guint)index) : NULL;
}

static JsonObject *about(const TnTopRow *row)
{
	JsonObject *parameters = json_object_new();

	json_object_set_string_member(parameters, "name", row->nest.name);
	json_object_set_int_member(parameters, "owner_uid", row->nest.owner_uid);
	return parameters;
}

/* What the daemon said against it stands on the bottom line. */
static JsonObject *call(Screen *screen, const char *method, JsonObject *parameters)
{
	g_autoptr(GError) error = NULL;
	JsonObject *reply = tn_client_call_more(screen->client, method, parameters, &error);

	if (reply == NULL)
		say(screen, g_strdup(error->message));
	return reply;
}

/* --- drawing
 * ---------------------------------------------------------------------------------------- */

static void put_line(int y, attr_t attributes, const char *text)
{
	if (y >= LINES)
		return;
	attrset(attributes);
	move(y, 0);
	clrtoeol();
	/* Bytes beyond the width would go on in the next line. */
	addnstr(text,
		COLS > 0
			? (int)(g_utf8_offset_to_pointer(text, MIN(g_utf8_strlen(text, -1), COLS)) -
				text)
			: 0);
	attrset(A_NORMAL);
}

static char *rate_text(gdouble bytes)
{
	g_autofree char *size = tn_text_size((guint64)(bytes < 0 ? -bytes : bytes));

	return g_strdup_printf("%s%s", bytes < 0 ? "-" : bytes >= 1 ? "+" : "", size);
}

static char *row_text(const TnTopRow *row)
{
	g_autofree char *name = tn_text_escape(row->nest.name);
	g_autofree char *used = tn_text_size(row->nest.bytes_used);
	g_autofree char *bar = tn_text_bar(row->nest.bytes_used, row->nest.bytes_limit, 8);
	g_autofree char *percent = tn_text_percent(row->nest.bytes_used, row->nest.bytes_limit);
	g_autofree char *growth = rate_text(row->growth);

	return g_strdup_printf("%-20.20s %-8.8s %7s %s %4s %8s %7.0f %6.0f %6" G_GUINT64_FORMAT,
			       name, row->nest.state, used, bar, percent, growth, row->operations,
			       row->latency_us, row->nest.denied_total);
}

static attr_t tint(const TnTopRow *row)
{
	switch (tn_nest_row_use_tint(row->nest.bytes_used, row->nest.bytes_limit)) {
	case TN_TINT_BAD:
		return (attr_t)COLOR_PAIR(1);
	case TN_TINT_WARN:
		return (attr_t)COLOR_PAIR(2);
	default:
		return A_NORMAL;
	}
}

static void draw_list(Screen *screen)
{
	guint n = tn_top_count(screen->top), height = LINES > 4 ? (guint)LINES - 4 : 1;
	gint at = screen->selected != NULL ? tn_top_find(screen->top, screen->selected) : -1;
	g_autofree char *head = g_strdup_printf("tmpnest  %u nests, by %s", n,
						sort_names[tn_top_sorted_by(screen->top)]);

	if (at < 0 && n > 0) {
		at = 0;
		g_free(screen->selected);
		screen->selected = g_strdup(tn_top_row(screen->top, 0)->id);
	}
	if (at >= 0 && (guint)at < screen->first)
		screen->first = (guint)at;
	if (at >= 0 && (guint)at >= screen->first + height)
		screen->first = (guint)at - height + 1;
	put_line(0, A_BOLD, head);
	put_line(1, A_REVERSE,
		 "NAME                 STATE       USED              %    +/s     OPS/s     US "
		 "DENIED");
	for (guint i = 0; i < height; i++) {
		guint index = screen->first + i;
		const TnTopRow *row = index < n ? tn_top_row(screen->top, index) : NULL;
		g_autofree char *text = row != NULL ? row_text(row) : g_strdup("");

		put_line((int)i + 2,
			 row == NULL         ? A_NORMAL
			 : (gint)index == at ? A_REVERSE
					     : tint(row),
			 text);
	}
	put_line(LINES - 1, A_DIM,
		 "q quit  s sort  / filter  enter look in  e evict  l limit  arrows move");
}

static void draw_nest(Screen *screen)
{
	guint height = LINES > 2 ? (guint)LINES - 2 : 1;

	for (guint i = 0; i < height; i++) {
		guint index = screen->first + i;

		put_line((int)i, i == 0 && screen->first == 0 ? A_BOLD : A_NORMAL,
			 index < screen->lines->len ? g_ptr_array_index(screen->lines, index) : "");
	}
	put_line(LINES - 1, A_DIM, "q back  arrows move  r look again");
}

static void draw(Screen *screen)
{
	erase();
	if (screen->view == VIEW_LIST)
		draw_list(screen);
	else
		draw_nest(screen);
	put_line(LINES - 2, A_BOLD, screen->said != NULL ? screen->said : "");
	refresh();
}

/* --- a nest's page
 * ----------------------------------------------------------------------------------- */

static char *shown(JsonObject *object, const char *key)
{
	g_autofree char *name =
		g_strdup(json_object_get_string_member_with_default(object, key, ""));

	return tn_name_decode(name) == 0 ? tn_text_escape(name) : g_strdup("?");
}

static void add_files(GPtrArray *lines, JsonObject *usage)
{
	JsonArray *files = json_object_get_array_member(usage, "files");
	gint64 held = json_object_get_int_member_with_default(usage, "held_bytes", 0);
	g_autofree char *held_text = tn_text_size((guint64)MAX(held, 0));

	g_ptr_array_add(lines, g_strdup("largest files"));
	for (guint i = 0; files != NULL && i < json_array_get_length(files); i++) {
		JsonObject *file = json_array_get_object_element(files, i);
		g_autofree char *path = shown(file, "path");
		g_autofree char *size = tn_text_size(
			(guint64)json_object_get_int_member_with_default(file, "bytes", 0));

		g_ptr_array_add(lines, g_strdup_printf("%9s  %s", size, path));
	}
	if (held > 0)
		g_ptr_array_add(lines, g_strdup_printf("%9s  deleted, still in use", held_text));
}

static void add_events(GPtrArray *lines, JsonObject *reply)
{
	JsonArray *events = json_object_get_array_member(reply, "events");
	guint n = events != NULL ? json_array_get_length(events) : 0;

	g_ptr_array_add(lines, g_strdup(""));
	g_ptr_array_add(lines, g_strdup("events, newest first"));
	for (guint i = 0; i < n && i < EVENTS_SHOWN; i++) {
		JsonObject *event = json_array_get_object_element(events, n - 1 - i);
		g_autofree char *time = shown(event, "time"), *what = shown(event, "event");
		g_autofree char *operation = shown(event, "operation"),
				*path = shown(event, "path");

		g_ptr_array_add(lines,
				g_strdup_printf("%.19s  %-10s %s %s", time, what, operation, path));
	}
}

static void look_in(Screen *screen)
{
	const TnTopRow *row = selected_row(screen);
	g_autoptr(JsonObject) usage = NULL, events = NULL;
	JsonObject *parameters;

	if (row == NULL)
		return;
	parameters = about(row);
	json_object_set_int_member(parameters, "top", 20);
	usage = call(screen, "GetUsage", parameters);
	if (usage != NULL)
		events = call(screen, "GetEvents", about(row));
	if (events == NULL)
		return;
	g_ptr_array_set_size(screen->lines, 0);
	g_ptr_array_add(screen->lines, row_text(row));
	g_ptr_array_add(screen->lines, g_strdup(""));
	add_files(screen->lines, usage);
	add_events(screen->lines, events);
	screen->view = VIEW_NEST;
	screen->first = 0;
}

/* --- keys
 * --------------------------------------------------------------------------------------------- */

/* A line typed at the bottom; NULL when it was left by escape. */
static char *ask(const char *question)
{
	char text[128] = "";
	int r;

	timeout(-1);
	echo();
	put_line(LINES - 2, A_BOLD, question);
	move(LINES - 2, (int)MIN(strlen(question), (size_t)COLS - 1));
	clrtoeol();
	r = getnstr(text, sizeof(text) - 1);
	noecho();
	timeout(LOOK_MS);
	return r == OK ? g_strdup(text) : NULL;
}

static gboolean confirm(const char *question)
{
	g_autofree char *answer = ask(question);

	return answer != NULL && strcmp(answer, "yes") == 0;
}

static void evict(Screen *screen)
{
	const TnTopRow *row = selected_row(screen);
	g_autofree char *question = NULL, *name = NULL;
	g_autoptr(JsonObject) reply = NULL;
	JsonObject *parameters, *result;
	JsonArray *names;
	gboolean force;

	if (row == NULL)
		return;
	force = row->nest.attachments > 0;
	name = tn_text_escape(row->nest.name);
	question = g_strdup_printf("evict %s%s? type yes: ", name,
				   force ? ", and fail the sandboxes that use it" : "");
	parameters = json_object_new();
	names = json_array_new();
	json_array_add_string_element(names, row->nest.name);
	json_object_set_array_member(parameters, "names", names);
	json_object_set_int_member(parameters, "owner_uid", row->nest.owner_uid);
	json_object_set_boolean_member(parameters, "force", force);
	if (!confirm(question)) {
		json_object_unref(parameters);
		say(screen, g_strdup("not evicted"));
		return;
	}
	reply = call(screen, "EvictNests", parameters);
	if (reply == NULL)
		return;
	result = json_array_get_object_element(json_object_get_array_member(reply, "results"), 0);
	if (json_object_get_boolean_member_with_default(result, "evicted", FALSE))
		say(screen, g_strdup_printf("evicted %s", name));
	else
		say(screen, tn_text_escape(json_object_get_string_member_with_default(
				    result, "reason", "not evicted")));
	look(screen);
}

static void limit(Screen *screen)
{
	const TnTopRow *row = selected_row(screen);
	g_autofree char *question = NULL, *answer = NULL, *name = NULL, *sure = NULL;
	g_autoptr(JsonObject) reply = NULL;
	JsonObject *parameters;
	guint64 bytes;

	if (row == NULL)
		return;
	name = tn_text_escape(row->nest.name);
	question = g_strdup_printf("bytes that %s may hold (64M, 2G, max): ", name);
	parameters = about(row);
	answer = ask(question);
	if (answer == NULL || tn_parse_size(answer, &bytes) < 0 || bytes == 0) {
		json_object_unref(parameters);
		say(screen, g_strdup("the limit stays as it is"));
		return;
	}
	sure = g_strdup_printf("limit %s to %s? type yes: ", name, answer);
	if (!confirm(sure)) {
		json_object_unref(parameters);
		say(screen, g_strdup("the limit stays as it is"));
		return;
	}
	json_object_set_int_member(parameters, "bytes_limit",
				   bytes == TN_UNLIMITED ? -1 : (gint64)bytes);
	reply = call(screen, "SetLimits", parameters);
	if (reply != NULL)
		say(screen, g_strdup_printf("limit of %s: %s", name, answer));
	look(screen);
}

static void move_by(Screen *screen, gint by)
{
	gint at = screen->selected != NULL ? tn_top_find(screen->top, screen->selected) : 0;
	gint n = (gint)tn_top_count(screen->top);

	if (screen->view == VIEW_NEST) {
		gint last = MAX((gint)screen->lines->len - 1, 0);

		screen->first = (guint)CLAMP((gint)screen->first + by, 0, last);
		return;
	}
	if (n == 0)
		return;
	at = CLAMP(at + by, 0, n - 1);
	g_free(screen->selected);
	screen->selected = g_strdup(tn_top_row(screen->top, (guint)at)->id);
}

static void ask_filter(Screen *screen)
{
	g_autofree char *text = ask("only names with: ");

	if (text != NULL)
		tn_top_filter(screen->top, text);
	screen->first = 0;
}

static void leave(Screen *screen)
{
	if (screen->view == VIEW_NEST) {
		screen->view = VIEW_LIST;
		screen->first = 0;
	} else {
		screen->ended = TRUE;
	}
}

static void press_in_list(Screen *screen, int key)
{
	switch (key) {
	case 's':
		tn_top_sort(screen->top,
			    (TnTopSort)((tn_top_sorted_by(screen->top) + 1) % TN_TOP_SORTS));
		break;
	case '/':
		ask_filter(screen);
		break;
	case '\n':
	case KEY_ENTER:
		look_in(screen);
		break;
	case 'e':
		evict(screen);
		break;
	case 'l':
		limit(screen);
		break;
	default:
		break;
	}
}

static void press(Screen *screen, int key)
{
	if (key != ERR)
		say(screen, NULL);
	switch (key) {
	case ERR:
		look(screen);
		break;
	case 'q':
		leave(screen);
		break;
	case KEY_UP:
	case 'k':
		move_by(screen, -1);
		break;
	case KEY_DOWN:
	case 'j':
		move_by(screen, 1);
		break;
	case KEY_PPAGE:
		move_by(screen, -(LINES - 4));
		break;
	case KEY_NPAGE:
		move_by(screen, LINES - 4);
		break;
	default:
		if (screen->view == VIEW_LIST)
			press_in_list(screen, key);
		else if (key == 'r')
			look_in(screen);
	}
}

static gboolean begin(void)
{
	SCREEN *terminal = newterm(NULL, stdout, stdin);

	if (terminal == NULL)
		return FALSE;
	set_term(terminal);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	timeout(LOOK_MS);
	curs_set(0);
	if (tn_ctl_colours() && start_color() == OK && use_default_colors() == OK) {
		init_pair(1, COLOR_RED, -1);
		init_pair(2, COLOR_YELLOW, -1);
	}
	return TRUE;
}

int tn_verb_top(const TnVerb *verb, int argc, char **argv)
{
	g_autoptr(TnClient) client = NULL;
	g_autoptr(TnTop) top = tn_top_new();
	Screen screen = {.top = top};
	TnCtlOptions options;
	GError *error = NULL;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, NULL, 0, 0, &options, &status))
		return status;
	if (options.json)
		return tn_ctl_usage(verb, "--json", "a screen is no JSON; take ls or metrics");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return tn_ctl_usage(verb, "standard output", "not a terminal");
	client = tn_client_open(&options.choice, &error);
	if (client == NULL)
		return tn_ctl_fail(verb, error);
	if (!begin())
		return tn_ctl_usage(verb, "TERM", "a terminal that curses does not know");
	screen.client = client;
	screen.lines = g_ptr_array_new_with_free_func(g_free);
	look(&screen);
	while (!screen.ended) {
		draw(&screen);
		press(&screen, getch());
	}
	endwin();
	g_ptr_array_unref(screen.lines);
	g_free(screen.selected);
	g_free(screen.said);
	return screen.error != NULL ? tn_ctl_fail(verb, screen.error) : TN_CTL_OK;
}
