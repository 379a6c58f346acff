/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* inotify, leases, F_NOTIFY, fanotify. */
#include "conformance.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/wait.h>

/* Events of the descriptor now: mask and name of each must come in this order. */
static void expect(int fd, int n, const uint32_t *masks, const char *const *names)
{
	static char buffer[8192] __attribute__((aligned(8)));
	ssize_t size = ok(read(fd, buffer, sizeof(buffer)));
	const char *at = buffer;

	for (int i = 0; i < n; i++) {
		const struct inotify_event *event = (const void *)at;

		check(at < buffer + size);
		equal(event->mask & ~(uint32_t)IN_ISDIR, masks[i]);
		if (names[i])
			equal(strcmp(event->name, names[i]), 0);
		at += sizeof(*event) + event->len;
	}
	check(at == buffer + size);
}

static void inotify(void)
{
	int fd = (int)ok(inotify_init1(IN_NONBLOCK)), file;

	ok(inotify_add_watch(fd, ".", IN_ALL_EVENTS));
	file = tc_make("f", 0644);
	expect(fd, 2, (uint32_t[]){IN_CREATE, IN_OPEN}, (const char *[]){"f", "f"});
	ok(write(file, "x", 1));
	close(file);
	expect(fd, 2, (uint32_t[]){IN_MODIFY, IN_CLOSE_WRITE}, (const char *[]){"f", "f"});
	ok(chmod("f", 0600));
	expect(fd, 1, (uint32_t[]){IN_ATTRIB}, (const char *[]){"f"});
	ok(rename("f", "g"));
	expect(fd, 2, (uint32_t[]){IN_MOVED_FROM, IN_MOVED_TO}, (const char *[]){"f", "g"});
	ok(link("g", "h"));
	expect(fd, 1, (uint32_t[]){IN_CREATE}, (const char *[]){"h"});
	ok(unlink("h"));
	expect(fd, 1, (uint32_t[]){IN_DELETE}, (const char *[]){"h"});
	ok(mkdir("d", 0755));
	ok(rmdir("d"));
	expect(fd, 2, (uint32_t[]){IN_CREATE, IN_DELETE}, (const char *[]){"d", "d"});
	ok(symlink("x", "l"));
	ok(mkfifo("p", 0600));
	expect(fd, 2, (uint32_t[]){IN_CREATE, IN_CREATE}, (const char *[]){"l", "p"});
	ok(truncate("g", 0));
	expect(fd, 1, (uint32_t[]){IN_MODIFY}, (const char *[]){"g"});
	error(read(fd, (char[16]){0}, 16), EAGAIN);
}

static void self_events(void)
{
	int fd = (int)ok(inotify_init1(IN_NONBLOCK));

	close(tc_make("f", 0644));
	ok(inotify_add_watch(fd, "f", IN_DELETE_SELF | IN_MOVE_SELF));
	ok(rename("f", "g"));
	expect(fd, 1, (uint32_t[]){IN_MOVE_SELF}, (const char *[]){NULL});
	ok(unlink("g"));
	eventually(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 1);
	expect(fd, 2, (uint32_t[]){IN_DELETE_SELF, IN_IGNORED}, (const char *[]){NULL, NULL});
}

static void write_later(void *data)
{
	int fd = (int)ok(open("f", O_WRONLY | O_APPEND));

	(void)data;

	usleep(50000);
	ok(write(fd, "more", 4));
}

static void from_another_process(void)
{
	int fd = (int)ok(inotify_init1(0));
	pid_t child;

	close(tc_make("f", 0644));
	ok(inotify_add_watch(fd, "f", IN_MODIFY));
	child = tc_fork(write_later, NULL);
	equal(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 5000), 1);
	expect(fd, 1, (uint32_t[]){IN_MODIFY}, (const char *[]){NULL});
	tc_wait(child);
}

static volatile sig_atomic_t got;

static void on_signal(int number)
{
	got = number;
}

static void open_for_writing(void *data)
{
	(void)data;
	close((int)ok(open("f", O_WRONLY)));
}

static void leases(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	pid_t child;
	int fd;

	ok(sigaction(SIGIO, &action, NULL));
	close(tc_make("f", 0644));
	fd = (int)ok(open("f", O_RDONLY));
	ok(fcntl(fd, F_SETLEASE, F_RDLCK));
	equal(fcntl(fd, F_GETLEASE), F_RDLCK);
	error(open("f", O_WRONLY | O_NONBLOCK), EWOULDBLOCK);
	child = tc_fork(open_for_writing, NULL); /* waits until the lease is given up */
	eventually(got == SIGIO);
	ok(fcntl(fd, F_SETLEASE, F_UNLCK));
	tc_wait(child);
	int second = (int)ok(open("f", O_RDWR));

	error(fcntl(fd, F_SETLEASE, F_RDLCK), EAGAIN); /* open for writing */
	close(second);
	close(fd);
	fd = (int)ok(open("f", O_RDWR));
	ok(fcntl(fd, F_SETLEASE, F_WRLCK));
	ok(fcntl(fd, F_SETLEASE, F_UNLCK));
}

static void directory_notify(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	int fd = (int)ok(open(".", O_RDONLY));

	ok(sigaction(SIGIO, &action, NULL));
	ok(fcntl(fd, F_NOTIFY, DN_CREATE | DN_DELETE | DN_MULTISHOT));
	close(tc_make("f", 0644));
	equal(got, SIGIO);
	got = 0;
	ok(unlink("f"));
	equal(got, SIGIO);
}

static void fanotify(void)
{
	int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY);
	struct fanotify_event_metadata event;
	int file;

	if (fd < 0 && (errno == EPERM || errno == ENOSYS || errno == EINVAL))
		tc_skip("fanotify with descriptors is for privileged processes");
	ok(fd);
	file = tc_make("f", 0644);
	if (fanotify_mark(fd, FAN_MARK_ADD, FAN_MODIFY | FAN_CLOSE_WRITE, AT_FDCWD, "f") < 0)
		tc_skip("no mark: %s", strerror(errno));
	ok(write(file, "x", 1));
	equal(read(fd, &event, sizeof(event)), (ssize_t)sizeof(event));
	check(event.mask & FAN_MODIFY);
	check(tc_is_filled(event.fd, 0, 1, 'x'));
}

/* One event of that kind, which names the entry behind the handle of its directory. */
static void expect_named(int fd, uint64_t mask, const char *name)
{
	_Alignas(8) char data[500];
	const struct fanotify_event_metadata *event = (const void *)data;
	const struct fanotify_event_info_fid *info = (const void *)(event + 1);
	const struct file_handle *handle = (const void *)info->handle;

	ssize_t size = ok(read(fd, data, sizeof(data)));

	equal(size, event->event_len);
	equal(event->mask, mask);
	equal(info->hdr.info_type, FAN_EVENT_INFO_TYPE_DFID_NAME);
	check(strcmp((const char *)handle->f_handle + handle->handle_bytes, name) == 0);
}

/* What a plain user may ask for. */
static void fanotify_by_name(void)
{
	int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK | FAN_REPORT_DFID_NAME, O_RDONLY);
	int file;

	if (fd < 0 && (errno == EPERM || errno == ENOSYS || errno == EINVAL))
		tc_skip("no fanotify for this process: %s", strerror(errno));
	ok(fd);
	ok(mkdir("d", 0755));
	ok(fanotify_mark(fd, FAN_MARK_ADD,
			 FAN_CREATE | FAN_MODIFY | FAN_DELETE | FAN_EVENT_ON_CHILD, AT_FDCWD, "d"));
	file = (int)ok(open("d/some-name", O_WRONLY | O_CREAT, 0644));
	expect_named(fd, FAN_CREATE, "some-name");
	ok(write(file, "x", 1));
	expect_named(fd, FAN_MODIFY, "some-name");
	ok(unlink("d/some-name"));
	expect_named(fd, FAN_DELETE, "some-name");
}

static void tail(void)
{
	int ends[2], log = tc_make("log", 0644);
	char text[64] = "";
	size_t n = 0;
	pid_t child;

	ok(pipe(ends));
	ok(write(log, "first\n", 6));
	child = fork();
	if (child == 0) {
		dup2(ends[1], 1);
		close(ends[0]);
		execlp("tail", "tail", "-n", "+1", "-F", "log", NULL);
		_exit(127);
	}
	close(ends[1]);
	while (n < 6)
		n += (size_t)ok(read(ends[0], text + n, sizeof(text) - n));
	ok(write(log, "second\n", 7));
	while (n < 13)
		n += (size_t)ok(read(ends[0], text + n, sizeof(text) - n));
	check(memcmp(text, "first\nsecond\n", 13) == 0);
	tc_put("new", "third\n");
	ok(rename("new", "log")); /* followed by name */
	while (n < 19)
		n += (size_t)ok(read(ends[0], text + n, sizeof(text) - n));
	check(memcmp(text + 13, "third\n", 6) == 0);
	kill(child, SIGKILL);
	ok(waitpid(child, NULL, 0));
}

const TcCase tc_watch[] = {
	{"inotify on a directory", inotify},
	{"inotify on the file itself", self_events},
	{"inotify of another process's writes", from_another_process},
	{"leases", leases},
	{"F_NOTIFY", directory_notify},
	{"fanotify", fanotify},
	{"fanotify that reports names", fanotify_by_name},
	{"tail -F", tail},
	{0},
};
