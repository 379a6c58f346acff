/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper-upgrade.h"

#include "log.h"
#include "macros.h"
#include "notify.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CHECK_DESCRIPTOR 3
#define BARRIER_MS 5000
#define STORED_MOST 16384
#define STATE_PREFIX "state-"

extern char **environ;

/* --- another program -------------------------------------------------------------------------- */

int tn_keeper_check_program(const char *program, const TnState *state)
{
	char name[] = "tmpnestd", option[] = "--check-state", number[] = "3";
	char *const argv[] = {name, option, number, NULL};
	posix_spawn_file_actions_t actions;
	int status, r;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, state->fd, CHECK_DESCRIPTOR);
	r = posix_spawn(&pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r)
		return -r;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EBADMSG;
}

/* An exec in a user namespace drops capabilities unless they are ambient. */
static int raise_capabilities(void)
{
	cap_t caps = cap_get_proc();
	int r = 0;

	if (!caps)
		return -errno;
	for (cap_value_t cap = 0; r == 0 && cap <= CAP_LAST_CAP; cap++) {
		cap_flag_value_t has = CAP_CLEAR;

		if (cap_get_flag(caps, cap, CAP_PERMITTED, &has) == 0 && has == CAP_SET &&
		    cap_set_flag(caps, CAP_INHERITABLE, 1, &cap, CAP_SET) < 0)
			r = -errno;
	}
	if (r == 0 && cap_set_proc(caps) < 0)
		r = -errno;
	for (cap_value_t cap = 0; r == 0 && cap <= CAP_LAST_CAP; cap++) {
		cap_flag_value_t has = CAP_CLEAR;

		if (cap_get_flag(caps, cap, CAP_PERMITTED, &has) == 0 && has == CAP_SET &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			r = -errno;
	}
	cap_free(caps);
	return r;
}

static void lower_capabilities(void)
{
	cap_t caps = cap_get_proc();

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (caps && cap_clear_flag(caps, CAP_INHERITABLE) == 0)
		cap_set_proc(caps);
	cap_free(caps);
}

/* Which of them the records name only a worker reads: all stay open, it closes the rest. */
static void keep_open_across_exec(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	for (int fd = STDERR_FILENO + 1; (rlim_t)fd < limit.rlim_cur; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags >= 0 && (flags & FD_CLOEXEC))
			fcntl(fd, F_SETFD, flags & ~FD_CLOEXEC);
	}
}

int tn_keeper_become(const char *program, char *const argv[], const TnState *state)
{
	char number[16];
	int r = geteuid() == 0 ? 0 : raise_capabilities();

	if (r < 0)
		return r;
	snprintf(number, sizeof(number), "%d", state->fd);
	if (setenv(TN_RESUME_VARIABLE, number, 1) < 0)
		return -errno;
	keep_open_across_exec();
	execv(program, argv);
	r = -errno;
	unsetenv(TN_RESUME_VARIABLE);
	tn_keeper_became();
	return r;
}

void tn_keeper_became(void)
{
	close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
	if (geteuid() != 0)
		lower_capabilities();
}

/* --- the service manager ---------------------------------------------------------------------- */

static int send_descriptor(int sock, const char *text, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	ssize_t n;

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	do {
		n = sendmsg(sock, &message, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* It has read all that was sent: what comes from a process that has ended, it drops. */
static int await_reader(int sock)
{
	struct pollfd ends;
	int pair[2], r;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	r = send_descriptor(sock, "BARRIER=1", pair[1]);
	close(pair[1]);
	ends = (struct pollfd){.fd = pair[0]};
	if (r == 0 && poll(&ends, 1, BARRIER_MS) <= 0)
		r = -ETIMEDOUT;
	close(pair[0]);
	return r;
}

static bool is_among(int fd, const int others[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (others[i] == fd)
			return true;
	}
	return false;
}

static int store_one(int sock, int fd, bool is_state)
{
	char text[96];

	/* FDPOLL=0: a device whose superblock has ended stays, for the next worker to see. */
	snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s%d",
		 is_state ? STATE_PREFIX : "f", fd);
	return send_descriptor(sock, text, fd);
}

int tn_keeper_store_descriptors(const char *notify_socket, const TnState *state, const int others[],
				size_t n)
{
	TN_AUTOFD sock = tn_notify_connect(notify_socket);
	struct rlimit limit;
	int r = sock < 0 ? sock : 0;

	if (r == 0 && getrlimit(RLIMIT_NOFILE, &limit) < 0)
		r = -errno;
	for (int fd = STDERR_FILENO + 1; r == 0 && (rlim_t)fd < limit.rlim_cur; fd++) {
		if (fd != sock && !is_among(fd, others, n) && fcntl(fd, F_GETFD) >= 0)
			r = store_one(sock, fd, fd == state->fd);
	}
	return r == 0 ? await_reader(sock) : r;
}

/* --- given back ------------------------------------------------------------------------------- */

/* The number in a name that tn_keeper_store_descriptors() gave, or -1. */
static int old_number(const char *name, bool *ret_is_state)
{
	char *end;
	long number;

	*ret_is_state = strncmp(name, STATE_PREFIX, strlen(STATE_PREFIX)) == 0;
	if (!*ret_is_state && name[0] != 'f')
		return -1;
	number = strtol(name + (*ret_is_state ? strlen(STATE_PREFIX) : 1), &end, 10);
	return *end || number <= STDERR_FILENO || number > STORED_MOST ? -1 : (int)number;
}

/* Moves the stored descriptors 3, 4, ... out of the way, then to their numbers. */
static int put_back(char *names, int n)
{
	int high[STORED_MOST], numbers[STORED_MOST], state = -ENOENT;
	char *rest = names, *name;

	for (int i = 0; i < n; i++) {
		bool is_state = false;

		name = strsep(&rest, ":");
		numbers[i] = name ? old_number(name, &is_state) : -1;
		high[i] = fcntl(3 + i, F_DUPFD_CLOEXEC, STORED_MOST + 1);
		close(3 + i);
		if (high[i] < 0)
			return -errno;
		if (is_state)
			state = numbers[i];
	}
	for (int i = 0; i < n; i++) {
		if (numbers[i] >= 0 && dup3(high[i], numbers[i], O_CLOEXEC) < 0)
			return -errno;
		close(high[i]);
	}
	return state;
}

int tn_keeper_take_stored(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	const char *names = getenv("LISTEN_FDNAMES");
	TN_AUTOFREE char *copy = names ? strdup(names) : NULL;
	long n = count ? strtol(count, NULL, 10) : 0;
	int r = -ENOENT;

	if (pid && copy && strtol(pid, NULL, 10) == getpid() && n > 0 && n <= STORED_MOST)
		r = put_back(copy, (int)n);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return r;
}
