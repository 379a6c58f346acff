/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* flock, fcntl locks, and the lock-file idioms. */
#include "conformance.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void flocks(void)
{
	int a = tc_make("f", 0644), b = (int)ok(open("f", O_RDWR)),
	    c = (int)ok(open("f", O_RDONLY));

	ok(flock(a, LOCK_EX));
	error(flock(b, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	error(flock(b, LOCK_SH | LOCK_NB), EWOULDBLOCK);
	ok(flock(a, LOCK_SH)); /* downgrade */
	ok(flock(b, LOCK_SH | LOCK_NB));
	error(flock(c, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	ok(flock(a, LOCK_UN));
	close(b);
	ok(flock(c, LOCK_EX | LOCK_NB)); /* a read-only descriptor may */
	ok(link("f", "g"));
	int d = (int)ok(open("g", O_RDWR)); /* by another name of the file */

	error(flock(d, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	ok(unlink("f"));
	error(flock(d, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	int dir = (int)ok(open(".", O_RDONLY)), dir2 = (int)ok(open(".", O_RDONLY));

	ok(flock(dir, LOCK_EX));
	error(flock(dir2, LOCK_EX | LOCK_NB), EWOULDBLOCK);
}

static struct flock range(short type, off_t start, off_t length)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
}

static void try_ranges(void *data)
{
	int fd = (int)ok(open("f", O_RDWR));
	struct flock lock = range(F_WRLCK, 50, 10);

	error(fcntl(fd, F_SETLK, &lock), EAGAIN);
	lock = range(F_RDLCK, 0, 0);
	error(fcntl(fd, F_SETLK, &lock), EAGAIN);
	lock = range(F_WRLCK, 100, 10);
	ok(fcntl(fd, F_SETLK, &lock));
	lock = range(F_WRLCK, 0, 0);
	ok(fcntl(fd, F_GETLK, &lock));
	equal(lock.l_type, F_WRLCK);
	equal(lock.l_pid, getppid());
	equal(lock.l_start, 0);
	equal(lock.l_len, 60);
}

static void posix_locks(void)
{
	int fd = tc_make("f", 0644);
	struct flock lock = range(F_WRLCK, 0, 60);

	ok(fcntl(fd, F_SETLK, &lock));
	tc_wait(tc_fork(try_ranges, NULL));
	/* closing any descriptor of the file drops the process's locks */
	close((int)ok(open("f", O_RDONLY)));
	pid_t child = fork();

	if (child == 0) {
		fd = (int)ok(open("f", O_RDWR));
		lock = range(F_WRLCK, 0, 0);
		ok(fcntl(fd, F_SETLK, &lock));
		_exit(0);
	}
	tc_wait(child);
	int reader = (int)ok(open("f", O_RDONLY));

	lock = range(F_WRLCK, 0, 1);
	error(fcntl(reader, F_SETLK, &lock), EBADF);
	lock = range(F_RDLCK, 0, 1);
	ok(fcntl(reader, F_SETLK, &lock));
}

static void ofd_locks(void)
{
	int a = tc_make("f", 0644), b = (int)ok(open("f", O_RDWR));
	struct flock lock = range(F_WRLCK, 0, 10);

	ok(fcntl(a, F_OFD_SETLK, &lock));
	lock = range(F_WRLCK, 5, 10);
	error(fcntl(b, F_OFD_SETLK, &lock), EAGAIN);
	lock = range(F_WRLCK, 10, 10);
	ok(fcntl(b, F_OFD_SETLK, &lock));
	lock = range(F_WRLCK, 0, 0);
	ok(fcntl(b, F_OFD_GETLK, &lock));
	equal(lock.l_pid, -1);
	close(a);
	lock = range(F_WRLCK, 0, 0);
	ok(fcntl(b, F_OFD_SETLK, &lock));
}

static void deadlock_child(void *data)
{
	int fd = (int)ok(open("f", O_RDWR));
	struct flock lock = range(F_WRLCK, 10, 1);

	ok(fcntl(fd, F_SETLKW, &lock));
	ok(write(*(int *)data, "x", 1));
	lock = range(F_WRLCK, 0, 1);
	if (fcntl(fd, F_SETLKW, &lock) < 0)
		equal(errno, EDEADLK);
}

static void deadlock(void)
{
	struct flock lock = range(F_WRLCK, 0, 1);
	int fd = tc_make("f", 0644), ends[2];
	pid_t child;
	char byte;

	ok(pipe(ends));
	ok(fcntl(fd, F_SETLK, &lock));
	child = tc_fork(deadlock_child, &ends[1]);
	equal(read(ends[0], &byte, 1), 1);
	usleep(20000);
	lock = range(F_WRLCK, 10, 1);
	if (fcntl(fd, F_SETLKW, &lock) < 0)
		equal(errno, EDEADLK);
	close(fd);
	tc_wait(child);
}

static void on_alarm(int number)
{
	(void)number;
}

static void waits_are_interrupted(void)
{
	struct sigaction action = {.sa_handler = on_alarm};
	int a = tc_make("f", 0644), b = (int)ok(open("f", O_RDWR));
	struct flock lock = range(F_WRLCK, 0, 0);

	ok(sigaction(SIGALRM, &action, NULL));
	ok(flock(a, LOCK_EX));
	ualarm(50000, 0);
	error(flock(b, LOCK_EX), EINTR);
	ok(fcntl(a, F_OFD_SETLK, &lock));
	ualarm(50000, 0);
	error(fcntl(b, F_OFD_SETLKW, &lock), EINTR);
}

/* The holder adds one to a counter in two steps; two holders at a time would lose some. */
enum { ROUNDS = 150, WORKERS = 3 };

static void critical(volatile int *counter)
{
	int value = *counter;

	usleep(50);
	*counter = value + 1;
}

static volatile int *new_counter(void)
{
	void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	check(map != MAP_FAILED);
	return map;
}

static void idiom_link(void *counter)
{
	char own[32];

	snprintf(own, sizeof(own), "own%d", (int)getpid());
	close(tc_make(own, 0644));
	for (int i = 0; i < ROUNDS; i++) {
		while (link(own, "lock") < 0)
			equal(errno, EEXIST);
		equal(tc_stat(own).st_nlink, 2);
		critical(counter);
		ok(unlink("lock"));
	}
	ok(unlink(own));
}

static void idiom_mkdir(void *counter)
{
	for (int i = 0; i < ROUNDS; i++) {
		while (mkdir("lock", 0755) < 0)
			equal(errno, EEXIST);
		critical(counter);
		ok(rmdir("lock"));
	}
}

static void idiom_exclusive(void *counter)
{
	for (int i = 0; i < ROUNDS; i++) {
		int fd;

		while ((fd = open("lock", O_WRONLY | O_CREAT | O_EXCL, 0644)) < 0)
			equal(errno, EEXIST);
		close(fd);
		critical(counter);
		ok(unlink("lock"));
	}
}

static void idiom_symlink(void *counter)
{
	for (int i = 0; i < ROUNDS; i++) {
		while (symlink("holder", "lock") < 0)
			equal(errno, EEXIST);
		critical(counter);
		ok(unlink("lock"));
	}
}

/* flock, then see whether the name still is the file that was locked. */
static void idiom_flock(void *counter)
{
	for (int i = 0; i < ROUNDS; i++) {
		for (;;) {
			int fd = (int)ok(open("lock", O_RDWR | O_CREAT, 0644));
			struct stat st;

			ok(flock(fd, LOCK_EX));
			if (stat("lock", &st) == 0 && st.st_ino == tc_fstat(fd).st_ino) {
				critical(counter);
				ok(unlink("lock"));
				close(fd);
				break;
			}
			close(fd);
		}
	}
}

static void idiom_fcntl(void *counter)
{
	int fd = (int)ok(open("lock", O_RDWR | O_CREAT, 0644));

	for (int i = 0; i < ROUNDS; i++) {
		struct flock lock = range(F_WRLCK, 0, 0);

		ok(fcntl(fd, F_SETLKW, &lock));
		critical(counter);
		lock = range(F_UNLCK, 0, 0);
		ok(fcntl(fd, F_SETLKW, &lock));
	}
}

static void hold_never_twice(void (*idiom)(void *))
{
	volatile int *counter = new_counter();
	pid_t children[WORKERS];

	for (int i = 0; i < WORKERS; i++)
		children[i] = tc_fork(idiom, (void *)counter);
	for (int i = 0; i < WORKERS; i++)
		tc_wait(children[i]);
	equal(*counter, WORKERS * ROUNDS);
}

static void lock_by_link(void)
{
	hold_never_twice(idiom_link);
}
static void lock_by_mkdir(void)
{
	hold_never_twice(idiom_mkdir);
}
static void lock_by_exclusive(void)
{
	hold_never_twice(idiom_exclusive);
}
static void lock_by_symlink(void)
{
	hold_never_twice(idiom_symlink);
}
static void lock_by_flock(void)
{
	hold_never_twice(idiom_flock);
}
static void lock_by_fcntl(void)
{
	hold_never_twice(idiom_fcntl);
}

const TcCase tc_locks[] = {
	{"flock", flocks},
	{"fcntl locks", posix_locks},
	{"locks of open file descriptions", ofd_locks},
	{"EDEADLK", deadlock},
	{"waiting is interrupted by a signal", waits_are_interrupted},
	{"lock file by link", lock_by_link},
	{"lock file by mkdir", lock_by_mkdir},
	{"lock file by O_EXCL", lock_by_exclusive},
	{"lock file by symlink", lock_by_symlink},
	{"flock, then compare inodes", lock_by_flock},
	{"fcntl lock in turns", lock_by_fcntl},
	{0},
};
