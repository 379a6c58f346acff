/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* bwrap-args: every option, blocks of --args, modifiers, ends, refusals, concerns. */
#include "bwrap-args.h"

#include "macros.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Descriptor 7 and 8 hold these; any other one cannot be read. */
typedef struct Blocks {
	const char *seven, *eight;
	size_t seven_size, eight_size;
} Blocks;

static int load(void *data, int fd, const char **ret_block, size_t *ret_size)
{
	const Blocks *blocks = data;

	if (fd == 7 && blocks->seven) {
		*ret_block = blocks->seven;
		*ret_size = blocks->seven_size;
		return 0;
	}
	if (fd == 8 && blocks->eight) {
		*ret_block = blocks->eight;
		*ret_size = blocks->eight_size;
		return 0;
	}
	return -EBADF;
}

static const char *const *split(char *text, size_t *ret_argc)
{
	static const char *argv[256];
	size_t n = 0;

	for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
		assert_true(n < TN_ARRAY_LEN(argv));
		argv[n++] = strcmp(word, "''") == 0 ? "" : word;
	}
	*ret_argc = n;
	return argv;
}

/* "MODIFIERS+OPTION(words)" of each operation, then "| command". */
static void describe(const TnBwrapLine *line, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < line->n_ops; i++) {
		const TnBwrapOp *op = &line->ops[i];

		used += (size_t)snprintf(text + used, size - used, "%s%s%u:", i ? " " : "",
					 op->from_block ? "f" : "", op->n_modifiers);
		for (unsigned j = 0; j < op->n_words; j++)
			used += (size_t)snprintf(text + used, size - used, "%s%s", j ? "," : "",
						 line->words[op->first + j]);
	}
	used += (size_t)snprintf(text + used, size - used, " |");
	for (size_t i = 0; i < line->n_command; i++)
		used += (size_t)snprintf(text + used, size - used, " %s", line->command[i]);
	assert_true(used < size);
}

#define SEVEN(text) .seven = text, .seven_size = sizeof(text) - 1
#define EIGHT(text) .eight = text, .eight_size = sizeof(text) - 1

typedef struct Case {
	const char *line;
	Blocks blocks;
	int result;
	const char *expected; /* description, or the sentence */
} Case;

static const Case cases[] = {
	/* ends of the options */
	{"--ro-bind / / true", {0}, 0, "0:--ro-bind,/,/ | true"},
	{"--ro-bind / / -- --true -x", {0}, 0, "0:--ro-bind,/,/ | --true -x"},
	{"true --ro-bind / /", {0}, 0, " | true --ro-bind / /"},
	{"--unshare-pid '' x", {0}, 0, "0:--unshare-pid |  x"},
	{"--setenv A '' true", {0}, 0, "0:--setenv,A, | true"},
	{"--chdir -- true", {0}, 0, "0:--chdir,-- | true"},
	{"--ro-bind / /", {0}, TN_BWRAP_NO_COMMAND, NULL},
	{"--ro-bind / / --", {0}, TN_BWRAP_NO_COMMAND, NULL},
	{"", {0}, TN_BWRAP_NO_COMMAND, NULL},
	{"--ro-bind / / --version", {0}, TN_BWRAP_WANTS_VERSION, NULL},
	{"--help --bogus", {0}, TN_BWRAP_WANTS_HELP, NULL},
	{"true --help", {0}, 0, " | true --help"},
	/* unknown */
	{"--bogus true", {0}, -EINVAL, "unknown option --bogus"},
	{"--help --bogus", {0}, TN_BWRAP_WANTS_HELP, NULL},
	{"--bogus --help", {0}, -EINVAL, "unknown option --bogus"},
	{"-x true", {0}, -EINVAL, "unknown option -x"},
	{"- true", {0}, -EINVAL, "unknown option -"},
	{"--bind=/ / true", {0}, -EINVAL, "unknown option --bind=/"},
	{"--ro-bin / / true", {0}, -EINVAL, "unknown option --ro-bin"},
	/* blocks */
	{"--args 7 true", {SEVEN("--dir\0/x\0")}, 0, "f0:--dir,/x | true"},
	{"--args 7 true", {SEVEN("--dir\0/x")}, 0, "f0:--dir,/x | true"},
	{"--args 7 true", {SEVEN("--setenv\0A\0\0")}, 0, "f0:--setenv,A, | true"},
	{"--args 7 true", {SEVEN("--setenv\0A\0")}, -EINVAL, "--setenv takes two arguments"},
	{"--args 7 true", {SEVEN("")}, 0, " | true"},
	{"--args 7 true", {SEVEN("--dir\0/x\0--\0--bogus")}, 0, "f0:--dir,/x | true"},
	{"--args 7 true", {SEVEN("--dir\0/x\0word\0--bogus")}, 0, "f0:--dir,/x | true"},
	{"--args 7 true", {SEVEN("\0--bogus")}, 0, " | true"},
	{"--args 7 true", {SEVEN("--bogus")}, -EINVAL, "unknown option --bogus"},
	{"--args 7 true", {SEVEN("--bind\0/a")}, -EINVAL, "--bind takes two arguments"},
	{"--args 7 /b true", {SEVEN("--bind\0/a")}, -EINVAL, "--bind takes two arguments"},
	{"--args 7 true", {SEVEN("--args\08")}, -EINVAL, "--args inside a block of --args"},
	{"--args 7 true", {SEVEN("--version")}, TN_BWRAP_WANTS_VERSION, NULL},
	{"--dir /a --args 7 --dir /c --args 8 --dir /e true",
	 {SEVEN("--dir\0/b"), EIGHT("--dir\0/d")},
	 0,
	 "0:--dir,/a f0:--dir,/b 0:--dir,/c f0:--dir,/d 0:--dir,/e | true"},
	{"--args 9 true", {0}, -EIO, "--args 9 cannot be read: Bad file descriptor"},
	{"--args x true", {0}, -EINVAL, "--args takes a descriptor, not x"},
	{"--args 7x true", {SEVEN("")}, -EINVAL, "--args takes a descriptor, not 7x"},
	{"--args '' true", {0}, -EINVAL, "--args takes a descriptor, not "},
	{"--args -7 true", {0}, -EINVAL, "--args takes a descriptor, not -7"},
	{"--args 99999999999999999999 true",
	 {0},
	 -EINVAL,
	 "--args takes a descriptor, not 99999999999999999999"},
	{"--args +7 true", {SEVEN("")}, 0, " | true"},
	{"--args", {0}, -EINVAL, "--args takes one argument"},
	/* modifiers */
	{"--perms 0700 --tmpfs /x true", {0}, 0, "2:--perms,0700,--tmpfs,/x | true"},
	{"--size 9 --perms 0700 --tmpfs /x true",
	 {0},
	 0,
	 "4:--size,9,--perms,0700,--tmpfs,/x | true"},
	{"--perms 0700 --file 3 /x --dir /y true",
	 {0},
	 0,
	 "2:--perms,0700,--file,3,/x 0:--dir,/y | true"},
	{"--overlay-src /a --overlay-src /b --overlay /rw /work /x true",
	 {0},
	 0,
	 "4:--overlay-src,/a,--overlay-src,/b,--overlay,/rw,/work,/x | true"},
	{"--overlay-src /a --tmp-overlay /x true",
	 {0},
	 0,
	 "2:--overlay-src,/a,--tmp-overlay,/x | true"},
	{"--perms 0700 --args 7 true",
	 {SEVEN("--tmpfs\0/x")},
	 0,
	 "f2:--perms,0700,--tmpfs,/x | true"},
	{"--args 7 --tmpfs /x true",
	 {SEVEN("--perms\0000700")},
	 -EINVAL,
	 "--perms must be followed by an option that creates a file"},
	{"--perms 0700 --ro-bind / / true",
	 {0},
	 -EINVAL,
	 "--perms must be followed by an option that creates a file"},
	{"--perms 0700 --unshare-pid --tmpfs /x true",
	 {0},
	 -EINVAL,
	 "--perms must be followed by an option that creates a file"},
	{"--perms 0700 --perms 0700 --tmpfs /x true",
	 {0},
	 -EINVAL,
	 "--perms twice for one operation"},
	{"--size 5 --dir /x true", {0}, -EINVAL, "--size must be followed by --tmpfs"},
	{"--size 5 --size 6 --tmpfs /x true", {0}, -EINVAL, "--size twice for one operation"},
	{"--dir /x --perms 0700 true", {0}, 0, "0:--dir,/x | true"},
	{"--dir /x --size 5 -- true", {0}, 0, "0:--dir,/x | true"},
	{"--overlay-src /a true",
	 {0},
	 -EINVAL,
	 "--overlay-src must be followed by --overlay, --tmp-overlay or --ro-overlay"},
	{"--overlay-src /a --perms 0700 --tmp-overlay /x true",
	 {0},
	 -EINVAL,
	 "--overlay-src must be followed by another one or by --overlay, --tmp-overlay or "
	 "--ro-overlay"},
	{"--ro-overlay /x true", {0}, -EINVAL, "--ro-overlay needs an --overlay-src before it"},
};

static void test_lines(void **state)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		const Case *row = &cases[i];
		char text[512], got[1024], why[TN_BWRAP_WHY_MAX];
		const char *const *argv;
		Blocks blocks = row->blocks;
		TnBwrapLine line;
		size_t argc;
		int r;

		snprintf(text, sizeof(text), "%s", row->line);
		argv = split(text, &argc);
		r = tn_bwrap_parse(&line, argv, argc, load, &blocks, why);
		if (r != row->result)
			fail_msg("%s: %d (%s)", row->line, r, why);
		if (r < 0) {
			assert_string_equal(why, row->expected);
		} else if (r == 0) {
			describe(&line, got, sizeof(got));
			assert_string_equal(got, row->expected);
		}
		tn_bwrap_clear(&line);
	}
}

/* The table of docs: every option with its number of words. */
static const char *const by_arity[] = {
	"--unshare-all --unshare-user --unshare-user-try --unshare-ipc --unshare-pid "
	"--unshare-net --unshare-uts --unshare-cgroup --unshare-cgroup-try --share-net "
	"--disable-userns --assert-userns-disabled --clearenv --new-session --die-with-parent "
	"--as-pid-1 --level-prefix",
	"--argv0 --chdir --unsetenv --lock-file --remount-ro --proc --dev --tmpfs --mqueue --dir "
	"--exec-label --file-label --seccomp --add-seccomp-fd --sync-fd --block-fd "
	"--userns-block-fd --info-fd --json-status-fd --userns --userns2 --pidns --uid --gid "
	"--hostname --cap-add --cap-drop",
	"--bind --bind-try --ro-bind --ro-bind-try --dev-bind --dev-bind-try --bind-fd "
	"--ro-bind-fd --file --bind-data --ro-bind-data --symlink --chmod --setenv",
};

static void test_every_option(void **state)
{
	size_t n = 0;

	for (unsigned arity = 0; arity < TN_ARRAY_LEN(by_arity); arity++) {
		char names[1024];
		char *rest = names, *name;

		snprintf(names, sizeof(names), "%s", by_arity[arity]);
		while ((name = strsep(&rest, " "))) {
			const char *argv[] = {name, "one", "two", "three"};
			char why[TN_BWRAP_WHY_MAX];
			TnBwrapLine line;
			Blocks none = {0};

			n++;
			assert_int_equal(tn_bwrap_parse(&line, argv, 4, load, &none, why), 0);
			assert_int_equal(line.n_ops, 1);
			assert_string_equal(tn_bwrap_name(line.ops[0].option), name);
			assert_int_equal(line.n_words, arity + 1);
			assert_int_equal(line.n_command, 3 - arity);
			tn_bwrap_clear(&line);
			for (unsigned given = 0; given < arity; given++) {
				assert_int_equal(
					tn_bwrap_parse(&line, argv, given + 1, load, &none, why),
					-EINVAL);
				assert_memory_equal(why, name, strlen(name));
				tn_bwrap_clear(&line);
			}
		}
	}
	/* help, version, args, perms, size and the four of overlays have cases of their own */
	assert_int_equal(n + 9, TN_BWRAP_N_OPTIONS);
}

static void test_traits(void **state)
{
	static const struct {
		TnBwrapOption option;
		unsigned has, lacks;
	} rows[] = {
		{TN_BWRAP_BIND, TN_BWRAP_MOUNTS | TN_BWRAP_FROM_PATH, TN_BWRAP_READ_ONLY},
		{TN_BWRAP_RO_BIND_TRY, TN_BWRAP_READ_ONLY | TN_BWRAP_TRY, TN_BWRAP_ENTRY},
		{TN_BWRAP_RO_BIND_FD, TN_BWRAP_READ_ONLY | TN_BWRAP_FROM_FD, TN_BWRAP_FROM_PATH},
		{TN_BWRAP_TMPFS, TN_BWRAP_MOUNTS, TN_BWRAP_FROM_PATH},
		{TN_BWRAP_REMOUNT_RO, TN_BWRAP_HAS_DEST, TN_BWRAP_MOUNTS},
		{TN_BWRAP_FILE, TN_BWRAP_ENTRY, TN_BWRAP_MOUNTS},
		{TN_BWRAP_BIND_DATA, TN_BWRAP_MOUNTS_FILE | TN_BWRAP_MOUNTS, TN_BWRAP_FROM_FD},
		{TN_BWRAP_OVERLAY, TN_BWRAP_OVERLAYS | TN_BWRAP_MOUNTS, TN_BWRAP_FROM_PATH},
		{TN_BWRAP_LOCK_FILE, 0, TN_BWRAP_HAS_DEST},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		unsigned traits = tn_bwrap_traits(rows[i].option);

		assert_int_equal(traits & rows[i].has, rows[i].has);
		assert_int_equal(traits & rows[i].lacks, 0);
	}
}

static void parse_ok(TnBwrapLine *line, char *text)
{
	char why[TN_BWRAP_WHY_MAX];
	Blocks none = {0};
	size_t argc;
	const char *const *argv = split(text, &argc);

	if (tn_bwrap_parse(line, argv, argc, load, &none, why) != 0)
		fail_msg("%s", why);
}

static void test_summary(void **state)
{
	TnBwrapLine line;
	char all[] = "--unshare-all --sync-fd 5 --chdir /x --as-pid-1 --cap-drop ALL true";
	char caps[] = "--cap-drop ALL --cap-add CAP_NET_ADMIN --cap-drop CAP_CHOWN true";
	char cleared[] = "--setenv TMPDIR /a --clearenv --setenv TMP /b true";
	char set[] = "--unsetenv TMPDIR --setenv TMPDIR /a --setenv TMPDIR /b true";
	char none[] = "--setenv TMPDIRX /a --unsetenv TMP true";

	parse_ok(&line, all);
	assert_true(line.summary.unshare_user && line.summary.unshare_pid);
	assert_true(line.summary.as_pid_1 && line.summary.drops_caps);
	assert_string_equal(line.summary.sync_fd, "5");
	assert_string_equal(line.summary.chdir, "/x");
	assert_false(line.summary.loaded);
	tn_bwrap_clear(&line);
	parse_ok(&line, caps);
	assert_false(line.summary.drops_caps);
	tn_bwrap_clear(&line);
	parse_ok(&line, cleared);
	assert_int_equal(line.summary.tmpdir_state, TN_BWRAP_ENV_UNSET);
	tn_bwrap_clear(&line);
	parse_ok(&line, set);
	assert_int_equal(line.summary.tmpdir_state, TN_BWRAP_ENV_SET);
	assert_string_equal(line.summary.tmpdir, "/b");
	tn_bwrap_clear(&line);
	parse_ok(&line, none);
	assert_int_equal(line.summary.tmpdir_state, TN_BWRAP_ENV_INHERITED);
	tn_bwrap_clear(&line);
}

static void test_probe(void **state)
{
	static const struct {
		const char *line;
		bool probe;
	} rows[] = {
		{"--unshare-user --dev-bind / / true", true},
		{"--unshare-all --ro-bind / / --proc /proc --dev /dev -- /bin/true", true},
		{"--dev-bind / / true x", false},
		{"--dev-bind / / sh -c true", false},
		{"--dev-bind / / --bind /x /x true", false},
		{"--dev-bind / /mnt true", false},
		{"--dev-bind / / --tmpfs /tmp true", false},
		{"--unshare-user true", false},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		char text[256];
		TnBwrapLine line;

		snprintf(text, sizeof(text), "%s", rows[i].line);
		parse_ok(&line, text);
		if (tn_bwrap_is_probe(&line) != rows[i].probe)
			fail_msg("%s", rows[i].line);
		tn_bwrap_clear(&line);
	}
}

static void test_concerns(void **state)
{
	static const struct {
		const char *line;
		unsigned uid;
		TnBwrapConcern expected[TN_BWRAP_CONCERNS_MAX];
	} rows[] = {
		{"--unshare-pid true", 1000, {0}},
		{"--unshare-all true", 0, {0}},
		{"--unshare-pid --unshare-user true", 0, {0}},
		{"--unshare-pid --cap-drop ALL true", 0, {0}},
		{"--unshare-pid --cap-drop CAP_CHOWN true", 0, {TN_BWRAP_WARN_ROOT_CAPS}},
		{"--unshare-pid --cap-drop ALL --cap-add ALL true", 0, {TN_BWRAP_WARN_ROOT_CAPS}},
		{"true", 0, {TN_BWRAP_WARN_ROOT_CAPS, TN_BWRAP_WARN_SHARED_PIDS}},
		{"true", 1000, {TN_BWRAP_WARN_SHARED_PIDS}},
		{"--pidns 5 --unshare-user true", 0, {0}},
		{"--userns 5 --unshare-pid true", 0, {0}},
		{"--userns 5 true", 1000, {TN_BWRAP_REFUSE_USERNS}},
		{"--userns 5 --userns2 6 --userns-block-fd 7 --pidns 8 true",
		 1000,
		 {TN_BWRAP_REFUSE_USERNS, TN_BWRAP_REFUSE_USERNS2, TN_BWRAP_REFUSE_USERNS_BLOCK_FD,
		  TN_BWRAP_REFUSE_PIDNS}},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		TnBwrapConcern got[TN_BWRAP_CONCERNS_MAX] = {0};
		char text[256];
		TnBwrapLine line;
		size_t n;

		snprintf(text, sizeof(text), "%s", rows[i].line);
		parse_ok(&line, text);
		n = tn_bwrap_concerns(&line.summary, rows[i].uid, got);
		assert_memory_equal(got, rows[i].expected, sizeof(got));
		for (size_t j = 0; j < n; j++)
			assert_true(strlen(tn_bwrap_concern_text(got[j])) > 40);
		assert_int_equal(n > 0 && tn_bwrap_concern_refuses(got[0]),
				 n > 0 && got[0] <= TN_BWRAP_REFUSE_PIDNS);
		tn_bwrap_clear(&line);
	}
}

/* The cap counts the command line, its command and the blocks. */
static void test_cap(void **state)
{
	static const char *argv[TN_BWRAP_WORDS_MAX + 1];
	static char block[2 * TN_BWRAP_WORDS_MAX];
	char why[TN_BWRAP_WHY_MAX];
	TnBwrapLine line;
	Blocks blocks = {0};
	size_t n = 0;

	for (size_t i = 0; i + 1 < TN_BWRAP_WORDS_MAX; i++)
		argv[n++] = "--unshare-net";
	argv[n++] = "true";
	assert_int_equal(tn_bwrap_parse(&line, argv, n, load, &blocks, why), 0);
	assert_int_equal(line.n_ops, TN_BWRAP_WORDS_MAX - 1);
	tn_bwrap_clear(&line);
	argv[n++] = "x";
	assert_int_equal(tn_bwrap_parse(&line, argv, n, load, &blocks, why), -EINVAL);
	assert_string_equal(why, "more than 9000 words");
	tn_bwrap_clear(&line);

	argv[0] = "--args";
	argv[1] = "7";
	argv[2] = "true";
	for (size_t i = 0; i < TN_BWRAP_WORDS_MAX - 2; i++)
		memcpy(block + 2 * i, i % 2 ? "a" : "-", 2);
	blocks.seven = block;
	blocks.seven_size = 2 * (TN_BWRAP_WORDS_MAX - 3);
	assert_int_equal(tn_bwrap_parse(&line, argv, 3, load, &blocks, why), -EINVAL);
	assert_string_equal(why, "unknown option -");
	tn_bwrap_clear(&line);
	blocks.seven_size += 2;
	assert_int_equal(tn_bwrap_parse(&line, argv, 3, load, &blocks, why), -EINVAL);
	assert_string_equal(why, "more than 9000 words");
	tn_bwrap_clear(&line);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525U + 1013904223U;
	return *seed >> 8;
}

/*
 * Any words: no crash, operations lie side by side and hold every word that is kept, and
 * the same line given as one block means the same.
 */
static void test_random(void **state)
{
	uint32_t seed = 20240917;

	print_message("seed %u\n", seed);
	for (int round = 0; round < 20000; round++) {
		static const char *const extra[] = {"/",  "/tmp", "/tmp/x", "7",       "0700",
						    "--", "",     "word",   "--bogus", "TMPDIR"};
		const char *argv[24], *outer[] = {"--args", "7", "true"};
		char block[1024];
		size_t n = next_random(&seed) % 22, used = 0;
		char why[TN_BWRAP_WHY_MAX], block_why[TN_BWRAP_WHY_MAX];
		TnBwrapLine line, from_block;
		Blocks blocks = {0};
		int r, block_r;

		for (size_t i = 0; i < n; i++) {
			uint32_t pick = next_random(&seed) % (TN_BWRAP_N_OPTIONS + 60);

			/* --args and the end of the options differ inside a block */
			if (pick < TN_BWRAP_N_OPTIONS && pick != TN_BWRAP_ARGS)
				argv[i] = tn_bwrap_name((TnBwrapOption)pick);
			else
				argv[i] = extra[pick % TN_ARRAY_LEN(extra)];
			used += (size_t)snprintf(block + used, sizeof(block) - used, "%s",
						 argv[i]) +
				1;
		}
		argv[n++] = "true";
		blocks.seven = block;
		blocks.seven_size = used;
		r = tn_bwrap_parse(&line, argv, n, load, &blocks, why);
		block_r = tn_bwrap_parse(&from_block, outer, 3, load, &blocks, block_why);
		if (r == 0) {
			size_t at = 0;

			for (size_t i = 0; i < line.n_ops; i++) {
				assert_int_equal(line.ops[i].first, at);
				at += line.ops[i].n_words;
				assert_true(line.ops[i].n_modifiers < line.ops[i].n_words);
			}
			assert_int_equal(at, line.n_words);
			for (size_t i = 0; i < at; i++)
				assert_ptr_equal(line.words[i], argv[i]);
			assert_true(line.n_command > 0);
		} else if (r < 0) {
			assert_true(strlen(why) > 0);
		}
		/* An option that takes the word after the block's end fails only in a block. */
		if (r == 0 && block_r == 0) {
			assert_int_equal(line.n_words, from_block.n_words);
			for (size_t i = 0; i < line.n_words; i++)
				assert_string_equal(line.words[i], from_block.words[i]);
		} else if (r > 0) {
			assert_true(block_r == r || r == TN_BWRAP_NO_COMMAND);
		} else if (r < 0) {
			assert_true(block_r < 0);
		}
		tn_bwrap_clear(&line);
		tn_bwrap_clear(&from_block);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),  cmocka_unit_test(test_every_option),
		cmocka_unit_test(test_traits), cmocka_unit_test(test_summary),
		cmocka_unit_test(test_probe),  cmocka_unit_test(test_concerns),
		cmocka_unit_test(test_cap),    cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
