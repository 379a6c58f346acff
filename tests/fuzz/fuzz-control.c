/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes from a client of the control socket, behind it nests that are numbers only. A message
 * is taken by the guard exactly when it is one that the server then reads; every message gets
 * an answer that is a JSON object, and when the client has gone nothing is left of it.
 */
#include "control-private.h"
#include "fake-nests.h"
#include "promise.h"

#include "events.h"
#include "macros.h"
#include "nest-look.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const char tn_control_interface[];

/* Nests whose content is an empty directory; other paths would be the machine's. */
static bool is_inside(const char *path)
{
	return strcmp(path, "/tmp") == 0 || strcmp(path, "/tmp/a") == 0;
}

int __real_tn_nest_look(TnNest *nest, const char *path);
int __real_tn_nest_look_dir(TnNest *nest, const char *path);
int __real_tn_nest_look_file(TnNest *nest, const char *path);
int __wrap_tn_nest_look(TnNest *nest, const char *path);
int __wrap_tn_nest_look_dir(TnNest *nest, const char *path);
int __wrap_tn_nest_look_file(TnNest *nest, const char *path);

int __wrap_tn_nest_look(TnNest *nest, const char *path)
{
	return is_inside(path) ? __real_tn_nest_look(nest, path) : -ENOENT;
}

int __wrap_tn_nest_look_dir(TnNest *nest, const char *path)
{
	return is_inside(path) ? __real_tn_nest_look_dir(nest, path) : -ENOTDIR;
}

int __wrap_tn_nest_look_file(TnNest *nest, const char *path)
{
	return is_inside(path) ? __real_tn_nest_look_file(nest, path) : -EISDIR;
}

/* Work for other threads is done at once: a case must always go the same way. */
gboolean __wrap_g_thread_pool_push(GThreadPool *pool, gpointer data, GError **error);

gboolean __wrap_g_thread_pool_push(GThreadPool *pool, gpointer data, GError **error)
{
	(void)error;
	pool->func(data, pool->user_data);
	return TRUE;
}

void tn_worker_stop(TnWorkerStop *stop)
{
	(void)stop;
}

int tn_keeper_peer_userns(TnKeeperLink *link, int pidfd, uint64_t *ret_dev, uint64_t *ret_ino)
{
	return -EIO;
}

static int admit(int sock, const TnPeer *peer, int ns_fd, char *why, size_t why_size, void *data)
{
	return 0;
}

typedef struct Case {
	TnPaths paths;
	TnWorkerEnv env;
	TnControl control;
	TnEventHub *hub;
	int client, content;
	size_t answers;
} Case;

static void start(Case *c)
{
	TnVarlinkConfig config = {
		.interface = TN_CONTROL_INTERFACE,
		.description = tn_control_interface,
		.data = &c->control,
		.admit = admit,
	};
	int pair[2];

	fake_nests_reset();
	PROMISE(tn_event_hub_new(&c->hub) == 0);
	fake_nests_hub(c->hub);
	c->content = open("/proc/self/attr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fake_nests_content(c->content);
	fake_nests_add(geteuid(), "a");
	fake_nests_add(4242, "b");
	fake_nests_rules(3, "/tmp/x");
	c->env = (TnWorkerEnv){.paths = &c->paths, .uid = geteuid(), .gid = getegid()};
	c->control.env = &c->env;
	c->control.context = g_main_context_new();
	c->control.recounts = tn_jobs_new(1, tn_control_recount, &c->control);
	c->control.walks = tn_jobs_new(1, tn_control_walk, &c->control);
	config.methods = tn_control_methods(&config.n_methods);
	g_main_context_push_thread_default(c->control.context);
	c->control.server = tn_varlink_server_new(&config, c->control.context);
	tn_control_events_start(&c->control);
	PROMISE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	c->client = pair[0];
	PROMISE(tn_varlink_server_add(c->control.server, pair[1]) == 0);
}

/* Every answer is one JSON object that ends in a NUL. */
static void read_answers(Case *c, GString *got)
{
	char bytes[65536];
	ssize_t n;

	while ((n = read(c->client, bytes, sizeof(bytes))) > 0)
		g_string_append_len(got, bytes, n);
	for (const char *nul; (nul = memchr(got->str, '\0', got->len));) {
		gsize length = (gsize)(nul - got->str);

		PROMISE(tn_varlink_guard(got->str, length) == 0 || length > 64 * 1024);
		c->answers++;
		g_string_erase(got, 0, (gssize)length + 1);
	}
}

static void turn(Case *c, GString *got)
{
	for (int i = 0; i < 64 && g_main_context_iteration(c->control.context, FALSE); i++)
		read_answers(c, got);
}

static void stop(Case *c)
{
	tn_varlink_server_free(c->control.server);
	tn_control_events_stop(&c->control);
	g_main_context_pop_thread_default(c->control.context);
	while (g_main_context_iteration(c->control.context, FALSE))
		;
	tn_jobs_free(c->control.recounts);
	tn_jobs_free(c->control.walks);
	g_main_context_unref(c->control.context);
	tn_event_hub_free(c->hub);
	close(c->client);
	close(c->content);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	GString *got = g_string_new(NULL);
	const uint8_t *nul = memchr(data, '\0', size);
	size_t length = nul ? (size_t)(nul - data) : size;
	bool good = nul && tn_varlink_guard((const char *)data, length) == 0;
	Case c = {.answers = 0};

	start(&c);
	for (size_t at = 0; at < size;) {
		size_t piece = size - at < 4096 ? size - at : 4096;
		ssize_t n = send(c.client, data + at, piece, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		at += (size_t)n;
		turn(&c, got);
	}
	turn(&c, got);
	/* What the guard refuses is told so, whatever else it is. */
	PROMISE(!nul || good || c.answers > 0);
	stop(&c);
	PROMISE(fake_nests_refs() == 0);
	g_string_free(got, TRUE);
	return 0;
}
