/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a request costs between the device and the store: GETATTR through tn_dispatch(),
 * the same one fstatat(2) through libfuse's low-level session (when the program was built
 * with libfuse), and that fstatat(2) alone. Processor time, nanoseconds, best of five.
 */
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifdef TN_HAVE_LIBFUSE
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#endif

#define ROUNDS 5
#define CALLS 100000

typedef struct Subject {
	TnWire wire;
	uint64_t node;
	int dir; /* in which "file" lies */
	struct {
		struct fuse_in_header header;
		struct fuse_getattr_in in;
	} request;
#ifdef TN_HAVE_LIBFUSE
	struct fuse_session *session;
#endif
} Subject;

typedef void (*Call)(Subject *subject);

static double measure(Subject *subject, Call call)
{
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct timespec start, end;
		double ns;

		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
		for (int i = 0; i < CALLS; i++)
			call(subject);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
		ns = ((double)(end.tv_sec - start.tv_sec) * 1e9 +
		      (double)(end.tv_nsec - start.tv_nsec)) /
		     CALLS;
		if (round == 0 || ns < best)
			best = ns;
	}
	return best;
}

static void call_stat(Subject *subject)
{
	struct stat st;

	fstatat(subject->dir, "file", &st, AT_SYMLINK_NOFOLLOW);
}

static void call_dispatch(Subject *subject)
{
	tn_wire_raw(&subject->wire, &subject->request, sizeof(subject->request));
}

#ifdef TN_HAVE_LIBFUSE
static void answer_getattr(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info)
{
	Subject *subject = fuse_req_userdata(request);
	struct stat st;

	fstatat(subject->dir, "file", &st, AT_SYMLINK_NOFOLLOW);
	fuse_reply_attr(request, &st, 1000);
}

static ssize_t swallow(int fd, struct iovec *parts, int n, void *data)
{
	ssize_t size = 0;

	for (int i = 0; i < n; i++)
		size += (ssize_t)parts[i].iov_len;
	return size;
}

static ssize_t read_nothing(int fd, void *buffer, size_t size, void *data)
{
	return 0;
}

static void call_libfuse(Subject *subject)
{
	struct fuse_buf buffer = {.size = sizeof(subject->request), .mem = &subject->request};

	fuse_session_process_buf(subject->session, &buffer);
}

static void open_libfuse(Subject *subject)
{
	static const struct fuse_lowlevel_ops operations = {.getattr = answer_getattr};
	static const struct fuse_custom_io io = {.writev = swallow, .read = read_nothing};
	char name[] = "transport", *words[] = {name, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(1, words);
	struct {
		struct fuse_in_header header;
		struct fuse_init_in in;
	} init = {
		.header = {.len = sizeof(init), .opcode = FUSE_INIT, .unique = 1},
		.in = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION},
	};
	struct fuse_buf buffer = {.size = sizeof(init), .mem = &init};

	subject->session = fuse_session_new(&args, &operations, sizeof(operations), subject);
	fuse_session_custom_io(subject->session, &io, open("/dev/null", O_RDWR | O_CLOEXEC));
	fuse_session_process_buf(subject->session, &buffer);
}
#endif

int main(void)
{
	Subject subject = {.dir = -1};
	double bare, own;

	tn_wire_open(&subject.wire, &(TnWireSpec){0});
	if (tn_wire_mknod(&subject.wire, subject.wire.tmp, "file", S_IFREG | 0600) < 0)
		return 1;
	subject.node = subject.wire.entry.nodeid;
	subject.dir = openat(subject.wire.nest->store.data, "tmp", O_RDONLY | O_DIRECTORY);
	subject.request.header = (struct fuse_in_header){
		.len = sizeof(subject.request),
		.opcode = FUSE_GETATTR,
		.unique = 2,
		.nodeid = subject.node,
	};
	bare = measure(&subject, call_stat);
	own = measure(&subject, call_dispatch);
	printf("%-28s %6.0f ns\n", "fstatat alone", bare);
	printf("%-28s %6.0f ns (%.0f of its own)\n", "GETATTR, tn_dispatch", own, own - bare);
#ifdef TN_HAVE_LIBFUSE
	open_libfuse(&subject);
	double lib = measure(&subject, call_libfuse);
	printf("%-28s %6.0f ns (%.0f of its own)\n", "GETATTR, libfuse", lib, lib - bare);
#else
	printf("built without libfuse: no figure to compare with\n");
#endif
	close(subject.dir);
	return 0;
}
