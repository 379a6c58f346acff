/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "image.h"

#include "macros.h"
#include "mount.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FORMAT_MS 20000
#define BLOCK_SIZE 4096U
#define TRIES 16 /* others may take the device that was free a moment ago */

/* fs/ext4/ext4.h, EXT4_IOC_RESIZE_FS: the new number of blocks, while mounted. */
#define RESIZE_FS _IOW('f', 16, uint64_t)

/* Ends with the program, or ends it. */
static int wait_for(pid_t pid)
{
	const struct timespec step = {.tv_nsec = 1000000};
	int status = 0;
	pid_t done;

	for (int i = 0; (done = waitpid(pid, &status, WNOHANG)) == 0 && i < FORMAT_MS; i++)
		nanosleep(&step, NULL);
	if (done == 0) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return -ETIMEDOUT;
	}
	if (done < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

int tn_image_format(int image, uint64_t inodes)
{
	static const char *const places[] = {"/usr/sbin/mke2fs", "/sbin/mke2fs"};
	static const char *const environment[] = {"LC_ALL=C", NULL};
	char count[24];
	const char *const arguments[] = {
		"mke2fs",
		"-q",
		"-F",
		"-t",
		"ext4",
		"-b",
		"4096",
		"-I",
		"256",
		"-m",
		"0",
		"-N",
		count,
		"-O",
		"^has_journal",
		"-E",
		"lazy_itable_init=1,nodiscard,assume_storage_prezeroed=1",
		"/proc/self/fd/3",
		NULL,
	};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t pid = 0;
	int r = ENOENT;

	snprintf(count, sizeof(count), "%" PRIu64, inodes);
	sigemptyset(&none);
	if (posix_spawn_file_actions_init(&actions) != 0 || posix_spawnattr_init(&attributes) != 0)
		return -ENOMEM;
	if (posix_spawnattr_setsigmask(&attributes, &none) != 0 ||
	    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK) != 0 ||
	    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) != 0 ||
	    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) != 0 ||
	    posix_spawn_file_actions_adddup2(&actions, image, 3) != 0)
		r = ENOMEM;
	for (size_t i = 0; i < TN_ARRAY_LEN(places) && r == ENOENT; i++)
		r = posix_spawn(&pid, places[i], &actions, &attributes,
				(char *const *)(uintptr_t)arguments,
				(char *const *)(uintptr_t)environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	if (r != 0)
		return r == ENOENT ? -ENOPKG : -r;
	return wait_for(pid);
}

static void device_path(char path[32], unsigned number)
{
	snprintf(path, 32, "/dev/loop%u", number);
}

/* Devices that nobody has used yet may lack their node where no udev runs. */
static int open_device(unsigned number)
{
	char path[32];
	int fd;

	device_path(path, number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && mknod(path, S_IFBLK | 0660, makedev(7, number)) == 0)
		fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A loop device on the image; it goes with its last user. Its descriptor or -errno. */
static int attach(int image, unsigned *ret_number)
{
	TN_AUTOFD control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config config = {
		.fd = (uint32_t)image,
		.block_size = BLOCK_SIZE,
		.info = {.lo_flags = LO_FLAGS_AUTOCLEAR},
	};

	if (control < 0)
		return -errno;
	snprintf((char *)config.info.lo_file_name, LO_NAME_SIZE, "tmpnest image");
	for (int i = 0; i < TRIES; i++) {
		TN_AUTOFD device = -1;
		int number = ioctl(control, LOOP_CTL_GET_FREE);

		if (number < 0)
			return -errno;
		device = open_device((unsigned)number);
		if (device < 0)
			return device;
		if (ioctl(device, LOOP_CONFIGURE, &config) == 0) {
			*ret_number = (unsigned)number;
			return tn_steal_fd(&device);
		}
		if (errno != EBUSY)
			return -errno;
	}
	return -EBUSY;
}

int tn_image_mount(int image)
{
	TN_AUTOFD device = -1;
	unsigned number = 0;
	char path[32];

	/* The lock is the open file's, which the loop device holds on to. */
	if (flock(image, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	device = attach(image, &number);
	if (device < 0)
		return device;
	device_path(path, number);
	return tn_mount_disk(path);
}

int tn_image_grown(int mount)
{
	TN_AUTOFD root = openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	TN_AUTOFD device = -1;
	struct stat st, size;
	uint64_t blocks = 0;

	if (root < 0 || fstat(root, &st) < 0)
		return -errno;
	if (major(st.st_dev) != 7)
		return -EINVAL;
	device = open_device(minor(st.st_dev));
	if (device < 0)
		return device;
	if (fstat(device, &size) < 0 || size.st_rdev != st.st_dev)
		return -EINVAL;
	if (ioctl(device, LOOP_SET_CAPACITY) < 0)
		return -errno;
	if (lseek(device, 0, SEEK_END) > 0)
		blocks = (uint64_t)lseek(device, 0, SEEK_END) / BLOCK_SIZE;
	return ioctl(root, RESIZE_FS, &blocks) < 0 ? -errno : 0;
}
