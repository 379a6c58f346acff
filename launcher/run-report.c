/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "run-report.h"
#include "locate.h"
#include "macros.h"
#include "message.h"
#include "words.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define CTL "tmpnest-ctl"
#define STATUS_MAX 4096

/* What a caller may send us and means for the command. */
static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

int tn_report_locate(void)
{
	char program[PATH_MAX];

	return tn_locate(CTL, program);
}

/* Starts `tmpnest-ctl report` on the nest. Its pid, or -errno, said. */
static pid_t start_ctl(const TnReport *report, const char *option, const char *value, int output)
{
	char program[PATH_MAX];
	TnWords words = {0};
	pid_t pid;
	int r = tn_locate(CTL, program);

	if (r < 0)
		return r;
	tn_words_add_all(&words, program, "report", "--id", NULL);
	tn_words_addf(&words, "%016llx", (unsigned long long)report->nest_id);
	tn_words_add_all(&words, "--runtime-dir", report->paths.runtime_dir, "--store-dir",
			 report->paths.store_dir,
			 report->paths.scope == TN_SCOPE_SYSTEM ? "--system" : "--user", option,
			 value, NULL);
	pid = fork();
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &report->mask, NULL);
		if (output < 0 || dup2(output, STDOUT_FILENO) == STDOUT_FILENO)
			execv(program, words.items);
		_exit(TN_EXIT_FAILED);
	}
	r = -errno;
	tn_words_clear(&words);
	return pid < 0 ? tn_fail(r, "report: cannot fork: %s", strerror(-r)) : pid;
}

/* Waits for pid; its wait status. */
static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* What the nest had counted before this command. */
static int read_counts(TnReport *report)
{
	int ends[2];
	size_t used = 0;
	ssize_t n;
	pid_t pid;
	int status;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return tn_fail(-errno, "report: cannot make a pipe: %s", strerror(errno));
	pid = start_ctl(report, "--counts", NULL, ends[1]);
	close(ends[1]);
	while (pid > 0 && used < sizeof(report->before) - 1 &&
	       (n = read(ends[0], report->before + used, sizeof(report->before) - 1 - used)) > 0)
		used += (size_t)n;
	close(ends[0]);
	if (pid < 0)
		return pid;
	status = wait_for(pid);
	report->before[used] = '\0';
	report->before[strcspn(report->before, "\n")] = '\0';
	/* a failure has been said by the program itself */
	return status == 0 ? 0 : -EIO;
}

int tn_report_begin(TnReport *ret, const TnAttached *attached)
{
	TnReport report = TN_REPORT_NONE;
	int ends[2];
	int r = 0;

	sigprocmask(SIG_SETMASK, NULL, &report.mask);
	report.paths = attached->paths;
	report.nest_id = attached->head.nest_id;
	report.view = fcntl(attached->mount, F_DUPFD_CLOEXEC, 3);
	if (report.view < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
		r = tn_fail(-errno, "report: no descriptors: %s", strerror(errno));
	} else {
		report.status_read = ends[0];
		report.status_write = ends[1];
		report.started_write = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
		strcpy(report.before, "0,0");
		if (!(attached->head.flags & TN_ATTACHED_CREATED))
			r = read_counts(&report);
	}
	*ret = report;
	return r;
}

static void make_set(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGCHLD);
	for (size_t i = 0; i < TN_ARRAY_LEN(passed_on); i++)
		sigaddset(ret, passed_on[i]);
}

pid_t tn_report_fork(TnReport *report, TnAttached *attached)
{
	sigset_t set;
	pid_t pid;

	/* from here on no signal may end us without reaching the command */
	make_set(&set);
	sigprocmask(SIG_BLOCK, &set, &report->mask);
	pid = fork();
	if (pid < 0)
		return tn_fail(-errno, "report: cannot fork: %s", strerror(errno));
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &report->mask, NULL);
		return 0;
	}
	signal(SIGCHLD, SIG_DFL);
	tn_close(&report->status_write);
	tn_close(&report->started_write);
	tn_close(&attached->mount);
	/* only closed: the name is the sandbox's now */
	tn_close(&attached->lease.write_end);
	attached->lease.path[0] = '\0';
	return pid;
}

/*
 * The command's pid as we see it: bwrap says the pid of the sandbox's first process, whose
 * only child is the command. 0 when it cannot be told.
 */
static pid_t find_command(const char *status)
{
	const char *found = strstr(status, "\"child-pid\":");
	char path[64];
	char text[32] = "";
	long first;
	ssize_t n;
	TN_AUTOFD fd = -1;

	if (!found)
		return 0;
	first = strtol(found + strlen("\"child-pid\":"), NULL, 10);
	snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", first, first);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	return n > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

/* Adds what bwrap has said meanwhile. */
static void read_status(const TnReport *report, char status[STATUS_MAX])
{
	size_t used = strlen(status);
	ssize_t n = read(report->status_read, status + used, STATUS_MAX - 1 - used);

	if (n > 0)
		status[used + (size_t)n] = '\0';
}

static void pass_on(const TnReport *report, const struct signalfd_siginfo *info, pid_t child,
		    char status[STATUS_MAX])
{
	pid_t command;

	/* what the terminal sends has reached the whole process group already */
	if (info->ssi_code == SI_KERNEL)
		return;
	read_status(report, status);
	command = find_command(status);
	kill(command > 0 ? command : child, (int)info->ssi_signo);
}

/* Waits for child while passing on signals. Its wait status. */
static int wait_passing_on(const TnReport *report, pid_t child, char status[STATUS_MAX])
{
	TN_AUTOFD signals = -1;
	sigset_t set;
	int result = 0;

	make_set(&set);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	while (waitpid(child, &result, signals < 0 ? 0 : WNOHANG) == 0) {
		struct signalfd_siginfo info;

		if (read(signals, &info, sizeof(info)) == sizeof(info) && info.ssi_signo != SIGCHLD)
			pass_on(report, &info, child, status);
	}
	return result;
}

int tn_report_end(TnReport *report, pid_t child)
{
	char status[STATUS_MAX] = "";
	int result;
	pid_t ctl;

	result = wait_passing_on(report, child, status);
	read_status(report, status);
	if (!strstr(status, "started\n"))
		return TN_EXIT_FAILED; /* said by bwrap, or by us */
	ctl = start_ctl(report, "--since", report->before, STDERR_FILENO);
	if (ctl > 0)
		wait_for(ctl);
	if (WIFSIGNALED(result))
		return 128 + WTERMSIG(result);
	return WEXITSTATUS(result);
}

void tn_report_clear(TnReport *report)
{
	tn_close(&report->view);
	tn_close(&report->status_read);
	tn_close(&report->status_write);
	tn_close(&report->started_write);
}
