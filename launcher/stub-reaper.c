/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "macros.h"
#include "stub-keeper.h"
#include "stubs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>

#define LEASES_MAX 4096
/* Sandboxes without a lease end without a sign; their mounts are looked at this often. */
#define MOUNTS_PERIOD_MS 5000

typedef struct Reaper {
	TnStubs stubs;
	struct pollfd fds[LEASES_MAX + 1]; /* [0] tells changes of the ledger */
	char *leases[LEASES_MAX + 1];
	size_t n_fds;
	bool has_by_mounts;
} Reaper;

static int open_lock(const char *ledger_path)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s.reaper", ledger_path) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* The reaper gives its lock up only while it has the ledger locked and empty of sandboxes. */
static bool is_running(const char *ledger_path)
{
	TN_AUTOFD fd = open_lock(ledger_path);
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	/* asks without taking it: a reaper that starts just now must not meet our lock */
	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

static void become_reaper(const char *program, const char *ledger_path, const char *runtime_dir)
{
	const char *const argv[] = {program,
				    "reaper",
				    "--ledger",
				    ledger_path,
				    runtime_dir ? "--runtime-dir" : NULL,
				    runtime_dir,
				    NULL};
	sigset_t none;
	int null_fd = open("/dev/null", O_RDWR);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (setsid() < 0 || null_fd < 0 || fork() != 0)
		_exit(0);
	for (int fd = 0; fd < 3; fd++)
		dup2(null_fd, fd);
	/* nothing of the caller's may live on in it: not its leases, not its mounts */
	if (close_range(3, ~0U, 0) < 0 || chdir("/") < 0)
		_exit(1);
	execv(program, (char *const *)argv);
	_exit(1);
}

int tn_stubs_start_reaper(const char *program, const char *ledger_path, const char *runtime_dir)
{
	pid_t pid;
	int status;

	if (is_running(ledger_path))
		return 0;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become_reaper(program, ledger_path, runtime_dir);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	return 0;
}

static void forget_lease(Reaper *reaper, size_t i)
{
	close(reaper->fds[i].fd);
	free(reaper->leases[i]);
	reaper->n_fds--;
	reaper->fds[i] = reaper->fds[reaper->n_fds];
	reaper->leases[i] = reaper->leases[reaper->n_fds];
}

/* False when there is nothing to wait for: a lease that somebody has removed tells no end. */
static bool watch_lease(Reaper *reaper, const char *lease)
{
	TN_AUTOFD fd = -1;

	for (size_t i = 1; i < reaper->n_fds; i++) {
		if (strcmp(reaper->leases[i], lease) == 0)
			return true;
	}
	/* the rest is watched when some of these have ended */
	if (reaper->n_fds > LEASES_MAX)
		return true;
	fd = tn_lease_open(lease);
	if (fd < 0)
		return false;
	reaper->leases[reaper->n_fds] = strdup(lease);
	if (!reaper->leases[reaper->n_fds])
		return false;
	reaper->fds[reaper->n_fds++] = (struct pollfd){.fd = tn_steal_fd(&fd)};
	return true;
}

/* With the ledger locked: watches the leases it names. How many entries there are to wait for. */
static size_t take_stock(Reaper *reaper)
{
	const TnLedger *ledger = reaper->stubs.file.ledger;
	size_t n = 0;

	reaper->has_by_mounts = false;
	for (size_t i = 0; i < ledger->n_entries; i++) {
		const TnLedgerEntry *entry = &ledger->entries[i];

		reaper->has_by_mounts |= entry->by_mounts;
		n += entry->by_mounts ||
		     (entry->holder.lease && watch_lease(reaper, entry->holder.lease));
	}
	return n;
}

/* Links whose launcher was killed before it could record them; one that lives is being recorded. */
static void sweep_leases(const char *runtime_dir)
{
	char dir[PATH_MAX], path[PATH_MAX];
	struct dirent *entry;
	DIR *listing;

	if (!runtime_dir || snprintf(dir, sizeof(dir), "%s/stubs", runtime_dir) >= PATH_MAX)
		return;
	listing = opendir(dir);
	while (listing && (entry = readdir(listing))) {
		const char *suffix = strrchr(entry->d_name, '.');

		if (suffix && strcmp(suffix, TN_STUBS_LEASE_SUFFIX) == 0 &&
		    snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) < PATH_MAX &&
		    tn_lease_state(path) == TN_HOLDER_DEAD)
			unlink(path);
	}
	if (listing)
		closedir(listing);
}

/* One round: removes what has ended. Returns what is left to wait for, or -errno. */
static ssize_t reap_once(Reaper *reaper, int *lock_fd)
{
	TnStubs *stubs = &reaper->stubs;
	bool changed = false;
	ssize_t left = 0;
	int result = tn_stubs_lock(stubs);

	if (result < 0)
		return result;
	/* a second look when a lease ended between the two: else its end would go unseen */
	result = tn_stubs_reclaim_locked(stubs, NULL, NULL, &changed);
	if (result == 0 && (changed || stubs->file.recovered))
		result = tn_stubs_save(stubs);
	if (result == 0)
		left = (ssize_t)take_stock(reaper);
	if (result == 0 && left == 0) {
		sweep_leases(stubs->options.runtime_dir);
		tn_close(lock_fd);
	}
	tn_stubs_unlock(stubs);
	return result < 0 ? result : left;
}

/* Until a lease ends, the ledger changes, or the mounts have to be looked at. */
static void wait_for_news(Reaper *reaper)
{
	char events[4096];

	/* an end that came before poll() would be seen now: it reads as end of file */
	for (size_t i = 1; i < reaper->n_fds; i++) {
		if (tn_lease_has_ended(reaper->fds[i].fd))
			return;
	}
	poll(reaper->fds, reaper->n_fds, reaper->has_by_mounts ? MOUNTS_PERIOD_MS : -1);
	while (read(reaper->fds[0].fd, events, sizeof(events)) > 0) {
	}
}

static void drop_ended_leases(Reaper *reaper)
{
	for (size_t i = reaper->n_fds; i-- > 1;) {
		if (tn_lease_has_ended(reaper->fds[i].fd))
			forget_lease(reaper, i);
	}
}

static int watch_ledger(Reaper *reaper, const char *ledger_path)
{
	char dir[PATH_MAX];
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd < 0)
		return -errno;
	snprintf(dir, sizeof(dir), "%s", ledger_path);
	*strrchr(dir, '/') = '\0';
	reaper->fds[0] = (struct pollfd){.fd = fd, .events = POLLIN};
	reaper->n_fds = 1;
	return inotify_add_watch(fd, *dir ? dir : "/", IN_MOVED_TO) < 0 ? -errno : 0;
}

int tn_stubs_reap(const TnStubsOptions *options)
{
	TN_AUTOFD lock_fd = open_lock(options->ledger_path);
	TN_AUTOFREE Reaper *reaper = calloc(1, sizeof(*reaper));
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	ssize_t left;

	if (lock_fd < 0 || !reaper)
		return lock_fd < 0 ? lock_fd : -ENOMEM;
	if (fcntl(lock_fd, F_OFD_SETLK, &whole) < 0)
		return errno == EAGAIN || errno == EACCES ? 0 : -errno;
	tn_stubs_init(&reaper->stubs, options);
	left = watch_ledger(reaper, options->ledger_path);
	while (left >= 0) {
		left = reap_once(reaper, &lock_fd);
		if (left <= 0)
			break;
		wait_for_news(reaper);
		drop_ended_leases(reaper);
	}
	while (reaper->n_fds > 1)
		forget_lease(reaper, 1);
	close(reaper->fds[0].fd);
	tn_stubs_clear(&reaper->stubs);
	return left < 0 ? (int)left : 0;
}
