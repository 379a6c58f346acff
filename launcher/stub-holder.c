/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-holder.h"

#include "macros.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

/* PROC_PID_INIT_INO of the kernel: the first pid namespace has this inode on every machine */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCU

static ssize_t read_text(const char *path, char *ret, size_t size)
{
	TN_AUTOFD fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, ret, size - 1);

	ret[got > 0 ? got : 0] = '\0';
	return got;
}

/* The inode of a process's pid namespace; 0 with errno when it cannot be read. */
static uint64_t namespace_of(const TnSelf *self, const char *who)
{
	char path[PATH_MAX], target[64];
	uint64_t number;
	ssize_t length;

	snprintf(path, sizeof(path), "%s/%s/ns/pid", self->proc, who);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return 0;
	target[length] = '\0';
	errno = EBADMSG;
	return sscanf(target, "pid:[%" SCNu64 "]", &number) == 1 ? number : 0;
}

/* False when procfs belongs to another pid namespace than we do: its pids are not ours. */
static bool proc_is_ours(const TnSelf *self)
{
	char path[PATH_MAX], target[32];
	ssize_t length;

	snprintf(path, sizeof(path), "%s/self", self->proc);
	length = readlink(path, target, sizeof(target) - 1);
	if (length <= 0)
		return false;
	target[length] = '\0';
	return strtol(target, NULL, 10) == getpid();
}

void tn_self_init(TnSelf *ret, const char *proc)
{
	char path[PATH_MAX];

	*ret = (TnSelf){.proc = proc};
	if (!proc_is_ours(ret))
		return;
	ret->pid_namespace = namespace_of(ret, "self");
	snprintf(path, sizeof(path), "%s/sys/kernel/random/boot_id", proc);
	read_text(path, ret->boot_id, sizeof(ret->boot_id));
	ret->boot_id[strcspn(ret->boot_id, "\n")] = '\0';
	ret->in_first_namespace = ret->pid_namespace == FIRST_PID_NAMESPACE;
}

/*
 * Start time of a process. False when it cannot be read; *ret_ended when it has ended and only
 * waits for its parent (a leader whose other threads live has not).
 */
static bool read_start_time(const TnSelf *self, int64_t pid, uint64_t *ret, bool *ret_ended)
{
	char path[PATH_MAX], text[1024], state;
	uint64_t start_time;
	const char *after;
	long threads;

	snprintf(path, sizeof(path), "%s/%" PRId64 "/stat", self->proc, pid);
	if (read_text(path, text, sizeof(text)) <= 0)
		return false;
	/* the name in parentheses may hold anything: count from the last one */
	after = strrchr(text, ')');
	if (!after || sscanf(after,
			     ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
			     "%*d %ld %*d %" SCNu64,
			     &state, &threads, &start_time) != 3)
		return false;
	*ret = start_time;
	*ret_ended = (state == 'Z' || state == 'X') && threads <= 1;
	return true;
}

int tn_holder_init(const TnSelf *self, int64_t pid, TnStubHolder *ret)
{
	TnStubHolder holder = {.pid = pid, .pid_namespace = self->pid_namespace};
	bool ended = false;

	if (pid <= 0 || pid > INT_MAX || (kill((pid_t)pid, 0) < 0 && errno == ESRCH))
		return -ESRCH;
	snprintf(holder.boot_id, sizeof(holder.boot_id), "%s", self->boot_id);
	if (self->pid_namespace && read_start_time(self, pid, &holder.start_time, &ended) && ended)
		return -ESRCH;
	*ret = holder;
	return 0;
}

int tn_lease_open(const char *lease)
{
	/* looked at before it is opened: to open a device may do something */
	TN_AUTOFD path_fd = open(lease, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char by_fd[64];
	struct stat status;
	int fd;

	if (path_fd < 0 || fstat(path_fd, &status) < 0)
		return -errno;
	/* to open somebody's FIFO wakes those who wait to write to it */
	if (!S_ISFIFO(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0)
		return -ENOTSUP;
	snprintf(by_fd, sizeof(by_fd), "/proc/self/fd/%d", path_fd);
	fd = open(by_fd, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool tn_lease_has_ended(int fd)
{
	int n_bytes;
	char byte;

	return ioctl(fd, FIONREAD, &n_bytes) == 0 && n_bytes == 0 && read(fd, &byte, 1) == 0;
}

TnHolderState tn_lease_state(const char *lease)
{
	TN_AUTOFD fd = tn_lease_open(lease);

	if (fd < 0) {
		errno = -fd;
		return TN_HOLDER_UNKNOWN;
	}
	return tn_lease_has_ended(fd) ? TN_HOLDER_DEAD : TN_HOLDER_ALIVE;
}

static TnHolderState bare_pid_state(const TnSelf *self, const TnStubHolder *holder)
{
	uint64_t start_time;
	bool ended;

	if (kill((pid_t)holder->pid, 0) < 0 && errno == ESRCH)
		return TN_HOLDER_DEAD;
	if (!self->pid_namespace || !read_start_time(self, holder->pid, &start_time, &ended))
		return TN_HOLDER_ALIVE;
	if (ended || (holder->start_time && holder->start_time != start_time))
		return TN_HOLDER_DEAD;
	return TN_HOLDER_ALIVE;
}

/* How many pid namespaces a process is in below the first one; -1: cannot be read. */
static int nesting_of(const TnSelf *self, const char *who)
{
	char path[PATH_MAX], text[4096];
	const char *line;
	int count = 0;

	snprintf(path, sizeof(path), "%s/%s/status", self->proc, who);
	if (read_text(path, text, sizeof(text)) <= 0)
		return -1;
	line = strstr(text, "\nNSpid:");
	if (!line)
		return -1;
	for (line += 7; *line && *line != '\n'; line++)
		count += isdigit((unsigned char)*line) && !isdigit((unsigned char)line[-1]);
	return count - 1;
}

/*
 * DEAD only when each process that we see is known to be elsewhere. A process whose namespace
 * may not be read (another user's) is elsewhere when it is in the first one.
 */
static TnHolderState namespace_state(const TnSelf *self, uint64_t number)
{
	TnHolderState state = TN_HOLDER_DEAD;
	struct dirent *entry;
	DIR *dir;

	/* with hidepid not all processes show: then process 1 does not either */
	if (!self->in_first_namespace || nesting_of(self, "1") != 0)
		return TN_HOLDER_UNKNOWN;
	dir = opendir(self->proc);
	if (!dir)
		return TN_HOLDER_UNKNOWN;
	while ((entry = readdir(dir))) {
		uint64_t found;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		found = namespace_of(self, entry->d_name);
		if (found == number) {
			state = TN_HOLDER_ALIVE;
			break;
		}
		if (found == 0 && errno != ENOENT && errno != ESRCH &&
		    nesting_of(self, entry->d_name) != 0)
			state = TN_HOLDER_UNKNOWN;
	}
	closedir(dir);
	return state;
}

static TnHolderState lease_decides(const TnSelf *self, const TnStubHolder *holder)
{
	TnHolderState state = tn_lease_state(holder->lease);
	bool gone = state == TN_HOLDER_UNKNOWN && errno == ENOENT;
	bool other_boot = holder->boot_id[0] && self->boot_id[0] &&
			  strcmp(holder->boot_id, self->boot_id) != 0;

	return gone && other_boot ? TN_HOLDER_DEAD : state;
}

/* see tn_holder_state() */
static TnHolderState decide(const TnSelf *self, const TnStubHolder *holder)
{
	if (holder->lease)
		return lease_decides(self, holder);
	if (!self->pid_namespace || !self->boot_id[0])
		return bare_pid_state(self, holder);
	if (holder->boot_id[0] && strcmp(holder->boot_id, self->boot_id) != 0)
		return TN_HOLDER_DEAD;
	if (holder->pid_namespace == TN_PID_NAMESPACE_ODD)
		return TN_HOLDER_UNKNOWN;
	if (!holder->pid_namespace || holder->pid_namespace == self->pid_namespace)
		return bare_pid_state(self, holder);
	return namespace_state(self, holder->pid_namespace);
}

bool tn_holder_is_same(const TnStubHolder *a, const TnStubHolder *b)
{
	if (a->lease || b->lease)
		return a->lease && b->lease && strcmp(a->lease, b->lease) == 0;
	return a->pid == b->pid && a->start_time == b->start_time &&
	       a->pid_namespace == b->pid_namespace && strcmp(a->boot_id, b->boot_id) == 0;
}

TnHolderState tn_holder_state(TnSelf *self, const TnStubHolder *holder)
{
	struct TnHolderMemo *memo;

	for (size_t i = 0; i < TN_ARRAY_LEN(self->memo) && i < self->n_memo; i++) {
		if (tn_holder_is_same(&self->memo[i].holder, holder))
			return self->memo[i].state;
	}
	memo = &self->memo[self->n_memo++ % TN_ARRAY_LEN(self->memo)];
	memo->holder = *holder;
	memo->state = decide(self, holder);
	return memo->state;
}
