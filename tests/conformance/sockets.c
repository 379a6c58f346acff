/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Unix sockets, fifos, devices. */
#include "conformance.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

static int call(int (*which)(int, const struct sockaddr *, socklen_t), int fd, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, path, strlen(path));
	return which(fd, (struct sockaddr *)&address,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1));
}

static int unix_socket(int type)
{
	return (int)ok(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
}

static int server_at(const char *path)
{
	int fd = unix_socket(SOCK_STREAM);

	ok(call(bind, fd, path));
	ok(listen(fd, 5));
	return fd;
}

static void talk(int client, int server)
{
	int peer = (int)ok(accept(server, NULL, NULL));
	char buffer[8];

	ok(write(client, "ping", 4));
	equal(read(peer, buffer, 8), 4);
	ok(write(peer, "pong", 4));
	equal(read(client, buffer, 8), 4);
	check(memcmp(buffer, "pong", 4) == 0);
	close(peer);
}

static void bind_connect(void)
{
	int server = server_at("s"), client = unix_socket(SOCK_STREAM);
	struct stat st = tc_stat("s");

	equal(st.st_mode, S_IFSOCK | 0755);
	equal(st.st_size, 0);
	ok(call(connect, client, "s"));
	talk(client, server);
	error(call(bind, unix_socket(SOCK_STREAM), "s"), EADDRINUSE);
	error(call(bind, unix_socket(SOCK_STREAM), "missing/s"), ENOENT);
	close(tc_make("f", 0644));
	error(call(bind, unix_socket(SOCK_STREAM), "f"), EADDRINUSE);
	error(call(connect, unix_socket(SOCK_STREAM), "f"), ECONNREFUSED);
	error(call(connect, unix_socket(SOCK_STREAM), "missing"), ENOENT);
	error(call(connect, unix_socket(SOCK_DGRAM), "s"), EPROTOTYPE);
	error(open("s", O_RDWR), ENXIO);
	ok(chmod("s", 0600));
	equal(tc_stat("s").st_mode, S_IFSOCK | 0600);
}

static void dead_and_gone(void)
{
	int server = server_at("s"), client = unix_socket(SOCK_STREAM), rest;

	ok(call(connect, client, "s"));
	rest = (int)ok(accept(server, NULL, NULL));
	close(server);
	error(call(connect, unix_socket(SOCK_STREAM), "s"), ECONNREFUSED);
	error(call(bind, unix_socket(SOCK_STREAM), "s"), EADDRINUSE);
	ok(unlink("s"));
	error(unlink("s"), ENOENT);
	error(call(connect, unix_socket(SOCK_STREAM), "s"), ENOENT);
	ok(write(client, "x", 1)); /* the connection lives on */
	char byte;

	equal(read(rest, &byte, 1), 1);
	server = server_at("s"); /* and the name can be used again */
	client = unix_socket(SOCK_STREAM);
	ok(call(connect, client, "s"));
	talk(client, server);
}

static void by_other_names(void)
{
	int server = server_at("s"), client = unix_socket(SOCK_STREAM);

	ok(link("s", "t"));
	equal(tc_stat("s").st_nlink, 2);
	ok(call(connect, client, "t"));
	talk(client, server);
	ok(unlink("s"));
	client = unix_socket(SOCK_STREAM);
	ok(call(connect, client, "t"));
	talk(client, server);
	ok(mkdir("d", 0755));
	ok(rename("t", "d/u"));
	client = unix_socket(SOCK_STREAM);
	ok(call(connect, client, "d/u"));
	talk(client, server);
	ok(symlink("d/u", "l"));
	client = unix_socket(SOCK_STREAM);
	ok(call(connect, client, "l"));
	talk(client, server);
	error(call(bind, unix_socket(SOCK_STREAM), "l"), EADDRINUSE);
}

static void longest_path(void)
{
	char path[108];
	int server, client = unix_socket(SOCK_STREAM);

	memset(path, 's', sizeof(path));
	path[107] = '\0';
	server = server_at(path);
	equal(strlen(path), 107);
	ok(call(connect, client, path));
	talk(client, server);
}

static void kinds(void)
{
	int server = unix_socket(SOCK_DGRAM), client = unix_socket(SOCK_DGRAM);
	char buffer[8];

	ok(call(bind, server, "dgram"));
	ok(call(bind, client, "dgram2"));
	ok(call(connect, client, "dgram"));
	ok(send(client, "hi", 2, 0));
	struct sockaddr_un from;
	socklen_t size = sizeof(from);

	equal(recvfrom(server, buffer, 8, 0, (struct sockaddr *)&from, &size), 2);
	equal(strcmp(from.sun_path, "dgram2"), 0);
	server = unix_socket(SOCK_SEQPACKET);
	client = unix_socket(SOCK_SEQPACKET);
	ok(call(bind, server, "seq"));
	ok(listen(server, 1));
	ok(call(connect, client, "seq"));
	talk(client, server);
}

static void permissions(void)
{
	int server = server_at("s");

	(void)server;
	ok(chmod("s", 0));
	error(call(connect, unix_socket(SOCK_STREAM), "s"), EACCES);
	ok(chmod("s", 0200)); /* writing is what counts */
	ok(call(connect, unix_socket(SOCK_STREAM), "s"));
	umask(0177);
	server_at("t");
	equal(tc_stat("t").st_mode, S_IFSOCK | 0600);
	ok(mkdir("d", 0500));
	error(call(bind, unix_socket(SOCK_STREAM), "d/s"), EACCES);
}

static void credentials(void)
{
	int server = server_at("s"), client = unix_socket(SOCK_STREAM), peer;
	struct ucred who;
	socklen_t size = sizeof(who);

	ok(call(connect, client, "s"));
	peer = (int)ok(accept(server, NULL, NULL));
	ok(getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &size));
	equal(who.pid, getpid());
	equal(who.uid, geteuid());
	struct sockaddr_un name;

	size = sizeof(name);
	ok(getsockname(peer, (struct sockaddr *)&name, &size));
	equal(strcmp(name.sun_path, "s"), 0);
}

static void write_to_fifo(void *data)
{
	int fd = (int)ok(open("p", O_WRONLY));

	for (int i = 0; i < 1000; i++)
		equal(write(fd, data, 100), 100);
}

static void fifos(void)
{
	static char line[100];
	size_t total = 0;
	pid_t child;
	ssize_t n;
	int fd;

	ok(mkfifo("p", 0600));
	equal(tc_stat("p").st_mode, S_IFIFO | 0600);
	error(mkfifo("p", 0600), EEXIST);
	error(open("p", O_WRONLY | O_NONBLOCK), ENXIO);
	memset(line, 'l', sizeof(line));
	child = tc_fork(write_to_fifo, line);
	fd = (int)ok(open("p", O_RDONLY));
	ok(unlink("p")); /* both ends are open: the name may go */
	char buffer[5000];

	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		total += (size_t)n;
	equal(n, 0);
	equal(total, 100000);
	tc_wait(child);
	ok(mkfifo("q", 0600));
	fd = (int)ok(open("q", O_RDONLY | O_NONBLOCK));
	int writer = (int)ok(open("q", O_WRONLY));
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	equal(poll(&poll_fd, 1, 0), 0);
	ok(write(writer, "x", 1));
	equal(poll(&poll_fd, 1, 0), 1);
	close(fd);
	signal(SIGPIPE, SIG_IGN);
	error(write(writer, "x", 1), EPIPE);
	error(lseek(writer, 0, SEEK_SET), ESPIPE);
}

static void fifo_between_names(void)
{
	int a, b;
	char byte;

	ok(mkfifo("p", 0600));
	ok(link("p", "q"));
	a = (int)ok(open("p", O_RDWR | O_NONBLOCK));
	b = (int)ok(open("q", O_RDWR | O_NONBLOCK)); /* one inode, one pipe */
	ok(write(a, "x", 1));
	equal(read(b, &byte, 1), 1);
}

static void make_nodes(void)
{
	ok(mknod("file", S_IFREG | 0640, 0));
	equal(tc_stat("file").st_mode, S_IFREG | 0640);
	ok(mknod("file2", 0640, 0));
	check(S_ISREG(tc_stat("file2").st_mode));
	ok(mknod("fifo", S_IFIFO | 0600, 0));
	ok(mknod("socket", S_IFSOCK | 0600, 0));
	error(call(connect, unix_socket(SOCK_STREAM), "socket"), ECONNREFUSED);
	error(mknod("fifo", S_IFREG | 0600, 0), EEXIST);
	error(mknod("dir", S_IFDIR | 0700, 0), EPERM);
}

static void devices(void)
{
	if (!tc->view && geteuid() == 0)
		tc_skip("root may make devices on a tmpfs of its own");
	error(mknod("c", S_IFCHR | 0666, makedev(1, 3)), EPERM);
	error(mknod("b", S_IFBLK | 0666, makedev(7, 0)), EPERM);
	equal(tc_count("."), 0);
}

const TcCase tc_sockets[] = {
	{"bind and connect, and their errors", bind_connect},
	{"dead names, rebinding, connections that outlive their name", dead_and_gone},
	{"by links, renames and symlinks", by_other_names},
	{"a path of 107 bytes", longest_path},
	{"datagrams and packets", kinds},
	{"permissions", permissions, TC_PLAIN},
	{"credentials and names", credentials},
	{"fifos", fifos},
	{"two names of a fifo are one pipe", fifo_between_names},
	{"mknod", make_nodes},
	{"devices are refused", devices},
	{0},
};
