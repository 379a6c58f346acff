/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The two ends of a conversation over a Unix socket.
 *
 *   unix-socket listen PATH         binds PATH as mongod does (unlink, bind, chmod 0700,
 *                                   listen), prints "listening", and answers every
 *                                   line with "got: LINE" until it is killed
 *   unix-socket connect PATH [LINE] sends LINE (default "hello"), prints the answer;
 *                                   exit status 1 and the reason when it cannot
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int complain(const char *what, const char *path)
{
	fprintf(stderr, "%s %s: %s\n", what, path, strerror(errno));
	return 1;
}

static int make_address(struct sockaddr_un *address, const char *path)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address->sun_path)) {
		errno = ENAMETOOLONG;
		return complain("address", path);
	}
	strcpy(address->sun_path, path);
	return 0;
}

static void answer(int peer)
{
	char line[512];
	char reply[sizeof(line) + 8];
	ssize_t n = read(peer, line, sizeof(line) - 1);

	if (n > 0) {
		line[n] = '\0';
		int length = snprintf(reply, sizeof(reply), "got: %s", line);
		if (write(peer, reply, (size_t)length) != length)
			complain("write", "peer");
	}
	close(peer);
}

static int run_listen(const char *path)
{
	struct sockaddr_un address;
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (make_address(&address, path))
		return 1;
	if (unlink(path) < 0 && errno != ENOENT)
		return complain("unlink", path);
	if (bind(sock, (struct sockaddr *)&address, sizeof(address)) < 0)
		return complain("bind", path);
	if (chmod(path, 0700) < 0)
		return complain("chmod", path);
	if (listen(sock, 16) < 0)
		return complain("listen", path);
	puts("listening");
	fflush(stdout);
	for (;;) {
		int peer = accept(sock, NULL, NULL);
		if (peer < 0)
			return complain("accept", path);
		answer(peer);
	}
}

static int run_connect(const char *path, const char *line)
{
	struct sockaddr_un address;
	char reply[512];
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (make_address(&address, path))
		return 1;
	if (connect(sock, (struct sockaddr *)&address, sizeof(address)) < 0)
		return complain("connect", path);
	if (dprintf(sock, "%s\n", line) < 0)
		return complain("write", path);
	ssize_t n = read(sock, reply, sizeof(reply));
	if (n <= 0)
		return complain("read", path);
	return fwrite(reply, 1, (size_t)n, stdout) == (size_t)n ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "listen") == 0)
		return run_listen(argv[2]);
	if (argc >= 3 && argc <= 4 && strcmp(argv[1], "connect") == 0)
		return run_connect(argv[2], argc == 4 ? argv[3] : "hello");
	fputs("usage: unix-socket listen PATH | connect PATH [LINE]\n", stderr);
	return 2;
}
