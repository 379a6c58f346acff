/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper-link.h"

#include "keeper-proto.h"
#include "macros.h"
#include "syscalls.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

TN_SYSCALLS = {
	{SYS_sendto},
	{SYS_recvfrom},
};

struct TnKeeperLink {
	pthread_mutex_t lock; /* one request is under way at a time */
	int sock;
};

TnKeeperLink *tn_keeper_link_new(int sock)
{
	TnKeeperLink *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	pthread_mutex_init(&link->lock, NULL);
	link->sock = sock;
	return link;
}

void tn_keeper_link_free(TnKeeperLink *link)
{
	if (!link)
		return;
	pthread_mutex_destroy(&link->lock);
	free(link);
}

static int exchange(int sock, const TnKeeperRequest *request, TnKeeperAnswer *ret)
{
	ssize_t n;

	do
		n = send(sock, request, sizeof(*request), MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	do
		n = recv(sock, ret, sizeof(*ret), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == sizeof(*ret) ? 0 : -EPIPE;
}

/* 0 when the keeper did it, its -errno, or the link's. */
static int ask(TnKeeperLink *link, const TnKeeperRequest *request, TnKeeperAnswer *ret)
{
	int r;

	pthread_mutex_lock(&link->lock);
	r = exchange(link->sock, request, ret);
	pthread_mutex_unlock(&link->lock);
	return r < 0 ? r : ret->result;
}

int tn_keeper_mount(TnKeeperLink *link, int *device, uid_t uid, gid_t gid)
{
	TnKeeperRequest request = {.op = TN_KEEPER_MOUNT, .fd = *device, .uid = uid, .gid = gid};
	TnKeeperAnswer answer;
	int r = ask(link, &request, &answer);

	if (r < 0)
		return r;
	*device = answer.device;
	return answer.mount;
}

int tn_keeper_memory_new(TnKeeperLink *link, uint64_t bytes, uint64_t inodes)
{
	TnKeeperRequest request = {
		.op = TN_KEEPER_MEMORY_NEW, .fd = -1, .bytes = bytes, .inodes = inodes};
	TnKeeperAnswer answer;
	int r = ask(link, &request, &answer);

	return r < 0 ? r : answer.mount;
}

int tn_keeper_memory_resize(TnKeeperLink *link, int mount, uint64_t bytes, uint64_t inodes)
{
	TnKeeperRequest request = {
		.op = TN_KEEPER_MEMORY_RESIZE, .fd = mount, .bytes = bytes, .inodes = inodes};
	TnKeeperAnswer answer;

	return ask(link, &request, &answer);
}

int tn_keeper_image_format(TnKeeperLink *link, int image, uint64_t inodes)
{
	TnKeeperRequest request = {.op = TN_KEEPER_IMAGE_FORMAT, .fd = image, .inodes = inodes};
	TnKeeperAnswer answer;

	return ask(link, &request, &answer);
}

int tn_keeper_image_mount(TnKeeperLink *link, int image)
{
	TnKeeperRequest request = {.op = TN_KEEPER_IMAGE_MOUNT, .fd = image};
	TnKeeperAnswer answer;
	int r = ask(link, &request, &answer);

	return r < 0 ? r : answer.mount;
}

int tn_keeper_image_grown(TnKeeperLink *link, int mount)
{
	TnKeeperRequest request = {.op = TN_KEEPER_IMAGE_GROWN, .fd = mount};
	TnKeeperAnswer answer;

	return ask(link, &request, &answer);
}

int tn_keeper_backing_open(TnKeeperLink *link, const TnBackingFile *file, int32_t *id)
{
	TnKeeperRequest request = {
		.op = TN_KEEPER_BACKING_OPEN,
		.fd = file->device,
		.file = file->file,
		.nest = file->nest_id,
		.node = file->node,
	};
	TnKeeperAnswer answer;
	int r;

	pthread_mutex_lock(&link->lock);
	r = exchange(link->sock, &request, &answer);
	if (r == 0)
		r = answer.result;
	if (r == 0)
		*(volatile int32_t *)id = answer.id;
	pthread_mutex_unlock(&link->lock);
	return r;
}

int tn_keeper_backing_close(TnKeeperLink *link, int device, int32_t id)
{
	TnKeeperRequest request = {.op = TN_KEEPER_BACKING_CLOSE, .fd = device, .id = id};
	TnKeeperAnswer answer;

	return ask(link, &request, &answer);
}

int tn_keeper_peer_userns(TnKeeperLink *link, int pidfd, uint64_t *ret_dev, uint64_t *ret_ino)
{
	TnKeeperRequest request = {.op = TN_KEEPER_PEER_USERNS, .fd = pidfd};
	TnKeeperAnswer answer;
	int r = ask(link, &request, &answer);

	if (r < 0)
		return r;
	*ret_dev = answer.dev;
	*ret_ino = answer.ino;
	return 0;
}

static int tell(TnKeeperLink *link, TnKeeperOp op, const char *text)
{
	TnKeeperRequest request = {.op = op, .fd = -1};
	TnKeeperAnswer answer;

	snprintf(request.text, sizeof(request.text), "%s", text);
	return ask(link, &request, &answer);
}

int tn_keeper_upgrade(TnKeeperLink *link)
{
	return tell(link, TN_KEEPER_UPGRADE, "");
}

int tn_keeper_refusals(TnKeeperLink *link, int listener)
{
	TnKeeperRequest request = {.op = TN_KEEPER_REFUSALS, .fd = listener};
	TnKeeperAnswer answer;

	return ask(link, &request, &answer);
}

int tn_keeper_ready(TnKeeperLink *link)
{
	return tell(link, TN_KEEPER_READY, "");
}

int tn_keeper_failed(TnKeeperLink *link, const char *why)
{
	return tell(link, TN_KEEPER_FAILED, why);
}

int tn_keeper_stopping(TnKeeperLink *link)
{
	return tell(link, TN_KEEPER_STOPPING, "");
}
