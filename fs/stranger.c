/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stranger.h"

#include "log.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

TN_SYSCALLS = {
	{SYS_statx},
	{SYS_openat2},
};

#define WAITING_MOST 64U          /* closes that wait, all uids */
#define WAITING_OF_UID 4U         /* more of one, and nothing more is received from it */
#define MESSAGE_MOST 16U          /* descriptors of one message, see scm.c */
#define STACK ((size_t)64 * 1024) /* more than PTHREAD_STACK_MIN everywhere */

struct TnStrangers {
	pthread_mutex_t lock;
	unsigned refs; /* the server, and each close that waits */
	unsigned n;
	uid_t uids[WAITING_MOST]; /* of the closes that wait */
};

typedef struct Close {
	TnStrangers *strangers;
	uid_t uid;
	int fd;
} Close;

TnStrangers *tn_strangers_new(void)
{
	TnStrangers *strangers = calloc(1, sizeof(*strangers));

	if (!strangers)
		return NULL;
	pthread_mutex_init(&strangers->lock, NULL);
	strangers->refs = 1;
	return strangers;
}

static void unref(TnStrangers *strangers)
{
	bool last;

	pthread_mutex_lock(&strangers->lock);
	last = --strangers->refs == 0;
	pthread_mutex_unlock(&strangers->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&strangers->lock);
	free(strangers);
}

void tn_strangers_free(TnStrangers *strangers)
{
	if (strangers)
		unref(strangers);
}

/* --- what it is ------------------------------------------------------------------------------- */

int tn_stranger_stat(int fd, struct stat *ret)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO | STATX_NLINK,
		  &stx) < 0)
		return -errno;
	*ret = (struct stat){
		.st_dev = makedev(stx.stx_dev_major, stx.stx_dev_minor),
		.st_ino = stx.stx_ino,
		.st_mode = stx.stx_mode,
		.st_nlink = stx.stx_nlink,
	};
	return 0;
}

int tn_stranger_look(const char *path, bool may_wait, struct stat *ret)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED};
	long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	int r;

	if (fd < 0 && errno == EAGAIN && may_wait)
		fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = tn_stranger_stat((int)fd, ret);
	close((int)fd);
	return r;
}

/* Its close asks nobody: pipes, sockets and directories have no flush, nor has what is a mere place
 * or one of the kernel's own files. */
static bool is_harmless(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st, own;

	if (flags >= 0 && flags & O_PATH)
		return true;
	if (tn_stranger_stat(fd, &st) < 0)
		return false;
	if (S_ISFIFO(st.st_mode) || S_ISDIR(st.st_mode) || S_ISSOCK(st.st_mode))
		return true;
	return stat("/proc/self/ns/user", &own) == 0 && own.st_dev == st.st_dev;
}

/* --- closing ------------------------------------------------------------------------------------
 */

static void has_closed(TnStrangers *strangers, uid_t uid)
{
	unsigned i = 0;

	pthread_mutex_lock(&strangers->lock);
	while (i < strangers->n && strangers->uids[i] != uid)
		i++;
	if (i < strangers->n)
		strangers->uids[i] = strangers->uids[--strangers->n];
	pthread_mutex_unlock(&strangers->lock);
	unref(strangers);
}

static void *run(void *data)
{
	Close *job = data;

	close(job->fd);
	has_closed(job->strangers, job->uid);
	free(job);
	return NULL;
}

/* 0 or -errno; nothing is taken then. */
static int start(Close *job)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attr, run, job);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

static bool begin(TnStrangers *strangers, uid_t uid)
{
	bool room;

	pthread_mutex_lock(&strangers->lock);
	room = strangers->n < WAITING_MOST;
	if (room) {
		strangers->uids[strangers->n++] = uid;
		strangers->refs++;
	}
	pthread_mutex_unlock(&strangers->lock);
	return room;
}

void tn_stranger_close(TnStrangers *strangers, uid_t uid, int *fd)
{
	int saved = errno, taken = *fd;
	Close *job;

	*fd = -1;
	if (taken < 0)
		return;
	if (is_harmless(taken)) {
		close(taken);
		errno = saved;
		return;
	}
	job = malloc(sizeof(*job));
	if (job && begin(strangers, uid)) {
		*job = (Close){strangers, uid, taken};
		if (start(job) == 0) {
			errno = saved;
			return;
		}
		has_closed(strangers, uid);
	}
	free(job);
	/* It stays open: better than to wait, perhaps for ever. */
	tn_log(TN_LOG_WARNING, "uid %u: a descriptor that it sent cannot be closed now", uid);
	errno = saved;
}

bool tn_stranger_may_send(TnStrangers *strangers, uid_t uid)
{
	unsigned n = 0, all;

	pthread_mutex_lock(&strangers->lock);
	all = strangers->n;
	for (unsigned i = 0; i < strangers->n; i++)
		n += strangers->uids[i] == uid;
	pthread_mutex_unlock(&strangers->lock);
	/* What one message may bring still fits. */
	return n < WAITING_OF_UID && all < WAITING_MOST - MESSAGE_MOST;
}
