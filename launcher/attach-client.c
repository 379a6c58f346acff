/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "attach-client.h"
#include "daemon-start.h"
#include "macros.h"
#include "message.h"
#include "scm.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_SECONDS 30 /* a daemon that takes longer is stuck */
#define RETRY_MS 3000     /* how long a dying worker may keep us */
#define RETRY_PAUSE_MS 20

/* One attach on its way. */
typedef struct Attempt {
	const TnDaemonChoice *choice;
	const TnAttachSpec *spec;
	TnPaths *candidates;
	int n_candidates;
	uint8_t id[16];
	int userns;
	uint8_t *request;
	size_t request_size;
	TnAttached *result;
} Attempt;

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* No daemon is there, or it does not admit this caller. */
static bool is_absent(int error)
{
	return error == -ENOENT || error == -ECONNREFUSED || error == -ENOTDIR || error == -EACCES;
}

static int say_no_daemon(const TnPaths *paths, int error)
{
	if (error == -EACCES)
		return tn_fail(error, "attach: %s: %s (the daemon is not open to you)",
			       paths->attach_socket, strerror(-error));
	if (is_absent(error))
		return tn_fail(error,
			       "attach: %s: no daemon (start the system's as root: tmpnest daemon "
			       "start --system; or use --user)",
			       paths->attach_socket);
	return tn_fail(error, "attach: %s: cannot connect: %s", paths->attach_socket,
		       strerror(-error));
}

/*
 * Who listens there: root, or for a user's own daemon that user. Anyone else could hand out a
 * /tmp of his own making, and must not even get our descriptors.
 */
static int check_server(const TnPaths *paths, int sock)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return tn_fail(-errno, "attach: %s: cannot tell who listens: %s",
			       paths->attach_socket, strerror(errno));
	if (cred.uid == 0 || (paths->scope == TN_SCOPE_USER && cred.uid == geteuid()))
		return 0;
	return tn_fail(-EPERM,
		       "attach: %s: uid %u listens there, not %s (set TMPNEST_RUNTIME_DIR to "
		       "another directory)",
		       paths->attach_socket, (unsigned)cred.uid,
		       paths->scope == TN_SCOPE_USER ? "root or you" : "root");
}

/* Connects to the first daemon that there is; starts the last one if there is none. */
static int connect_or_start(const Attempt *attempt, TnPaths *ret_paths)
{
	const TnPaths *paths = NULL;
	int sock = -ENOENT;
	int r;

	for (int i = 0; i < attempt->n_candidates; i++) {
		paths = &attempt->candidates[i];
		sock = tn_daemon_connect(paths->attach_socket);
		if (sock >= 0 || !is_absent(sock))
			break;
	}
	if ((sock == -ENOENT || sock == -ECONNREFUSED) &&
	    tn_daemon_may_start(attempt->choice, paths, geteuid())) {
		r = tn_daemon_start(paths);
		if (r < 0)
			return r;
		sock = tn_daemon_connect(paths->attach_socket);
	}
	if (sock < 0)
		return say_no_daemon(paths, sock);
	r = check_server(paths, sock);
	if (r < 0) {
		tn_close(&sock);
		return r;
	}
	*ret_paths = *paths;
	return sock;
}

static void add_all(TnAttachWriter *writer, TnAttachRecordType type, const TnWords *words)
{
	for (size_t i = 0; words && i < words->n; i++)
		tn_attach_add_string(writer, type, words->items[i]);
}

static int add_from(TnAttachWriter *writer, const TnAttachSpec *spec)
{
	uint8_t record[sizeof(TnAttachFrom) + PATH_MAX];
	TnAttachFrom from;
	struct stat st;
	size_t length = strlen(spec->from_path) + 1;

	if (fstat(spec->from_fd, &st) < 0 || length > PATH_MAX)
		return tn_fail(-EINVAL, "attach: %s: cannot be what a nest is named after",
			       spec->from_path);
	from = (TnAttachFrom){.dev = st.st_dev, .ino = st.st_ino};
	memcpy(record, &from, sizeof(from));
	memcpy(record + sizeof(from), spec->from_path, length);
	tn_attach_add(writer, TN_RECORD_FROM, record, (uint32_t)(sizeof(from) + length));
	return 0;
}

/* Writes the request. Its size, or -errno, said. */
static int compose(const Attempt *attempt)
{
	const TnAttachSpec *spec = attempt->spec;
	TnAttachRequest head = {
		.verb = TN_ATTACH_ATTACH,
		.flags = spec->flags,
		.bytes = spec->bytes,
		.inodes = spec->inodes,
		.ttl = spec->ttl,
		.idle_ttl = spec->idle_ttl,
		.store = spec->store,
	};
	TnAttachWriter writer;
	int size;

	memcpy(head.request_id, attempt->id, sizeof(head.request_id));
	if (!spec->name && !spec->from_path)
		head.flags |= TN_ATTACH_EPHEMERAL;
	if (spec->lease)
		head.flags |= TN_ATTACH_HAS_LEASE;
	tn_attach_begin_request(&writer, attempt->request, &head);
	if (spec->name)
		tn_attach_add_string(&writer, TN_RECORD_NAME, spec->name);
	if (spec->from_path) {
		int r = add_from(&writer, spec);

		if (r < 0)
			return r;
	}
	add_all(&writer, TN_RECORD_DENY, spec->deny);
	add_all(&writer, TN_RECORD_READ_ONLY, spec->read_only);
	for (size_t i = 0; i < spec->n_points; i++)
		tn_attach_add_mount_point(&writer, spec->points[i].kind, spec->points[i].path);
	size = tn_attach_end(&writer);
	if (size < 0 || tn_attach_check_request(attempt->request, (size_t)size, &head) < 0)
		return tn_fail(-E2BIG,
			       "attach: too many rules and mounts below /tmp (at most %d, together "
			       "below %d KiB)",
			       TN_ATTACH_RULES_MAX, TN_ATTACH_MAX / 1024);
	return size;
}

static const char *reply_text(const uint8_t *reply, size_t size)
{
	size_t offset = 0;
	TnAttachRecord record;

	while (tn_attach_next(reply, size, true, &offset, &record))
		if (record.type == TN_RECORD_TEXT)
			return record.data;
	return NULL;
}

static void group_name(gid_t gid, char ret[64])
{
	const struct group *entry = getgrgid(gid);

	snprintf(ret, 64, "%.40s (%u)", entry ? entry->gr_name : "?", (unsigned)gid);
}

/*
 * A user's daemon cannot name a foreign group: it has no number in its user namespace. Its
 * socket belongs to the group that it serves. True when that is what was refused, said.
 */
static bool say_group_differs(const TnPaths *paths)
{
	char own[64], served[64];
	struct stat st;

	if (geteuid() == 0 || stat(paths->attach_socket, &st) < 0 || st.st_uid != geteuid() ||
	    st.st_gid == getegid())
		return false;
	group_name(getegid(), own);
	group_name(st.st_gid, served);
	tn_say("attach: group differs: started with %s, the daemon has %s (start it without newgrp "
	       "or sg)",
	       own, served);
	return true;
}

/* The daemon's own line says what and which; without one the number has to do. */
static int say_refusal(const Attempt *attempt, const TnAttachReply *head, const uint8_t *reply,
		       size_t size)
{
	const TnAttachSpec *spec = attempt->spec;
	const char *object = spec->name ? spec->name : spec->from_path;
	const char *text = reply_text(reply, size);

	if (head->status == EACCES && say_group_differs(&attempt->result->paths))
		return -EACCES;
	if (text)
		return tn_fail(-head->status, "%s", text);
	return tn_fail(-head->status, "attach: %s: %s", object ? object : "new nest",
		       strerror(head->status));
}

/* Judges what came back. 0, or -errno, said. */
static int accept_reply(Attempt *attempt, size_t size, int fds[TN_SCM_MAX_FDS], size_t n_fds)
{
	TnAttached *result = attempt->result;
	const char *socket_path = result->paths.attach_socket;
	int r = tn_attach_check_reply(result->reply, size, &result->head);

	if (r == -EPROTONOSUPPORT)
		return tn_fail(r,
			       "attach: %s: the daemon speaks version %u, this program %u "
			       "(restart the older one: tmpnest daemon restart)",
			       socket_path, result->head.version, TN_ATTACH_VERSION);
	if (r < 0)
		return tn_fail(r, "attach: %s: not an answer of tmpnestd", socket_path);
	if (result->head.status != 0)
		return say_refusal(attempt, &result->head, result->reply, size);
	if (n_fds != 1)
		return tn_fail(-EPROTO, "attach: %s: %zu descriptors in the answer instead of one",
			       socket_path, n_fds);
	result->reply_size = size;
	result->mount = tn_steal_fd(&fds[0]);
	return 0;
}

/* Waits for the answer. 0, -ECONNRESET when the daemon went away, or -errno, said. */
static int receive(Attempt *attempt, int sock)
{
	int fds[TN_SCM_MAX_FDS];
	size_t n_fds;
	ssize_t size = tn_scm_recv(sock, attempt->result->reply, TN_ATTACH_MAX, fds, &n_fds);
	int r;

	if (size == 0 || size == -ECONNRESET)
		return -ECONNRESET;
	if (size == -EAGAIN)
		return tn_fail(-ETIMEDOUT,
			       "attach: %s: no answer for %d s (see tmpnest daemon status)",
			       attempt->result->paths.attach_socket, ANSWER_SECONDS);
	if (size < 0)
		return tn_fail((int)size, "attach: %s: no usable answer: %s",
			       attempt->result->paths.attach_socket, strerror((int)-size));
	r = accept_reply(attempt, (size_t)size, fds, n_fds);
	for (size_t i = 0; i < TN_SCM_MAX_FDS; i++)
		tn_close(&fds[i]);
	return r;
}

/* One connection, one request, one answer. As receive(). */
static int ask(Attempt *attempt)
{
	const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
	const TnAttachSpec *spec = attempt->spec;
	TnAttached *result = attempt->result;
	TN_AUTOFD sock = connect_or_start(attempt, &result->paths);
	int fds[TN_SCM_MAX_FDS];
	size_t n_fds = 0;
	ssize_t sent;
	int r;

	if (sock < 0)
		return sock;
	if (spec->lease && result->lease.read_end < 0) {
		r = tn_lease_new(&result->lease, result->paths.leases_dir, attempt->id);
		if (r < 0)
			return r;
	}
	fds[n_fds++] = attempt->userns;
	if (spec->lease)
		fds[n_fds++] = result->lease.read_end;
	if (spec->from_path)
		fds[n_fds++] = spec->from_fd;
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	sent = tn_scm_send(sock, attempt->request, attempt->request_size, fds, n_fds);
	if (sent == -EPIPE || sent == -ECONNRESET)
		return -ECONNRESET;
	if (sent < 0)
		return tn_fail((int)sent, "attach: %s: cannot send the request: %s",
			       result->paths.attach_socket, strerror((int)-sent));
	return receive(attempt, sock);
}

/*
 * The same request id each time: when the first attempt got as far as making a mount, the
 * daemon undoes it.
 */
static int ask_until_answered(Attempt *attempt)
{
	const struct timespec pause = {.tv_nsec = RETRY_PAUSE_MS * 1000000};
	int64_t deadline = -1;
	int r;

	while ((r = ask(attempt)) == -ECONNRESET) {
		int64_t now = now_ms();

		if (deadline < 0)
			deadline = now + RETRY_MS;
		if (now >= deadline)
			return tn_fail(r,
				       "attach: %s: the daemon hangs up again and again (see its "
				       "log)",
				       attempt->result->paths.attach_socket);
		nanosleep(&pause, NULL);
	}
	return r;
}

static int prepare(Attempt *attempt)
{
	char why[2 * PATH_MAX];
	int size;

	attempt->n_candidates = tn_daemon_candidates(attempt->choice, geteuid(),
						     attempt->candidates, why, sizeof(why));
	if (attempt->n_candidates < 0)
		return tn_fail(attempt->n_candidates, "%s", why);
	if (getrandom(attempt->id, sizeof(attempt->id), 0) != sizeof(attempt->id))
		return tn_fail(-EIO, "attach: no random numbers: %s", strerror(errno));
	attempt->userns = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	if (attempt->userns < 0)
		return tn_fail(-errno, "attach: /proc/self/ns/user: %s (mount /proc)",
			       strerror(errno));
	attempt->request = malloc(TN_ATTACH_MAX);
	attempt->result->reply = malloc(TN_ATTACH_MAX);
	if (!attempt->request || !attempt->result->reply)
		tn_out_of_memory();
	size = compose(attempt);
	if (size < 0)
		return size;
	attempt->request_size = (size_t)size;
	return 0;
}

int tn_attach(TnAttached *ret, const TnDaemonChoice *choice, const TnAttachSpec *spec)
{
	TnAttached result = TN_ATTACHED_NONE;
	TnPaths candidates[TN_DAEMONS_MAX];
	Attempt attempt = {
		.candidates = candidates,
		.choice = choice,
		.spec = spec,
		.userns = -1,
		.result = &result,
	};
	int r = prepare(&attempt);

	if (r == 0)
		r = ask_until_answered(&attempt);
	tn_close(&attempt.userns);
	free(attempt.request);
	if (r < 0) {
		tn_attached_clear(&result);
		return r;
	}
	tn_close(&result.lease.read_end);
	*ret = result;
	return 0;
}

TnMountPointState tn_attached_point_state(const TnAttached *attached, size_t i)
{
	size_t offset = 0;
	size_t at = 0;
	TnAttachRecord record;

	while (tn_attach_next(attached->reply, attached->reply_size, true, &offset, &record)) {
		uint32_t state;

		if (record.type != TN_RECORD_POINT_STATE || at++ != i)
			continue;
		memcpy(&state, record.data, sizeof(state));
		return state;
	}
	return TN_POINT_PINNED;
}

void tn_attached_clear(TnAttached *attached)
{
	tn_close(&attached->mount);
	tn_lease_abandon(&attached->lease);
	free(attached->reply);
	attached->reply = NULL;
}
