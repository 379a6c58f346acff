/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper-dirs.h"

#include "macros.h"
#include "sys.h"
#include "why.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#define LOCK_NAME "lock"
#define PID_NAME "pid"
#define LISTEN_BACKLOG 256
#define LOCK_WAIT_MS 6000 /* a daemon that ends needs at most 5 s */
#define LOCK_STEP_MS 20

/* mkdir -p; what exists is left alone. */
static int make_path(const char *path, mode_t parents, mode_t mode)
{
	char part[PATH_MAX];

	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, parents) < 0 && errno != EEXIST && errno != EROFS &&
		    errno != EACCES)
			return -errno;
		*slash = '/';
	}
	return mkdir(part, mode) < 0 && errno != EEXIST ? -errno : 0;
}

#define OVERFLOW_UID 65534 /* /proc/sys/kernel/overflowuid, and nobody changes that */

/* With a user namespace of its own, that maps this uid to nobody. */
static bool is_unmapped(uid_t uid)
{
	FILE *map = fopen("/proc/self/uid_map", "re");
	unsigned inside, outside, length;
	bool mapped = !map;

	while (!mapped && fscanf(map, "%u %u %u", &inside, &outside, &length) == 3)
		mapped = uid >= inside && uid - inside < length;
	if (map)
		fclose(map);
	return !mapped;
}

static bool is_someone_else(uid_t uid)
{
	/* In a user namespace the host's root has no number, and shows as the overflow uid. */
	return uid != 0 && uid != geteuid() && !(uid == OVERFLOW_UID && is_unmapped(uid));
}

/*
 * Whoever may write to a directory on the way, or owns it, can put another one in our place. A
 * group of our own, as each user has on many systems, is no other.
 */
static int check_parent(int fd, const char *path, const char *resolved, char *why, size_t why_size)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return tn_why(why, why_size, -errno, "directory: %s: %s", path, strerror(errno));
	if (is_someone_else(st.st_uid))
		return tn_why(why, why_size, -EPERM,
			      "directory: %s: %s belongs to uid %u (choose another directory)",
			      resolved, path, st.st_uid);
	if (st.st_mode & S_IWOTH)
		return tn_why(why, why_size, -EPERM,
			      "directory: %s: %s is writable for all (choose another directory)",
			      resolved, path);
	if ((st.st_mode & S_IWGRP) && st.st_gid != 0 && st.st_gid != getegid())
		return tn_why(why, why_size, -EPERM,
			      "directory: %s: %s is writable for group %u (chmod g-w it, or choose "
			      "another directory)",
			      resolved, path, st.st_gid);
	return 0;
}

/* All parents from the root down, so that none can be changed behind the look; then dir itself. */
static int check_parents(int dir, const char *resolved, char *why, size_t why_size)
{
	TN_AUTOFD at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char part[PATH_MAX], *name = part + 1, *slash;
	struct stat st, end;
	int r;

	snprintf(part, sizeof(part), "%s", resolved);
	for (r = check_parent(at, "/", resolved, why, why_size); r == 0; name = slash + 1) {
		int next;

		slash = strchr(name, '/');
		if (slash)
			*slash = '\0';
		next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return tn_why(why, why_size, -errno, "directory: %s: %s", part,
				      strerror(errno));
		tn_close(&at);
		at = next;
		if (!slash)
			break;
		r = check_parent(at, part, resolved, why, why_size);
		*slash = '/';
	}
	if (r == 0 && (fstat(at, &st) < 0 || fstat(dir, &end) < 0 || st.st_dev != end.st_dev ||
		       st.st_ino != end.st_ino))
		return tn_why(why, why_size, -EPERM, "directory: %s: it was moved meanwhile",
			      resolved);
	return r;
}

static bool is_empty_or_ours(int dir)
{
	DIR *stream;
	struct dirent *entry;
	bool empty = true;
	int copy;

	if (faccessat(dir, LOCK_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return true;
	copy = tn_open_beneath(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	stream = copy < 0 ? NULL : fdopendir(copy);
	if (!stream) {
		tn_close(&copy);
		return false;
	}
	while (empty && (entry = readdir(stream)))
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	closedir(stream);
	return empty;
}

/* Ours, with this very mode. A directory in other use is never chmod'ed. */
static int claim_dir(int dir, const char *path, mode_t mode, uid_t owner, char *why,
		     size_t why_size)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return tn_why(why, why_size, -errno, "directory: %s: %s", path, strerror(errno));
	if (st.st_uid != geteuid() && st.st_uid != owner)
		return tn_why(why, why_size, -EPERM,
			      "directory: %s: belongs to uid %u, not %u (choose another directory)",
			      path, st.st_uid, geteuid());
	if ((st.st_mode & 07777) == mode && st.st_uid == owner)
		return 0;
	if ((st.st_mode & 07777) != mode && !is_empty_or_ours(dir))
		return tn_why(
			why, why_size, -EPERM,
			"directory: %s: holds other things and has mode %04o, not %04o (choose "
			"an empty directory)",
			path, st.st_mode & 07777, mode);
	if (fchmod(dir, mode) < 0 || fchown(dir, owner, (gid_t)-1) < 0)
		return tn_why(why, why_size, -errno,
			      "directory: %s: cannot set mode %04o, owner %u: %s", path, mode,
			      owner, strerror(errno));
	return 0;
}

/* The real path behind dir; links in the way were followed, so it is looked at again. */
static int check_place(int dir, const char *path, char resolved[PATH_MAX], char *why,
		       size_t why_size)
{
	char link[40];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	n = readlink(link, resolved, PATH_MAX - 1);
	if (n < 0)
		return tn_why(why, why_size, -errno, "directory: %s: %s", path, strerror(errno));
	resolved[n] = '\0';
	if (tn_path_is_below(resolved, "/tmp") || tn_path_is_below(resolved, "/var/tmp"))
		return tn_why(
			why, why_size, -EINVAL,
			"directory: %s: lies below a temporary directory, as %s (choose another)",
			path, resolved);
	return check_parents(dir, resolved, why, why_size);
}

static int open_dir(const char *path, mode_t parents, mode_t mode, uid_t owner,
		    char resolved[PATH_MAX], char *why, size_t why_size)
{
	TN_AUTOFD dir = -1;
	int r = make_path(path, parents, mode);

	if (r < 0)
		return tn_why(why, why_size, r, "directory: %s: cannot make it: %s", path,
			      strerror(-r));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return tn_why(why, why_size, -errno, "directory: %s: %s", path, strerror(errno));
	if ((r = check_place(dir, path, resolved, why, why_size)) < 0 ||
	    (r = claim_dir(dir, path, mode, owner, why, why_size)) < 0)
		return r;
	return tn_steal_fd(&dir);
}

static int open_dirs(TnKeeperDirs *dirs, uid_t store_uid, char *why, size_t why_size)
{
	bool system = dirs->paths->scope == TN_SCOPE_SYSTEM;
	mode_t parents = system ? 0755 : 0700;
	char runtime[PATH_MAX], store[PATH_MAX];
	struct stat st;

	dirs->runtime = open_dir(dirs->paths->runtime_dir, parents, system ? 0755 : 0700, geteuid(),
				 runtime, why, why_size);
	if (dirs->runtime < 0)
		return dirs->runtime;
	dirs->store =
		open_dir(dirs->paths->store_dir, parents, 0700, store_uid, store, why, why_size);
	if (dirs->store < 0)
		return dirs->store;
	if (tn_path_is_below(runtime, store) || tn_path_is_below(store, runtime))
		return tn_why(
			why, why_size, -EINVAL,
			"directories: %s and %s: one lies in the other (choose separate ones)",
			runtime, store);
	if (fstat(dirs->runtime, &st) < 0)
		return tn_why(why, why_size, -errno, "directory: %s: %s", runtime, strerror(errno));
	dirs->runtime_dev = st.st_dev;
	dirs->runtime_ino = st.st_ino;
	if (fstat(dirs->store, &st) < 0)
		return tn_why(why, why_size, -errno, "directory: %s: %s", store, strerror(errno));
	dirs->store_dev = st.st_dev;
	dirs->store_ino = st.st_ino;
	return 0;
}

/* A locked file that says our pid; -EWOULDBLOCK with the holder's pid in *ret_holder. */
static int take_lock(int dir, int *ret_holder)
{
	TN_AUTOFD fd = tn_open_beneath(dir, LOCK_NAME, O_RDWR | O_CREAT, 0600);
	char text[16] = "";
	int n;

	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int error = -errno;

		*ret_holder = pread(fd, text, sizeof(text) - 1, 0) > 0 ? atoi(text) : 0;
		return error;
	}
	n = snprintf(text, sizeof(text), "%d\n", getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
		return -EIO;
	return tn_steal_fd(&fd);
}

static int unix_address(struct sockaddr_un *ret, const char *path)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	strcpy(ret->sun_path, path);
	return 0;
}

static bool answers(const char *path)
{
	TN_AUTOFD sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;

	if (sock < 0 || unix_address(&address, path) < 0)
		return false;
	/* EAGAIN: it listens, and its queue is full. */
	return connect(sock, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN;
}

/* One that was killed has locks and sockets until all processes with its descriptors have gone. */
static bool is_alive(int holder)
{
	return holder <= 0 || kill(holder, 0) == 0 || errno == EPERM;
}

/*
 * The lock of one directory. A holder that listens at our sockets serves already; one that
 * does not is starting or ending (or serves another runtime directory), and gets a while.
 */
static int lock_dir(TnKeeperDirs *dirs, int dir, const char *path, char *why, size_t why_size)
{
	const struct timespec step = {.tv_nsec = LOCK_STEP_MS * 1000000L};
	int holder = 0, r = 0;

	for (int waited = 0; waited <= LOCK_WAIT_MS; waited += LOCK_STEP_MS) {
		r = take_lock(dir, &holder);
		if (r != -EWOULDBLOCK)
			break;
		if (is_alive(holder) && answers(dirs->paths->attach_socket))
			return tn_why(why, why_size, -EALREADY,
				      "start: %s: a daemon serves it already (pid %d)",
				      dirs->paths->runtime_dir, holder);
		nanosleep(&step, NULL);
	}
	if (r == -EWOULDBLOCK)
		return tn_why(why, why_size, -EBUSY,
			      "start: %s: the daemon with pid %d uses it (stop that one, or choose "
			      "another directory)",
			      path, holder);
	if (r < 0)
		return tn_why(why, why_size, r, "lock: %s/" LOCK_NAME ": %s", path, strerror(-r));
	return r;
}

static int take_locks(TnKeeperDirs *dirs, char *why, size_t why_size)
{
	dirs->runtime_lock = lock_dir(dirs, dirs->runtime, dirs->paths->runtime_dir, why, why_size);
	if (dirs->runtime_lock < 0)
		return dirs->runtime_lock;
	dirs->store_lock = lock_dir(dirs, dirs->store, dirs->paths->store_dir, why, why_size);
	return dirs->store_lock < 0 ? dirs->store_lock : 0;
}

/* The lock is ours, so a socket that is there belongs to a dead daemon. */
static int listen_at(const char *path, int type, mode_t mode, char *why, size_t why_size)
{
	TN_AUTOFD sock = -1;
	struct sockaddr_un address;
	struct stat st;
	mode_t mask;
	int r;

	if (lstat(path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode))
			return tn_why(why, why_size, -EEXIST,
				      "socket: %s: something else has this name (remove it)", path);
		if (unlink(path) < 0)
			return tn_why(why, why_size, -errno, "socket: %s: cannot replace: %s", path,
				      strerror(errno));
	}
	if (unix_address(&address, path) < 0)
		return tn_why(why, why_size, -ENAMETOOLONG, "socket: %s: path too long", path);
	sock = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return tn_why(why, why_size, -errno, "socket: %s: %s", path, strerror(errno));
	mask = umask(0777 & ~mode);
	r = bind(sock, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	umask(mask);
	if (r == 0 && listen(sock, LISTEN_BACKLOG) < 0)
		r = -errno;
	if (r < 0)
		return tn_why(why, why_size, r, "socket: %s: cannot listen: %s", path,
			      strerror(-r));
	return tn_steal_fd(&sock);
}

static int make_leases(TnKeeperDirs *dirs, char *why, size_t why_size)
{
	/* Each launcher makes its own FIFO there; nobody can list or remove another's. */
	mode_t mode = dirs->paths->scope == TN_SCOPE_SYSTEM ? 01733 : 0700;
	TN_AUTOFD leases = -1;
	int r;

	if (mkdirat(dirs->runtime, "leases", 0700) < 0 && errno != EEXIST)
		return tn_why(why, why_size, -errno, "directory: %s: %s", dirs->paths->leases_dir,
			      strerror(errno));
	leases = tn_open_beneath(dirs->runtime, "leases", O_RDONLY | O_DIRECTORY, 0);
	r = leases < 0 ? leases : fchmod(leases, mode) < 0 ? -errno : 0;
	if (r < 0)
		return tn_why(why, why_size, r, "directory: %s: %s", dirs->paths->leases_dir,
			      strerror(-r));
	return 0;
}

static int write_pid(TnKeeperDirs *dirs, char *why, size_t why_size)
{
	TN_AUTOFD fd = tn_open_beneath(dirs->runtime, PID_NAME, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	char text[16];
	int n = snprintf(text, sizeof(text), "%d\n", getpid());

	if (fd < 0)
		errno = -fd;
	if (fd < 0 || write(fd, text, (size_t)n) != n)
		return tn_why(why, why_size, -errno, "pid file: %s/" PID_NAME ": %s",
			      dirs->paths->runtime_dir, strerror(errno));
	return 0;
}

static int listen_all(TnKeeperDirs *dirs, char *why, size_t why_size)
{
	mode_t mode = dirs->paths->scope == TN_SCOPE_SYSTEM ? 0666 : 0600;

	dirs->attach = listen_at(dirs->paths->attach_socket, SOCK_SEQPACKET, mode, why, why_size);
	if (dirs->attach < 0)
		return dirs->attach;
	dirs->control = listen_at(dirs->paths->control_socket, SOCK_STREAM, mode, why, why_size);
	return dirs->control < 0 ? dirs->control : 0;
}

int tn_keeper_dirs_open(TnKeeperDirs *ret, const TnPaths *paths, uid_t store_uid, char *why,
			size_t why_size)
{
	TnKeeperDirs dirs = {
		.paths = paths,
		.runtime = -1,
		.store = -1,
		.runtime_lock = -1,
		.store_lock = -1,
		.attach = -1,
		.control = -1,
	};
	int r;

	if ((r = open_dirs(&dirs, store_uid, why, why_size)) < 0 ||
	    (r = take_locks(&dirs, why, why_size)) < 0 ||
	    (r = make_leases(&dirs, why, why_size)) < 0 ||
	    (r = write_pid(&dirs, why, why_size)) < 0 ||
	    (r = listen_all(&dirs, why, why_size)) < 0) {
		if (dirs.store_lock >= 0)
			tn_keeper_dirs_retire(&dirs);
		tn_keeper_dirs_close(&dirs);
		return r;
	}
	*ret = dirs;
	return 0;
}

int tn_keeper_dirs_adopt(TnKeeperDirs *ret, const TnPaths *paths, const TnResume *resume, char *why,
			 size_t why_size)
{
	struct stat runtime, store, named;
	TnKeeperDirs dirs = {
		.paths = paths,
		.runtime = resume->runtime,
		.store = resume->store,
		.runtime_lock = resume->runtime_lock,
		.store_lock = resume->store_lock,
		.attach = resume->attach,
		.control = resume->control,
	};
	int r;

	if (fstat(dirs.runtime, &runtime) < 0 || fstat(dirs.store, &store) < 0 ||
	    fcntl(dirs.attach, F_GETFD) < 0 || fcntl(dirs.control, F_GETFD) < 0)
		return tn_why(why, why_size, -EPERM,
			      "take over: descriptors of the daemon before are missing");
	if (stat(paths->runtime_dir, &named) < 0 || named.st_dev != runtime.st_dev ||
	    named.st_ino != runtime.st_ino)
		return tn_why(why, why_size, -EPERM,
			      "take over: %s: the daemon before had another runtime directory",
			      paths->runtime_dir);
	dirs.runtime_dev = runtime.st_dev;
	dirs.runtime_ino = runtime.st_ino;
	dirs.store_dev = store.st_dev;
	dirs.store_ino = store.st_ino;
	r = write_pid(&dirs, why, why_size);
	if (r < 0)
		return r;
	*ret = dirs;
	return 0;
}

void tn_keeper_dirs_retire(TnKeeperDirs *dirs)
{
	/* After a failed start the names may be somebody else's. */
	if (dirs->attach >= 0)
		unlink(dirs->paths->attach_socket);
	if (dirs->control >= 0)
		unlink(dirs->paths->control_socket);
	unlinkat(dirs->runtime, PID_NAME, 0);
}

void tn_keeper_dirs_close(TnKeeperDirs *dirs)
{
	tn_close(&dirs->attach);
	tn_close(&dirs->control);
	/* The locks last: who gets them finds the rest gone. */
	tn_close(&dirs->store_lock);
	tn_close(&dirs->runtime_lock);
	tn_close(&dirs->store);
	tn_close(&dirs->runtime);
}
