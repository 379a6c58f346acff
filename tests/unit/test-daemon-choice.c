/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon-choice: which daemons are tried, in which order, and who may start one. */
#include "daemon-choice.h"

#include "macros.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define USER 1000

typedef struct Case {
	TnDaemonChoice choice;
	const char *variable; /* TMPNEST_RUNTIME_DIR */
	uid_t uid;
	int n;
	struct {
		const char *runtime;
		TnScope scope;
		bool may_start;
	} found[TN_DAEMONS_MAX];
} Case;

static void candidates(void **state)
{
	static const Case cases[] = {
		{{0},
		 NULL,
		 USER,
		 2,
		 {{"/run/tmpnest", TN_SCOPE_SYSTEM, false},
		  {"/run/user/7/tmpnest", TN_SCOPE_USER, true}}},
		{{.system = true}, NULL, USER, 1, {{"/run/tmpnest", TN_SCOPE_SYSTEM, false}}},
		{{.user = true}, NULL, USER, 1, {{"/run/user/7/tmpnest", TN_SCOPE_USER, true}}},
		{{0}, NULL, 0, 1, {{"/run/tmpnest", TN_SCOPE_SYSTEM, true}}},
		{{.system = true}, NULL, 0, 1, {{"/run/tmpnest", TN_SCOPE_SYSTEM, true}}},
		{{.user = true}, NULL, 0, 1, {{"/run/user/7/tmpnest", TN_SCOPE_USER, true}}},
		/* with a place chosen nobody else's daemon will do */
		{{.runtime_dir = "/r"}, NULL, USER, 1, {{"/r", TN_SCOPE_USER, true}}},
		{{.runtime_dir = "/r"}, "/e", USER, 1, {{"/r", TN_SCOPE_USER, true}}},
		{{0}, "/e", USER, 1, {{"/e", TN_SCOPE_USER, true}}},
		{{0}, "/e", 0, 1, {{"/e", TN_SCOPE_SYSTEM, true}}},
		{{.user = true}, "/e", 0, 1, {{"/e", TN_SCOPE_USER, true}}},
		{{.system = true}, "/e", USER, 1, {{"/e", TN_SCOPE_SYSTEM, true}}},
		{{.store_dir = "/s"},
		 NULL,
		 USER,
		 1,
		 {{"/run/user/7/tmpnest", TN_SCOPE_USER, true}}},

		{{.system = true, .user = true}, NULL, USER, -EINVAL, {{0}}},
		{{.runtime_dir = "r"}, NULL, USER, -EINVAL, {{0}}},
	};

	setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	setenv("HOME", "/home/eve", 1);
	unsetenv("XDG_STATE_HOME");
	unsetenv("TMPNEST_STORE_DIR");
	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		const Case *c = &cases[i];
		TnPaths paths[TN_DAEMONS_MAX];
		char why[512] = "";
		int n;

		unsetenv("TMPNEST_RUNTIME_DIR");
		if (c->variable)
			setenv("TMPNEST_RUNTIME_DIR", c->variable, 1);
		n = tn_daemon_candidates(&c->choice, c->uid, paths, why, sizeof(why));
		if (n != c->n)
			fail_msg("case %zu: %d, \"%s\"", i, n, why);
		assert_int_equal(n < 0, why[0] != '\0');
		for (int j = 0; j < n; j++) {
			assert_string_equal(paths[j].runtime_dir, c->found[j].runtime);
			assert_int_equal(paths[j].scope, c->found[j].scope);
			assert_int_equal(tn_daemon_may_start(&c->choice, &paths[j], c->uid),
					 c->found[j].may_start);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(candidates),
	};

	return cmocka_run_group_tests_name("daemon-choice", tests, NULL, NULL);
}
