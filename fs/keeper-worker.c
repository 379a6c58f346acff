/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper-worker.h"

#include "macros.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_channels(TnWorkerProcess *process)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	process->link = pair[0];
	process->link_socket = pair[1];
	process->stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return process->stop_event < 0 ? -errno : 0;
}

int tn_worker_process_start(TnWorkerProcess *ret, const TnWorkerEnv *env, TnWorkerMain worker_main,
			    bool in_waiting)
{
	TnWorkerEnv own = *env;
	long pid = -1;
	int r;

	*ret = TN_WORKER_NONE;
	r = open_channels(ret);
	own.link_socket = ret->link_socket;
	own.stop_event = ret->stop_event;
	own.keepers[TN_KEEPERS_LINK] = ret->link;
	own.in_waiting = in_waiting;
	/* Not fork(): the descriptor table is shared, so that what a worker opens lives on. */
	if (r == 0)
		pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		setpgid(0, 0);
		_exit(worker_main(&own));
	}
	if (pid < 0) {
		r = r < 0 ? r : -errno;
		tn_worker_process_close(ret);
		return r;
	}
	setpgid((pid_t)pid, (pid_t)pid); /* whoever of both is first */
	ret->pid = ret->group = (pid_t)pid;
	return 0;
}

int tn_worker_process_go(const TnWorkerProcess *process)
{
	const char turn = 1;

	return send(process->link, &turn, sizeof(turn), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno
											 : 0;
}

bool tn_worker_process_reap(TnWorkerProcess *process, int *ret_status)
{
	if (!process->pid || waitpid(process->pid, ret_status, WNOHANG) != process->pid)
		return false;
	process->pid = 0;
	return true;
}

void tn_worker_process_close(TnWorkerProcess *process)
{
	tn_close(&process->link);
	tn_close(&process->link_socket);
	tn_close(&process->stop_event);
}

void tn_worker_group_kill(pid_t group)
{
	if (group)
		kill(-group, SIGKILL);
}

void tn_worker_group_reap(pid_t *group)
{
	pid_t pid = 0;

	while (*group && (pid = waitpid(-*group, NULL, WNOHANG)) > 0)
		;
	if (pid < 0)
		*group = 0;
}

void tn_worker_group_end(pid_t *group)
{
	tn_worker_group_kill(*group);
	while (*group && (waitpid(-*group, NULL, 0) > 0 || errno == EINTR))
		;
	*group = 0;
}

void tn_worker_process_end(TnWorkerProcess *process)
{
	tn_worker_group_end(&process->group);
	process->pid = 0;
	tn_worker_process_close(process);
}

int tn_worker_wait_for_turn(int link_socket)
{
	char turn;
	ssize_t n;

	do
		n = recv(link_socket, &turn, sizeof(turn), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == sizeof(turn) ? 0 : -EPIPE;
}
