/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * conformance [--view] [--slow] [--bytes N] [--inodes N] DIRECTORY [FILTER...]
 *
 * Runs the cases whose "subject: name" holds one of the filters in DIRECTORY and prints
 * TAP. Afterwards the directory is empty and all of its space free, as before.
 */
#include "conformance.h"

#include "subjects.h"

#include <dirent.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include <sys/capability.h>

#define CASE_SECONDS 60
#define SKIPPED 77

static TcOptions options;
const TcOptions *const tc = &options;

/* --- what this process may do ------------------------------------------------------------ */

static bool can_change_ids(void)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(geteuid() != 0 || setgroups(0, NULL) < 0 ||
		      setresgid(TC_GID, TC_GID, TC_GID) < 0 ||
		      setresuid(TC_UID, TC_UID, TC_UID) < 0);
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* Permissions shall hold: another user where that can be, else no capabilities. */
static void become_plain(bool ids)
{
	cap_t none = cap_init();

	if (ids) {
		ok(setgroups(0, NULL));
		ok(setresgid(TC_GID, TC_GID, TC_GID));
		ok(setresuid(TC_UID, TC_UID, TC_UID));
	}
	ok(cap_set_proc(none));
	cap_free(none);
}

/* --- one case ------------------------------------------------------------------------------ */

/* Removes a directory's entries, whatever their modes. */
static int remove_below(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;
	DIR *stream;
	int r = 0;

	if (fd < 0 || !(stream = fdopendir(fd)))
		return -1;
	while ((entry = readdir(stream))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, entry->d_name, 0) == 0)
			continue;
		if (errno == EISDIR) {
			if (fchmodat(fd, entry->d_name, 0700, 0) < 0 ||
			    remove_below(fd, entry->d_name) < 0)
				r = -1;
		}
		if (unlinkat(fd, entry->d_name, AT_REMOVEDIR) < 0) {
			printf("# cannot remove %s/%s: %s\n", name, entry->d_name, strerror(errno));
			r = -1;
		}
	}
	closedir(stream);
	return r;
}

static void run_child(const TcCase *item, bool ids)
{
	/* Its own group: what it leaves running goes with it. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(CASE_SECONDS);
	umask(022);
	if (item->needs & TC_PLAIN)
		become_plain(ids);
	item->run();
	fflush(stdout);
	_exit(0);
}

static int run_case(const TcCase *item, bool ids)
{
	char name[] = "case-XXXXXX";
	pid_t child;
	int status;

	if (!mkdtemp(name) || chmod(name, 0777) < 0 || chdir(name) < 0) {
		printf("# cannot make the directory of the case: %s\n", strerror(errno));
		return 1;
	}
	fflush(stdout);
	child = fork();
	if (child == 0)
		run_child(item, ids);
	if (child < 0 || waitpid(child, &status, 0) < 0)
		status = 1;
	else
		kill(-child, SIGKILL);
	if (fchdir(open(options.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return 1;
	if (WIFSIGNALED(status))
		printf("# ended by signal %d (%s)\n", WTERMSIG(status),
		       strsignal(WTERMSIG(status)));
	chmod(name, 0700);
	if (remove_below(AT_FDCWD, name) < 0 || rmdir(name) < 0) {
		printf("# %s is not empty\n", name);
		return 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Why this case cannot run here, or NULL. */
static const char *unmet(const TcCase *item, bool ids)
{
	if ((item->needs & TC_IDS) && !ids)
		return "needs root with several uids";
	if ((item->needs & TC_LIMITS) && (!options.bytes || !options.inodes))
		return "needs small limits";
	if ((item->needs & TC_SLOW) && !options.slow)
		return "only with --slow";
	return NULL;
}

/* --- all of them ----------------------------------------------------------------------------- */

static bool chosen(const char *text, char **filters)
{
	if (!*filters)
		return true;
	for (; *filters; filters++) {
		if (strstr(text, *filters))
			return true;
	}
	return false;
}

static int run_all(char **filters)
{
	bool ids = can_change_ids();
	int number = 0, failed = 0;

	for (const TcSubject *subject = tc_subjects; subject->name; subject++) {
		for (const TcCase *item = subject->cases; item->name; item++) {
			char text[200];
			const char *reason;
			int r;

			snprintf(text, sizeof(text), "%s: %s", subject->name, item->name);
			if (!chosen(text, filters))
				continue;
			/* Not a skip: another run of the suite has what this one has not. */
			reason = unmet(item, ids);
			if (reason)
				continue;
			r = run_case(item, ids);
			failed += r != 0 && r != SKIPPED;
			printf("%s %d - %s%s\n", r == 0 || r == SKIPPED ? "ok" : "not ok", ++number,
			       text, r == SKIPPED ? " # SKIP not offered by this file system" : "");
			fflush(stdout);
		}
	}
	printf("1..%d\n", number + 1);
	return failed ? -(number + 1) : number + 1;
}

static bool all_is_free(const struct statvfs *before)
{
	struct statvfs now;

	for (int tries = 0; tries < 500; tries++) {
		if (statvfs(".", &now) == 0 && now.f_ffree >= before->f_ffree &&
		    (options.bytes == 0 || now.f_bfree >= before->f_bfree))
			return true;
		usleep(10000);
	}
	printf("# free before: %lu blocks, %lu inodes; now: %lu, %lu\n",
	       (unsigned long)before->f_bfree, (unsigned long)before->f_ffree,
	       (unsigned long)now.f_bfree, (unsigned long)now.f_ffree);
	return false;
}

static bool take_option(int argc, char **argv, int *at)
{
	const char *word = argv[*at];

	if (strcmp(word, "--view") == 0)
		options.view = true;
	else if (strcmp(word, "--slow") == 0)
		options.slow = true;
	else if (strcmp(word, "--bytes") == 0 && *at + 1 < argc)
		options.bytes = strtoull(argv[++*at], NULL, 10);
	else if (strcmp(word, "--inodes") == 0 && *at + 1 < argc)
		options.inodes = strtoull(argv[++*at], NULL, 10);
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	struct statvfs before;
	bool clean;
	int at = 1, r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (at < argc && take_option(argc, argv, &at))
		at++;
	if (at >= argc || chdir(argv[at]) < 0 || statvfs(".", &before) < 0) {
		fputs("usage: conformance [--view] [--slow] [--bytes N] [--inodes N] DIRECTORY "
		      "[FILTER...]\n",
		      stderr);
		return 2;
	}
	options.directory = argv[at++];
	r = run_all(argv + at);
	clean = all_is_free(&before);
	printf("%s %d - all space is free again\n", clean ? "ok" : "not ok", r < 0 ? -r : r);
	return r < 0 || !clean;
}
