/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "front.h"

#include "cover.h"
#include "launch-stubs.h"
#include "locate.h"
#include "macros.h"
#include "message.h"
#include "namespaces.h"
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_MAX ((size_t)64 << 20) /* bytes of one --args block */

void tn_front_init(TnFront *front)
{
	*front = (TnFront){.nest = {.fd = -1}, .attached = TN_ATTACHED_NONE};
}

void tn_front_clear(TnFront *front)
{
	if (front->is_attached)
		tn_attached_clear(&front->attached);
	if (front->planned)
		tn_splice_clear(&front->splice);
	tn_close(&front->nest.fd);
	tn_front_options_clear(&front->options);
	tn_words_clear(&front->covered);
	tn_bwrap_clear(&front->line);
	for (size_t i = 0; i < front->n_blocks; i++)
		free(front->blocks[i]);
	free(front->blocks);
	free(front->points);
	free(front->states);
}

/* Everything fd holds, with a NUL after it; *ret is the caller's. */
static int read_all(int fd, char **ret, size_t *ret_size)
{
	TN_AUTOFREE char *bytes = NULL;
	size_t used = 0, room = 0;

	for (;;) {
		ssize_t n;

		if (room - used < 2) {
			char *bigger;

			room = room ? room * 2 : 64 * 1024;
			bigger = room > BLOCK_MAX ? NULL : realloc(bytes, room);
			if (!bigger)
				return -ENOMEM;
			bytes = bigger;
		}
		n = read(fd, bytes + used, room - used - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	bytes[used] = '\0';
	*ret = bytes;
	*ret_size = used;
	bytes = NULL;
	return 0;
}

int tn_front_load(void *data, int fd, const char **ret_block, size_t *ret_size)
{
	TnFront *front = data;
	char **blocks = realloc(front->blocks, (front->n_blocks + 1) * sizeof(*blocks));
	int r;

	if (!blocks)
		return -ENOMEM;
	front->blocks = blocks;
	r = read_all(fd, &blocks[front->n_blocks], ret_size);
	if (r < 0)
		return r;
	*ret_block = blocks[front->n_blocks++];
	close(fd);
	return 0;
}

static TnFileKind look(void *data, const char *path, char real[PATH_MAX])
{
	struct stat st;

	if (!*path || !realpath(path, real) || stat(real, &st) < 0)
		return !*path || errno == ENOENT ? TN_FILE_MISSING : TN_FILE_UNREACHABLE;
	if (S_ISDIR(st.st_mode))
		return TN_FILE_DIR;
	if (!S_ISREG(st.st_mode))
		return TN_FILE_OTHER;
	return access(real, X_OK) == 0 ? TN_FILE_EXECUTABLE : TN_FILE_REGULAR;
}

static void real_or_same(const char *path, char ret[PATH_MAX])
{
	if (!realpath(path, ret))
		snprintf(ret, PATH_MAX, "%s", path);
}

/* What the launcher will cover, as far as can be told before a daemon has answered. */
static int find_covered(TnFront *front)
{
	static const TnScope scopes[] = {TN_SCOPE_SYSTEM, TN_SCOPE_USER};
	const TnDaemonChoice choice = {0};
	TnPaths candidates[TN_DAEMONS_MAX + TN_ARRAY_LEN(scopes)];
	char why[2 * PATH_MAX], real[PATH_MAX];
	int n = tn_daemon_candidates(&choice, geteuid(), candidates, why, sizeof(why));

	if (n < 0)
		return tn_fail(n, "%s", why);
	for (size_t i = 0; i < TN_ARRAY_LEN(scopes); i++)
		n += tn_paths_init_default(&candidates[n], scopes[i]);
	for (int i = 0; i < n; i++) {
		real_or_same(candidates[i].runtime_dir, real);
		tn_words_add(&front->covered, real);
		real_or_same(candidates[i].store_dir, real);
		tn_words_add(&front->covered, real);
	}
	return 0;
}

static void say_notes(const TnFront *front, size_t from)
{
	const TnSplice *splice = &front->splice;

	for (size_t i = from; i < splice->n_notes && i < TN_SPLICE_NOTES_MAX; i++) {
		TnSpliceNoteKind kind = splice->notes[i].kind;

		/* The command's stderr is often the agent's: only what changes its /tmp. */
		if (front->options.verbose || tn_splice_note_refuses(kind) ||
		    kind == TN_SPLICE_EXPLICIT || kind == TN_SPLICE_NO_TMP)
			tn_say("sandbox: %s", splice->notes[i].text);
	}
	if (front->options.verbose && splice->n_notes > TN_SPLICE_NOTES_MAX)
		tn_say("sandbox: %zu more notes", splice->n_notes - TN_SPLICE_NOTES_MAX);
}

static int judge(const TnBwrapSummary *summary)
{
	TnBwrapConcern concerns[TN_BWRAP_CONCERNS_MAX];
	size_t n = tn_bwrap_concerns(summary, geteuid(), concerns);
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		tn_say("sandbox: %s", tn_bwrap_concern_text(concerns[i]));
		if (tn_bwrap_concern_refuses(concerns[i]))
			r = -EPERM;
	}
	return r;
}

static int make_plan(TnFront *front)
{
	int r = find_covered(front);

	if (r < 0)
		return r;
	real_or_same("/tmp", front->host_tmp);
	real_or_same("/var/tmp", front->host_var_tmp);
	if (!getcwd(front->cwd, sizeof(front->cwd)) || front->cwd[0] != '/')
		front->cwd[0] = '\0';
	front->facts = (TnSpliceFacts){
		.resolve = look,
		.host_tmp = front->host_tmp,
		.host_var_tmp = front->options.var_tmp ? front->host_var_tmp : NULL,
		.cwd = front->cwd[0] ? front->cwd : NULL,
		.tmpdir = getenv("TMPDIR"),
		.covered = (const char *const *)front->covered.items,
	};
	front->planned = true;
	r = tn_splice_plan(&front->splice, &front->line, &front->facts);
	if (r == -ENOMEM)
		tn_out_of_memory();
	return r;
}

static int plan(TnFront *front)
{
	int r = make_plan(front);

	if (front->planned)
		say_notes(front, 0);
	return r;
}

static int find_bwrap(TnFront *front)
{
	bool configured = front->options.program && !getenv("TMPNEST_BWRAP");
	int r;

	if (configured && setenv("TMPNEST_BWRAP", front->options.program, 1) < 0)
		tn_out_of_memory();
	r = tn_locate_bwrap(front->bwrap);
	/* not for the sandbox to see */
	if (configured)
		unsetenv("TMPNEST_BWRAP");
	return r;
}

static int become_bwrap(TnFront *front, char **argv)
{
	execv(front->bwrap, argv);
	return tn_fail(-errno, "bwrap: %s: cannot execute it: %s", front->bwrap, strerror(errno));
}

/* bwrap with block as its --args and the command inline. Consumes nothing. */
static int become_bwrap_with(TnFront *front, const char *name, const char *block, size_t size)
{
	TN_AUTOFD fd = memfd_create("bwrap-args", 0);
	char fd_word[16];
	TnWords words = {0};
	int r;

	for (size_t done = 0; fd >= 0 && done < size;) {
		ssize_t n = write(fd, block + done, size - done);

		if (n < 0)
			return tn_fail(-errno, "bwrap: cannot write its words: %s",
				       strerror(errno));
		done += (size_t)n;
	}
	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return tn_fail(-errno, "bwrap: no memory file for its words: %s", strerror(errno));
	snprintf(fd_word, sizeof(fd_word), "%d", fd);
	tn_words_add_all(&words, name, "--args", fd_word, "--", NULL);
	for (size_t i = 0; i < front->line.n_command; i++)
		tn_words_add(&words, front->line.command[i]);
	r = become_bwrap(front, words.items);
	tn_words_clear(&words);
	return r;
}

/* pid 1 of the sandbox holds the lease, the payload does not; without one there is none. */
static bool can_hold_lease(const TnBwrapSummary *summary)
{
	return summary->unshare_pid && !summary->as_pid_1 && !summary->sync_fd;
}

/* The limit that the line itself gave its /tmp. */
static uint64_t tmpfs_size(const TnSplice *splice)
{
	uint64_t bytes = 0;

	if (splice->tmpfs_size && tn_parse_size(splice->tmpfs_size, &bytes) < 0)
		return 0;
	return bytes;
}

static int attach(TnFront *front)
{
	const TnFrontOptions *options = &front->options;
	const TnSplice *splice = &front->splice;
	const TnDaemonChoice choice = {0};
	TnAttachSpec spec = {
		.name = options->nest,
		.from_fd = -1,
		.flags = splice->views[TN_SPLICE_VAR_TMP].wanted ? 0 : TN_ATTACH_NO_VAR_TMP,
		.bytes = options->bytes ? options->bytes : tmpfs_size(splice),
		.inodes = options->inodes,
		.ttl = options->ttl,
		.idle_ttl = options->idle_ttl,
		.store = options->store,
		.deny = &options->deny,
		.read_only = &options->read_only,
		.n_points = splice->n_points,
		.lease = can_hold_lease(&front->line.summary),
	};
	int r = spec.name ? -ENOENT : tn_front_nest_find(splice, &options->globs, &front->nest);

	if (r == 0) {
		spec.from_path = front->nest.path;
		spec.from_fd = front->nest.fd;
	} else if (r != -ENOENT) {
		return r;
	}
	front->points = calloc(splice->n_points + 1, sizeof(*front->points));
	front->states = calloc(splice->n_points + 1, sizeof(*front->states));
	if (!front->points || !front->states)
		tn_out_of_memory();
	for (size_t i = 0; i < splice->n_points; i++)
		front->points[i] = (TnMountPoint){
			.kind = splice->points[i].kind,
			.path = (char *)splice->points[i].path,
		};
	spec.points = front->points;
	r = tn_attach(&front->attached, &choice, &spec);
	front->is_attached = r == 0;
	return r;
}

/* What the line masks and the host lacks must be there before bwrap looks. */
static void hold_stubs(TnFront *front)
{
	TN_AUTOFREE TnSpliceMask *masks = NULL;
	TN_AUTOFREE TnStubMask *stubs = NULL;
	size_t n = 0;

	if (tn_splice_masks(&front->splice, &masks, &n) < 0)
		tn_out_of_memory();
	stubs = calloc(n + 1, sizeof(*stubs));
	if (!stubs)
		tn_out_of_memory();
	for (size_t i = 0; i < n; i++)
		stubs[i] = (TnStubMask){
			.path = masks[i].path,
			.as_dir = masks[i].as_dir,
			.vanished = masks[i].vanished,
		};
	tn_launch_stubs(&front->attached, stubs, n, front->options.verbose);
}

/* No view is wanted: the line as it was given. */
static int start_without_view(TnFront *front, char **argv)
{
	TN_AUTOFREE char *block = NULL;
	size_t size;

	/* a line that cannot be planned is bwrap's to judge */
	if (front->planned || make_plan(front) == 0)
		hold_stubs(front);
	if (!front->line.summary.loaded)
		return become_bwrap(front, argv);
	if (tn_splice_emit_plain(&front->line, &block, &size) < 0)
		tn_out_of_memory();
	return become_bwrap_with(front, argv[0], block, size);
}

/* Host directories that the line shows writable; what a later line hides counts as well. */
static int cover(TnFront *front, TnPlace *ret)
{
	const TnBwrapLine *line = &front->line;
	TnWords writable = {0};
	int r;

	for (size_t i = 0; i < line->n_ops; i++) {
		const TnBwrapOp *op = &line->ops[i];
		char real[PATH_MAX];

		switch (op->option) {
		case TN_BWRAP_BIND:
		case TN_BWRAP_BIND_TRY:
		case TN_BWRAP_DEV_BIND:
		case TN_BWRAP_DEV_BIND_TRY:
			if (realpath(tn_bwrap_argument(line, op, 0), real))
				tn_words_add(&writable, real);
			break;
		default:
			break;
		}
	}
	r = tn_cover(&front->attached, &writable, ret);
	tn_words_clear(&writable);
	return r;
}

/* True when the view has a directory at path ("/tmp/..." or "/var/tmp/..."). */
static bool view_has(void *data, const char *path)
{
	const char *view = data;
	char full[PATH_MAX];
	struct stat st;
	bool var = strncmp(path, "/var/tmp/", 9) == 0;
	int n = snprintf(full, sizeof(full), "%s/%s/%s", view, var ? "var-tmp" : "tmp",
			 path + (var ? 9 : 5));

	return n > 0 && n < (int)sizeof(full) && lstat(full, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Sorts out the reply: the denied names, and what becomes of each mount point. */
static void read_reply(TnFront *front, TnWords *ret_denied)
{
	const TnAttached *attached = &front->attached;
	TnAttachRecord record;
	size_t offset = 0, n = 0;

	while (tn_attach_next(attached->reply, attached->reply_size, true, &offset, &record)) {
		uint32_t state;

		if (record.type == TN_RECORD_DENIED)
			tn_words_add(ret_denied, record.data);
		if (record.type != TN_RECORD_POINT_STATE || n == front->splice.n_points)
			continue;
		memcpy(&state, record.data, sizeof(state));
		front->states[n++] = state;
	}
	while (n < front->splice.n_points)
		front->states[n++] = TN_POINT_PINNED;
}

static int splice_and_become(TnFront *front, const TnPlace *place, const char *name)
{
	TN_AUTOFREE char *block = NULL;
	size_t size = 0, n_notes = front->splice.n_notes;
	TnWords denied = {0};
	TnSpliceReply reply = {
		.runtime_dir = place->runtime,
		.place = place->view,
		.empty = place->empty,
		.states = front->states,
		.exists = view_has,
		.data = (void *)place->view,
		.sync_fd = front->attached.lease.write_end,
	};
	int r;

	read_reply(front, &denied);
	reply.denied = (const char *const *)denied.items;
	reply.n_denied = denied.n;
	r = tn_splice_emit(&front->splice, &reply, &block, &size);
	if (r == -ENOMEM)
		tn_out_of_memory();
	say_notes(front, n_notes);
	if (r == 0 && reply.sync_fd >= 0 && fcntl(reply.sync_fd, F_SETFD, 0) < 0)
		r = tn_fail(-errno, "lease: %s", strerror(errno));
	if (r == 0)
		r = become_bwrap_with(front, name, block, size);
	tn_words_clear(&denied);
	return r;
}

/* Does the line get a view? What speaks against it is said. */
static int decide(TnFront *front, bool *ret_without)
{
	int r;

	*ret_without = front->options.view == TN_FRONT_VIEW_NEVER;
	if (*ret_without)
		return 0;
	r = judge(&front->line.summary);
	if (r == -EPERM && front->options.view == TN_FRONT_VIEW_POSSIBLE) {
		tn_say("sandbox: started without a private /tmp, as TMPNEST_VIEW allows");
		*ret_without = true;
		return 0;
	}
	if (r == 0)
		r = plan(front);
	*ret_without = r == 0 && !front->splice.views[TN_SPLICE_TMP].wanted &&
		       !front->splice.views[TN_SPLICE_VAR_TMP].wanted;
	return r;
}

void tn_front_start(TnFront *front, char **argv)
{
	TnPlace place;
	bool without = false;
	int r = tn_front_options_load(&front->options);

	if (r == 0)
		r = find_bwrap(front);
	if (r == 0)
		r = decide(front, &without);
	if (r == 0 && without) {
		start_without_view(front, argv);
		return;
	}
	if (r == 0)
		r = attach(front);
	if (r == 0)
		hold_stubs(front);
	if (r == 0)
		r = tn_namespaces_enter();
	if (r == 0)
		r = cover(front, &place);
	/* the cwd may have been covered, and must not stay below a cover */
	if (r == 0 && front->cwd[0] && chdir(front->cwd) < 0)
		r = tn_fail(-errno,
			    "current directory: %s: lies in a directory of tmpnest's own "
			    "(start from elsewhere)",
			    front->cwd);
	if (r == 0)
		splice_and_become(front, &place, argv[0]);
}
