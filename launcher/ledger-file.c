/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ledger-file.h"

#include "macros.h"
#include "stub-holder.h"
#include "stub-index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define LOCK_PATIENCE_MS 20000

static int make_parents(const char *path)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s", path);
	for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(dir, 0700) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

static const char *base_name(const TnLedgerFile *file)
{
	return strrchr(file->path, '/') + 1;
}

static int side_name(const TnLedgerFile *file, const char *suffix, char ret[NAME_MAX + 1])
{
	int length = snprintf(ret, NAME_MAX + 1, "%s%s", base_name(file), suffix);

	return length <= NAME_MAX ? 0 : -ENAMETOOLONG;
}

static int open_side(const TnLedgerFile *file, const char *suffix, int flags)
{
	char name[NAME_MAX + 1];
	int fd, result = side_name(file, suffix, name);

	if (result < 0)
		return result;
	fd = openat(file->dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/*
 * Not a blocking flock(): a holder that was stopped, or that is not one of us, must not hang a
 * launcher for good.
 */
static int lock(TnLedgerFile *file)
{
	struct timespec pause = {.tv_nsec = 100 * 1000};
	long waited_us = 0;

	file->lock_fd = open_side(file, ".lock", O_RDWR | O_CREAT);
	if (file->lock_fd < 0)
		return file->lock_fd;
	while (flock(file->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (waited_us > LOCK_PATIENCE_MS * 1000L)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
		waited_us += pause.tv_nsec / 1000;
		if (pause.tv_nsec < 4000 * 1000)
			pause.tv_nsec *= 2;
	}
	return 0;
}

static int read_fully(int fd, char *room, size_t size, size_t *ret)
{
	size_t used = 0;

	while (used < size) {
		ssize_t got = pread(fd, room + used, size - used, (off_t)used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		used += (size_t)got;
	}
	*ret = used;
	room[used] = '\0';
	return 0;
}

/* -EBADMSG unless it is a regular file of at most TN_LEDGER_TEXT_MAX bytes with a ledger. */
static int read_one(int fd, TnLedger **ret)
{
	TN_AUTOLEDGER ledger = NULL;
	struct stat status;
	size_t size = 0;
	char *room;
	int result;

	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size > TN_LEDGER_TEXT_MAX)
		return -EBADMSG;
	ledger = tn_ledger_new_with_room((size_t)status.st_size, &room);
	if (!ledger)
		return -ENOMEM;
	result = read_fully(fd, room, (size_t)status.st_size, &size);
	if (result == 0)
		result = tn_ledger_parse_room(ledger, room, size);
	if (result < 0)
		return result == -EFBIG ? -EBADMSG : result;
	*ret = ledger;
	ledger = NULL;
	return 0;
}

static int read_ledger(TnLedgerFile *file)
{
	TN_AUTOFD fd = open_side(file, "", O_RDONLY);

	if (fd == -ENOENT) {
		file->ledger = tn_ledger_new();
		return file->ledger ? 0 : -ENOMEM;
	}
	if (fd == -ELOOP || fd == -ENXIO) /* a symlink, a socket */
		return -EBADMSG;
	return fd < 0 ? fd : read_one(fd, &file->ledger);
}

/* Only what is called JSON can have been a ledger: a wrong path must not cost its owner a file. */
static bool may_be_set_aside(const TnLedgerFile *file)
{
	const char *suffix = strrchr(base_name(file), '.');

	return suffix && strcmp(suffix, ".json") == 0;
}

/* Before anything is made beside it. */
static int check_place(const TnLedgerFile *file)
{
	struct stat status;

	if (may_be_set_aside(file) ||
	    fstatat(file->dir_fd, base_name(file), &status, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return S_ISREG(status.st_mode) ? 0 : -EBADMSG;
}

static int set_aside(TnLedgerFile *file)
{
	char name[NAME_MAX + 1];
	int result = side_name(file, ".corrupt", name);

	if (result == 0 && !may_be_set_aside(file))
		return -EBADMSG;
	if (result < 0)
		return result;
	if (renameat(file->dir_fd, base_name(file), file->dir_fd, name) < 0)
		return -errno;
	file->was_corrupt = true;
	file->ledger = tn_ledger_new();
	return file->ledger ? 0 : -ENOMEM;
}

static bool is_in(const TnStubIndex *index, const TnLedgerEntry *wanted)
{
	for (size_t place = tn_stub_index_find(index, wanted->path); place < index->n_positions;
	     place++) {
		const TnLedgerEntry *entry = tn_stub_index_at(index, place);

		if (strcmp(entry->path, wanted->path) != 0)
			break;
		if (entry->dev == wanted->dev && entry->ino == wanted->ino &&
		    strcmp(entry->run_id, wanted->run_id) == 0 &&
		    tn_holder_is_same(&entry->holder, &wanted->holder))
			return true;
	}
	return false;
}

static int add_missing(TnLedgerFile *file, const TnLedger *other)
{
	TnStubIndex index;
	int result = tn_stub_index_init(&index, file->ledger);

	for (size_t i = 0; i < other->n_entries && result == 0; i++) {
		if (is_in(&index, &other->entries[i]))
			continue;
		result = tn_ledger_add(file->ledger, &other->entries[i], NULL);
		file->recovered = file->has_left = true;
	}
	tn_stub_index_clear(&index);
	return result;
}

/*
 * A complete new text was saved, and a power cut has undone its rename. Another program that shares
 * the file may have written it since: what either of them names counts.
 */
static int recover_left(TnLedgerFile *file)
{
	TN_AUTOLEDGER left = NULL;
	TN_AUTOFD fd = open_side(file, ".new", O_RDONLY);
	int result;

	if (fd == -ENOENT || fd == -ELOOP || fd == -ENXIO || fd == -EACCES)
		return 0;
	result = fd < 0 ? fd : read_one(fd, &left);
	if (result == -EBADMSG) /* its writer was killed, or the power cut came before its sync */
		return 0;
	return result < 0 ? result : add_missing(file, left);
}

/* An intent that is still there was left by a process that was killed while it held the lock. */
static int recover_intents(TnLedgerFile *file)
{
	TN_AUTOLEDGER intents = NULL;
	char first;
	int result;

	file->intent_fd = open_side(file, ".intent", O_RDWR | O_CREAT);
	if (file->intent_fd < 0)
		return file->intent_fd;
	if (pread(file->intent_fd, &first, 1, 0) != 1 || first != '{')
		return 0;
	result = read_one(file->intent_fd, &intents);
	if (result == -EBADMSG) /* torn by a power cut before anything was made */
		return 0;
	for (size_t i = 0; result == 0 && i < intents->n_entries; i++) {
		result = tn_ledger_add(file->ledger, &intents->entries[i], NULL);
		file->recovered = true;
	}
	return result;
}

const char *tn_ledger_file_why(int error)
{
	return error == -EBADMSG ? "is no stub ledger, and not named so (give one that ends in "
				   ".json)"
				 : strerror(-error);
}

int tn_ledger_file_open(TnLedgerFile *file, const char *path)
{
	int result;

	*file = (TnLedgerFile)TN_LEDGER_FILE_INIT;
	snprintf(file->path, sizeof(file->path), "%s", path);
	result = make_parents(path);
	if (result == 0) {
		size_t length = (size_t)(base_name(file) - file->path);
		char dir[PATH_MAX];

		memcpy(dir, file->path, length);
		dir[length] = '\0';
		file->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		result = file->dir_fd < 0 ? -errno : check_place(file);
		if (result == 0)
			result = lock(file);
	}
	if (result == 0)
		result = read_ledger(file);
	if (result == -EBADMSG)
		result = set_aside(file);
	if (result == 0)
		result = recover_left(file);
	if (result == 0)
		result = recover_intents(file);
	if (result < 0)
		tn_ledger_file_close(file);
	return result;
}

static int write_all(int fd, const char *text, size_t size)
{
	for (size_t used = 0; used < size;) {
		ssize_t written = pwrite(fd, text + used, size - used, (off_t)used);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		used += (size_t)written;
	}
	return 0;
}

int tn_ledger_file_intend(TnLedgerFile *file, const TnLedger *intents)
{
	TN_AUTOFREE char *text = NULL;
	size_t size = 0;
	int result = tn_ledger_serialize(intents, &text, &size);

	if (result == 0)
		result = write_all(file->intent_fd, text, size);
	if (result == 0 && ftruncate(file->intent_fd, (off_t)size) < 0)
		result = -errno;
	return result;
}

/* Takes fd. */
static int print_durably(const TnLedger *ledger, int fd)
{
	FILE *out = fdopen(fd, "w");
	int result;

	if (!out) {
		result = -errno;
		close(fd);
		return result;
	}
	errno = 0;
	result = tn_ledger_print(ledger, out);
	if (result == 0 && (fflush(out) != 0 || ferror(out) || fsync(fd) < 0))
		result = errno ? -errno : -EIO;
	if (result == 0 && ftello(out) > TN_LEDGER_TEXT_MAX)
		result = -EFBIG;
	fclose(out);
	return result;
}

/*
 * The sync of the new text puts its name, ".new", on disk too, and the next open reads it: the
 * rename needs no sync of its own. Only what such a file was needed for cannot be written over it.
 */
int tn_ledger_file_save(TnLedgerFile *file)
{
	const char *suffix = file->has_left ? ".next" : ".new";
	char name[NAME_MAX + 1], left[NAME_MAX + 1];
	int fd, result = side_name(file, suffix, name);

	if (result == 0)
		result = side_name(file, ".new", left);
	if (result < 0)
		return result;
	unlinkat(file->dir_fd, name, 0);
	fd = open_side(file, suffix, O_WRONLY | O_CREAT | O_EXCL);
	if (fd < 0)
		return fd;
	result = print_durably(file->ledger, fd);
	if (result == 0 && renameat(file->dir_fd, name, file->dir_fd, base_name(file)) < 0)
		result = -errno;
	if (result == 0 && file->has_left && fsync(file->dir_fd) < 0)
		result = -errno;
	if (result < 0) {
		unlinkat(file->dir_fd, name, 0);
		return result;
	}
	if (file->has_left)
		unlinkat(file->dir_fd, left, 0);
	file->has_left = false;
	/* one byte, and no sync: an intent that comes back is only checked once more */
	return write_all(file->intent_fd, "-", 1);
}

void tn_ledger_file_close(TnLedgerFile *file)
{
	tn_ledger_free(file->ledger);
	file->ledger = NULL;
	tn_close(&file->intent_fd);
	tn_close(&file->dir_fd);
	tn_close(&file->lock_fd);
}
