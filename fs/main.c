/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tmpnestd: options, and becoming a daemon. Exit status 0; 1 when it could not start (one
 * line on stderr); 2 wrong usage.
 */
#include "config.h"
#include "keeper-upgrade.h"
#include "keeper.h"
#include "log.h"
#include "macros.h"
#include "notify.h"
#include "units.h"
#include "why.h"
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define DEFAULT_STORE_USER "tmpnest-store"
#define USER_IDLE_TIMEOUT 300 /* seconds */
#define THREADS_MAX 64

typedef struct TnOptions {
	bool system, user, foreground, debug, fd_store;
	const char *runtime_dir, *store_dir, *store_user;
	uint64_t idle_timeout; /* 0: not given */
	unsigned n_threads;
} TnOptions;

static const char usage[] =
	"Usage: tmpnestd [OPTION...]\n"
	"Serves private /tmp directories to bubblewrap sandboxes.\n"
	"\n"
	"      --system               for all users (default for root)\n"
	"      --user                 for the calling user only (default for others)\n"
	"      --runtime-dir DIR      where the sockets are\n"
	"      --store-dir DIR        where the nests' files are\n"
	"      --store-user NAME      whom the store's directories belong to, with --system\n"
	"                             (default: tmpnest-store, where there is such a user)\n"
	"      --foreground           stay, log to stderr, tell the service manager\n"
	"      --idle-timeout TIME    end after this time without a nest: 90s, 5m, 2h, max\n"
	"                             (default: 5m with --user, max with --system)\n"
	"      --threads N            threads that answer the kernel\n"
	"      --fd-store             at SIGTERM leave views to the service manager, which\n"
	"                             gives them back at the next start (FileDescriptorStoreMax=)\n"
	"      --debug                log more\n"
	"      --version, --help\n";

enum {
	OPTION_SYSTEM = 256,
	OPTION_USER,
	OPTION_RUNTIME,
	OPTION_STORE,
	OPTION_STORE_USER,
	OPTION_FOREGROUND,
	OPTION_FD_STORE,
	OPTION_DEBUG,
	OPTION_IDLE,
	OPTION_THREADS,
	OPTION_VERSION,
	OPTION_HELP
};

static const struct option option_table[] = {
	{"system", no_argument, NULL, OPTION_SYSTEM},
	{"user", no_argument, NULL, OPTION_USER},
	{"runtime-dir", required_argument, NULL, OPTION_RUNTIME},
	{"store-dir", required_argument, NULL, OPTION_STORE},
	{"store-user", required_argument, NULL, OPTION_STORE_USER},
	{"foreground", no_argument, NULL, OPTION_FOREGROUND},
	{"fd-store", no_argument, NULL, OPTION_FD_STORE},
	{"debug", no_argument, NULL, OPTION_DEBUG},
	{"idle-timeout", required_argument, NULL, OPTION_IDLE},
	{"threads", required_argument, NULL, OPTION_THREADS},
	{"version", no_argument, NULL, OPTION_VERSION},
	{"help", no_argument, NULL, OPTION_HELP},
	{0},
};

static int misuse(const char *what, const char *object)
{
	fprintf(stderr, "tmpnestd: %s: %s (see tmpnestd --help)\n", what, object);
	return 2;
}

static int parse_threads(const char *text, unsigned *ret)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end || n < 1 || n > THREADS_MAX)
		return -EINVAL;
	*ret = (unsigned)n;
	return 0;
}

/* -1: go on; else the exit status. */
static int take_option(TnOptions *options, int option)
{
	switch (option) {
	case OPTION_SYSTEM:
		options->system = true;
		return -1;
	case OPTION_USER:
		options->user = true;
		return -1;
	case OPTION_RUNTIME:
		options->runtime_dir = optarg;
		return -1;
	case OPTION_STORE:
		options->store_dir = optarg;
		return -1;
	case OPTION_STORE_USER:
		options->store_user = optarg;
		return -1;
	case OPTION_FOREGROUND:
		options->foreground = true;
		return -1;
	case OPTION_FD_STORE:
		options->fd_store = true;
		return -1;
	case OPTION_DEBUG:
		options->debug = true;
		return -1;
	case OPTION_IDLE:
		if (tn_parse_duration(optarg, &options->idle_timeout) < 0 ||
		    options->idle_timeout == 0)
			return misuse("--idle-timeout: not a duration", optarg);
		return -1;
	case OPTION_THREADS:
		if (parse_threads(optarg, &options->n_threads) < 0)
			return misuse("--threads: not a number from 1 to 64", optarg);
		return -1;
	case OPTION_VERSION:
		puts("tmpnestd " TN_VERSION);
		return 0;
	case OPTION_HELP:
		fputs(usage, stdout);
		return 0;
	default:
		return 2; /* getopt has said it */
	}
}

static int parse_options(TnOptions *options, int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "", option_table, NULL)) != -1) {
		int status = take_option(options, option);

		if (status >= 0)
			return status;
	}
	if (optind < argc)
		return misuse("unexpected argument", argv[optind]);
	if (options->system && options->user)
		return misuse("options exclude each other", "--system and --user");
	if (options->system && geteuid() != 0) {
		fprintf(stderr, "tmpnestd: --system: only root can start the system daemon "
				"(use --user)\n");
		return 1;
	}
	return -1;
}

/*
 * Root's own processes without capabilities, as in a sandbox of root's, are stopped by the mode
 * of directories that are not root's. 0, or an exit status.
 */
static int find_store_user(const TnOptions *options, TnScope scope, uid_t *ret)
{
	const char *name = options->store_user ? options->store_user : DEFAULT_STORE_USER;
	const struct passwd *entry;

	*ret = geteuid();
	if (options->store_user && scope != TN_SCOPE_SYSTEM)
		return misuse("--store-user: only with --system", name);
	if (scope != TN_SCOPE_SYSTEM)
		return 0;
	entry = getpwnam(name);
	if (entry)
		*ret = entry->pw_uid;
	else if (options->store_user)
		return misuse("--store-user: no such user", name);
	return 0;
}

/* sd_notify(3), READY=1, without its library. */
static void notify_service_manager(void)
{
	TN_AUTOFD sock = tn_notify_connect(getenv("NOTIFY_SOCKET"));
	char text[48];

	if (sock == -EINVAL)
		return;
	snprintf(text, sizeof(text), "READY=1\nMAINPID=%d\n", getpid());
	if (sock < 0)
		errno = -sock;
	if (sock < 0 || send(sock, text, strlen(text), MSG_NOSIGNAL) < 0)
		tn_log(TN_LOG_WARNING, "service manager: cannot be told: %s", strerror(errno));
}

static void ready_in_foreground(void *data)
{
	(void)data;
	notify_service_manager();
}

/* What the daemon tells its starter over the pipe: "" is ready, else why not. */
static void ready_in_background(void *data)
{
	int *starter = data;

	if (write(*starter, "", 1) < 0)
		tn_log(TN_LOG_DEBUG, "starter has gone");
	tn_close(starter);
}

/* Waits for the daemon's word; the starter's exit status. */
static int wait_for_daemon(int pipe)
{
	char text[TN_WHY_MAX] = "";
	size_t used = 0;
	ssize_t n;

	while (used < sizeof(text) - 1 &&
	       (n = read(pipe, text + used, sizeof(text) - 1 - used)) != 0) {
		if (n < 0 && errno != EINTR)
			break;
		used += n > 0 ? (size_t)n : 0;
	}
	if (used > 0 && text[0] == '\0')
		return 0;
	text[used] = '\0';
	fprintf(stderr, "tmpnestd: %s\n", used ? text : "start: the daemon ended without a word");
	return 1;
}

/*
 * Nothing of the caller's stays open here, its standard output least of all: a shell's
 * $(...) waits until everybody has closed that.
 */
static int detach_from_caller(void)
{
	TN_AUTOFD null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || setsid() < 0)
		return -errno;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	return chdir("/") < 0 ? -errno : 0;
}

static int run_in_background(TnKeeperConfig *config)
{
	char why[TN_WHY_MAX] = "";
	int pipes[2];
	pid_t pid;
	int r;

	if (pipe2(pipes, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		fprintf(stderr, "tmpnestd: start: %s\n", strerror(errno));
		return 1;
	}
	if (pid > 0) {
		close(pipes[1]);
		return wait_for_daemon(pipes[0]);
	}
	close(pipes[0]);
	config->ready = ready_in_background;
	config->data = &pipes[1];
	config->log_to_file = true;
	r = detach_from_caller();
	if (r < 0)
		tn_why(why, sizeof(why), r, "start: %s", strerror(-r));
	else
		r = tn_keeper_run(config, why, sizeof(why));
	if (r == -EALREADY) {
		/* Two starters at once: both have their daemon. */
		ready_in_background(&pipes[1]);
		return 0;
	}
	if (r < 0 && pipes[1] >= 0 && write(pipes[1], why, strlen(why)) < 0)
		tn_log(TN_LOG_ERROR, "%s", why);
	return r < 0 ? 1 : 0;
}

static int run_in_foreground(TnKeeperConfig *config)
{
	char why[TN_WHY_MAX] = "";
	int r;

	config->ready = ready_in_foreground;
	r = tn_keeper_run(config, why, sizeof(why));
	if (r < 0)
		tn_log(TN_LOG_ERROR, "%s", why);
	return r < 0 ? 1 : 0;
}

/* 0, 1 and 2 are open afterwards and nothing else is. */
static int tidy_descriptors(void)
{
	int fd = open("/dev/null", O_RDWR);

	while (fd >= 0 && fd <= STDERR_FILENO)
		fd = dup(fd);
	if (fd < 0)
		return -errno;
	return close_range(STDERR_FILENO + 1, ~0U, 0) < 0 ? -errno : 0;
}

/* Where this program lies, and its successor will; NULL when that cannot be told. */
static const char *own_path(char *buffer, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buffer, size - 1);

	if (n <= 0)
		return NULL;
	buffer[n] = '\0';
	return buffer;
}

/* For the daemon that asks, before it becomes this program: tn_keeper_check_program(). */
static int check_state(const char *number)
{
	return tn_state_check(atoi(number)) < 0 ? 3 : 0;
}

/* The state of a daemon before, in *config. Else only 0, 1 and 2 stay open. 0 or -errno. */
static int find_predecessor(TnKeeperConfig *config)
{
	const char *resume = getenv(TN_RESUME_VARIABLE);
	int stored;

	config->resume = 0;
	if (resume) {
		config->resume = atoi(resume);
		config->has_namespaces = true;
		unsetenv(TN_RESUME_VARIABLE);
		return 0;
	}
	stored = tn_keeper_take_stored();
	if (stored < 0)
		return tidy_descriptors();
	config->resume = stored;
	return 0;
}

int main(int argc, char **argv)
{
	TnOptions options = {0};
	TnKeeperConfig config = {.worker = tn_worker_main};
	char why[TN_WHY_MAX] = "", program[PATH_MAX];
	TnScope scope;
	int r;

	if (argc == 3 && strcmp(argv[1], "--check-state") == 0)
		return check_state(argv[2]);
	if (find_predecessor(&config) < 0)
		return 1;
	r = parse_options(&options, argc, argv);
	if (r >= 0)
		return r;
	tn_log_init(options.debug ? TN_LOG_DEBUG : TN_LOG_INFO);
	scope = options.system || (!options.user && geteuid() == 0) ? TN_SCOPE_SYSTEM
								    : TN_SCOPE_USER;
	if (tn_paths_init(&config.paths, scope, options.runtime_dir, options.store_dir, why,
			  sizeof(why)) < 0) {
		fprintf(stderr, "tmpnestd: %s\n", why);
		return 1;
	}
	r = find_store_user(&options, scope, &config.store_uid);
	if (r > 0)
		return r;
	config.program = own_path(program, sizeof(program));
	config.argv = argv;
	config.notify_socket = options.fd_store ? getenv("NOTIFY_SOCKET") : NULL;
	config.n_threads = options.n_threads;
	config.idle_timeout = options.idle_timeout;
	if (!config.idle_timeout)
		config.idle_timeout = scope == TN_SCOPE_SYSTEM ? TN_UNLIMITED : USER_IDLE_TIMEOUT;
	/* Tests hide the newer kernel's feature with it. */
	config.use_peer_pidfd = !getenv("TMPNEST_NO_PEER_PIDFD");
	config.use_resend = !getenv("TMPNEST_NO_RESEND");
	config.hide_passthrough = tn_hide_passthrough(getenv("TMPNEST_PASSTHROUGH"));
	return options.foreground || config.has_namespaces ? run_in_foreground(&config)
							   : run_in_background(&config);
}
