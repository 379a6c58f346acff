/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The conformance cases: what the system calls on a /tmp do, and with which errors. They
 * run on a nest's view and, so that the cases themselves are proven, on a native tmpfs.
 *
 * A case is a function in a process of its own, whose cwd is a new empty directory (mode
 * 0777, umask 022). It returns when all is well; the checks below end it otherwise.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum {                     /* what a case needs */
       TC_IDS = 1 << 0,    /* root that can change to any uid and gid */
       TC_PLAIN = 1 << 1,  /* permissions hold: capabilities are dropped before it starts */
       TC_LIMITS = 1 << 2, /* small limits, which the command line tells */
       TC_SLOW = 1 << 3,   /* several seconds; only with --slow */
};

typedef struct TcCase {
	const char *name;
	void (*run)(void);
	unsigned needs;
} TcCase;

/* One subject: its cases, ended by a NULL name. */
typedef struct TcSubject {
	const char *name;
	const TcCase *cases;
} TcSubject;

/* What the command line says of the file system under test. */
typedef struct TcOptions {
	bool view;              /* a nest's view; else a native tmpfs */
	uint64_t bytes, inodes; /* its limits, 0: not known */
	bool slow;
	const char *directory;
} TcOptions;

extern const TcOptions *const tc; /* set by main before the first case */

#define TC_UID 1234
#define TC_GID 2345
#define TC_UID2 1235
#define TC_GID2 2346

__attribute__((noreturn, format(printf, 3, 4))) void tc_fail(const char *file, int line,
							     const char *format, ...);
__attribute__((noreturn, format(printf, 1, 2))) void tc_skip(const char *format, ...);
void tc_check_value(const char *file, int line, const char *text, long long got, long long wanted);
void tc_check_error(const char *file, int line, const char *text, long long got, int wanted);
long long tc_check_ok(const char *file, int line, const char *text, long long got);

#define check(condition) \
	((condition) ? (void)0 : tc_fail(__FILE__, __LINE__, "not so: %s", #condition))
#define equal(got, wanted) \
	tc_check_value(__FILE__, __LINE__, #got, (long long)(got), (long long)(wanted))
/* The call succeeds; its value. */
#define ok(call) tc_check_ok(__FILE__, __LINE__, #call, (long long)(call))
/* The call returns -1 with this errno. */
#define error(call, number) \
	(errno = 0, tc_check_error(__FILE__, __LINE__, #call, (long long)(call), (number)))

/* Short ways to do the usual; they fail the case when they cannot. */
int tc_make(const char *name, mode_t mode);      /* a new file, open for both */
void tc_put(const char *name, const char *text); /* a file with this content */
void tc_has(const char *name, const char *text); /* the file's content is this */
struct stat tc_stat(const char *name);           /* of the name itself */
struct stat tc_fstat(int fd);
bool tc_exists(const char *name);
int tc_count(const char *directory);                        /* entries, without . and .. */
void tc_fill(int fd, off_t offset, size_t size, char byte); /* writes all of it */
bool tc_is_filled(int fd, off_t offset, size_t size, char byte);

/* Acts as this user and group, without other groups; tc_back() ends it. TC_IDS only. */
void tc_become(uid_t uid, gid_t gid);
void tc_back(void);

/* A child that runs the function and must end well; tc_wait() fails the case otherwise. */
pid_t tc_fork(void (*function)(void *), void *data);
void tc_wait(pid_t child);

/* Waits up to five seconds for the condition to hold: for what the kernel does later. */
#define eventually(condition) \
	do { \
		int tries = 500; \
		while (!(condition) && --tries > 0) \
			usleep(10000); \
		check(condition); \
	} while (0)

/* a < b? */
bool tc_before(struct timespec a, struct timespec b);
bool tc_same_time(struct timespec a, struct timespec b);
/* Lets the clock that stamps files move on. */
void tc_tick(void);
