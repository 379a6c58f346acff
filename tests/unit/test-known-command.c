/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* known-command: certain only where nothing inside can differ from what is seen here. */
#include "known-command.h"

#include "macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct Case {
	const char *command;
	const char *path;     /* PATH, NULL: unset */
	const char *target;   /* mounted over, or NULL */
	const char *variable; /* --setenv, or NULL */
	bool passed;          /* --bwrap-arg words */
	bool known;
} Case;

static void judgements(void **state)
{
	static const Case cases[] = {
		{.command = "/usr/bin/env", .path = "/usr/bin", .known = true},
		{.command = "/usr/bin/env", .known = true},
		{.command = "env", .path = "/usr/bin", .known = true},
		{.command = "env", .path = "/no/such:/usr/bin:relative", .known = true},
		{.command = "env", .path = "/usr/bin", .variable = "LANG", .known = true},
		{.command = "env", .path = "/usr/bin", .target = "/usr/lib/x", .known = true},
		/* a link that leads to /usr */
		{.command = "/bin/env", .known = true},

		{.command = "env"},
		{.command = "env", .path = ""},
		{.command = "env", .path = "/no/such"},
		{.command = "env", .path = "relative:/usr/bin"},
		{.command = "env", .path = ":/usr/bin"},
		/* what is there inside cannot be told from here */
		{.command = "env", .path = "/tmp/bin:/usr/bin"},
		{.command = "env", .path = "/var/tmp:/usr/bin"},
		{.command = "env", .path = "/opt/x/bin:/usr/bin", .target = "/opt/x"},
		{.command = "env", .path = "/usr/bin", .target = "/usr"},
		{.command = "/usr/bin/env", .target = "/usr/bin"},
		{.command = "/usr/bin/env", .target = "/usr/bin/env"},
		{.command = "env", .path = "/usr/bin", .variable = "PATH"},
		{.command = "env", .path = "/usr/bin", .passed = true},
		{.command = "", .path = "/usr/bin"},
		{.command = "no-such-command", .path = "/usr/bin"},
		{.command = "./env", .path = "/usr/bin"},
		{.command = "bin/env", .path = "/usr"},
		{.command = "/usr/bin", .path = "/usr/bin"},
		{.command = "/etc/passwd"},
		{.command = "/proc/self/exe"},
		/* a script: its interpreter may be missing */
		{.command = "/usr/bin/ldd"},
	};
	static char tmp[] = "/tmp", var_tmp[] = "/var/tmp";

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		const Case *c = &cases[i];
		char *command[] = {(char *)c->command, NULL};
		TnRunMount mount = {.target = (char *)c->target};
		TnRunPlan plan = {.tmp = tmp,
				  .var_tmp = var_tmp,
				  .mounts = &mount,
				  .n_mounts = c->target ? 1 : 0};
		TnRunOptions options = {.command = command};

		if (c->path)
			setenv("PATH", c->path, 1);
		else
			unsetenv("PATH");
		if (c->variable)
			tn_words_add_all(&options.setenvs, c->variable, "x", NULL);
		if (c->passed)
			tn_words_add(&options.bwrap_args, "--as-pid-1");
		if (tn_command_is_known(&plan, &options) != c->known)
			fail_msg("case %zu: \"%s\" with PATH=%s", i, c->command,
				 c->path ? c->path : "(unset)");
		tn_words_clear(&options.setenvs);
		tn_words_clear(&options.bwrap_args);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judgements),
	};

	return cmocka_run_group_tests_name("known-command", tests, NULL, NULL);
}
