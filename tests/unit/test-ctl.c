/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The operators' command line: options, limits, names, suggestions, exit statuses. */
#include "ctl.h"

#include "doctor.h"
#include "kernel.h"
#include "macros.h"
#include "nest-row.h"
#include "units.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

static const TnVerb verbs[] = {
	{"run", "", "", NULL},      {"create", "NAME", "", NULL}, {"ls", "", "", NULL},
	{"show", "NAME", "", NULL}, {"limits", "NAME", "", NULL}, {"evict", "NAME...", "", NULL},
	{"daemon", "", "", NULL},   {"doctor", "", "", NULL},
};

const TnVerb *tn_verbs(size_t *ret_n)
{
	*ret_n = G_N_ELEMENTS(verbs);
	return verbs;
}

static const TnVerb verb = {"create", "NAME", "make a nest", NULL};

typedef struct Output {
	int saved, file;
} Output;

/* What goes to stream fd from here on is kept. */
static void capture(Output *output, int fd)
{
	fflush(NULL);
	output->saved = dup(fd);
	output->file = memfd_create("output", MFD_CLOEXEC);
	assert_true(output->saved >= 0 && output->file >= 0);
	assert_int_equal(dup2(output->file, fd), fd);
}

static char *captured(Output *output, int fd)
{
	char text[8192] = "";
	ssize_t n;

	fflush(NULL);
	n = pread(output->file, text, sizeof(text) - 1, 0);
	assert_true(n >= 0);
	dup2(output->saved, fd);
	tn_close(&output->saved);
	tn_close(&output->file);
	return g_strdup(text);
}

typedef struct Parsed {
	gboolean ok;
	int status;
	TnCtlOptions options;
	TnCtlLimits limits;
	gboolean durable;
	char **deny;
	char *out, *err;
	char *words[16]; /* argv, which the options point into */
} Parsed;

/* Parses words (NULL at the end) as create's. */
static void parse(Parsed *p, ...)
{
	Output out, err;
	va_list args;
	int argc = 1;
	const GOptionEntry entries[] = {
		TN_CTL_LIMIT_ENTRIES(p->limits),
		{"durable", 0, 0, G_OPTION_ARG_NONE, &p->durable, "", NULL},
		{"deny", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &p->deny, "", "PATH"},
		{NULL},
	};

	*p = (Parsed){.words = {(char *)"create"}};
	va_start(args, p);
	for (char *word = va_arg(args, char *); word != NULL; word = va_arg(args, char *))
		p->words[argc++] = word;
	va_end(args);
	capture(&out, STDOUT_FILENO);
	capture(&err, STDERR_FILENO);
	p->ok = tn_ctl_parse(&verb, argc, p->words, entries, 1, 1, &p->options, &p->status);
	p->err = captured(&err, STDERR_FILENO);
	p->out = captured(&out, STDOUT_FILENO);
}

static void clear(Parsed *p)
{
	g_strfreev(p->deny);
	g_free(p->limits.quota);
	g_free(p->limits.inodes);
	g_free(p->limits.ttl);
	g_free(p->limits.idle_ttl);
	g_free((char *)p->options.choice.runtime_dir);
	g_free((char *)p->options.choice.store_dir);
	g_free(p->out);
	g_free(p->err);
}

static void test_options_and_arguments_mix(void **state)
{
	Parsed p;

	parse(&p, "--quota", "1G", "name", "--deny", "a", "--json", "--deny=b",
	      "--runtime-dir=/run/x", NULL);
	assert_true(p.ok);
	assert_int_equal(p.options.n_arguments, 1);
	assert_string_equal(p.options.arguments[0], "name");
	assert_null(p.options.arguments[1]);
	assert_string_equal(p.limits.quota, "1G");
	assert_int_equal(g_strv_length(p.deny), 2);
	assert_true(p.options.json);
	assert_false(p.options.choice.system);
	assert_string_equal(p.options.choice.runtime_dir, "/run/x");
	assert_string_equal(p.err, "");
	clear(&p);
}

static void test_double_dash_ends_options(void **state)
{
	Parsed p;

	parse(&p, "--json", "--", "-name", NULL);
	assert_true(p.ok);
	assert_int_equal(p.options.n_arguments, 1);
	assert_string_equal(p.options.arguments[0], "-name");
	clear(&p);
	parse(&p, "--", "name", NULL);
	assert_true(p.ok);
	assert_string_equal(p.options.arguments[0], "name");
	clear(&p);
}

/* One line on stderr that begins with the program and the verb, and nothing on stdout. */
static void check_refused(Parsed *p, const char *about)
{
	assert_false(p->ok);
	assert_int_equal(p->status, TN_CTL_USAGE);
	assert_string_equal(p->out, "");
	assert_true(g_str_has_prefix(p->err, "tmpnest: create: "));
	assert_non_null(strstr(p->err, about));
	assert_ptr_equal(strchr(p->err, '\n'), p->err + strlen(p->err) - 1);
	clear(p);
}

static void test_usage_errors_are_one_line(void **state)
{
	Parsed p;

	parse(&p, NULL);
	check_refused(&p, "NAME");
	parse(&p, "a", "b", NULL);
	check_refused(&p, "b");
	parse(&p, "a", "--nonsense", NULL);
	check_refused(&p, "--nonsense");
	parse(&p, "a", "--quota", NULL);
	check_refused(&p, "--quota");
	parse(&p, "a", "--bad\nline\033[31m", NULL);
	check_refused(&p, "\\x0aline\\x1b[31m");
}

static void test_help_goes_to_stdout(void **state)
{
	Parsed p;

	parse(&p, "--help", NULL);
	assert_false(p.ok);
	assert_int_equal(p.status, TN_CTL_OK);
	assert_string_equal(p.err, "");
	assert_non_null(strstr(p.out, "--quota"));
	assert_non_null(strstr(p.out, "--json"));
	assert_null(strchr(p.out, '\xe2'));
	clear(&p);
}

static void test_limits_as_users_write_them(void **state)
{
	static const struct {
		TnCtlLimits limits;
		const char *key;
		gint64 value;
	} cases[] = {
		{{.quota = (char *)"64M"}, "bytes_limit", 64 << 20},
		{{.quota = (char *)"max"}, "bytes_limit", -1},
		{{.quota = (char *)"1"}, "bytes_limit", 1},
		{{.inodes = (char *)"1000"}, "inodes_limit", 1000},
		{{.ttl = (char *)"90s"}, "ttl", 90},
		{{.idle_ttl = (char *)"2h"}, "idle_ttl", 7200},
		{{.idle_ttl = (char *)"max"}, "idle_ttl", -1},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(JsonObject) parameters = json_object_new();

		assert_true(tn_ctl_add_limits(&verb, &cases[i].limits, parameters));
		assert_int_equal(json_object_get_size(parameters), 1);
		assert_int_equal(json_object_get_int_member(parameters, cases[i].key),
				 cases[i].value);
	}
}

static void test_bad_limits_are_usage_errors(void **state)
{
	static const TnCtlLimits cases[] = {
		{.quota = (char *)""},      {.quota = (char *)"0"},
		{.quota = (char *)"-1"},    {.quota = (char *)"1X"},
		{.quota = (char *)"1MB"},   {.quota = (char *)"9999999999T"},
		{.inodes = (char *)"0"},    {.inodes = (char *)"ten"},
		{.ttl = (char *)"5"},       {.ttl = (char *)"5w"},
		{.idle_ttl = (char *)"0s"}, {.idle_ttl = (char *)"1h30m"},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(JsonObject) parameters = json_object_new();
		g_autofree char *text = NULL;
		gboolean ok;
		Output err;

		capture(&err, STDERR_FILENO);
		ok = tn_ctl_add_limits(&verb, &cases[i], parameters);
		text = captured(&err, STDERR_FILENO);
		assert_false(ok);
		assert_true(g_str_has_prefix(text, "tmpnest: create: --"));
	}
}

static void test_owner(void **state)
{
	Output err;
	gint64 owner = 5;
	g_autofree char *text = NULL;
	gboolean ok;

	assert_true(tn_ctl_owner(&verb, NULL, &owner));
	assert_int_equal(owner, -1);
	assert_true(tn_ctl_owner(&verb, "1234", &owner));
	assert_int_equal(owner, 1234);
	assert_true(tn_ctl_owner(&verb, "root", &owner));
	assert_int_equal(owner, 0);
	capture(&err, STDERR_FILENO);
	/* The last uid means "all" to the kernel. */
	ok = tn_ctl_owner(&verb, "4294967295", &owner) ||
	     tn_ctl_owner(&verb, "no such user", &owner);
	text = captured(&err, STDERR_FILENO);
	assert_false(ok);
}

static void test_suggestions(void **state)
{
	static const struct {
		const char *name, *meant;
	} cases[] = {
		{"lss", "ls"},        {"sl", "ls"},         {"list", "ls"},
		{"shwo", "show"},     {"crate", "create"},  {"evcit", "evict"},
		{"rm", "evict"},      {"limit", "limits"},  {"deamon", "daemon"},
		{"docter", "doctor"}, {"status", "daemon"}, {"xyzzy", NULL},
		{"", NULL},           {"q", NULL},          {"averyveryveryverylongword", NULL},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		const char *meant = tn_verb_suggest(cases[i].name);

		if (g_strcmp0(meant, cases[i].meant) != 0)
			fail_msg("%s: %s", cases[i].name, meant != NULL ? meant : "nothing");
	}
}

static void test_errors_have_exit_statuses(void **state)
{
	static const struct {
		const char *name;
		int status;
	} cases[] = {
		{"org.tmpnest.Control.NoSuchNest", TN_CTL_NO_NEST},
		{"org.tmpnest.Control.PermissionDenied", TN_CTL_REFUSED},
		{"org.tmpnest.Control.InUse", TN_CTL_FAILED},
		{"org.varlink.service.MethodNotFound", TN_CTL_FAILED},
		{"", TN_CTL_FAILED},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
		assert_int_equal(tn_client_error_status(cases[i].name), cases[i].status);
}

static void test_rows_take_any_json(void **state)
{
	static const char *const texts[] = {
		"{}",
		"{\"name\":1,\"state\":[],\"bytes_used\":\"x\",\"bytes_limit\":{},\"ephemeral\":1}",
		"{\"name\":null,\"owner_uid\":1.5,\"bytes_used\":-5,\"created\":false}",
	};
	TnNestRow row;

	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
		g_autoptr(JsonNode) node = json_from_string(texts[i], NULL);

		assert_non_null(node);
		tn_nest_row_read(json_node_get_object(node), &row);
		assert_string_equal(row.name, "");
		assert_int_equal(row.bytes_used, 0);
		assert_false(row.ephemeral);
	}
	g_autoptr(JsonNode) node = json_from_string(
		"{\"name\":\"n\",\"bytes_used\":7,\"bytes_limit\":null,\"inodes_limit\":9}", NULL);
	tn_nest_row_read(json_node_get_object(node), &row);
	assert_string_equal(row.name, "n");
	assert_int_equal(row.bytes_used, 7);
	assert_true(row.bytes_limit == TN_UNLIMITED);
	assert_int_equal(row.inodes_limit, 9);
}

static void test_versions(void **state)
{
	assert_true(tn_doctor_version_at_least("bubblewrap 0.8.0\n", 0, 4));
	assert_true(tn_doctor_version_at_least("bubblewrap 0.4", 0, 4));
	assert_true(tn_doctor_version_at_least("bubblewrap 1.0.0", 0, 4));
	assert_false(tn_doctor_version_at_least("bubblewrap 0.3.3", 0, 4));
	assert_false(tn_doctor_version_at_least("does not run", 0, 4));
	assert_true(tn_release_at_least("6.1.0-28-amd64", 6, 1));
	assert_true(tn_release_at_least("6.18.44-fc-v782", 6, 9));
	assert_true(tn_release_at_least("7.0", 6, 9));
	assert_false(tn_release_at_least("6.0.19", 6, 1));
	assert_false(tn_release_at_least("5.15.0", 6, 1));
	assert_false(tn_release_at_least("unknown", 6, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options_and_arguments_mix),
		cmocka_unit_test(test_double_dash_ends_options),
		cmocka_unit_test(test_usage_errors_are_one_line),
		cmocka_unit_test(test_help_goes_to_stdout),
		cmocka_unit_test(test_limits_as_users_write_them),
		cmocka_unit_test(test_bad_limits_are_usage_errors),
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_suggestions),
		cmocka_unit_test(test_errors_have_exit_statuses),
		cmocka_unit_test(test_rows_take_any_json),
		cmocka_unit_test(test_versions),
	};

	g_log_set_always_fatal(G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING | G_LOG_FATAL_MASK);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
