/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper-services.h"

#include "backing.h"
#include "image.h"
#include "mount.h"
#include "namespaces.h"

#include <errno.h>
#include <stdatomic.h>

static int make_mount(const TnWorkerEnv *env, const TnKeeperRequest *request,
		      TnKeeperAnswer *answer)
{
	/* Only root's mounts may serve several uids: a payload that root starts can change
	 * ids inside. They are reachable by descriptor only, as all of ours. */
	bool allow_other = env->uid == 0;
	int device = request->fd;
	int mount = device < 0
			    ? tn_mount_fuse_new(request->uid, request->gid, allow_other, &device)
			    : tn_mount_fuse_again(device, request->uid, request->gid, allow_other);

	answer->mount = mount;
	answer->device = device;
	return mount < 0 ? mount : 0;
}

static int make_memory(const TnKeeperRequest *request, TnKeeperAnswer *answer)
{
	answer->mount = tn_mount_memory_new(request->bytes, request->inodes);
	return answer->mount < 0 ? answer->mount : 0;
}

static int open_backing(const TnWorkerEnv *env, const TnKeeperRequest *request,
			TnKeeperAnswer *answer)
{
	TnStateBacking *note = &env->state->backing;
	int id;

	atomic_store(&note->id, 0);
	note->nest_id = request->nest;
	note->node = request->node;
	note->device = request->fd;
	id = tn_backing_open(request->fd, request->file);
	if (id < 0)
		return id;
	atomic_store(&note->id, id);
	answer->id = id;
	return 0;
}

int tn_keeper_service(const TnWorkerEnv *env, const TnKeeperRequest *request,
		      TnKeeperAnswer *answer)
{
	switch (request->op) {
	case TN_KEEPER_MOUNT:
		return make_mount(env, request, answer);
	case TN_KEEPER_MEMORY_NEW:
		return make_memory(request, answer);
	case TN_KEEPER_MEMORY_RESIZE:
		return tn_mount_memory_resize(request->fd, request->bytes, request->inodes);
	case TN_KEEPER_IMAGE_FORMAT:
		return tn_image_format(request->fd, request->inodes);
	case TN_KEEPER_IMAGE_MOUNT:
		answer->mount = tn_image_mount(request->fd);
		return answer->mount < 0 ? answer->mount : 0;
	case TN_KEEPER_IMAGE_GROWN:
		return tn_image_grown(request->fd);
	case TN_KEEPER_BACKING_OPEN:
		return open_backing(env, request, answer);
	case TN_KEEPER_BACKING_CLOSE:
		return tn_backing_close(request->fd, request->id);
	case TN_KEEPER_PEER_USERNS:
		return tn_namespaces_of_pidfd(request->fd, &answer->dev, &answer->ino);
	default:
		return -EPROTO;
	}
}
