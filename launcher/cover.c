/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cover.h"
#include "anchor.h"
#include "macros.h"
#include "message.h"
#include "mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MOUNTINFO_MAX (64 * 1024 * 1024)

/* RUNTIME and STORE of the daemon that answered, of the system's, of the user's */
#define HIDDEN_MAX 6

/* A directory that no sandbox may see. Held open: a path can come to mean another one. */
typedef struct Hidden {
	int fd; /* O_PATH */
	uint64_t dev, ino;
	uint64_t mount_id;
	char *path; /* resolved */
} Hidden;

typedef struct HiddenSet {
	Hidden items[HIDDEN_MAX];
	size_t n;
} HiddenSet;

/* Opens path. 0 or -errno, nothing said. */
static int open_hidden(const char *path, Hidden *ret)
{
	char link[64];
	char real[PATH_MAX];
	struct statx st;
	ssize_t length;
	TN_AUTOFD fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, real, sizeof(real) - 1);
	if (length < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &st) < 0)
		return -errno;
	*ret = (Hidden){
		.fd = tn_steal_fd(&fd),
		.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
		.ino = st.stx_ino,
		.mount_id = st.stx_mnt_id,
		.path = strndup(real, (size_t)length),
	};
	if (!ret->path)
		tn_out_of_memory();
	return 0;
}

static void close_hidden(Hidden *hidden)
{
	tn_close(&hidden->fd);
	free(hidden->path);
}

static void clear_hidden(HiddenSet *set)
{
	for (size_t i = 0; i < set->n; i++)
		close_hidden(&set->items[i]);
}

/* One that the daemon has told us about; it must be the same directory. */
static int add_known(HiddenSet *set, const char *what, const char *variable, const char *path,
		     uint64_t dev, uint64_t ino)
{
	Hidden *hidden = &set->items[set->n];
	int r = open_hidden(path, hidden);

	if (r < 0)
		return tn_fail(r, "cover: %s: cannot open the %s: %s", path, what, strerror(-r));
	set->n++;
	if (hidden->dev == dev && hidden->ino == ino)
		return 0;
	return tn_fail(-ESTALE,
		       "cover: %s: not the daemon's %s: it was moved, or the daemon uses another "
		       "one (set %s as the daemon has it, or restart the daemon)",
		       path, what, variable);
}

/* One that another daemon may have. What cannot be reached need not be covered. */
static void add_other(HiddenSet *set, const char *path)
{
	Hidden *hidden = &set->items[set->n];

	if (open_hidden(path, hidden) < 0)
		return;
	for (size_t i = 0; i < set->n; i++) {
		if (set->items[i].dev == hidden->dev && set->items[i].ino == hidden->ino) {
			close_hidden(hidden);
			return;
		}
	}
	set->n++;
}

static int collect(const TnAttached *attached, HiddenSet *set)
{
	static const TnScope scopes[] = {TN_SCOPE_SYSTEM, TN_SCOPE_USER};
	const TnPaths *paths = &attached->paths;
	const TnAttachReply *head = &attached->head;
	int r;

	r = add_known(set, "runtime directory", "TMPNEST_RUNTIME_DIR", paths->runtime_dir,
		      head->runtime_dev, head->runtime_ino);
	if (r == 0)
		r = add_known(set, "store", "TMPNEST_STORE_DIR", paths->store_dir, head->store_dev,
			      head->store_ino);
	for (size_t i = 0; r == 0 && i < TN_ARRAY_LEN(scopes); i++) {
		TnPaths other;

		if (!tn_paths_init_default(&other, scopes[i]))
			continue;
		add_other(set, other.runtime_dir);
		add_other(set, other.store_dir);
	}
	return r;
}

/* Before collect(): what is opened must lie below the mounts made here. */
static int anchor_all(const TnAttached *attached, const TnWords *writable)
{
	static const TnScope scopes[] = {TN_SCOPE_SYSTEM, TN_SCOPE_USER};
	const char *dirs[HIDDEN_MAX] = {attached->paths.runtime_dir, attached->paths.store_dir};
	TnPaths others[TN_ARRAY_LEN(scopes)];
	size_t n = 2;

	for (size_t i = 0; i < TN_ARRAY_LEN(scopes); i++) {
		if (!tn_paths_init_default(&others[i], scopes[i]))
			continue;
		dirs[n++] = others[i].runtime_dir;
		dirs[n++] = others[i].store_dir;
	}
	for (size_t i = 0; i < n; i++) {
		char real[PATH_MAX];
		int r = realpath(dirs[i], real) ? tn_anchor_ancestors(real, writable) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static int read_mountinfo(char **ret)
{
	TN_AUTOFD fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	size_t capacity = 16 * 1024;
	char *text = malloc(capacity);
	ssize_t n = 0;

	if (!text)
		tn_out_of_memory();
	while (fd >= 0 && (n = read(fd, text + used, capacity - used - 1)) > 0) {
		used += (size_t)n;
		if (capacity - used > 1)
			continue;
		capacity *= 2;
		text = capacity > MOUNTINFO_MAX ? NULL : realloc(text, capacity);
		if (!text)
			tn_out_of_memory();
	}
	if (fd < 0 || n < 0) {
		int error = errno;

		free(text);
		return tn_fail(-error, "cover: /proc/self/mountinfo: cannot read it: %s",
			       strerror(error));
	}
	text[used] = '\0';
	*ret = text;
	return 0;
}

/*
 * Covers the directory open as target with an empty tmpfs that holds next to nothing: a
 * payload that can write to it after all must not get memory of the host. The mount's
 * descriptor, or -errno, said; path is for the message only.
 */
static int cover_directory(int target, const char *path, unsigned attributes)
{
	TN_AUTOFD context = fsopen("tmpfs", FSOPEN_CLOEXEC);
	TN_AUTOFD mount = -1;
	int error;

	if (context >= 0 && fsconfig(context, FSCONFIG_SET_STRING, "size", "4k", 0) == 0 &&
	    fsconfig(context, FSCONFIG_SET_STRING, "nr_inodes", "8", 0) == 0 &&
	    fsconfig(context, FSCONFIG_SET_STRING, "mode", "555", 0) == 0 &&
	    fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mount = fsmount(context, FSMOUNT_CLOEXEC,
				MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |
					attributes);
	if (mount >= 0 && move_mount(mount, "", target, "",
				     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0)
		return tn_steal_fd(&mount);
	error = errno;
	return tn_fail(-error, "cover: %s: cannot cover it: %s", path, strerror(error));
}

/*
 * All read-only covers show the same empty tmpfs: `*shared` is the first one's mount, or -1 as
 * long as there is none.
 */
static int cover_read_only(int target, const char *path, int *shared)
{
	TN_AUTOFD clone = -1;
	int error;

	if (*shared < 0) {
		*shared = cover_directory(target, path, MOUNT_ATTR_RDONLY);
		return *shared < 0 ? *shared : 0;
	}
	clone = open_tree(*shared, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (clone >= 0 && move_mount(clone, "", target, "",
				     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0)
		return 0;
	error = errno;
	return tn_fail(-error, "cover: %s: cannot cover it: %s", path, strerror(error));
}

/*
 * Covers hidden where it shows at path too. Another mount may lie on top of that: then
 * the path leads to something else, which is not ours to cover.
 */
static int cover_alias(const TnMountTable *table, const Hidden *hidden, const char *path,
		       int *shared)
{
	TN_AUTOFD fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct statx st;
	bool is_hidden;
	bool is_part = false;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &st) < 0)
		return 0; /* not reachable by us, so not by the payload */
	is_hidden = makedev(st.stx_dev_major, st.stx_dev_minor) == hidden->dev &&
		    st.stx_ino == hidden->ino;
	for (size_t i = 0; !is_hidden && i < table->n; i++)
		is_part |= table->entries[i].id == st.stx_mnt_id &&
			   strcmp(table->entries[i].point, path) == 0;
	return is_hidden || is_part ? cover_read_only(fd, path, shared) : 0;
}

static int cover_aliases(const HiddenSet *set, int *shared)
{
	TN_AUTOFREE char *text = NULL;
	TnMountTable table = {0};
	int r = read_mountinfo(&text);

	if (r < 0)
		return r;
	r = tn_mountinfo_parse(text, &table);
	if (r < 0)
		tn_say("cover: /proc/self/mountinfo: a line of unknown form");
	for (size_t i = 0; r == 0 && i < set->n; i++) {
		const Hidden *hidden = &set->items[i];
		TnWords aliases = {0};

		if (!tn_mount_aliases(&table, hidden->mount_id, hidden->path, &aliases))
			r = tn_fail(-ENOENT, "cover: %s: its mount is not in the mount table",
				    hidden->path);
		for (size_t j = 0; r == 0 && j < aliases.n; j++)
			/* its own path is covered last, by its descriptor */
			if (strcmp(aliases.items[j], hidden->path) != 0)
				r = cover_alias(&table, hidden, aliases.items[j], shared);
		tn_words_clear(&aliases);
	}
	tn_mount_table_clear(&table);
	return r;
}

/* Makes the cover of the runtime directory hold the view and an empty directory, and then
 * read-only. */
static int place_view(int cover, int view)
{
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
	int error;

	if (mkdirat(cover, TN_VIEW_NAME, 0555) == 0 && mkdirat(cover, TN_EMPTY_NAME, 0555) == 0 &&
	    move_mount(view, "", cover, TN_VIEW_NAME, MOVE_MOUNT_F_EMPTY_PATH) == 0 &&
	    mount_setattr(cover, "", AT_EMPTY_PATH, &read_only, sizeof(read_only)) == 0)
		return 0;
	error = errno;
	return tn_fail(-error, "cover: cannot place the view: %s", strerror(error));
}

/* The kernel's first look at the view from in here. It also shows that the daemon answers. */
static int check_view(int view, struct stat *ret)
{
	int error;

	if (fstat(view, ret) == 0)
		return 0;
	error = errno;
	if (error == EACCES)
		return tn_fail(-error,
			       "attach: view: %s: your effective group %u is not the one that the "
			       "daemon serves (start it without newgrp or sg)",
			       strerror(error), (unsigned)getegid());
	return tn_fail(-error, "attach: view: the daemon does not serve it: %s (see its log)",
		       strerror(error));
}

/* Nothing must lie between the path that bwrap gets and the view. */
static int check_place(const char *path, const struct stat *view)
{
	struct stat st;

	if (stat(path, &st) == 0 && st.st_dev == view->st_dev && st.st_ino == view->st_ino)
		return 0;
	return tn_fail(-ESTALE,
		       "cover: %s: does not lead to the view (was the runtime directory moved, or "
		       "does it lie in another daemon's directories?)",
		       path);
}

/* Covers everything, the runtime directory of the view last. set->items[0] is that one. */
static int cover_all(const HiddenSet *set, int view)
{
	TN_AUTOFD cover = -1;
	TN_AUTOFD shared = -1;
	int r = cover_aliases(set, &shared);

	for (size_t i = 1; r == 0 && i < set->n; i++)
		r = cover_read_only(set->items[i].fd, set->items[i].path, &shared);
	if (r < 0)
		return r;
	cover = cover_directory(set->items[0].fd, set->items[0].path, 0);
	return cover < 0 ? cover : place_view(cover, view);
}

/* Fills in what bwrap is told; view is for a last look at where that leads. */
static int name_place(const HiddenSet *set, const struct stat *view, TnPlace *ret)
{
	const char *runtime = set->items[0].path;
	int length = snprintf(ret->view, sizeof(ret->view), "%s/%s", runtime, TN_VIEW_NAME);

	if (length < 0 || length >= (int)sizeof(ret->view) ||
	    snprintf(ret->empty, sizeof(ret->empty), "%s/%s", runtime, TN_EMPTY_NAME) >=
		    (int)sizeof(ret->empty))
		return tn_fail(-ENAMETOOLONG, "cover: %s: path too long", runtime);
	strcpy(ret->runtime, runtime);
	strcpy(ret->store, set->items[1].path);
	return check_place(ret->view, view);
}

int tn_cover(TnAttached *attached, const TnWords *writable, TnPlace *ret)
{
	TN_AUTOFD view = tn_steal_fd(&attached->mount);
	HiddenSet set = {0};
	struct stat view_stat;
	int r = check_view(view, &view_stat);

	if (r == 0)
		r = anchor_all(attached, writable);
	if (r == 0)
		r = collect(attached, &set);
	if (r == 0)
		r = cover_all(&set, view);
	if (r == 0)
		r = name_place(&set, &view_stat, ret);
	clear_hidden(&set);
	return r;
}
