/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer target: any command line for bwrap, parsed, spliced and parsed again.
 *
 * Input: the words of the command line with a NUL after each; a word "\1" ends them, and
 * what follows is what every `--args` descriptor holds. The host's files are made up from
 * a hash of their path, so a line meets all kinds of them. What else there is to the host
 * follows from the first word: its hash, or, when it is "\2" and letters, these (choose_host()).
 */
#include "bwrap-args.h"
#include "macros.h"
#include "paths.h"
#include "promise.h"
#include "splice.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define RUNTIME "/run/user/9/nest"
#define PLACE RUNTIME "/view"
#define EMPTY RUNTIME "/empty"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Host {
	const char *tmp, *var_tmp, *cwd, *tmpdir; /* of TnSpliceFacts */
	int sync_fd;
	size_t n_denied;
	bool has_files;                /* in the view, from earlier */
	bool has_link;                 /* from /run/tmp to the runtime directory */
	size_t allocation, pool_bytes; /* which one fails, and after how many; 0: none does */
} Host;

typedef struct Input {
	char *bytes; /* a copy with a NUL at the end */
	const char *argv[TN_BWRAP_WORDS_MAX + 2];
	size_t argc, first; /* words before first are none of the line */
	const char *block;
	size_t block_size;
} Input;

static uint32_t hash(const char *text)
{
	uint32_t h = 2166136261U;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 16777619U;
	return h ^ h >> 15;
}

/* --- memory that ends --------------------------------------------------------------------- */

/* linked in with --wrap */
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_tn_pool_init(TnPool *pool);
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_tn_pool_init(TnPool *pool);

static size_t allocations_left, pool_bytes_left; /* 0: enough */

static bool fails(void)
{
	return allocations_left > 0 && --allocations_left == 0;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

void __wrap_tn_pool_init(TnPool *pool)
{
	__real_tn_pool_init(pool);
	if (pool_bytes_left > 0)
		pool->used = TN_POOL_MAX - pool_bytes_left;
}

static void limit_memory(const Host *host)
{
	allocations_left = host->allocation;
	pool_bytes_left = host->pool_bytes;
}

static void give_memory(void)
{
	allocations_left = pool_bytes_left = 0;
}

static bool may_be(int r, const Host *host)
{
	return r == -ENOMEM && (host->allocation || host->pool_bytes);
}

/* --- the host ----------------------------------------------------------------------------- */

static const char *const denied[] = {"/claude", "/tmp/x",         "/var/tmp/y",
				     "d/e*",    "/private/tmp/?", "/tmp/"};

static void host_of_hash(Host *host, uint32_t seed)
{
	*host = (Host){
		.tmp = seed % 4 ? "/tmp" : "/private/tmp",
		.var_tmp = seed % 3 ? "/var/tmp" : NULL,
		.cwd = seed % 5 ? "/w" : "/tmp/d/e",
		.tmpdir = seed % 7 ? NULL : "/tmp/claude",
		.n_denied = 3,
		.sync_fd = seed % 2 ? 9 : -1,
	};
}

/* "a12": the 12th allocation fails; "b500": what a plan keeps has room in 500 bytes */
static void host_of_letters(Host *host, const char *letters)
{
	*host = (Host){
		.tmp = "/tmp", .var_tmp = "/var/tmp", .cwd = "/w", .sync_fd = 9, .n_denied = 3};
	for (; *letters; letters++) {
		switch (*letters) {
		case 'p':
			host->tmp = "/private/tmp";
			break;
		case 'v':
			host->var_tmp = NULL;
			break;
		case 'l':
			host->var_tmp = "/tmp/var";
			break;
		case 'n':
			host->cwd = NULL;
			break;
		case 'd':
			host->cwd = "/tmp/d/e";
			break;
		case 't':
			host->tmpdir = "/tmp/claude";
			break;
		case 'o':
			host->tmpdir = "/var/tmp/o";
			break;
		case 's':
			host->sync_fd = -1;
			break;
		case 'r':
			host->n_denied = TN_ARRAY_LEN(denied);
			break;
		case 'f':
			host->has_files = true;
			break;
		case 'm':
			host->has_link = true;
			break;
		case 'a':
			host->allocation = strtoul(letters + 1, NULL, 10);
			break;
		case 'b':
			host->pool_bytes = strtoul(letters + 1, NULL, 10) % TN_POOL_MAX;
			break;
		default:
			break;
		}
	}
}

/* Takes the first word if it is only for this. */
static void choose_host(Host *host, Input *input)
{
	const char *first = input->bytes;

	if (first[0] != '\2' || input->argc == 0) {
		host_of_hash(host, hash(first));
		return;
	}
	host_of_letters(host, first + 1);
	input->first = 1;
}

static TnFileKind resolve(void *data, const char *path, char real[PATH_MAX])
{
	static const char *const homes[] = {"/", "/tmp", "/run", RUNTIME, "/tmp/d/e", "/srv/root"};
	const Host *host = data;
	char absolute[PATH_MAX] = "/w/";
	size_t length = strlen(path);
	uint32_t h;

	if (length + 3 > sizeof(absolute) - 1)
		return TN_FILE_UNREACHABLE;
	memcpy(absolute + (path[0] == '/' ? 0 : 3), path, length + 1);
	PROMISE(tn_path_normalize(absolute, real, PATH_MAX));
	for (size_t i = 0; i < TN_ARRAY_LEN(homes); i++)
		if (strcmp(real, homes[i]) == 0)
			return TN_FILE_DIR;
	if (host->has_link && strcmp(real, "/run/tmp") == 0) {
		strcpy(real, RUNTIME);
		return TN_FILE_DIR;
	}
	h = hash(real);
	if (h % 16 == 0)
		strcpy(real, homes[h / 16 % TN_ARRAY_LEN(homes)]); /* a link */
	return h % 16 == 0 ? TN_FILE_DIR : (TnFileKind)(h % 7 > 5 ? TN_FILE_DIR : h % 7);
}

static bool exists(void *data, const char *path)
{
	return hash(path) % 2;
}

/* --- the line ------------------------------------------------------------------------------ */

static int load(void *data, int fd, const char **ret_block, size_t *ret_size)
{
	const Input *input = data;

	if (fd > 99 || !input->block)
		return -EBADF;
	*ret_block = input->block;
	*ret_size = input->block_size;
	return 0;
}

static void split(Input *input, const uint8_t *data, size_t size)
{
	size_t at = 0;

	/* argv is large and stays as it is */
	input->bytes = malloc(size + 1);
	input->argc = input->first = 0;
	input->block = NULL;
	input->block_size = 0;
	PROMISE(input->bytes);
	if (size > 0)
		memcpy(input->bytes, data, size);
	input->bytes[size] = '\0';
	while (at < size && input->argc < TN_ARRAY_LEN(input->argv)) {
		const char *word = input->bytes + at;

		at += strlen(word) + 1;
		if (strcmp(word, "\1") == 0) {
			input->block = input->bytes + (at < size ? at : size);
			input->block_size = at < size ? size - at : 0;
			return;
		}
		input->argv[input->argc++] = word;
	}
}

/* The exact words: a caller's line can begin like them and lead elsewhere, as "PLACE/../x". */
static bool is_ours(const TnBwrapLine *line, const TnBwrapOp *op)
{
	const char *source;

	if (op->option != TN_BWRAP_BIND) /* another one may have no argument */
		return false;
	source = tn_bwrap_argument(line, op, 0);
	return strcmp(source, PLACE "/tmp") == 0 || strcmp(source, PLACE "/var-tmp") == 0;
}

static bool is_cover(const TnBwrapLine *line, const TnBwrapOp *op)
{
	return op->option == TN_BWRAP_RO_BIND && strcmp(tn_bwrap_argument(line, op, 0), EMPTY) == 0;
}

static bool same_words(const TnBwrapLine *a, const TnBwrapOp *x, const TnBwrapLine *b,
		       const TnBwrapOp *y)
{
	if (x->option != y->option || x->n_words != y->n_words)
		return false;
	for (unsigned i = 0; i < x->n_words; i++)
		if (strcmp(a->words[x->first + i], b->words[y->first + i]) != 0)
			return false;
	return true;
}

/* What does not concern files stays, word for word and in order. */
static void check_kept(const TnBwrapLine *before, const TnBwrapLine *after)
{
	size_t at = 0;

	for (size_t i = 0; i < before->n_ops; i++) {
		if (tn_bwrap_traits(before->ops[i].option) & TN_BWRAP_HAS_DEST)
			continue;
		while (at < after->n_ops &&
		       !same_words(before, &before->ops[i], after, &after->ops[at]))
			at++;
		PROMISE(at < after->n_ops);
		at++;
	}
}

/* The view is bound once for each area, and nothing else comes from where it is. */
static void check_views(const TnBwrapLine *line, const TnSplice *splice)
{
	size_t wanted =
		splice->views[TN_SPLICE_TMP].wanted + splice->views[TN_SPLICE_VAR_TMP].wanted;
	size_t n = 0;

	for (size_t i = 0; i < line->n_ops; i++) {
		const TnBwrapOp *op = &line->ops[i];

		n += is_ours(line, op);
		if (tn_bwrap_traits(op->option) & TN_BWRAP_FROM_PATH && !is_ours(line, op) &&
		    !is_cover(line, op)) {
			const char *source = tn_bwrap_argument(line, op, 0);
			char real[PATH_MAX];
			TnFileKind kind = resolve(splice->facts->data, source, real);

			if (kind >= TN_FILE_DIR)
				PROMISE(strcmp(real, RUNTIME) == 0 ||
					!tn_path_is_below(real, RUNTIME));
		}
	}
	PROMISE(n == wanted);
}

static void reparse(const TnSplice *splice, Input *input, const char *block, size_t size)
{
	static const char *const argv[] = {"--args", "7", "--", "command"};
	char why[TN_BWRAP_WHY_MAX];
	TnBwrapLine after;

	input->block = block;
	input->block_size = size;
	/* Our count is of the real command; this one has a single word. */
	PROMISE(tn_bwrap_parse(&after, argv, TN_ARRAY_LEN(argv), load, input, why) == 0);
	if (splice) {
		check_kept(splice->line, &after);
		check_views(&after, splice);
	}
	tn_bwrap_clear(&after);
}

static void check_masks(TnSplice *splice, const Host *host)
{
	TnSpliceMask *masks;
	size_t n;
	int r = tn_splice_masks(splice, &masks, &n);

	PROMISE(r == 0 || may_be(r, host));
	if (r < 0)
		return;
	for (size_t i = 0; i < n; i++)
		PROMISE(masks[i].path[0] == '/');
	free(masks);
}

static void check_writable_dirs(const TnSplice *splice)
{
	for (size_t i = 0; i < splice->line->n_ops; i++) {
		const char *dir = tn_splice_writable_dir(splice, i);

		PROMISE(!dir || dir[0] == '/');
	}
}

static void check_concerns(const TnBwrapSummary *summary, unsigned uid)
{
	TnBwrapConcern concerns[TN_BWRAP_CONCERNS_MAX];
	size_t n = tn_bwrap_concerns(summary, uid, concerns);

	PROMISE(n <= TN_BWRAP_CONCERNS_MAX);
	for (size_t i = 0; i < n; i++) {
		bool refuses = tn_bwrap_concern_refuses(concerns[i]);

		PROMISE(tn_bwrap_concern_text(concerns[i])[0]);
		PROMISE(uid != 0 || !refuses);
	}
}

/* A state for each point, or NULL when there is none. */
static TnMountPointState *new_states(const TnSplice *splice)
{
	TnMountPointState *states = NULL;

	if (splice->n_points > 0) {
		states = __real_calloc(splice->n_points, sizeof(*states));
		PROMISE(states);
	}
	for (size_t i = 0; i < splice->n_points; i++) {
		PROMISE(strncmp(splice->points[i].path, "/tmp/", 5) == 0 ||
			strncmp(splice->points[i].path, "/var/tmp/", 9) == 0);
		states[i] = (TnMountPointState)(1 + hash(splice->points[i].path) % 3);
	}
	return states;
}

static void splice_line(const TnBwrapLine *line, Input *input, Host *host)
{
	static const char *const covered[] = {RUNTIME, "/var/lib/nest", NULL};
	const TnSpliceFacts facts = {
		.resolve = resolve,
		.data = host,
		.host_tmp = host->tmp,
		.host_var_tmp = host->var_tmp,
		.cwd = host->cwd,
		.tmpdir = host->tmpdir,
		.covered = covered,
	};
	TnSpliceReply reply = {
		.runtime_dir = RUNTIME,
		.place = PLACE,
		.empty = EMPTY,
		.denied = denied,
		.n_denied = host->n_denied,
		.exists = host->has_files ? exists : NULL,
		.sync_fd = host->sync_fd,
	};
	TnMountPointState *states = NULL;
	char *block = NULL;
	size_t size = 0;
	TnSplice splice;
	int r = tn_splice_plan(&splice, line, &facts);

	if (r == 0) {
		check_masks(&splice, host);
		check_writable_dirs(&splice);
		reply.states = states = new_states(&splice);
		r = tn_splice_emit(&splice, &reply, &block, &size);
		give_memory();
		if (r == 0)
			reparse(&splice, input, block, size);
	}
	PROMISE(r == 0 || r == -EINVAL || may_be(r, host));
	PROMISE(r != -EINVAL || splice.n_notes > 0);
	free(states);
	free(block);
	tn_splice_clear(&splice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char why[TN_BWRAP_WHY_MAX];
	TnBwrapLine line;
	Input input;
	Host host;
	int r;

	split(&input, data, size);
	choose_host(&host, &input);
	limit_memory(&host);
	r = tn_bwrap_parse(&line, input.argv + input.first, input.argc - input.first, load, &input,
			   why);
	PROMISE(r >= 0 || may_be(r, &host) || (why[0] && strlen(why) < sizeof(why)));
	if (r == 0) {
		char *block;
		size_t block_size;

		PROMISE(line.n_command > 0);
		check_concerns(&line.summary, 0);
		check_concerns(&line.summary, 1000);
		tn_bwrap_is_probe(&line);
		splice_line(&line, &input, &host);
		give_memory();
		PROMISE(tn_splice_emit_plain(&line, &block, &block_size) == 0);
		reparse(NULL, &input, block, block_size);
		free(block);
	}
	give_memory();
	tn_bwrap_clear(&line);
	free(input.bytes);
	return 0;
}
