/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Starts the command inside the sandbox, so that the exit status tells "not found" (127)
 * from "cannot be executed" (126): bwrap ends with 1 for both.
 *
 * It is executed as `/proc/self/fd/N M CMD [ARG...]`, through a descriptor that must not
 * reach the command; nor must M, through which somebody waits for the word that the
 * sandbox stands ("-": nobody does).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN_NAME "/proc/self/fd/"
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

/* The descriptor that this program was started from, or -1. */
static int own_descriptor(const char *name)
{
	const char *digits = name + sizeof(OWN_NAME) - 1;
	char *end;
	long fd;

	if (strncmp(name, OWN_NAME, sizeof(OWN_NAME) - 1) != 0)
		return -1;
	fd = strtol(digits, &end, 10);
	return end != digits && *end == '\0' && fd >= 0 && fd < 1 << 20 ? (int)fd : -1;
}

static const char *advice(int error, const char *command)
{
	if (error == ENOENT && !strchr(command, '/'))
		return " (not in PATH inside the sandbox)";
	if (error == ENOENT && access(command, F_OK) == 0)
		return " (its interpreter or loader is missing inside the sandbox)";
	if (error == ENOENT)
		return " (the sandbox has its own /tmp and sees the rest of the host)";
	if (error == EACCES)
		return " (is it a file, and executable?)";
	return "";
}

static void say_started(const char *descriptor)
{
	static const char word[] = "started\n";
	int fd = atoi(descriptor);

	if (strcmp(descriptor, "-") == 0)
		return;
	if (write(fd, word, sizeof(word) - 1) < 0)
		perror("tmpnest: run: cannot report the start");
	close(fd);
}

int main(int argc, char **argv)
{
	int own = argc > 0 ? own_descriptor(argv[0]) : -1;
	int error;

	if (own >= 0)
		close(own);
	if (argc < 3)
		return EXIT_NOT_FOUND;
	say_started(argv[1]);
	execvp(argv[2], argv + 2);
	error = errno;
	fprintf(stderr, "tmpnest: run: %s: %s%s\n", argv[2], strerror(error),
		advice(error, argv[2]));
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}
