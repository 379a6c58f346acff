/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "macros.h"
#include "stub-audit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As a sandbox sees it: read-only root, writable workspace, denies of each kind in it. */
static const char table[] =
	"1 0 254:0 / / ro,nosuid,relatime - ext4 /dev/vda rw\n"
	"2 1 254:0 /home/u/work /home/u/work rw,nosuid - ext4 /dev/vda rw\n"
	"3 2 0:6 /null /home/u/work/.bashrc ro,nosuid - devtmpfs devtmpfs rw\n"
	"4 2 254:0 /tmp/claude-empty-1 /home/u/work/.claude ro - ext4 /dev/vda rw\n"
	"5 2 254:0 /home/u/work/.git/hooks /home/u/work/.git/hooks ro - ext4 /dev/vda rw\n"
	"6 2 0:6 /null /home/u/work/with\\040space ro master:1 shared:2 - devtmpfs devtmpfs rw\n"
	"7 1 0:30 / /dev rw - tmpfs tmpfs rw\n"
	"8 7 0:6 /null /dev/null rw - devtmpfs devtmpfs rw\n"
	"9 1 0:31 / /proc ro - proc proc rw\n"
	/* a deny below another one, and a place that is writable again on top of one */
	"10 4 0:6 /null /home/u/work/.claude/skills ro - devtmpfs devtmpfs rw\n"
	"11 2 0:6 /null /home/u/work/again ro - devtmpfs devtmpfs rw\n"
	"12 11 254:0 /x /home/u/work/again rw - ext4 /dev/vda rw\n"
	/* read-only on a read-only place denies nothing */
	"13 1 254:0 /usr/x /usr/x ro - ext4 /dev/vda rw\n";

typedef struct Found {
	char denied[8][64], profile[8][64];
	size_t n_denied, n_profile;
} Found;

static void denied_only(void *data, const char *path)
{
	Found *found = data;

	snprintf(found->denied[found->n_denied++], 64, "%s", path);
}

static void profile_only(void *data, const char *path)
{
	Found *found = data;

	snprintf(found->profile[found->n_profile++], 64, "%s", path);
}

static void read_table(const char *text, TnAudit *audit, int expected)
{
	char path[] = "/var/tmp/tmpnest-audit-XXXXXX";
	int fd = mkstemp(path);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(tn_audit_read(path, audit), expected);
	unlink(path);
}

static void test_differences(void **state)
{
	char *in_profile[] = {(char *)"/home/u/work/.bashrc", (char *)"/home/u/work/.zshrc",
			      (char *)"/home/u/work/.claude", (char *)"/home/u/work/.claude/agents",
			      (char *)"/home/u/.mcp.json",    (char *)"/home/u/work/again"};
	char *in_also[] = {(char *)"/home/u/work/.git/hooks"};
	TnStubPaths paths = {in_profile, TN_ARRAY_LEN(in_profile)}, also = {in_also, 1};
	Found found = {0};
	TnAudit audit;

	read_table(table, &audit, 0);
	assert_int_equal(tn_audit_compare(&audit, &paths, &also, denied_only, profile_only, &found),
			 4);
	assert_int_equal(found.n_denied, 2);
	assert_string_equal(found.denied[0], "/home/u/work/.claude/skills");
	assert_string_equal(found.denied[1], "/home/u/work/with space");
	/* .claude/agents is below a deny, .mcp.json is in a read-only place */
	assert_int_equal(found.n_profile, 2);
	assert_string_equal(found.profile[0], "/home/u/work/.zshrc");
	assert_string_equal(found.profile[1], "/home/u/work/again");
	tn_audit_clear(&audit);
}

static void test_writable_places(void **state)
{
	TnAudit audit;

	read_table(table, &audit, 0);
	assert_int_equal(audit.n_writable, 2);
	assert_string_equal(audit.writable[0], "/home/u/work");
	assert_string_equal(audit.writable[1], "/home/u/work/again");
	tn_audit_clear(&audit);
}

static void test_no_difference(void **state)
{
	char *in_profile[] = {(char *)"/home/u/work/.bashrc"};
	TnStubPaths paths = {in_profile, 1}, also = {NULL, 0};
	Found found = {0};
	TnAudit audit;

	read_table("1 0 254:0 / / ro - ext4 /dev/vda rw\n"
		   "2 1 254:0 /home/u/work /home/u/work rw - ext4 /dev/vda rw\n"
		   "3 2 0:6 /null /home/u/work/.bashrc ro - devtmpfs devtmpfs rw\n",
		   &audit, 0);
	assert_int_equal(tn_audit_compare(&audit, &paths, &also, denied_only, profile_only, &found),
			 0);
	tn_audit_clear(&audit);
}

static void test_what_is_no_table(void **state)
{
	TnAudit audit;

	read_table("", &audit, -EBADMSG);
	read_table("hello\nworld\n", &audit, -EBADMSG);
	assert_int_equal(tn_audit_read("/no/such/file", &audit), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_differences),
		cmocka_unit_test(test_writable_places),
		cmocka_unit_test(test_no_difference),
		cmocka_unit_test(test_what_is_no_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
