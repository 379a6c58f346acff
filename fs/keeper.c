/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper.h"

#include "keeper-dirs.h"
#include "keeper-proto.h"
#include "keeper-services.h"
#include "keeper-upgrade.h"
#include "keeper-worker.h"
#include "log.h"
#include "macros.h"
#include "namespaces.h"
#include "privileges.h"
#include "seccomp.h"
#include "state.h"
#include "sys.h"
#include "why.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define STOP_NS (5000 * MS) /* for a worker that was told to stop */
#define DELAY_FIRST_MS 100  /* before another try when a worker could not start, then doubled */
#define DELAY_MAX_MS 5000
#define BURST_MOST 50          /* workers that may end in a second without any delay */
#define STARTS_MOST 5          /* failures in a row before views are given up */
#define UPGRADE_NS (100 * MS)  /* for the answer to reach who asked for an upgrade */
#define LOOK_NS (500 * MS)     /* between two looks at the worker's heartbeat */
#define STOPPED_NS (2000 * MS) /* without one the worker is replaced */
#define STANDBY_NS (5 * MS)    /* between a worker's start and that of its successor */

typedef struct TnKeeper {
	const TnKeeperConfig *config;
	TnKeeperDirs dirs;
	TnWorkerEnv env;
	int signals;
	TnWorkerProcess worker, standby;
	pid_t remains;      /* the group of the worker before (mm-holder.h); 0: nothing is left */
	bool serves;        /* this worker said that it is ready */
	bool announced;     /* the starter was told */
	bool stopping;      /* the daemon ends; no new worker */
	bool upgrading;     /* when the worker has ended, this becomes the new program */
	bool storing;       /* ... all is handed to the service manager, and the daemon ends */
	bool stored;        /* done: another keeper has it now */
	int64_t upgrade_at; /* 0: no upgrade was asked for */
	uint64_t beat;      /* the worker's, as last seen */
	int64_t beat_at;
	bool hung;        /* it was killed because it gave none */
	int64_t burst_at; /* the second in which ends of workers are counted */
	unsigned burst;
	unsigned failed_starts; /* in a row */
	uint64_t progress;      /* of the state, when this worker was started */
	int64_t kill_at;        /* 0: not yet told to stop */
	int64_t restart_at;     /* meaningful while no worker runs */
	int64_t standby_at;     /* meaningful while no worker is in waiting */
	unsigned delay_ms;
	int state_fd;
	int refusals; /* of the worker's system call filter; -1: none */
	TnSeccompLog refused;
	char failure[256]; /* what the worker said about its own start */
} TnKeeper;

static void name_own_descriptors(TnKeeper *keeper)
{
	keeper->env.keepers[0] = keeper->signals;
	keeper->env.keepers[1] = keeper->dirs.runtime_lock;
	keeper->env.keepers[2] = keeper->dirs.store_lock;
}

/* A fresh worker, or the one in waiting. */
static int start_worker(TnKeeper *keeper)
{
	TnWorkerProcess standby = keeper->standby;
	int r;

	keeper->serves = false;
	keeper->progress = atomic_load(&keeper->env.state->progress);
	keeper->failure[0] = '\0';
	keeper->standby = TN_WORKER_NONE;
	if (standby.pid && tn_worker_process_go(&standby) == 0) {
		keeper->worker = standby;
	} else {
		tn_worker_process_end(&standby);
		name_own_descriptors(keeper);
		r = tn_worker_process_start(&keeper->worker, &keeper->env, keeper->config->worker,
					    false);
		if (r < 0)
			return r;
	}
	keeper->env.takes_over = true; /* the next one */
	keeper->beat_at = tn_monotonic();
	tn_log(TN_LOG_DEBUG, "worker started: pid %d", keeper->worker.pid);
	return 0;
}

/* Where there are views, somebody waits for the next worker. */
static bool wants_standby(const TnKeeper *keeper)
{
	return keeper->worker.pid && keeper->serves && !keeper->stopping && !keeper->upgrade_at &&
	       !keeper->standby.pid && atomic_load(&keeper->env.state->watched);
}

static void start_standby(TnKeeper *keeper, int64_t now)
{
	int r;

	name_own_descriptors(keeper);
	r = tn_worker_process_start(&keeper->standby, &keeper->env, keeper->config->worker, true);
	keeper->standby_at = now + STANDBY_NS;
	if (r < 0)
		tn_log(TN_LOG_WARNING, "worker in waiting: cannot start: %s", strerror(-r));
}

static void describe_end(int status, char *text, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, size, "exit status %d", WEXITSTATUS(status));
}

/*
 * A worker that served has a successor at once: views wait for it. Not so often that whoever
 * can kill one could keep the machine busy with that.
 */
static int64_t delay_after_service(TnKeeper *keeper, int64_t now)
{
	if (now - keeper->burst_at > 1000 * MS) {
		keeper->burst_at = now;
		keeper->burst = 0;
	}
	return ++keeper->burst > BURST_MOST ? DELAY_FIRST_MS : 0;
}

/* No worker can take these views over: a fresh start serves new ones, at least. */
static void give_views_up(TnKeeper *keeper)
{
	tn_log(TN_LOG_ERROR, "worker: cannot take over: running views are lost");
	tn_state_forget(keeper->env.state);
	keeper->failed_starts = 0;
}

static void schedule_restart(TnKeeper *keeper)
{
	int64_t now = tn_monotonic();

	/* Somebody else's kill is no failure, and one that got something done serves, whether or
	 * not it came to saying so. */
	if (!atomic_load(&keeper->env.state->fault) || keeper->serves ||
	    atomic_load(&keeper->env.state->progress) != keeper->progress) {
		keeper->delay_ms = 0;
		keeper->failed_starts = 0;
		keeper->restart_at = now + delay_after_service(keeper, now) * MS;
		return;
	}
	if (++keeper->failed_starts >= STARTS_MOST)
		give_views_up(keeper);
	keeper->restart_at = now + keeper->delay_ms * MS;
	keeper->delay_ms = keeper->delay_ms == 0 ? DELAY_FIRST_MS : keeper->delay_ms * 2;
	if (keeper->delay_ms > DELAY_MAX_MS)
		keeper->delay_ms = DELAY_MAX_MS;
}

/* Tells the worker, and gives it a time limit; a second call changes nothing. */
static void begin_stop(TnKeeper *keeper)
{
	uint64_t one = 1;

	keeper->stopping = true;
	if (!keeper->worker.pid || keeper->kill_at)
		return;
	keeper->kill_at = tn_monotonic() + STOP_NS;
	if (write(keeper->worker.stop_event, &one, sizeof(one)) < 0)
		tn_log(TN_LOG_WARNING, "worker: cannot be told to stop: %s", strerror(errno));
}

static int open_signals(void);

static void note_for_successor(TnKeeper *keeper);

/* Once no worker serves: ends what is left of any, and what nobody takes over. */
static void end_remains(TnKeeper *keeper)
{
	tn_worker_process_end(&keeper->standby);
	tn_worker_group_end(&keeper->remains);
	tn_close(&keeper->refusals);
}

/* Returns only when that failed: the daemon goes on as it is. */
static void become_new(TnKeeper *keeper)
{
	int r;

	keeper->upgrading = false;
	end_remains(keeper);
	tn_log(TN_LOG_INFO, "upgrade: becoming %s", keeper->config->program);
	tn_close(&keeper->signals);
	note_for_successor(keeper);
	r = tn_keeper_become(keeper->config->program, keeper->config->argv, keeper->env.state);
	tn_log(TN_LOG_ERROR, "upgrade: %s: %s", keeper->config->program, strerror(-r));
	keeper->signals = open_signals();
}

static void hand_over(TnKeeper *keeper)
{
	int r;

	end_remains(keeper);
	note_for_successor(keeper);
	r = tn_keeper_store_descriptors(keeper->config->notify_socket, keeper->env.state,
					&keeper->signals, 1);
	keeper->stored = r == 0;
	if (r < 0)
		tn_log(TN_LOG_ERROR, "service manager: cannot store the views: %s; they are lost",
		       strerror(-r));
	else
		tn_log(TN_LOG_INFO, "stopping: the service manager keeps the views");
}

/* What else it has left waits until its successor serves. */
static void close_worker(TnKeeper *keeper)
{
	tn_worker_group_end(&keeper->remains);
	keeper->remains = keeper->worker.group;
	keeper->worker.group = 0;
	tn_worker_process_close(&keeper->worker);
}

static void start_again(TnKeeper *keeper)
{
	int r = start_worker(keeper);

	if (r == 0)
		return;
	tn_log(TN_LOG_ERROR, "worker: cannot start: %s", strerror(-r));
	tn_worker_process_close(&keeper->worker);
	schedule_restart(keeper);
}

static bool is_start_due(const TnKeeper *keeper, int64_t now)
{
	/* The first one gets no second chance: who started us is told why it failed. */
	return !keeper->worker.pid && keeper->announced && !keeper->stopping &&
	       now >= keeper->restart_at;
}

static void replace_worker(TnKeeper *keeper, const char *how)
{
	int listener = keeper->refusals;

	keeper->refusals = -1;
	atomic_fetch_add(&keeper->env.state->restarts, 1);
	schedule_restart(keeper);
	if (is_start_due(keeper, tn_monotonic()))
		start_again(keeper);
	/* Somebody waits for the new one: whatever is not for that comes after it. */
	tn_close(&listener);
	tn_log(TN_LOG_ERROR, "worker: ended unexpectedly: %s; a new one takes over", how);
}

static void collect_worker(TnKeeper *keeper)
{
	char how[96];
	int status;

	if (!tn_worker_process_reap(&keeper->worker, &status))
		return;
	describe_end(status, how, sizeof(how));
	atomic_store(&keeper->env.state->fault,
		     keeper->hung || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL);
	keeper->hung = false;
	close_worker(keeper);
	if (keeper->storing)
		hand_over(keeper);
	if (keeper->upgrading) {
		become_new(keeper);
		schedule_restart(keeper);
		return;
	}
	if (keeper->stopping) {
		tn_log(TN_LOG_DEBUG, "worker ended: %s", how);
		return;
	}
	if (!keeper->failure[0])
		snprintf(keeper->failure, sizeof(keeper->failure), "worker: ended early: %s", how);
	if (keeper->announced)
		replace_worker(keeper, how);
}

static void collect_standby(TnKeeper *keeper)
{
	char how[96];
	int status;

	if (!tn_worker_process_reap(&keeper->standby, &status))
		return;
	tn_worker_process_end(&keeper->standby);
	describe_end(status, how, sizeof(how));
	tn_log(TN_LOG_WARNING, "worker in waiting: ended: %s", how);
}

static void announce(TnKeeper *keeper)
{
	keeper->serves = true;
	keeper->standby_at = tn_monotonic() + STANDBY_NS;
	keeper->failed_starts = 0;
	tn_worker_group_kill(keeper->remains);
	tn_log(TN_LOG_INFO, "serving at %s, worker %d", keeper->config->paths.runtime_dir,
	       keeper->worker.pid);
	if (keeper->announced)
		return;
	keeper->announced = true;
	if (keeper->config->ready)
		keeper->config->ready(keeper->config->data);
}

static int prepare_upgrade(TnKeeper *keeper)
{
	int r = keeper->config->program
			? tn_keeper_check_program(keeper->config->program, keeper->env.state)
			: -ENOENT;

	if (r == 0)
		keeper->upgrade_at = tn_monotonic() + UPGRADE_NS;
	return r;
}

static int serve_request(TnKeeper *keeper, const TnKeeperRequest *request, TnKeeperAnswer *answer)
{
	switch (request->op) {
	case TN_KEEPER_UPGRADE:
		return prepare_upgrade(keeper);
	case TN_KEEPER_REFUSALS:
		tn_close(&keeper->refusals);
		keeper->refusals = request->fd;
		return 0;
	case TN_KEEPER_READY:
		announce(keeper);
		return 0;
	case TN_KEEPER_FAILED:
		snprintf(keeper->failure, sizeof(keeper->failure), "%.*s",
			 (int)sizeof(request->text), request->text);
		return 0;
	case TN_KEEPER_STOPPING:
		begin_stop(keeper);
		return 0;
	default:
		return tn_keeper_service(&keeper->env, request, answer);
	}
}

/* Every message that waits; the worker sends the next one after our answer. */
static void serve_link(TnKeeper *keeper)
{
	TnKeeperRequest request;
	ssize_t n;

	while ((n = recv(keeper->worker.link, &request, sizeof(request), MSG_DONTWAIT)) > 0) {
		TnKeeperAnswer answer = {.mount = -1, .device = -1};

		answer.result =
			n == sizeof(request) ? serve_request(keeper, &request, &answer) : -EPROTO;
		if (send(keeper->worker.link, &answer, sizeof(answer),
			 MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			tn_log(TN_LOG_WARNING, "worker: cannot be answered: %s", strerror(errno));
	}
}

/* A worker in order would end the views; one that was killed leaves them. */
static void begin_storing(TnKeeper *keeper)
{
	keeper->storing = keeper->stopping = true;
	if (keeper->worker.pid)
		kill(keeper->worker.pid, SIGKILL);
	else
		hand_over(keeper);
}

static void serve_signals(TnKeeper *keeper)
{
	struct signalfd_siginfo info;

	while (read(keeper->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) {
			tn_log(TN_LOG_INFO, "stopping: signal %u from pid %u", info.ssi_signo,
			       info.ssi_pid);
			if (keeper->config->notify_socket)
				begin_storing(keeper);
			else
				begin_stop(keeper);
		}
	}
	/* Child signals coalesce: look at every one of any kind. The one in waiting first: if it
	 * has ended too, there is no other signal that would tell so once it has been made the
	 * worker. */
	collect_standby(keeper);
	collect_worker(keeper);
	tn_worker_group_reap(&keeper->remains);
}

/* Is the worker's heart to be listened to? Not while it starts, or without views. */
static bool is_watched(const TnKeeper *keeper)
{
	return keeper->worker.pid && keeper->serves && !keeper->kill_at &&
	       atomic_load(&keeper->env.state->watched);
}

/* Milliseconds until something is due by time, rounded up; -1: nothing. */
static int next_timeout(const TnKeeper *keeper)
{
	int64_t at = keeper->worker.pid ? keeper->kill_at : keeper->restart_at;
	int64_t left;

	if (keeper->worker.pid && keeper->upgrade_at)
		return (int)(UPGRADE_NS / MS);
	if (wants_standby(keeper))
		return (int)(STANDBY_NS / MS);
	if (is_watched(keeper))
		return (int)(LOOK_NS / MS);
	if (keeper->worker.pid && !at)
		return -1;
	left = at - tn_monotonic();
	return left <= 0 ? 0 : (int)((left + MS - 1) / MS);
}

/* A worker without a heartbeat is replaced: it hangs, or was stopped. */
static void watch_worker(TnKeeper *keeper, int64_t now)
{
	uint64_t beat = atomic_load(&keeper->env.state->beat);

	if (!is_watched(keeper) || beat != keeper->beat) {
		keeper->beat = beat;
		keeper->beat_at = now;
	} else if (now - keeper->beat_at >= STOPPED_NS) {
		tn_log(TN_LOG_ERROR, "worker: gives no sign of life: killed");
		keeper->hung = true;
		kill(keeper->worker.pid, SIGKILL);
		keeper->beat_at = now;
	}
}

static void do_what_is_due(TnKeeper *keeper)
{
	int64_t now = tn_monotonic();

	watch_worker(keeper, now);
	if (wants_standby(keeper) && now >= keeper->standby_at)
		start_standby(keeper, now);
	if (keeper->worker.pid && keeper->upgrade_at && now >= keeper->upgrade_at) {
		keeper->upgrade_at = 0;
		keeper->upgrading = true;
		kill(keeper->worker.pid, SIGKILL);
	}
	if (keeper->worker.pid && keeper->kill_at && now >= keeper->kill_at) {
		tn_log(TN_LOG_WARNING, "worker: did not stop in time: killed");
		kill(keeper->worker.pid, SIGKILL);
		keeper->kill_at = now + STOP_NS;
	}
	if (is_start_due(keeper, now))
		start_again(keeper);
}

/* Until the daemon is to end, or the first worker failed. */
static void loop(TnKeeper *keeper)
{
	while (keeper->worker.pid || (keeper->announced && !keeper->stopping)) {
		struct pollfd fds[] = {
			{.fd = keeper->signals, .events = POLLIN},
			{.fd = keeper->worker.link, .events = POLLIN}, /* negative: skipped */
			{.fd = keeper->refusals, .events = POLLIN},
		};

		if (poll(fds, TN_ARRAY_LEN(fds), next_timeout(keeper)) < 0 && errno != EINTR) {
			tn_log(TN_LOG_ERROR, "keeper: poll: %s", strerror(errno));
			return;
		}
		/* The link first: a worker's last words come before its end. */
		if (keeper->worker.link >= 0)
			serve_link(keeper);
		if (fds[2].revents & POLLIN)
			tn_seccomp_answer(keeper->refusals, &keeper->refused);
		else if (fds[2].revents)
			tn_close(&keeper->refusals);
		serve_signals(keeper);
		do_what_is_due(keeper);
	}
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	/* Stays blocked in the worker as well: who signals the whole process group or
	 * service reaches the keeper, and that one ends the worker in order. */
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int open_log_file(TnKeeper *keeper, char *why, size_t why_size)
{
	TN_AUTOFD fd = tn_open_beneath(keeper->dirs.runtime, "tmpnestd.log",
				       O_WRONLY | O_CREAT | O_APPEND, 0600);

	if (fd < 0)
		errno = -fd;
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		return tn_why(why, why_size, -errno, "log: %s/tmpnestd.log: %s",
			      keeper->config->paths.runtime_dir, strerror(errno));
	return 0;
}

static int check_device(char *why, size_t why_size)
{
	TN_AUTOFD device = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (device < 0)
		return tn_why(why, why_size, -errno, "FUSE: /dev/fuse: %s (%s)", strerror(errno),
			      errno == EACCES ? "it must be readable and writable for this user"
					      : "modprobe fuse, or give the container the device");
	return 0;
}

static void fill_env(TnKeeper *keeper)
{
	const TnKeeperConfig *config = keeper->config;
	TnWorkerEnv *env = &keeper->env;

	env->paths = &config->paths;
	env->scope = config->paths.scope;
	env->uid = geteuid();
	env->gid = getegid();
	env->store_dev = keeper->dirs.store_dev;
	env->store_ino = keeper->dirs.store_ino;
	env->runtime_dev = keeper->dirs.runtime_dev;
	env->runtime_ino = keeper->dirs.runtime_ino;
	if (!env->instance_id)
		env->instance_id = tn_random();
	env->keeper_pid = getpid();
	env->use_resend = config->use_resend;
	env->data_path = tn_data_path_of_daemon(config->hide_passthrough);
	env->probe_passthrough = config->hide_passthrough != TN_HIDE_KERNEL;
	env->use_peer_pidfd = config->use_peer_pidfd && env->uid == 0;
	env->n_threads = config->n_threads;
	env->idle_timeout = config->idle_timeout;
	env->store = keeper->dirs.store;
	env->runtime = keeper->dirs.runtime;
	env->attach_listener = keeper->dirs.attach;
	env->control_listener = keeper->dirs.control;
}

static int enter_namespaces(TnKeeper *keeper, char *why, size_t why_size)
{
	int r = tn_namespaces_record(&keeper->env.userns_dev, &keeper->env.userns_ino);

	if (r < 0)
		return tn_why(why, why_size, r, "user namespace: /proc/self/ns/user: %s",
			      strerror(-r));
	r = tn_namespaces_enter(why, why_size);
	return r < 0 ? r : check_device(why, why_size);
}

/* Once more before each end of this one: workers can write there. */
static void note_for_successor(TnKeeper *keeper)
{
	const TnKeeperDirs *dirs = &keeper->dirs;

	keeper->env.state->fd = keeper->state_fd;
	keeper->env.state->resume = (TnResume){
		.runtime = dirs->runtime,
		.store = dirs->store,
		.runtime_lock = dirs->runtime_lock,
		.store_lock = dirs->store_lock,
		.attach = dirs->attach,
		.control = dirs->control,
		.userns_dev = keeper->env.userns_dev,
		.userns_ino = keeper->env.userns_ino,
		.instance_id = keeper->env.instance_id,
	};
}

/* What a keeper before has left, this process or another. 0 or -errno. */
static int take_over(TnKeeper *keeper, char *why, size_t why_size)
{
	const TnResume *resume;
	int r = tn_state_open(&keeper->env.state, keeper->config->resume);

	if (r < 0)
		return tn_why(why, why_size, r, "state: cannot take over: %s",
			      r == -EBADMSG ? "it is another version's" : strerror(-r));
	if (keeper->config->has_namespaces)
		tn_keeper_became();
	resume = &keeper->env.state->resume;
	r = tn_keeper_dirs_adopt(&keeper->dirs, &keeper->config->paths, resume, why, why_size);
	if (r < 0)
		return r;
	keeper->env.userns_dev = resume->userns_dev;
	keeper->env.userns_ino = resume->userns_ino;
	keeper->env.instance_id = resume->instance_id;
	keeper->env.takes_over = true;
	return tn_namespaces_hide(why, why_size);
}

static int set_up(TnKeeper *keeper, char *why, size_t why_size)
{
	int r;

	if (keeper->config->log_to_file && (r = open_log_file(keeper, why, why_size)) < 0)
		return r;
	fill_env(keeper);
	r = keeper->config->has_namespaces ? 0 : enter_namespaces(keeper, why, why_size);
	if (r < 0)
		return r;
	r = tn_privileges_keeper(keeper->env.uid == 0, why, why_size);
	if (r < 0)
		return r;
	keeper->signals = open_signals();
	if (keeper->signals < 0)
		return tn_why(why, why_size, keeper->signals, "signals: %s",
			      strerror(-keeper->signals));
	if (!keeper->env.state) {
		r = tn_state_new(&keeper->env.state);
		if (r < 0)
			return tn_why(why, why_size, r, "state: %s", strerror(-r));
	}
	keeper->state_fd = keeper->env.state->fd;
	note_for_successor(keeper);
	r = start_worker(keeper);
	if (r < 0)
		return tn_why(why, why_size, r, "worker: cannot start: %s", strerror(-r));
	return 0;
}

int tn_keeper_run(const TnKeeperConfig *config, char *why, size_t why_size)
{
	TnKeeper keeper = {
		.config = config,
		.signals = -1,
		.worker = TN_WORKER_NONE,
		.standby = TN_WORKER_NONE,
		.refusals = -1,
	};
	int r = config->resume > 0 ? take_over(&keeper, why, why_size)
				   : tn_keeper_dirs_open(&keeper.dirs, &config->paths,
							 config->store_uid, why, why_size);

	if (r < 0)
		return r;
	/* Who started the keeper before was told. */
	keeper.announced = config->has_namespaces;
	umask(0);
	raise_descriptor_limit();
	r = set_up(&keeper, why, why_size);
	if (r == 0) {
		loop(&keeper);
		if (!keeper.announced)
			r = tn_why(why, why_size, -EIO, "%s", keeper.failure);
	}
	if (!keeper.stored)
		tn_keeper_dirs_retire(&keeper.dirs);
	tn_keeper_dirs_close(&keeper.dirs);
	tn_close(&keeper.signals);
	tn_worker_process_end(&keeper.worker);
	end_remains(&keeper);
	tn_state_free(keeper.env.state);
	return r;
}
