/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "peer.h"

#include "log.h"
#include "macros.h"
#include "stranger.h"
#include "syscalls.h"
#include "why.h"

#include <errno.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

TN_SYSCALLS = {
	{SYS_getsockopt},
	{SYS_fstatfs},
	{SYS_ioctl, TN_ARG_IS(1, NS_GET_NSTYPE)},
};

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

int tn_peer_get(int sock, TnPeer *ret)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return -errno;
	*ret = (TnPeer){.uid = cred.uid, .gid = cred.gid, .pid = cred.pid};
	return 0;
}

/*
 * On the device of namespaces: so it is none that the peer serves itself, whose answer one would
 * wait for, and the ioctl's number means what it says.
 */
static bool is_user_namespace(const TnWorkerEnv *env, int fd, const struct stat *st)
{
	return st->st_dev == env->userns_dev && ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWUSER;
}

/* What the peer showed. */
static int check_shown(const TnWorkerEnv *env, int userns, char *why, size_t why_size)
{
	struct stat st;

	if (userns < 0)
		return tn_why(why, why_size, -EPERM,
			      "refused: no descriptor of the caller's user namespace came along");
	if (tn_stranger_stat(userns, &st) < 0 || !is_user_namespace(env, userns, &st))
		return tn_why(why, why_size, -EPERM,
			      "refused: the first descriptor is no user namespace");
	if (st.st_ino != env->userns_ino)
		return tn_why(why, why_size, -EPERM,
			      "refused: called from another user namespace, as from inside a "
			      "sandbox (call from outside)");
	return 0;
}

/* What the kernel says about the process that connected. */
static int check_kernels_word(const TnWorkerEnv *env, int sock, char *why, size_t why_size)
{
	TN_AUTOFD pidfd = -1;
	socklen_t size = sizeof(pidfd);
	uint64_t dev, ino;
	int r;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) < 0) {
		pidfd = -1;
		if (errno == ENOPROTOOPT)
			return 0; /* a kernel before 6.5 */
		return tn_why(why, why_size, -EPERM, "refused: the caller has ended");
	}
	r = tn_keeper_peer_userns(env->keeper, pidfd, &dev, &ino);
	if (r == -EACCES || r == -EPERM) {
		/* A container whose root may not look: the shown descriptor has to do. */
		tn_log(TN_LOG_DEBUG, "peer: its namespaces cannot be looked at: %s", strerror(-r));
		return 0;
	}
	if (r < 0)
		return tn_why(why, why_size, -EPERM, "refused: the caller cannot be looked at: %s",
			      strerror(-r));
	if (dev != env->userns_dev || ino != env->userns_ino)
		return tn_why(why, why_size, -EPERM,
			      "refused: the caller runs in another user namespace than it shows");
	return 0;
}

int tn_peer_check(const TnWorkerEnv *env, int sock, const TnPeer *peer, int userns, char *why,
		  size_t why_size)
{
	int r = check_shown(env, userns, why, why_size);

	if (r < 0)
		return r;
	if (env->use_peer_pidfd && (r = check_kernels_word(env, sock, why, why_size)) < 0)
		return r;
	if (env->scope == TN_SCOPE_USER && peer->uid != env->uid)
		return tn_why(why, why_size, -EACCES,
			      "refused: this is the daemon of uid %u, called by uid %u", env->uid,
			      peer->uid);
	return 0;
}

int tn_peer_check_group(const TnWorkerEnv *env, const TnPeer *peer, char *why, size_t why_size)
{
	/* Root's mounts admit every id (allow_other). */
	if (env->scope != TN_SCOPE_USER || env->uid == 0 || peer->gid == env->gid)
		return 0;
	return tn_why(why, why_size, -EACCES,
		      "group differs: started with gid %u, the daemon has %u (start it without "
		      "newgrp or sg)",
		      peer->gid, env->gid);
}
