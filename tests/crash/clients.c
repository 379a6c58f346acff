/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Strict clients that notice whatever goes wrong while workers are killed. clients DIRECTORY
 * N STOP-FILE: N processes run random operations, each in a directory of its own; others
 * talk over a socket, hold a lock, and keep an unlinked file, until STOP-FILE exists. What
 * they have used is free again at the end. Exit status 0: nothing happened.
 */
#include "operations.h"
#include "trouble.h"

#include "macros.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS_MOST 64

static const char *stop_file;

static bool is_over(void)
{
	return access(stop_file, F_OK) == 0;
}

static void nap(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static int failed(const char *who, const char *what)
{
	fprintf(stderr, "clients: %s: %s: %s\n", who, what, errno ? strerror(errno) : "wrong");
	return 1;
}

/* --- who works ------------------------------------------------------------------------------- */

static int work(int number)
{
	unsigned seed = (unsigned)number * 7919 + 1;
	unsigned long done = 0;
	char name[32];

	snprintf(name, sizeof(name), "w%d", number);
	if (mkdir(name, 0700) < 0 || chdir(name) < 0)
		return failed(name, "mkdir");
	while (!is_over()) {
		const Operation *operation = &operations[(size_t)rand_r(&seed) % n_operations];
		const char *error = operation->prepare();

		errno = 0;
		if (!error)
			error = operation->act();
		errno = 0;
		if (!error)
			error = operation->tidy();
		if (error) {
			fprintf(stderr, "clients: %s: %s, after %lu operations: %s\n", name,
				operation->name, done, error);
			return 1;
		}
		done++;
	}
	printf("%lu operations\n", done);
	return chdir("..") < 0 || rmdir(name) < 0 ? failed(name, "rmdir") : 0;
}

/* --- who holds on ---------------------------------------------------------------------------- */

static const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};

static int answer(int listener)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int client = accept(listener, NULL, NULL);
		char byte;

		while (read(client, &byte, 1) == 1)
			if (write(client, &byte, 1) != 1)
				return 1;
		close(client);
	}
}

static bool echoes(int sock)
{
	char byte = 'e';

	return write(sock, "e", 1) == 1 && read(sock, &byte, 1) == 1 && byte == 'e';
}

/* One connection lasts all the time, and new ones are made through the name. */
static int talk(void)
{
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), sock;
	pid_t server[2];

	if (bind(listener, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 8) < 0)
		return failed("socket", "bind");
	for (int i = 0; i < 2; i++)
		if ((server[i] = fork()) == 0)
			_exit(answer(listener));
	sock = socket(AF_UNIX, SOCK_STREAM, 0);
	if (connect(sock, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return failed("socket", "connect");
	while (!is_over()) {
		int other = socket(AF_UNIX, SOCK_STREAM, 0);

		errno = 0;
		if (!echoes(sock))
			return failed("socket", "the lasting connection");
		if (connect(other, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		    !echoes(other))
			return failed("socket", "a new connection");
		close(other);
		nap(5);
	}
	for (int i = 0; i < 2; i++) {
		kill(server[i], SIGKILL);
		waitpid(server[i], NULL, 0);
	}
	close(sock);
	close(listener);
	return unlink("socket") < 0 ? failed("socket", "unlink") : 0;
}

static int lock(void)
{
	struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
	int fd = open("lock", O_RDWR | O_CREAT | O_EXCL, 0600);
	pid_t other;
	int status;

	if (fd < 0 || flock(fd, LOCK_EX) < 0 || fcntl(fd, F_SETLK, &range) < 0)
		return failed("lock", "flock");
	other = fork();
	while (other == 0 && !is_over()) {
		int again = open("lock", O_RDWR);

		if (again < 0 || flock(again, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK ||
		    fcntl(again, F_SETLK, &range) == 0)
			_exit(failed("lock", "it is not held"));
		close(again);
		nap(5);
	}
	if (other == 0)
		_exit(0);
	waitpid(other, &status, 0);
	close(fd);
	return unlink("lock") < 0 ? failed("lock", "unlink") : status != 0;
}

static int keep_unlinked(void)
{
	int fd = open("unlinked", O_RDWR | O_CREAT | O_EXCL, 0600);
	unsigned long n = 0, found;
	struct stat st;

	if (fd < 0 || unlink("unlinked") < 0)
		return failed("unlinked file", "unlink");
	while (!is_over()) {
		n++;
		errno = 0;
		if (pwrite(fd, &n, sizeof(n), (off_t)(n % 100) * 4096) != sizeof(n) ||
		    pread(fd, &found, sizeof(found), (off_t)(n % 100) * 4096) != sizeof(found) ||
		    found != n || fstat(fd, &st) < 0 || st.st_nlink != 0)
			return failed("unlinked file", "its content or link count");
		nap(2);
	}
	close(fd);
	return 0;
}

/* --- all of them ----------------------------------------------------------------------------- */

static pid_t start(int (*role)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		int status = role();

		fflush(stdout);
		_exit(status);
	}
	return pid;
}

static pid_t start_worker(int number)
{
	pid_t pid = fork();

	if (pid == 0) {
		int status = work(number);

		fflush(stdout);
		_exit(status);
	}
	return pid;
}

static int check_free(const struct statvfs *before)
{
	const char *missing = trouble_check_account(before);

	if (missing)
		fprintf(stderr, "clients: at the end %s\n", missing);
	return missing != NULL;
}

int main(int argc, char **argv)
{
	int (*const roles[])(void) = {talk, lock, keep_unlinked};
	int n = argc > 2 ? atoi(argv[2]) : 0, status = 0, one;
	struct statvfs before;

	if (argc != 4 || n < 1 || n > CLIENTS_MOST || chdir(argv[1]) < 0 ||
	    statvfs(".", &before) < 0) {
		fprintf(stderr, "clients: DIRECTORY N STOP-FILE: %s\n", strerror(errno));
		return 2;
	}
	stop_file = argv[3];
	for (int i = 0; i < n; i++)
		start_worker(i);
	for (size_t i = 0; i < TN_ARRAY_LEN(roles); i++)
		start(roles[i]);
	while (wait(&one) > 0)
		status |= one != 0;
	return status || check_free(&before);
}
