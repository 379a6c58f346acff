/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bwrap-args.h"

#include "macros.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct OptionInfo {
	const char *name;
	uint8_t n_arguments;
	uint16_t traits;
} OptionInfo;

enum {
	DEST = TN_BWRAP_HAS_DEST,
	MOUNT = DEST | TN_BWRAP_MOUNTS,
	BIND = MOUNT | TN_BWRAP_FROM_PATH,
	BIND_FD = MOUNT | TN_BWRAP_FROM_FD,
	ENTRY = DEST | TN_BWRAP_ENTRY,
	DATA = MOUNT | TN_BWRAP_MOUNTS_FILE,
	OVERLAY = MOUNT | TN_BWRAP_OVERLAYS,
	TRY = TN_BWRAP_TRY,
	RO = TN_BWRAP_READ_ONLY,
	MODIFIER = TN_BWRAP_MODIFIER,
};

static const OptionInfo options[TN_BWRAP_N_OPTIONS] = {
	[TN_BWRAP_HELP] = {"--help", 0, 0},
	[TN_BWRAP_VERSION] = {"--version", 0, 0},
	[TN_BWRAP_UNSHARE_ALL] = {"--unshare-all", 0, 0},
	[TN_BWRAP_UNSHARE_USER] = {"--unshare-user", 0, 0},
	[TN_BWRAP_UNSHARE_USER_TRY] = {"--unshare-user-try", 0, 0},
	[TN_BWRAP_UNSHARE_IPC] = {"--unshare-ipc", 0, 0},
	[TN_BWRAP_UNSHARE_PID] = {"--unshare-pid", 0, 0},
	[TN_BWRAP_UNSHARE_NET] = {"--unshare-net", 0, 0},
	[TN_BWRAP_UNSHARE_UTS] = {"--unshare-uts", 0, 0},
	[TN_BWRAP_UNSHARE_CGROUP] = {"--unshare-cgroup", 0, 0},
	[TN_BWRAP_UNSHARE_CGROUP_TRY] = {"--unshare-cgroup-try", 0, 0},
	[TN_BWRAP_SHARE_NET] = {"--share-net", 0, 0},
	[TN_BWRAP_DISABLE_USERNS] = {"--disable-userns", 0, 0},
	[TN_BWRAP_ASSERT_USERNS_DISABLED] = {"--assert-userns-disabled", 0, 0},
	[TN_BWRAP_CLEARENV] = {"--clearenv", 0, 0},
	[TN_BWRAP_NEW_SESSION] = {"--new-session", 0, 0},
	[TN_BWRAP_DIE_WITH_PARENT] = {"--die-with-parent", 0, 0},
	[TN_BWRAP_AS_PID_1] = {"--as-pid-1", 0, 0},
	[TN_BWRAP_LEVEL_PREFIX] = {"--level-prefix", 0, 0},
	[TN_BWRAP_ARGS] = {"--args", 1, 0},
	[TN_BWRAP_ARGV0] = {"--argv0", 1, 0},
	[TN_BWRAP_CHDIR] = {"--chdir", 1, 0},
	[TN_BWRAP_UNSETENV] = {"--unsetenv", 1, 0},
	[TN_BWRAP_LOCK_FILE] = {"--lock-file", 1, 0},
	[TN_BWRAP_REMOUNT_RO] = {"--remount-ro", 1, DEST},
	[TN_BWRAP_PROC] = {"--proc", 1, MOUNT},
	[TN_BWRAP_DEV] = {"--dev", 1, MOUNT},
	[TN_BWRAP_TMPFS] = {"--tmpfs", 1, MOUNT},
	[TN_BWRAP_MQUEUE] = {"--mqueue", 1, MOUNT},
	[TN_BWRAP_DIR] = {"--dir", 1, ENTRY},
	[TN_BWRAP_EXEC_LABEL] = {"--exec-label", 1, 0},
	[TN_BWRAP_FILE_LABEL] = {"--file-label", 1, 0},
	[TN_BWRAP_SECCOMP] = {"--seccomp", 1, 0},
	[TN_BWRAP_ADD_SECCOMP_FD] = {"--add-seccomp-fd", 1, 0},
	[TN_BWRAP_SYNC_FD] = {"--sync-fd", 1, 0},
	[TN_BWRAP_BLOCK_FD] = {"--block-fd", 1, 0},
	[TN_BWRAP_USERNS_BLOCK_FD] = {"--userns-block-fd", 1, 0},
	[TN_BWRAP_INFO_FD] = {"--info-fd", 1, 0},
	[TN_BWRAP_JSON_STATUS_FD] = {"--json-status-fd", 1, 0},
	[TN_BWRAP_USERNS] = {"--userns", 1, 0},
	[TN_BWRAP_USERNS2] = {"--userns2", 1, 0},
	[TN_BWRAP_PIDNS] = {"--pidns", 1, 0},
	[TN_BWRAP_UID] = {"--uid", 1, 0},
	[TN_BWRAP_GID] = {"--gid", 1, 0},
	[TN_BWRAP_HOSTNAME] = {"--hostname", 1, 0},
	[TN_BWRAP_CAP_ADD] = {"--cap-add", 1, 0},
	[TN_BWRAP_CAP_DROP] = {"--cap-drop", 1, 0},
	[TN_BWRAP_PERMS] = {"--perms", 1, MODIFIER},
	[TN_BWRAP_SIZE] = {"--size", 1, MODIFIER},
	[TN_BWRAP_OVERLAY_SRC] = {"--overlay-src", 1, MODIFIER},
	[TN_BWRAP_TMP_OVERLAY] = {"--tmp-overlay", 1, OVERLAY},
	[TN_BWRAP_RO_OVERLAY] = {"--ro-overlay", 1, OVERLAY | RO},
	[TN_BWRAP_BIND] = {"--bind", 2, BIND},
	[TN_BWRAP_BIND_TRY] = {"--bind-try", 2, BIND | TRY},
	[TN_BWRAP_RO_BIND] = {"--ro-bind", 2, BIND | RO},
	[TN_BWRAP_RO_BIND_TRY] = {"--ro-bind-try", 2, BIND | TRY | RO},
	[TN_BWRAP_DEV_BIND] = {"--dev-bind", 2, BIND},
	[TN_BWRAP_DEV_BIND_TRY] = {"--dev-bind-try", 2, BIND | TRY},
	[TN_BWRAP_BIND_FD] = {"--bind-fd", 2, BIND_FD},
	[TN_BWRAP_RO_BIND_FD] = {"--ro-bind-fd", 2, BIND_FD | RO},
	[TN_BWRAP_FILE] = {"--file", 2, ENTRY},
	[TN_BWRAP_BIND_DATA] = {"--bind-data", 2, DATA},
	[TN_BWRAP_RO_BIND_DATA] = {"--ro-bind-data", 2, DATA | RO},
	[TN_BWRAP_SYMLINK] = {"--symlink", 2, ENTRY},
	[TN_BWRAP_CHMOD] = {"--chmod", 2, ENTRY},
	[TN_BWRAP_SETENV] = {"--setenv", 2, 0},
	[TN_BWRAP_OVERLAY] = {"--overlay", 3, OVERLAY},
};

typedef struct Parser {
	TnBwrapLine *line;
	TnBwrapLoad load;
	void *data;
	char *why;
	size_t total;     /* words of the command line and of all blocks so far */
	size_t n_pending; /* modifier words at the end of line->words */
	bool has_perms, has_size, has_overlay_src; /* which modifiers they are */
} Parser;

/* One run of words: the command line, or a block of --args. */
typedef struct Input {
	const char *const *argv; /* the command line ... */
	size_t argc;
	const char *next, *end; /* ... or the words of a block, each with a NUL after it */
	bool is_block;
} Input;

__attribute__((format(printf, 2, 3))) static int refuse(Parser *parser, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(parser->why, TN_BWRAP_WHY_MAX, format, args);
	va_end(args);
	return -EINVAL;
}

/* The next word, or NULL at the end of this input. */
static const char *take_word(Input *input)
{
	const char *word;

	if (!input->is_block) {
		if (input->argc == 0)
			return NULL;
		input->argc--;
		return *input->argv++;
	}
	if (input->next >= input->end)
		return NULL;
	word = input->next;
	input->next += strlen(word) + 1;
	return word;
}

/* Room for one more of size bytes in *array; n and *room count elements. */
static int make_room(void **array, size_t n, size_t *room, size_t size)
{
	size_t more, bytes;
	void *bigger;

	if (n < *room)
		return 0;
	/* A word takes at least one of the capped number, and an operation one word. */
	if (n >= TN_BWRAP_WORDS_MAX)
		return -E2BIG;
	more = *room ? *room * 2 : 64;
	if (more > TN_BWRAP_WORDS_MAX)
		more = TN_BWRAP_WORDS_MAX;
	if (tn_mul_overflows(more, size, &bytes))
		return -ENOMEM;
	bigger = realloc(*array, bytes);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	*room = more;
	return 0;
}

static int add_word(TnBwrapLine *line, const char *word)
{
	int r = make_room((void **)&line->words, line->n_words, &line->words_room,
			  sizeof(*line->words));

	if (r == 0)
		line->words[line->n_words++] = word;
	return r;
}

static int find_option(const char *word)
{
	if (strncmp(word, "--", 2) != 0)
		return -1;
	/* By its letter first: that leaves few names to compare. */
	for (int i = 0; i < TN_BWRAP_N_OPTIONS; i++)
		if (options[i].name[2] == word[2] && strcmp(options[i].name, word) == 0)
			return i;
	return -1;
}

/* A decimal descriptor the way strtol() reads one: bwrap takes " 7" and "+7" too. */
static int parse_fd(const char *text)
{
	char *end;
	long fd;

	errno = 0;
	fd = strtol(text, &end, 10);
	return !*text || *end || errno || fd < 0 || fd > INT_MAX ? -1 : (int)fd;
}

static int count_block(Parser *parser, const char *block, size_t size)
{
	for (size_t at = 0; at < size; at += strlen(block + at) + 1)
		if (++parser->total > TN_BWRAP_WORDS_MAX)
			return refuse(parser, "more than %d words", TN_BWRAP_WORDS_MAX);
	return 0;
}

static int parse_input(Parser *parser, Input *input);

static int expand_block(Parser *parser, const Input *outer, const char *fd_word)
{
	Input input = {.is_block = true};
	const char *block = NULL;
	size_t size = 0;
	int fd, r;

	if (outer->is_block)
		return refuse(parser, "--args inside a block of --args");
	fd = parse_fd(fd_word);
	if (fd < 0)
		return refuse(parser, "--args takes a descriptor, not %.64s", fd_word);
	r = parser->load(parser->data, fd, &block, &size);
	if (r < 0) {
		refuse(parser, "--args %d cannot be read: %s", fd, strerror(-r));
		return -EIO;
	}
	parser->line->summary.loaded = true;
	r = count_block(parser, block, size);
	if (r < 0)
		return r;
	input.next = block;
	input.end = block + size;
	return parse_input(parser, &input);
}

/* Operations that each modifier may stand before, as bwrap checks it. */
static bool takes_perms(TnBwrapOption option)
{
	return option == TN_BWRAP_TMPFS || option == TN_BWRAP_DIR || option == TN_BWRAP_FILE ||
	       option == TN_BWRAP_BIND_DATA || option == TN_BWRAP_RO_BIND_DATA;
}

static int check_modifiers(Parser *parser, TnBwrapOption option)
{
	bool modifier = options[option].traits & MODIFIER;

	if (parser->has_overlay_src && option != TN_BWRAP_OVERLAY_SRC &&
	    !(options[option].traits & TN_BWRAP_OVERLAYS))
		return refuse(parser, "--overlay-src must be followed by another one or by "
				      "--overlay, --tmp-overlay or --ro-overlay");
	if (modifier && option != TN_BWRAP_OVERLAY_SRC) {
		if ((option == TN_BWRAP_PERMS && parser->has_perms) ||
		    (option == TN_BWRAP_SIZE && parser->has_size))
			return refuse(parser, "%s twice for one operation", options[option].name);
		return 0;
	}
	if (parser->has_perms && !takes_perms(option))
		return refuse(parser, "--perms must be followed by an option that creates a file");
	if (parser->has_size && option != TN_BWRAP_TMPFS)
		return refuse(parser, "--size must be followed by --tmpfs");
	if ((option == TN_BWRAP_TMP_OVERLAY || option == TN_BWRAP_RO_OVERLAY ||
	     option == TN_BWRAP_OVERLAY) &&
	    !parser->has_overlay_src)
		return refuse(parser, "%s needs an --overlay-src before it", options[option].name);
	return 0;
}

static void note_environment(TnBwrapSummary *summary, TnBwrapOption option, const char *const *args)
{
	if (option != TN_BWRAP_CLEARENV && strcmp(args[0], "TMPDIR") != 0)
		return;
	summary->tmpdir_state = option == TN_BWRAP_SETENV ? TN_BWRAP_ENV_SET : TN_BWRAP_ENV_UNSET;
	summary->tmpdir = option == TN_BWRAP_SETENV ? args[1] : NULL;
}

static void note(TnBwrapSummary *summary, TnBwrapOption option, const char *const *args)
{
	switch (option) {
	case TN_BWRAP_UNSHARE_ALL:
		summary->unshare_user = true;
		summary->unshare_pid = true;
		break;
	case TN_BWRAP_UNSHARE_USER:
	case TN_BWRAP_UNSHARE_USER_TRY:
		summary->unshare_user = true;
		break;
	case TN_BWRAP_UNSHARE_PID:
		summary->unshare_pid = true;
		break;
	case TN_BWRAP_AS_PID_1:
		summary->as_pid_1 = true;
		break;
	case TN_BWRAP_CAP_ADD:
		summary->drops_caps = false;
		break;
	case TN_BWRAP_CAP_DROP:
		if (strcmp(args[0], "ALL") == 0)
			summary->drops_caps = true;
		break;
	case TN_BWRAP_SYNC_FD:
		summary->sync_fd = args[0];
		break;
	case TN_BWRAP_USERNS:
		summary->userns = args[0];
		break;
	case TN_BWRAP_USERNS2:
		summary->userns2 = args[0];
		break;
	case TN_BWRAP_USERNS_BLOCK_FD:
		summary->userns_block_fd = args[0];
		break;
	case TN_BWRAP_PIDNS:
		summary->pidns = args[0];
		break;
	case TN_BWRAP_CHDIR:
		summary->chdir = args[0];
		break;
	case TN_BWRAP_CLEARENV:
	case TN_BWRAP_SETENV:
	case TN_BWRAP_UNSETENV:
		note_environment(summary, option, args);
		break;
	default:
		break;
	}
}

/* The words of one option are at the end of line->words: a modifier waits for more. */
static int finish_option(Parser *parser, TnBwrapOption option, bool from_block)
{
	TnBwrapLine *line = parser->line;
	size_t own = options[option].n_arguments + 1U;
	int r;

	note(&line->summary, option, line->words + line->n_words - options[option].n_arguments);
	if (options[option].traits & MODIFIER) {
		parser->n_pending += own;
		parser->has_perms |= option == TN_BWRAP_PERMS;
		parser->has_size |= option == TN_BWRAP_SIZE;
		parser->has_overlay_src |= option == TN_BWRAP_OVERLAY_SRC;
		return 0;
	}
	r = make_room((void **)&line->ops, line->n_ops, &line->ops_room, sizeof(*line->ops));
	if (r < 0)
		return r;
	line->ops[line->n_ops++] = (TnBwrapOp){
		.option = option,
		.first = (uint16_t)(line->n_words - own - parser->n_pending),
		.n_words = (uint16_t)(own + parser->n_pending),
		.n_modifiers = (uint16_t)parser->n_pending,
		.from_block = from_block,
	};
	parser->n_pending = 0;
	parser->has_perms = parser->has_size = parser->has_overlay_src = false;
	return 0;
}

static int too_few(Parser *parser, TnBwrapOption option)
{
	static const char *const counts[] = {"no argument", "one argument", "two arguments",
					     "three arguments"};

	return refuse(parser, "%s takes %s", options[option].name,
		      counts[options[option].n_arguments]);
}

static int parse_option(Parser *parser, Input *input, const char *word)
{
	int option = find_option(word);
	int r;

	if (option < 0)
		return refuse(parser, "unknown option %.128s", word);
	if (option == TN_BWRAP_HELP)
		return TN_BWRAP_WANTS_HELP;
	if (option == TN_BWRAP_VERSION)
		return TN_BWRAP_WANTS_VERSION;
	if (option == TN_BWRAP_ARGS) {
		const char *fd_word = take_word(input);

		r = fd_word ? expand_block(parser, input, fd_word) : too_few(parser, option);
		/* A modifier cannot reach over the end of a block. */
		return r == 0 && parser->n_pending ? check_modifiers(parser, option) : r;
	}
	r = check_modifiers(parser, option);
	if (r < 0)
		return r;
	r = add_word(parser->line, word);
	for (unsigned i = 0; r == 0 && i < options[option].n_arguments; i++) {
		const char *argument = take_word(input);

		r = argument ? add_word(parser->line, argument) : too_few(parser, option);
	}
	return r < 0 ? r : finish_option(parser, option, input->is_block);
}

static int parse_input(Parser *parser, Input *input)
{
	for (;;) {
		Input before = *input;
		const char *word = take_word(input);
		int r;

		if (!word || strcmp(word, "--") == 0)
			return 0;
		if (word[0] != '-') {
			*input = before;
			return 0;
		}
		r = parse_option(parser, input, word);
		if (r != 0)
			return r;
	}
}

int tn_bwrap_parse(TnBwrapLine *line, const char *const *argv, size_t argc, TnBwrapLoad load,
		   void *data, char why[TN_BWRAP_WHY_MAX])
{
	Parser parser = {.line = line, .load = load, .data = data, .why = why, .total = argc};
	Input input = {.argv = argv, .argc = argc};
	int r;

	*line = (TnBwrapLine){0};
	why[0] = '\0';
	if (argc == 0)
		return TN_BWRAP_NO_COMMAND;
	if (argc > TN_BWRAP_WORDS_MAX)
		return refuse(&parser, "more than %d words", TN_BWRAP_WORDS_MAX);
	r = parse_input(&parser, &input);
	if (r != 0)
		return r;
	if (parser.has_overlay_src)
		return refuse(&parser, "--overlay-src must be followed by --overlay, "
				       "--tmp-overlay or --ro-overlay");
	/* bwrap ignores a --perms or --size that nothing follows. */
	line->n_words -= parser.n_pending;
	line->command = input.argv;
	line->n_command = input.argc;
	return line->n_command ? 0 : TN_BWRAP_NO_COMMAND;
}

void tn_bwrap_clear(TnBwrapLine *line)
{
	free(line->words);
	free(line->ops);
	*line = (TnBwrapLine){0};
}

unsigned tn_bwrap_traits(TnBwrapOption option)
{
	return options[option].traits;
}

const char *tn_bwrap_name(TnBwrapOption option)
{
	return options[option].name;
}

const char *tn_bwrap_argument(const TnBwrapLine *line, const TnBwrapOp *op, unsigned index)
{
	return line->words[op->first + op->n_modifiers + 1U + index];
}

const char *tn_bwrap_dest(const TnBwrapLine *line, const TnBwrapOp *op)
{
	return line->words[op->first + op->n_words - 1U];
}
