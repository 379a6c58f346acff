/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "worker.h"

#include "attach.h"
#include "control.h"
#include "descriptors.h"
#include "keeper-worker.h"
#include "log.h"
#include "macros.h"
#include "mm-holder.h"
#include "prefault.h"
#include "privileges.h"
#include "registry.h"
#include "serve.h"
#include "sys.h"
#include "syscalls.h"
#include "why.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

TN_SYSCALLS = {
	{SYS_prctl, TN_ARG_IS(0, PR_SET_PDEATHSIG)},
	{SYS_getppid},
	{SYS_poll},
	{SYS_ppoll},
	{SYS_eventfd2},
};

#define SECOND_NS INT64_C(1000000000)
#define WORKER_NAME "tmpnestd-worker"
#define BEAT_MS 500
#define ARENAS_IN_WAITING 64U /* more would cost memory, for the tables of their pages */
#define DEFAULT_BYTES (UINT64_C(1) << 30)
#define DEFAULT_INODES UINT64_C(262144)

struct TnWorkerStop {
	int event; /* eventfd */
};

typedef struct TnWorker {
	TnWorkerEnv *env;
	TnWorkerStop stop;
	TnServe *serve;
	TnRegistry *registry;
	TnAttachServer *attach;
	TnControl *control;
	char config_file[PATH_MAX]; /* the user's, or "" */
	TnArenaSet arenas;
	sem_t serves; /* posted when it serves, and at its end */
	int status;   /* exit status */
} TnWorker;

void tn_worker_stop(TnWorkerStop *stop)
{
	uint64_t one = 1;

	if (write(stop->event, &one, sizeof(one)) < 0)
		tn_log(TN_LOG_DEBUG, "stop: %s", strerror(errno));
}

/* A user's daemon reads the user's file as well; a system daemon none that a user can write. */
static void find_config_files(TnWorker *worker, const char *ret[2])
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n = 0;

	ret[0] = "/etc/tmpnest/tmpnest.conf";
	ret[1] = NULL;
	if (worker->env->scope == TN_SCOPE_SYSTEM)
		return;
	if (config && config[0] == '/')
		n = snprintf(worker->config_file, sizeof(worker->config_file),
			     "%s/tmpnest/tmpnest.conf", config);
	else if (home && home[0] == '/')
		n = snprintf(worker->config_file, sizeof(worker->config_file),
			     "%s/.config/tmpnest/tmpnest.conf", home);
	if (n > 0 && n < (int)sizeof(worker->config_file))
		ret[1] = worker->config_file;
}

static int start_registry(TnWorker *worker, char *why, size_t why_size)
{
	TnWorkerEnv *env = worker->env;
	TnRegistryConfig config = {
		.store_fd = env->store,
		.many_owners = env->uid == 0,
		.keeper = env->keeper,
		.use_resend = env->use_resend,
		.data_path = env->data_path,
		.probe_passthrough = env->probe_passthrough,
		.default_store = TN_STORE_DIR,
		.default_bytes = DEFAULT_BYTES,
		.default_inodes = DEFAULT_INODES,
	};
	int r = tn_serve_new(&worker->serve, env->state);

	if (r < 0)
		return tn_why(why, why_size, r, "worker: epoll: %s", strerror(-r));
	find_config_files(worker, config.config_files);
	config.serve = worker->serve;
	config.arenas = &worker->arenas;
	r = tn_registry_new(&worker->registry, &config);
	if (r < 0)
		return tn_why(why, why_size, r, "store: %s: %s", env->paths->store_dir,
			      strerror(-r));
	r = tn_serve_start(worker->serve, env->n_threads);
	tn_arena_set_clear(&worker->arenas);
	return r < 0 ? tn_why(why, why_size, r, "worker: threads: %s", strerror(-r)) : 0;
}

static int start_servers(TnWorker *worker, char *why, size_t why_size)
{
	int r;

	worker->stop.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (worker->stop.event < 0)
		return tn_why(why, why_size, -errno, "worker: eventfd: %s", strerror(errno));
	r = start_registry(worker, why, why_size);
	if (r < 0)
		return r;
	r = tn_control_new(&worker->control, worker->env, worker->registry, &worker->stop);
	if (r < 0)
		return tn_why(why, why_size, r, "control server: %s", strerror(-r));
	r = tn_attach_server_new(&worker->attach, worker->env, worker->registry);
	if (r < 0)
		return tn_why(why, why_size, r, "attach server: %s", strerror(-r));
	return 0;
}

/* In the order that leaves no caller without its callee; every part takes NULL. */
static void stop_servers(TnWorker *worker)
{
	tn_attach_server_free(worker->attach);
	tn_control_free(worker->control);
	tn_registry_free(worker->registry);
	tn_serve_free(worker->serve);
	tn_close(&worker->stop.event);
}

/* Nanoseconds until the idle time is over if nothing happens; at least one. */
static int64_t idle_left(TnWorker *worker, bool *ret_over)
{
	uint64_t seconds = worker->env->idle_timeout;
	int64_t limit = seconds < 1000000000 ? (int64_t)seconds * SECOND_NS : INT64_MAX;
	int64_t empty = 0;
	size_t nests = tn_registry_count(worker->registry, &empty);

	*ret_over = nests == 0 && empty >= limit;
	return nests == 0 && empty < limit ? limit - empty : limit;
}

static bool is_readable(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, 0) > 0;
}

/*
 * Ends the attach server and looks once more: a launcher that came in the meantime is
 * served, not turned away. True when the daemon may end.
 */
static bool close_when_idle(TnWorker *worker)
{
	int64_t empty;
	int r;

	tn_attach_server_free(worker->attach);
	worker->attach = NULL;
	if (tn_registry_count(worker->registry, &empty) == 0 &&
	    !is_readable(worker->env->attach_listener))
		return true;
	r = tn_attach_server_new(&worker->attach, worker->env, worker->registry);
	if (r < 0)
		tn_log(TN_LOG_ERROR, "attach server: cannot start again: %s", strerror(-r));
	return r < 0;
}

static int poll_milliseconds(int64_t ns)
{
	/* A day at most: the sum of poll(2)'s int. */
	int64_t ms = ns / 1000000 + 1;

	return ms < 86400000 ? (int)ms : 86400000;
}

/* Tells the keeper that all is well, as long as no request hangs. Milliseconds until then. */
static int beat(TnWorker *worker, int until)
{
	if (tn_serve_look(worker->serve))
		atomic_fetch_add(&worker->env->state->beat, 1);
	return until < 0 || until > BEAT_MS ? BEAT_MS : until;
}

static void wait_for_stop(TnWorker *worker)
{
	bool never = worker->env->idle_timeout == TN_UNLIMITED;
	struct pollfd fds[] = {
		{.fd = worker->env->stop_event, .events = POLLIN},
		{.fd = worker->stop.event, .events = POLLIN},
	};

	for (;;) {
		bool over = false;
		int64_t left = never ? 0 : idle_left(worker, &over);
		int n;

		if (over && close_when_idle(worker)) {
			tn_log(TN_LOG_INFO, "stopping: no nest for %" PRIu64 " s",
			       worker->env->idle_timeout);
			return;
		}
		n = poll(fds, TN_ARRAY_LEN(fds),
			 beat(worker, never ? -1 : poll_milliseconds(left)));
		if (n > 0 && fds[1].revents)
			tn_log(TN_LOG_INFO, "stopping: asked to");
		if (n > 0)
			return;
		if (n < 0 && errno != EINTR) {
			tn_log(TN_LOG_ERROR, "worker: poll: %s", strerror(errno));
			return;
		}
	}
}

/*
 * A worker in waiting has done by now what takes a new process long, above all its page faults.
 * 0 when it is to serve, else -errno.
 */
static int wait_for_turn(TnWorkerEnv *env)
{
	if (env->in_waiting)
		tn_prefault_thread();
	/* Of all threads. The last step, as nobody answers a refused call until the keeper has
	 * what tells of it: a C library that makes a new one there would hang. */
	env->refusals = tn_privileges_filter();
	return env->in_waiting ? tn_worker_wait_for_turn(env->link_socket) : 0;
}

static int take_over(TnWorker *worker, char *why, size_t why_size)
{
	const TnWorkerEnv *env = worker->env;
	/* Without any as well: the keeper answers when it has closed what it had of the worker
	 * before, whose number would else be closed again, as something else's. */
	int r = tn_keeper_refusals(env->keeper, env->refusals);

	if (r == 0 && env->takes_over)
		r = tn_descriptors_tidy(env, &worker->arenas);
	return r < 0 ? tn_why(why, why_size, r, "worker: descriptors: %s", strerror(-r)) : 0;
}

/* The exit status. */
static int serve(TnWorker *worker)
{
	char why[TN_WHY_MAX] = "";
	int r = wait_for_turn(worker->env);

	if (r < 0)
		return 1;
	r = take_over(worker, why, sizeof(why));
	if (r == 0)
		r = start_servers(worker, why, sizeof(why));
	if (r < 0) {
		tn_keeper_failed(worker->env->keeper, why);
		tn_log(TN_LOG_ERROR, "%s", why);
		return 1;
	}
	sem_post(&worker->serves);
	if (tn_keeper_ready(worker->env->keeper) < 0)
		return 1;
	wait_for_stop(worker);
	tn_keeper_stopping(worker->env->keeper);
	return 0;
}

static void *run(void *data)
{
	TnWorker *worker = data;

	worker->status = serve(worker);
	stop_servers(worker);
	sem_post(&worker->serves);
	return NULL;
}

/* Before any other thread, and before the filter, which allows no process. */
static void prepare(TnWorker *worker)
{
	TnWorkerEnv *env = worker->env;
	int r = tn_mm_holder_start(env->keeper_pid);

	if (r < 0 && r != -ENOSYS)
		tn_log(TN_LOG_INFO, "worker: nobody to hold its memory: %s", strerror(-r));
	if (env->in_waiting) {
		tn_prefault();
		tn_state_prefault(env->state);
		(void)tn_arena_set_fill(&worker->arenas, env->state, ARENAS_IN_WAITING);
	}
}

/*
 * The C library believes that a raw-cloned thread is still the keeper's (its cached thread
 * id is), so this one only starts the real first thread and waits for it. The process has this
 * one's name.
 */
static int run_in_thread(TnWorker *worker, char *why, size_t why_size)
{
	pthread_t thread;
	int r;

	sem_init(&worker->serves, 0, 0);
	r = pthread_create(&thread, NULL, run, worker);
	if (r != 0)
		return tn_why(why, why_size, -r, "worker: thread: %s", strerror(r));
	while (sem_wait(&worker->serves) < 0 && errno == EINTR)
		;
	prctl(PR_SET_NAME, WORKER_NAME);
	pthread_join(thread, NULL);
	return 0;
}

int tn_worker_main(TnWorkerEnv *env)
{
	TnWorker worker = {.env = env, .stop = {.event = -1}};
	char why[TN_WHY_MAX] = "";
	int r;

	prctl(PR_SET_NAME, env->in_waiting ? "tmpnestd-next" : WORKER_NAME);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTTOU, SIG_IGN); /* its group is not a terminal's foreground one */
	env->keeper = tn_keeper_link_new(env->link_socket);
	if (!env->keeper)
		return 1;
	r = tn_privileges_worker(env->uid == 0, why, sizeof(why));
	/* After the change of credentials, which would undo it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != env->keeper_pid)
		return 1;
	if (r == 0) {
		prepare(&worker);
		r = run_in_thread(&worker, why, sizeof(why));
	}
	if (r < 0) {
		tn_keeper_failed(env->keeper, why);
		worker.status = 1;
	}
	tn_keeper_link_free(env->keeper);
	return worker.status;
}
