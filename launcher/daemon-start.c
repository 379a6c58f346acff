/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon-start.h"
#include "locate.h"
#include "macros.h"
#include "message.h"
#include "words.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_SECONDS 20
#define COMPLAINT_BYTES 4096

int tn_daemon_connect(const char *socket_path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	TN_AUTOFD sock = -1;

	if (strlen(socket_path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, socket_path);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	if (connect(sock, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return tn_steal_fd(&sock);
}

/* Makes path and what is missing above it, each with mode, whatever the caller's umask. */
static int make_dirs(const char *path, mode_t mode)
{
	char part[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
		size_t length = slash ? (size_t)(slash - path) : strlen(path);

		memcpy(part, path, length);
		part[length] = '\0';
		if (mkdir(part, mode) < 0 && errno != EEXIST && errno != EISDIR) {
			int error = errno;

			/* somebody's read-only file system may well hold the rest already */
			if (!slash || access(part, F_OK) < 0)
				return -error;
		}
		if (!slash)
			return 0;
	}
}

/* The lock that one starter holds at a time. The descriptor, or -errno, said. */
static int take_lock(const TnPaths *paths)
{
	mode_t mode = paths->scope == TN_SCOPE_SYSTEM ? 0755 : 0700;
	TN_AUTOFD dir = -1;
	TN_AUTOFD lock = -1;
	mode_t callers = umask(0);
	int error = make_dirs(paths->runtime_dir, mode);

	umask(callers);
	if (error == 0) {
		dir = open(paths->runtime_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		lock = dir < 0 ? -1
			       : openat(dir, "start.lock",
					O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		error = lock < 0 ? -errno : 0;
	}
	if (error == 0 && flock(lock, LOCK_EX) < 0)
		error = -errno;
	if (error == 0)
		return tn_steal_fd(&lock);
	if (error == -EROFS)
		return tn_fail(error,
			       "start daemon: %s: read-only (no daemon can be started inside a "
			       "sandbox)",
			       paths->runtime_dir);
	return tn_fail(error,
		       "start daemon: %s: %s (set TMPNEST_RUNTIME_DIR to a directory of "
		       "yours)",
		       paths->runtime_dir, strerror(-error));
}

static bool is_wanted(const char *variable)
{
	static const char *const names[] = {"PATH=", "HOME=", "USER=", "LANG=", "TZ="};
	static const char *const groups[] = {"TMPNEST_", "XDG_", "LC_", "ASAN_", "UBSAN_", "LSAN_"};

	for (size_t i = 0; i < TN_ARRAY_LEN(names); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	for (size_t i = 0; i < TN_ARRAY_LEN(groups); i++)
		if (strncmp(variable, groups[i], strlen(groups[i])) == 0)
			return true;
	return false;
}

/* Runs in the child: becomes tmpnestd, or ends with 127. */
_Noreturn static void become_daemon(char **arguments, char **variables, int complaint)
{
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null >= 0 && dup2(null, 0) == 0 && dup2(null, 1) == 1 && dup2(complaint, 2) == 2 &&
	    syscall(SYS_close_range, 3U, ~0U, 0U) == 0 && chdir("/") == 0)
		execve(arguments[0], arguments, variables);
	_exit(127);
}

/*
 * Where the daemon's complaints go until it has detached: not our stderr, which somebody
 * may read to its end, and not a pipe, which would kill a late writer. A sealed memory
 * file of fixed size does neither.
 */
static int new_complaint(void)
{
	TN_AUTOFD fd = memfd_create("tmpnest-start", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, COMPLAINT_BYTES) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) < 0)
		return -errno;
	return tn_steal_fd(&fd);
}

/* Passes on what the daemon wrote, or says status. */
static int report_failure(int complaint, int status)
{
	char text[COMPLAINT_BYTES + 1];
	ssize_t n = pread(complaint, text, COMPLAINT_BYTES, 0);
	char *rest = text;
	char *line;
	bool said = false;

	text[n < 0 ? 0 : n] = '\0';
	while ((line = strsep(&rest, "\n"))) {
		if (*line) {
			tn_say("start daemon: %s", line);
			said = true;
		}
	}
	if (said)
		return -EIO;
	if (WIFSIGNALED(status))
		return tn_fail(-EIO, "start daemon: tmpnestd: died of signal %d", WTERMSIG(status));
	return tn_fail(-EIO, "start daemon: tmpnestd: ended with status %d and said nothing",
		       WEXITSTATUS(status));
}

/* Waits for the daemon's first process. 0 when it says that the daemon serves. */
static int await_ready(pid_t pid, int complaint)
{
	TN_AUTOFD pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};
	int status;

	if (pidfd >= 0 && poll(&ended, 1, START_SECONDS * 1000) == 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		return tn_fail(-ETIMEDOUT, "start daemon: tmpnestd: not ready after %d s",
			       START_SECONDS);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return tn_fail(-errno, "start daemon: tmpnestd: cannot wait for it");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return report_failure(complaint, status);
}

static int launch(const TnPaths *paths)
{
	char program[PATH_MAX];
	TnWords arguments = {0};
	TnWords variables = {0};
	TN_AUTOFD complaint = -1;
	pid_t pid;
	int r;

	r = tn_locate("tmpnestd", program);
	if (r < 0)
		return r;
	complaint = new_complaint();
	if (complaint < 0)
		return tn_fail(complaint, "start daemon: no memory file: %s", strerror(-complaint));
	tn_words_add_all(&arguments, program,
			 paths->scope == TN_SCOPE_SYSTEM ? "--system" : "--user", "--runtime-dir",
			 paths->runtime_dir, "--store-dir", paths->store_dir, NULL);
	for (char **variable = environ; *variable; variable++)
		if (is_wanted(*variable))
			tn_words_add(&variables, *variable);

	pid = fork();
	if (pid == 0)
		become_daemon(arguments.items, variables.items, complaint);
	r = pid < 0 ? tn_fail(-errno, "start daemon: cannot fork: %s", strerror(errno))
		    : await_ready(pid, complaint);
	tn_words_clear(&arguments);
	tn_words_clear(&variables);
	return r;
}

int tn_daemon_start(const TnPaths *paths)
{
	TN_AUTOFD lock = take_lock(paths);
	TN_AUTOFD sock = -1;

	if (lock < 0)
		return lock;
	sock = tn_daemon_connect(paths->attach_socket);
	if (sock >= 0)
		return 0; /* another starter was faster */
	return launch(paths);
}
