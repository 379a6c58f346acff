/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How nests come, are served and go: registry, threads and nests as in the daemon, with a
 * keeper that hands out one end of a socket pair as /dev/fuse. The other end is the kernel.
 */
#include "describe.h"
#include "dispatch.h"
#include "keeper-proto.h"
#include "macros.h"
#include "nest-private.h"
#include "registry.h"
#include "scratch.h"
#include "serve.h"
#include "sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#define KERNELS 64
#define PATIENCE_MS 10000

typedef struct Fixture {
	TnScratch scratch, memory;
	const char *tmpfs;
	TnKeeperLink *keeper;
	int keeper_sock, worker_sock;
	pthread_t keeper_thread;
	TnServe *serve;
	TnRegistry *registry;
	_Atomic int kernels[KERNELS]; /* our ends, in the order of the mounts; -1: none (yet) */
	_Atomic unsigned n_kernels;
	uint64_t unique;
	uint32_t pid; /* whose requests they are; 0: the kernel's own */
	uint8_t *reply;
	size_t fds;
} Fixture;

/* --- the keeper ------------------------------------------------------------------------------- */

static bool has_ended(int device)
{
	struct pollfd look = {.fd = device};

	return poll(&look, 1, 0) > 0 && (look.revents & POLLHUP);
}

static void mount_one(Fixture *f, const TnKeeperRequest *request, TnKeeperAnswer *answer)
{
	int pair[2], size = 4 << 20;

	answer->device = request->fd;
	if (request->fd >= 0 && has_ended(request->fd)) {
		answer->result = -ENOTCONN;
		return;
	}
	if (request->fd < 0) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
			answer->result = -errno;
			return;
		}
		fcntl(pair[0], F_SETFL, O_NONBLOCK);
		setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
		setsockopt(pair[1], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
		answer->device = pair[0];
		atomic_store(&f->kernels[atomic_load(&f->n_kernels)], pair[1]);
		atomic_fetch_add(&f->n_kernels, 1);
	}
	answer->mount = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void *keep(void *data)
{
	Fixture *f = data;
	TnKeeperRequest request;

	while (recv(f->keeper_sock, &request, sizeof(request), 0) == sizeof(request)) {
		TnKeeperAnswer answer = {.mount = -1, .device = -1};

		if (request.op == TN_KEEPER_MOUNT)
			mount_one(f, &request, &answer);
		else if (request.op == TN_KEEPER_MEMORY_NEW && f->tmpfs)
			answer.mount = fcntl(f->memory.dir, F_DUPFD_CLOEXEC, 3);
		else if (request.op != TN_KEEPER_MEMORY_RESIZE)
			answer.result = -EPERM;
		if (send(f->keeper_sock, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			break;
	}
	return NULL;
}

/* --- life ---------------------------------------------------------------------------------------
 */

static void start(Fixture *f)
{
	TnRegistryConfig config = {
		.store_fd = f->scratch.dir,
		.keeper = f->keeper,
		.default_store = TN_STORE_DIR,
		.default_bytes = 16 << 20,
		.default_inodes = 1000,
	};

	assert_int_equal(tn_serve_new(&f->serve, NULL), 0);
	config.serve = f->serve;
	assert_int_equal(tn_registry_new(&f->registry, &config), 0);
	assert_int_equal(tn_serve_start(f->serve, 2), 0);
}

static void stop(Fixture *f)
{
	tn_registry_free(f->registry);
	tn_serve_free(f->serve);
}

static void hang_up(Fixture *f, unsigned i)
{
	int sock = atomic_exchange(&f->kernels[i], -1);

	if (sock >= 0)
		close(sock);
}

static int set_up(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));
	int pair[2];

	umask(0);
	f->fds = tn_count_fds();
	f->reply = malloc(TN_REPLY_SIZE);
	f->tmpfs = tn_scratch_tmpfs();
	for (size_t i = 0; i < KERNELS; i++)
		atomic_store(&f->kernels[i], -1);
	assert_true(tn_scratch_new(&f->scratch, NULL));
	if (f->tmpfs)
		assert_true(tn_scratch_new(&f->memory, f->tmpfs));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	f->keeper_sock = pair[0];
	f->worker_sock = pair[1];
	f->keeper = tn_keeper_link_new(pair[1]);
	assert_int_equal(pthread_create(&f->keeper_thread, NULL, keep, f), 0);
	start(f);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	stop(f);
	for (unsigned i = 0; i < KERNELS; i++)
		hang_up(f, i);
	tn_keeper_link_free(f->keeper);
	close(f->worker_sock);
	pthread_join(f->keeper_thread, NULL);
	close(f->keeper_sock);
	tn_scratch_remove(&f->scratch);
	if (f->tmpfs)
		tn_scratch_remove(&f->memory);
	free(f->reply);
	assert_int_equal(tn_count_fds(), f->fds);
	free(f);
	return 0;
}

/* --- the kernel
 * ----------------------------------------------------------------------------------- */

/* Sends a request on the i-th connection; its number. */
static uint64_t tell(Fixture *f, unsigned i, uint32_t opcode, uint64_t node, const void *arg,
		     size_t arg_size, const void *more, size_t more_size)
{
	size_t size = sizeof(struct fuse_in_header) + arg_size + more_size;
	TN_AUTOFREE uint8_t *message = malloc(size);
	struct fuse_in_header in = {
		.len = (uint32_t)size,
		.opcode = opcode,
		.unique = f->unique += 2,
		.nodeid = node,
		.uid = geteuid(),
		.gid = getegid(),
		.pid = f->pid,
	};

	memcpy(message, &in, sizeof(in));
	if (arg_size)
		memcpy(message + sizeof(in), arg, arg_size);
	if (more_size)
		memcpy(message + sizeof(in) + arg_size, more, more_size);
	assert_int_equal(send(f->kernels[i], message, size, MSG_NOSIGNAL), size);
	return in.unique;
}

/* Waits for an answer: its number. */
static uint64_t hear(Fixture *f, unsigned i)
{
	const struct fuse_out_header *out = (const void *)f->reply;
	ssize_t n;

	do { /* what has no unique is a notification, not an answer */
		n = recv(f->kernels[i], f->reply, TN_REPLY_SIZE, 0);
		assert_true(n >= (ssize_t)sizeof(*out));
	} while (out->unique == 0);
	assert_int_equal(out->len, n);
	return out->unique;
}

/* Both: 0 or -errno. */
static int ask(Fixture *f, unsigned i, uint32_t opcode, uint64_t node, const void *arg,
	       size_t arg_size, const void *more, size_t more_size)
{
	uint64_t unique = tell(f, i, opcode, node, arg, arg_size, more, more_size);

	assert_int_equal(hear(f, i), unique);
	return ((const struct fuse_out_header *)(const void *)f->reply)->error;
}

static const void *payload(Fixture *f)
{
	return f->reply + sizeof(struct fuse_out_header);
}

static uint64_t look(Fixture *f, unsigned i, uint64_t dir, const char *name)
{
	if (ask(f, i, FUSE_LOOKUP, dir, NULL, 0, name, strlen(name) + 1) < 0)
		return 0;
	return ((const struct fuse_entry_out *)payload(f))->nodeid;
}

static uint64_t make(Fixture *f, unsigned i, uint64_t dir, const char *name)
{
	struct fuse_mknod_in in = {.mode = S_IFREG | 0644};

	assert_int_equal(ask(f, i, FUSE_MKNOD, dir, &in, sizeof(in), name, strlen(name) + 1), 0);
	return ((const struct fuse_entry_out *)payload(f))->nodeid;
}

static void write_some(Fixture *f, unsigned i, uint64_t node, uint32_t size)
{
	struct fuse_write_in in = {.size = size};
	TN_AUTOFREE uint8_t *data = calloc(1, size);

	assert_int_equal(ask(f, i, FUSE_WRITE, node, &in, sizeof(in), data, size), 0);
	assert_int_equal(((const struct fuse_write_out *)payload(f))->size, size);
}

/* --- nests
 * ----------------------------------------------------------------------------------------- */

static TnNest *create(Fixture *f, const TnNestSpec *spec)
{
	TnNestSpec own = *spec;
	char why[200] = "";
	TnNest *nest = NULL;
	int r;

	own.uid = geteuid();
	own.gid = getegid();
	own.from_fd = -1;
	r = tn_registry_create(f->registry, &own, &nest, why, sizeof(why));
	if (r < 0)
		fail_msg("create: %d %s", r, why);
	return nest;
}

/* Index of the connection that the attachment uses. */
static unsigned attach(Fixture *f, TnNest *nest)
{
	TnAttachment attachment;

	assert_int_equal(tn_nest_attach(nest, &attachment), 0);
	close(attachment.mount);
	return atomic_load(&f->n_kernels) - 1;
}

static TnNestInfo info_of(TnNest *nest)
{
	TnNestInfo info;

	tn_nest_info(nest, &info);
	return info;
}

static bool wait_for_count(Fixture *f, size_t count)
{
	int64_t empty;

	for (int i = 0; i < PATIENCE_MS; i++) {
		if (tn_registry_count(f->registry, &empty) == count)
			return true;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return false;
}

static size_t count_names(Fixture *f, const char *name)
{
	TN_AUTOFD dir = openat(f->scratch.dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = dir < 0 ? NULL : fdopendir(tn_steal_fd(&dir));
	size_t n = 0;

	if (!stream)
		return SIZE_MAX;
	while (readdir(stream))
		n++;
	closedir(stream);
	return n - 2;
}

static bool wait_for_empty(Fixture *f, const char *name)
{
	for (int i = 0; i < PATIENCE_MS; i++) {
		if (count_names(f, name) == 0)
			return true;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return false;
}

static bool wait_for_state(TnNest *nest, TnNestState state)
{
	for (int i = 0; i < PATIENCE_MS; i++) {
		if (info_of(nest).state == state)
			return true;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return false;
}

/* --- tests
 * ------------------------------------------------------------------------------------------ */

/* Does a serving thread have the nest to itself? It waits in read(2) then. */
static bool is_steady(const TnNest *nest)
{
	return !(fcntl(nest->device, F_GETFL) & O_NONBLOCK);
}

static bool wait_for_steady(const TnNest *nest, bool steady)
{
	for (int i = 0; i < PATIENCE_MS && is_steady(nest) != steady; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	return is_steady(nest) == steady;
}

static void look_often(Fixture *f, unsigned i, unsigned clients)
{
	for (unsigned n = 0; n < 200; n++) {
		f->pid = 100 + n % clients;
		assert_true(look(f, i, FUSE_ROOT_ID, "tmp") > 0);
	}
}

/* Threads may take turns for a while before one finds itself alone there. */
static bool make_steady(Fixture *f, unsigned i, const TnNest *nest)
{
	for (int n = 0; n < 100 && !is_steady(nest); n++) {
		if (n > 0)
			assert_true(tn_serve_look(f->serve));
		look_often(f, i, 1);
	}
	return is_steady(nest);
}

/* One client at a time has a thread to itself, several have not; others are served all the same. */
static void test_steady(void **state)
{
	Fixture *f = *state;
	TnNest *first = create(f, &(TnNestSpec){.name = "first"});
	TnNest *second = create(f, &(TnNestSpec){.name = "second"});
	unsigned a = attach(f, first), b = attach(f, second);

	assert_false(is_steady(first));
	assert_true(make_steady(f, a, first));
	/* the last thread is nobody's own */
	look_often(f, b, 1);
	assert_false(is_steady(second));
	assert_true(is_steady(first));
	look_often(f, a, 2);
	assert_true(wait_for_steady(first, false));

	assert_true(make_steady(f, a, first));
	/* at rest it gives its thread back, and is served as before when it has a request again */
	assert_true(tn_serve_look(f->serve));
	assert_true(tn_serve_look(f->serve));
	assert_false(is_steady(first));
	assert_true(make_steady(f, b, second));
	look_often(f, a, 1);

	/* with a thread in read(2) */
	assert_int_equal(tn_nest_set_frozen(second, true), 0);
	assert_int_equal(tn_nest_set_frozen(second, false), 0);
	assert_true(make_steady(f, b, second));
	tn_nest_unref(first);
	tn_nest_unref(second);
}

/* However many requests of a nest wait for something, one thread is there for the others. */
static void test_one_thread_is_left(void **state)
{
	enum { WAITING = 8 };
	Fixture *f = *state;
	TnNest *first = create(f, &(TnNestSpec){.name = "first"});
	TnNest *second = create(f, &(TnNestSpec){.name = "second"});
	unsigned a = attach(f, first), b = attach(f, second);
	uint64_t tmp = look(f, a, FUSE_ROOT_ID, "tmp");
	struct pollfd answers[] = {{.fd = f->kernels[a], .events = POLLIN},
				   {.fd = f->kernels[b], .events = POLLIN}};
	bool held, answered;

	pthread_rwlock_wrlock(&first->tree);
	for (unsigned i = 0; i < WAITING; i++) {
		f->pid = 100 + i;
		tell(f, a, FUSE_LOOKUP, tmp, NULL, 0, "x", 2);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
	held = poll(&answers[0], 1, 0) == 0;
	tell(f, b, FUSE_LOOKUP, FUSE_ROOT_ID, NULL, 0, "tmp", 4);
	answered = poll(&answers[1], 1, PATIENCE_MS) > 0;
	pthread_rwlock_unlock(&first->tree);
	hear(f, b);
	for (unsigned i = 0; i < WAITING; i++)
		hear(f, a);
	assert_true(held);
	assert_true(answered);
	tn_nest_unref(first);
	tn_nest_unref(second);
}

static void test_serves(void **state)
{
	Fixture *f = *state;
	TnNest *nest = create(f, &(TnNestSpec){.name = NULL});
	struct fuse_init_in init = {.major = 7, .minor = 39, .flags = UINT32_MAX};
	struct fuse_read_in read_in = {.size = TN_MAX_WRITE};
	unsigned kernel = attach(f, nest);
	uint64_t tmp, file;

	assert_int_equal(ask(f, kernel, FUSE_INIT, 0, &init, sizeof(init), NULL, 0), 0);
	tmp = look(f, kernel, 1, "tmp");
	file = make(f, kernel, tmp, "f");
	write_some(f, kernel, file, TN_MAX_WRITE);
	assert_int_equal(ask(f, kernel, FUSE_READ, file, &read_in, sizeof(read_in), NULL, 0), 0);
	assert_int_equal(((const struct fuse_out_header *)(const void *)f->reply)->len,
			 TN_MAX_WRITE + sizeof(struct fuse_out_header));
	assert_int_equal(info_of(nest).state, TN_NEST_ACTIVE);
	assert_int_equal(info_of(nest).attachments, 1);
	assert_int_equal(info_of(nest).bytes_used, TN_MAX_WRITE);
	assert_int_equal(info_of(nest).requests_total, 5);
	tn_nest_unref(nest);
}

static void test_ephemeral_ends(void **state)
{
	Fixture *f = *state;
	TnNest *nest = create(f, &(TnNestSpec){.name = NULL});
	TnAttachment again;
	unsigned kernel = attach(f, nest);

	make(f, kernel, look(f, kernel, 1, "tmp"), "f");
	assert_int_equal(tn_nest_attach(nest, &again), -EBUSY); /* once only */
	hang_up(f, kernel);
	assert_true(wait_for_count(f, 0));
	assert_true(wait_for_empty(f, "nests"));
	assert_true(wait_for_empty(f, "trash"));
	assert_int_equal(tn_nest_attach(nest, &again), -ENOENT);
	tn_nest_unref(nest);
}

static void test_named_stays(void **state)
{
	Fixture *f = *state;
	TnNest *nest = create(f, &(TnNestSpec){.name = "kept"}), *found;
	unsigned kernel = attach(f, nest);
	uint64_t tmp = look(f, kernel, 1, "tmp"), file = make(f, kernel, tmp, "f"), open_file;

	write_some(f, kernel, file, 5000);
	/* A second sandbox shares the connection. */
	assert_int_equal(attach(f, nest), kernel);
	assert_int_equal(info_of(nest).attachments, 2);
	/* A file that is unlinked and open goes with the superblock. */
	open_file = make(f, kernel, tmp, "open");
	write_some(f, kernel, open_file, 100000);
	assert_int_equal(ask(f, kernel, FUSE_UNLINK, tmp, NULL, 0, "open", 5), 0);
	assert_int_equal(info_of(nest).inodes_used, 2);
	hang_up(f, kernel);
	assert_true(wait_for_state(nest, TN_NEST_IDLE));
	assert_int_equal(info_of(nest).attachments, 0);
	assert_int_equal(info_of(nest).bytes_used, 8192);
	assert_int_equal(info_of(nest).inodes_used, 1);
	assert_int_equal(info_of(nest).nodes_cached, 1);
	kernel = attach(f, nest);
	assert_int_equal(info_of(nest).state, TN_NEST_ACTIVE);
	tmp = look(f, kernel, 1, "tmp");
	assert_true(look(f, kernel, tmp, "f") > open_file); /* nodeids are never used again */
	assert_int_equal(look(f, kernel, tmp, "open"), 0);
	found = tn_registry_find(f->registry, geteuid(), "kept");
	assert_ptr_equal(found, nest);
	tn_nest_unref(found);
	assert_null(tn_registry_find(f->registry, geteuid() + 1, "kept"));
	tn_nest_unref(nest);
}

/* The kernel ends the connection while the next attachment comes: it gets a new one. */
static void test_attach_after_end(void **state)
{
	Fixture *f = *state;
	TnNest *nest = create(f, &(TnNestSpec){.name = "kept"});

	for (unsigned i = 0; i < 20; i++) {
		unsigned kernel = attach(f, nest);

		assert_int_equal(kernel, i);
		assert_true(look(f, kernel, 1, "tmp") > 0);
		hang_up(f, kernel); /* no time for the janitor */
	}
	assert_true(wait_for_state(nest, TN_NEST_IDLE));
	tn_nest_unref(nest);
}

static void test_evict(void **state)
{
	Fixture *f = *state;
	TnNest *nest = create(f, &(TnNestSpec){.name = "kept"});
	unsigned kernel = attach(f, nest);
	TnAttachment attachment;
	uint32_t users = 0;
	char byte;

	make(f, kernel, look(f, kernel, 1, "tmp"), "f");
	assert_int_equal(tn_registry_evict(f->registry, nest, false, &users), -EBUSY);
	assert_int_equal(users, 1);
	assert_true(look(f, kernel, 1, "tmp") > 0); /* untouched */
	assert_int_equal(tn_registry_evict(f->registry, nest, true, &users), 0);
	assert_int_equal(recv(f->kernels[kernel], &byte, 1, 0), 0); /* the connection has ended */
	assert_int_equal(tn_nest_attach(nest, &attachment), -ENOENT);
	assert_null(tn_registry_find(f->registry, geteuid(), "kept"));
	assert_int_equal(info_of(nest).state, TN_NEST_EVICTING);
	assert_int_equal(tn_registry_evict(f->registry, nest, true, &users), 0); /* once more */
	assert_true(wait_for_empty(f, "trash"));
	assert_int_equal(count_names(f, "nests"), 0);
	tn_nest_unref(nest);
	/* The name is free again. */
	nest = create(f, &(TnNestSpec){.name = "kept"});
	assert_int_equal(tn_registry_evict(f->registry, nest, false, &users), 0);
	tn_nest_unref(nest);
}

static void test_specs(void **state)
{
	static const char *const bad_pattern[] = {"a\nb"}, *const other_bad[] = {"../x"};
	Fixture *f = *state;
	const struct {
		TnNestSpec spec;
		int error;
	} rows[] = {
		{{.name = "there"}, -EEXIST},
		{{.name = ".hidden"}, -EINVAL},
		{{.name = "a/b"}, -EINVAL},
		{{.name = ""}, -EINVAL},
		{{.name = "x", .store = TN_STORE_IMAGE}, -ENOTSUP},
		{{.name = "x", .store = TN_STORE_MEMORY, .durable = true}, -EINVAL},
		{{.name = "x", .deny = bad_pattern, .n_deny = 1}, -EINVAL},
		{{.name = "x", .read_only = other_bad, .n_read_only = 1}, -EINVAL},
	};
	TnNest *nest = create(f, &(TnNestSpec){.name = "there"});
	size_t fds = tn_count_fds();

	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		TnNestSpec spec = rows[i].spec;
		TnNest *none = NULL;
		char why[200] = "";

		spec.uid = geteuid();
		spec.gid = getegid();
		spec.from_fd = -1;
		assert_int_equal(tn_registry_create(f->registry, &spec, &none, why, sizeof(why)),
				 rows[i].error);
		assert_true(strlen(why) > 0); /* the user learns which of them */
		assert_null(none);
	}
	assert_true(wait_for_empty(f, "trash"));
	/* the wiper may still be looking */
	for (int i = 0; i < 1000 && tn_count_fds() != fds; i++)
		usleep(1000);
	assert_int_equal(tn_count_fds(), fds);
	assert_int_equal(count_names(f, "nests"), 1);
	tn_nest_unref(nest);
}

static void test_memory_store(void **state)
{
	Fixture *f = *state;
	TnNest *nest;
	unsigned kernel;

	if (!f->tmpfs) {
		print_message("no tmpfs to write to (/dev/shm or /run)\n");
		skip();
	}
	nest = create(f, &(TnNestSpec){.name = NULL, .store = TN_STORE_MEMORY, .bytes = 1 << 20});
	kernel = attach(f, nest);
	write_some(f, kernel, make(f, kernel, look(f, kernel, 1, "tmp"), "f"), 4097);
	assert_int_equal(info_of(nest).bytes_used, 8192);
	assert_int_equal(tn_nest_set_limits(nest, 2 << 20, 7, 60, 30), 0);
	assert_int_equal(info_of(nest).bytes_limit, 2 << 20);
	assert_int_equal(info_of(nest).inodes_limit, 7);
	assert_int_equal(info_of(nest).ttl, 60);
	tn_nest_unref(nest);
}

/* --- restart
 * ------------------------------------------------------------------------------------------- */

/* Replaces a line of the nest's description. */
static void edit_description(Fixture *f, uint64_t id, const char *key, const char *line)
{
	TN_AUTOFREE char *text = NULL, *changed = NULL;
	TN_AUTOFD home = -1;
	char path[64], *at;

	snprintf(path, sizeof(path), "nests/%016lx", (unsigned long)id);
	home = openat(f->scratch.dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(home >= 0);
	assert_true(tn_read_file(home, "nest", 1 << 20, &text) > 0);
	at = strstr(text, key);
	assert_non_null(at);
	assert_true(asprintf(&changed, "%.*s%s%s", (int)(at - text), text, line, strchr(at, '\n')) >
		    0);
	assert_int_equal(tn_replace_file(home, "nest", changed, strlen(changed), 0600, false), 0);
}

static void test_restart(void **state)
{
	static const char *const rules[] = {"secret", "/var/tmp/x"};
	Fixture *f = *state;
	TnNest *nest = create(
		f, &(TnNestSpec){.name = "kept", .bytes = 1 << 20, .deny = rules, .n_deny = 2});
	TnNest *rebooted = create(f, &(TnNestSpec){.name = "rebooted"});
	TnNest *durable = create(f, &(TnNestSpec){.name = "durable", .durable = true});
	TnNest *broken = create(f, &(TnNestSpec){.name = "broken"});
	unsigned kernel = attach(f, nest);
	uint64_t tmp = look(f, kernel, 1, "tmp"), file = make(f, kernel, tmp, "f"), bytes, inodes;
	uint64_t id = tn_nest_id(nest);

	write_some(f, kernel, file, 100000);
	assert_int_equal(ask(f, kernel, FUSE_SETXATTR, file, &(struct fuse_setxattr_in){.size = 3},
			     sizeof(struct fuse_setxattr_in), "user.x\0abc", 10),
			 0);
	bytes = info_of(nest).bytes_used;
	edit_description(f, tn_nest_id(rebooted), "boot ", "boot another");
	edit_description(f, tn_nest_id(durable), "boot ", "boot another");
	edit_description(f, tn_nest_id(broken), "bytes ", "bytes many");
	tn_nest_unref(create(f, &(TnNestSpec){.name = NULL}));
	tn_nest_unref(rebooted);
	tn_nest_unref(durable);
	tn_nest_unref(broken);
	tn_nest_unref(nest);
	stop(f);
	start(f);
	assert_true(wait_for_count(f, 2));
	nest = tn_registry_find(f->registry, geteuid(), "kept");
	assert_non_null(nest);
	assert_int_equal(tn_nest_id(nest), id);
	assert_int_equal(info_of(nest).state, TN_NEST_DETACHED);
	assert_int_equal(info_of(nest).bytes_used, bytes);
	assert_int_equal(info_of(nest).inodes_used, 1);
	assert_int_equal(info_of(nest).bytes_limit, 1 << 20);
	kernel = attach(f, nest);
	tmp = look(f, kernel, 1, "tmp");
	assert_int_equal(look(f, kernel, tmp, "secret"), 0);
	assert_int_equal(ask(f, kernel, FUSE_MKDIR, tmp, &(struct fuse_mkdir_in){.mode = 0755},
			     sizeof(struct fuse_mkdir_in), "secret", 7),
			 -EACCES);
	file = look(f, kernel, tmp, "f");
	/* What was charged before the restart is given back now. */
	assert_int_equal(ask(f, kernel, FUSE_SETATTR, file,
			     &(struct fuse_setattr_in){.valid = FATTR_SIZE, .size = 5000},
			     sizeof(struct fuse_setattr_in), NULL, 0),
			 0);
	assert_int_equal(tn_nest_recount(nest, &bytes, &inodes), 0);
	assert_int_equal(info_of(nest).bytes_used, bytes);
	assert_int_equal(ask(f, kernel, FUSE_UNLINK, tmp, NULL, 0, "f", 2), 0);
	hang_up(f, kernel);
	assert_true(wait_for_state(nest, TN_NEST_IDLE));
	assert_int_equal(info_of(nest).bytes_used, 0);
	assert_int_equal(info_of(nest).inodes_used, 0);
	tn_nest_unref(nest);
	assert_true(wait_for_empty(f, "trash"));
	/* The broken one is somebody's all the same: it stays, and nobody meets it. */
	assert_int_equal(count_names(f, "nests"), 3);
}

/* Wipes what the start found damaged. How many that was. */
static size_t collect_damaged(Fixture *f, bool dry_run)
{
	const TnGcOptions options = {.all = true, .damaged = true, .dry_run = dry_run};
	TnGcReport report;
	size_t n;

	assert_int_equal(tn_registry_gc(f->registry, (uid_t)-1, &options, &report), 0);
	assert_int_equal(report.n_items, 0);
	n = report.n_damaged;
	tn_gc_report_clear(&report);
	return n;
}

static TnStoreInfo store_info(Fixture *f)
{
	TnStoreInfo info;

	tn_registry_store_info(f->registry, &info);
	return info;
}

/* A description that names its home's id but is cut short anywhere. */
static void test_damaged_nests_stay(void **state)
{
	Fixture *f = *state;
	TN_AUTOFREE char *text = NULL;
	TnNest *nest = create(f, &(TnNestSpec){.name = "whole", .keep = true});
	TN_AUTOFD home = -1;
	char path[64];
	ssize_t size;

	snprintf(path, sizeof(path), "nests/%016lx", (unsigned long)tn_nest_id(nest));
	tn_nest_unref(nest);
	stop(f);
	home = openat(f->scratch.dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size = tn_read_file(home, "nest", 1 << 20, &text);
	assert_true(size > 100);
	for (ssize_t cut = 0; cut <= size; cut += cut + 60 < size ? 60 : 1) {
		assert_int_equal(tn_replace_file(home, "nest", text, (size_t)cut, 0600, false), 0);
		start(f);
		/* Only the last newline may be missing. */
		assert_int_equal(tn_registry_count(f->registry, &(int64_t){0}), cut >= size - 1);
		assert_int_equal(store_info(f).damaged, cut < size - 1);
		assert_int_equal(count_names(f, "nests"), 1);
		stop(f);
	}
	/* Its content is another's, or nowhere: an empty nest in its place would hide that. */
	assert_int_equal(renameat(home, "data", home, "moved"), 0);
	start(f);
	assert_int_equal(store_info(f).damaged, 1);
	assert_int_equal(faccessat(home, "data", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	stop(f);
	assert_int_equal(symlinkat("moved", home, "data"), 0);
	start(f);
	assert_int_equal(store_info(f).damaged, 1);
	stop(f);
	assert_int_equal(unlinkat(home, "data", 0), 0);
	assert_int_equal(renameat(home, "moved", home, "data"), 0);
	start(f);
	assert_int_equal(store_info(f).damaged, 0);
	assert_int_equal(tn_registry_count(f->registry, &(int64_t){0}), 1);
}

/* nests or trash are something else. */
static void test_directories_of_the_store_replaced(void **state)
{
	static const char *const names[] = {"nests", "trash"};
	Fixture *f = *state;

	stop(f);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(unlinkat(f->scratch.dir, names[i], AT_REMOVEDIR), 0);
		assert_int_equal(symlinkat("/etc", f->scratch.dir, names[i]), 0);
	}
	start(f);
	tn_nest_unref(create(f, &(TnNestSpec){.name = "works"}));
	assert_int_equal(count_names(f, "nests"), 1);
	assert_int_equal(access("/etc/passwd", F_OK), 0);
	stop(f);
	unlinkat(f->scratch.dir, "trash", AT_REMOVEDIR);
	assert_int_equal(mknodat(f->scratch.dir, "trash", S_IFREG | 0600, 0), 0);
	start(f);
	assert_int_equal(tn_registry_count(f->registry, &(int64_t){0}), 1);
	/* Three things were renamed, nothing was lost. */
	assert_int_equal(count_names(f, "."), 2 + 3);
}

static void test_half_made_homes_go(void **state)
{
	Fixture *f = *state;

	stop(f);
	assert_int_equal(mkdirat(f->scratch.dir, "nests/.new-0123456789abcdef", 0700), 0);
	assert_int_equal(mkdirat(f->scratch.dir, "nests/.new-0123456789abcdef/data", 0), 0);
	start(f);
	assert_true(wait_for_empty(f, "trash"));
	assert_int_equal(count_names(f, "nests"), 0);
	assert_int_equal(store_info(f).damaged, 0);
}

/* The last use is known after a restart, so that an idle nest does not seem unused. */
static void test_last_use_survives(void **state)
{
	Fixture *f = *state;
	TnNest *nest = create(f, &(TnNestSpec){.name = "used", .idle_ttl = 1000});
	int64_t used = tn_now() - 500 * INT64_C(1000000000);

	nest->created_ns -= 5000 * INT64_C(1000000000);
	pthread_mutex_lock(&nest->life);
	atomic_store(&nest->arena.header->last_used_ns, used);
	assert_int_equal(tn_describe_save(nest), 0);
	pthread_mutex_unlock(&nest->life);
	tn_nest_unref(nest);
	stop(f);
	start(f);
	nest = tn_registry_find(f->registry, geteuid(), "used");
	assert_non_null(nest);
	assert_in_range(info_of(nest).last_used_ns / 1000000000, used / 1000000000 - 1,
			used / 1000000000 + 1);
	tn_nest_unref(nest);
}

/* --- freezing --- */

static void test_freeze(void **state)
{
	Fixture *f = *state;
	TnNest *nest = create(f, &(TnNestSpec){.name = "cold"});
	unsigned kernel = attach(f, nest);
	uint64_t tmp = look(f, kernel, 1, "tmp"), file = make(f, kernel, tmp, "f");

	write_some(f, kernel, file, 100);
	assert_int_equal(tn_nest_set_frozen(nest, true), 0);
	assert_int_equal(tn_nest_set_frozen(nest, true), 0);
	assert_int_equal(info_of(nest).state, TN_NEST_FROZEN);
	assert_int_equal(ask(f, kernel, FUSE_MKDIR, tmp, &(struct fuse_mkdir_in){.mode = 0755},
			     sizeof(struct fuse_mkdir_in), "d", 2),
			 -EROFS);
	assert_int_equal(ask(f, kernel, FUSE_SETATTR, file,
			     &(struct fuse_setattr_in){.valid = FATTR_SIZE, .size = 0},
			     sizeof(struct fuse_setattr_in), NULL, 0),
			 -EROFS);
	assert_int_equal(ask(f, kernel, FUSE_UNLINK, tmp, NULL, 0, "f", 2), -EROFS);
	hang_up(f, kernel);
	/* Also in the next daemon. */
	tn_nest_unref(nest);
	stop(f);
	start(f);
	nest = tn_registry_find(f->registry, geteuid(), "cold");
	assert_int_equal(info_of(nest).state, TN_NEST_FROZEN);
	kernel = attach(f, nest);
	tmp = look(f, kernel, 1, "tmp");
	assert_int_equal(ask(f, kernel, FUSE_UNLINK, tmp, NULL, 0, "f", 2), -EROFS);
	assert_int_equal(tn_nest_set_frozen(nest, false), 0);
	assert_int_equal(ask(f, kernel, FUSE_UNLINK, tmp, NULL, 0, "f", 2), 0);
	hang_up(f, kernel);
	assert_true(wait_for_state(nest, TN_NEST_IDLE));
	tn_nest_unref(nest);
}

static void test_foreign_store(void **state)
{
	Fixture *f = *state;

	stop(f);
	assert_int_equal(mkdirat(f->scratch.dir, "nests/0123456789abcdef", 0700), 0);
	assert_int_equal(mkdirat(f->scratch.dir, "nests/what", 0700), 0);
	assert_int_equal(mkdirat(f->scratch.dir, "nests/what/is", 0), 0);
	assert_int_equal(symlinkat("/etc", f->scratch.dir, "nests/link"), 0);
	assert_int_equal(mknodat(f->scratch.dir, "nests/file", S_IFREG | 0600, 0), 0);
	start(f);
	assert_int_equal(count_names(f, "nests"), 4);
	assert_int_equal(store_info(f).damaged, 4);
	assert_int_equal(collect_damaged(f, true), 4);
	assert_int_equal(count_names(f, "nests"), 4);
	assert_int_equal(collect_damaged(f, false), 4);
	assert_true(wait_for_empty(f, "trash"));
	assert_int_equal(count_names(f, "nests"), 0);
	assert_int_equal(store_info(f).damaged, 0);
	assert_int_equal(access("/etc/passwd", F_OK), 0);
}

/* --- many at once
 * ---------------------------------------------------------------------------------------- */

static void test_time_to_live(void **state)
{
	Fixture *f = *state;
	TnNest *old = create(f, &(TnNestSpec){.name = "old", .ttl = 1});
	TnNest *idle = create(f, &(TnNestSpec){.name = "idle", .idle_ttl = 1});
	TnNest *used = create(f, &(TnNestSpec){.name = "used", .ttl = 1, .idle_ttl = 1});
	TnNest *ahead = create(f, &(TnNestSpec){.name = "ahead", .idle_ttl = 3600});
	unsigned kernel = attach(f, used);

	/* Used since the patrol looked at the clock, or the clock was set back. */
	atomic_store(&ahead->arena.header->last_used_ns, tn_now() + 60000000000);
	assert_true(wait_for_count(f, 2));
	assert_int_equal(info_of(ahead).state, TN_NEST_IDLE);
	assert_int_equal(tn_registry_evict(f->registry, ahead, false, NULL), 0);
	tn_nest_unref(ahead);
	assert_true(look(f, kernel, 1, "tmp") > 0); /* not under somebody who uses it */
	hang_up(f, kernel);
	assert_true(wait_for_count(f, 0));
	tn_nest_unref(old);
	tn_nest_unref(idle);
	tn_nest_unref(used);
}

typedef struct Client {
	pthread_t thread;
	Fixture *f;
	bool bad;
} Client;

/* Creates, lists, looks, evicts: whatever the others do meanwhile. */
static void *live(void *data)
{
	Client *client = data;
	Fixture *f = client->f;

	for (int i = 0; i < 10 && !client->bad; i++) {
		TnNestSpec spec = {.uid = geteuid(), .gid = getegid(), .from_fd = -1};
		TnNest *nest = NULL, **list;
		char why[200];
		size_t n;

		if (tn_registry_create(f->registry, &spec, &nest, why, sizeof(why)) < 0) {
			client->bad = true;
			break;
		}
		list = tn_registry_list(f->registry, (uid_t)-1, &n);
		while (n > 0) {
			(void)info_of(list[--n]);
			tn_nest_unref(list[n]);
		}
		free(list);
		client->bad |= tn_registry_evict(f->registry, nest, i % 2, NULL) < 0;
		tn_nest_unref(nest);
	}
	return NULL;
}

static void test_many(void **state)
{
	Fixture *f = *state;
	Client clients[3];

	for (size_t i = 0; i < TN_ARRAY_LEN(clients); i++) {
		clients[i] = (Client){.f = f};
		assert_int_equal(pthread_create(&clients[i].thread, NULL, live, &clients[i]), 0);
	}
	for (int i = 0; i < 20; i++) {
		TnNest *nest = create(f, &(TnNestSpec){.name = NULL});
		unsigned kernel = attach(f, nest);

		write_some(f, kernel, make(f, kernel, look(f, kernel, 1, "tmp"), "f"), 10000);
		hang_up(f, kernel);
		tn_nest_unref(nest);
	}
	for (size_t i = 0; i < TN_ARRAY_LEN(clients); i++) {
		pthread_join(clients[i].thread, NULL);
		assert_false(clients[i].bad);
	}
	assert_true(wait_for_count(f, 0));
	assert_true(wait_for_empty(f, "trash"));
	assert_int_equal(count_names(f, "nests"), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_serves),
		TEST(test_steady),
		TEST(test_one_thread_is_left),
		TEST(test_ephemeral_ends),
		TEST(test_named_stays),
		TEST(test_attach_after_end),
		TEST(test_evict),
		TEST(test_specs),
		TEST(test_memory_store),
		TEST(test_restart),
		TEST(test_foreign_store),
		TEST(test_damaged_nests_stay),
		TEST(test_directories_of_the_store_replaced),
		TEST(test_half_made_homes_go),
		TEST(test_last_use_survives),
		TEST(test_freeze),
		TEST(test_time_to_live),
		TEST(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
