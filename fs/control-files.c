/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is in a nest: listings in pieces, descriptors of single files, attributes. A client
 * that takes its time costs one descriptor of a directory, never a reference on the nest.
 */
#include "control-private.h"

#include "macros.h"
#include "names.h"
#include "nest-look.h"
#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

TN_SYSCALLS = {
	{SYS_getdents64}, {SYS_fgetxattr}, {SYS_flistxattr}, {SYS_llistxattr}, TN_CALL_READLINK,
};

#define DIRENT_BYTES 32768
/* Bytes of JSON after which a reply is sent; one more entry always fits behind it. */
#define REPLY_BYTES 16384
/* A byte of a name takes at most 6 ("\u0001"), and what is beside the names 400. */
#define ENTRY_BYTES(name_bytes) ((name_bytes)*6 + 400)
#define ENTRIES_PER_REPLY 200
#define XATTR_CHUNK 24576

/* --- which nest, which place ------------------------------------------------------------------ */

typedef struct Place {
	const char *name;
	gint64 owner;
	const char *path; /* encoded; "/tmp" when absent */
	char *decoded;    /* owned */
	TnNest *nest;     /* owned */
} Place;

static void place_clear(Place *place)
{
	g_clear_pointer(&place->decoded, g_free);
	tn_nest_unref(g_steal_pointer(&place->nest));
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Place, place_clear)

#define PLACE_PARAMS(place) \
	{"name", TN_VARLINK_STRING, TRUE, &(place).name}, \
		{"owner_uid", TN_VARLINK_INT, FALSE, &(place).owner}, \
	{ \
		"path", TN_VARLINK_STRING, FALSE, &(place).path \
	}

/* FALSE: the call has been answered. */
static gboolean find_place(TnControl *control, TnVarlinkCall *call, Place *place)
{
	TnControlError error = {NULL};

	place->decoded = g_strdup(place->path != NULL ? place->path : "/tmp");
	if (tn_name_decode(place->decoded) < 0) {
		tn_varlink_fail(call, "InvalidArgument", place->path,
				"a backslash stands before x and two digits, or before another",
				"write a backslash as two");
		return FALSE;
	}
	place->nest = tn_control_find(control, tn_varlink_call_peer(call), place->name,
				      place->owner, &error);
	if (place->nest == NULL) {
		tn_control_fail(call, place->name, &error);
		return FALSE;
	}
	return TRUE;
}

void tn_control_fail_path(TnVarlinkCall *call, const char *path, int r)
{
	static const struct {
		int r;
		const char *error, *reason, *hint;
	} known[] = {
		{-ENOENT, "NoSuchFile", "there is no such file", "tmpnest files lists them"},
		{-ENOTDIR, "NoSuchFile", "not a directory", ""},
		{-ELOOP, "NoSuchFile", "a symbolic link, which is not followed",
		 "name what it leads to"},
		{-EISDIR, "IsDirectory", "a directory", "tmpnest files lists it"},
		{-EINVAL, "InvalidArgument",
		 "neither a file nor a directory below /tmp or /var/tmp",
		 "give a path as the sandbox sees it, without .."},
		{-ENAMETOOLONG, "InvalidArgument", "a name in it is longer than 255 bytes", ""},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
		if (known[i].r == r) {
			tn_varlink_fail(call, known[i].error, path, known[i].reason, known[i].hint);
			return;
		}
	}
	tn_varlink_fail(call, "Failed", path, g_strerror(-r), "the daemon's log may say more");
}

static void fail_place(TnVarlinkCall *call, const Place *place, int r)
{
	tn_control_fail_path(call, place->path != NULL ? place->path : "/tmp", r);
}

/* --- one entry ----------------------------------------------------------------------------------
 */

const char *tn_control_file_type(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	case S_IFSOCK:
		return "socket";
	case S_IFIFO:
		return "fifo";
	default:
		return "other";
	}
}

void tn_control_set_name(JsonObject *object, const char *key, const char *name)
{
	char *text = tn_name_encode(name);

	json_object_set_string_member(object, key, text != NULL ? text : "");
	free(text);
}

static JsonObject *entry_json(const char *name, const struct stat *st)
{
	JsonObject *entry = json_object_new();
	gint64 mtime = (gint64)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;

	tn_control_set_name(entry, "name", name);
	json_object_set_string_member(entry, "type", tn_control_file_type(st->st_mode));
	json_object_set_int_member(entry, "mode", st->st_mode & 07777);
	json_object_set_int_member(entry, "uid", st->st_uid);
	json_object_set_int_member(entry, "gid", st->st_gid);
	json_object_set_int_member(entry, "size", S_ISDIR(st->st_mode) ? 0 : st->st_size);
	tn_control_set_count(entry, "disk", (guint64)st->st_blocks * 512);
	tn_control_set_count(entry, "inode", st->st_ino);
	tn_control_set_count(entry, "links", st->st_nlink);
	json_object_set_int_member(entry, "mtime_ns", mtime);
	return entry;
}

/* --- a directory -------------------------------------------------------------------------------
 */

typedef struct KernelEntry {
	guint64 ino;
	gint64 next;
	guint16 size;
	guint8 type;
	char name[];
} KernelEntry;

typedef struct Listing {
	int dir;
	gboolean xattrs;
	long filled, at; /* of the buffer */
	gboolean at_end;
	union {
		KernelEntry align;
		char bytes[DIRENT_BYTES];
	} buffer;
} Listing;

static void listing_free(void *data)
{
	Listing *listing = data;

	tn_close(&listing->dir);
	g_free(listing);
}

/* NULL at the end; -errno in *ret_error when the directory cannot be read on. */
static const KernelEntry *next_entry(Listing *listing, int *ret_error)
{
	const KernelEntry *entry;

	if (listing->at == listing->filled) {
		long n = listing->at_end ? 0
					 : syscall(SYS_getdents64, listing->dir,
						   listing->buffer.bytes, DIRENT_BYTES);

		listing->at = listing->filled = 0;
		/* ENOENT: it was removed under us and has nothing left. */
		if (n < 0 && errno != ENOENT)
			*ret_error = -errno;
		if (n <= 0) {
			listing->at_end = TRUE;
			return NULL;
		}
		listing->filled = n;
	}
	entry = (const void *)(listing->buffer.bytes + listing->at);
	listing->at += entry->size;
	return entry;
}

/* Has the entry extended attributes? Asked by a path through our own descriptor; no link. */
static gboolean has_xattrs(int dir, const char *name)
{
	g_autofree char *path = g_strdup_printf("/proc/self/fd/%d/%s", dir, name);

	return llistxattr(path, NULL, 0) > 0;
}

/* Adds the entry unless it has gone. Bytes of JSON that it takes at most. */
static gsize add_entry(const Listing *listing, const char *name, JsonArray *entries)
{
	char target[PATH_MAX];
	ssize_t length = 0;
	JsonObject *entry;
	struct stat st;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    fstatat(listing->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	entry = entry_json(name, &st);
	if (S_ISLNK(st.st_mode)) {
		length = readlinkat(listing->dir, name, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		tn_control_set_name(entry, "target", target);
	}
	if (listing->xattrs && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		json_object_set_boolean_member(entry, "xattrs", has_xattrs(listing->dir, name));
	json_array_add_object_element(entries, entry);
	return ENTRY_BYTES(strlen(name) + (gsize)(length > 0 ? length : 0));
}

static gboolean produce_entries(TnVarlinkCall *call, void *data)
{
	Listing *listing = data;
	JsonObject *reply = json_object_new();
	JsonArray *entries = json_array_new();
	gsize used = 0;
	guint n = 0;
	int error = 0;

	while (used < REPLY_BYTES && n < ENTRIES_PER_REPLY) {
		const KernelEntry *entry = next_entry(listing, &error);

		if (entry == NULL)
			break;
		used += add_entry(listing, entry->name, entries);
		n++;
	}
	json_object_set_array_member(reply, "entries", entries);
	if (error < 0) {
		json_object_unref(reply);
		tn_control_fail_path(call, "", error);
	} else {
		tn_control_reply_part(call, reply, listing->at_end);
	}
	return TRUE;
}

void tn_control_list_files(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	g_auto(Place) place = {.owner = -1};
	gboolean xattrs = FALSE;
	const TnVarlinkParam params[] = {
		PLACE_PARAMS(place),
		{"xattrs", TN_VARLINK_BOOL, FALSE, &xattrs},
	};
	Listing *listing;
	int dir;

	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)) ||
	    !find_place(data, call, &place))
		return;
	dir = tn_nest_look_dir(place.nest, place.decoded);
	if (dir < 0) {
		fail_place(call, &place, dir);
		return;
	}
	listing = g_new(Listing, 1);
	listing->dir = dir;
	listing->xattrs = xattrs;
	listing->filled = listing->at = 0;
	listing->at_end = FALSE;
	tn_varlink_call_stream(call, produce_entries, listing, listing_free);
}

/* --- one file ------------------------------------------------------------------------------------
 */

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

void tn_control_stat_file(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	g_auto(Place) place = {.owner = -1};
	const TnVarlinkParam params[] = {PLACE_PARAMS(place)};
	TN_AUTOFD fd = -1;
	char target[PATH_MAX];
	JsonObject *reply, *entry;
	struct stat st;
	ssize_t n;

	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)) ||
	    !find_place(data, call, &place))
		return;
	fd = tn_nest_look(place.nest, place.decoded);
	if (fd < 0 || fstat(fd, &st) < 0) {
		fail_place(call, &place, fd < 0 ? fd : -errno);
		return;
	}
	entry = entry_json(last_name(place.decoded), &st);
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(fd, "", target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		tn_control_set_name(entry, "target", target);
	}
	reply = json_object_new();
	json_object_set_object_member(reply, "entry", entry);
	tn_varlink_reply(call, reply);
}

void tn_control_open_file(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	g_auto(Place) place = {.owner = -1};
	const TnVarlinkParam params[] = {PLACE_PARAMS(place)};
	JsonObject *reply;
	struct stat st;
	int fd;

	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)) ||
	    !find_place(data, call, &place))
		return;
	fd = tn_nest_look_file(place.nest, place.decoded);
	if (fd < 0 || fstat(fd, &st) < 0) {
		fail_place(call, &place, fd < 0 ? fd : -errno);
		return;
	}
	reply = json_object_new();
	json_object_set_object_member(reply, "entry", entry_json(last_name(place.decoded), &st));
	tn_varlink_reply_fd(call, reply, fd);
}

/* --- extended attributes -------------------------------------------------------------------------
 */

typedef struct Attributes {
	int fd;
	char *names, *at, *end; /* NUL-terminated, one after the other */
	guint8 *value;          /* of *at, while it is being sent */
	gsize size, sent;
} Attributes;

static void attributes_free(void *data)
{
	Attributes *attributes = data;

	tn_close(&attributes->fd);
	g_free(attributes->names);
	g_free(attributes->value);
	g_free(attributes);
}

static gboolean load_value(Attributes *attributes)
{
	guint8 *value = g_malloc(XATTR_SIZE_MAX);
	ssize_t n = fgetxattr(attributes->fd, attributes->at, value, XATTR_SIZE_MAX);

	if (n < 0) {
		g_free(value);
		return FALSE;
	}
	attributes->value = value;
	attributes->size = (gsize)n;
	attributes->sent = 0;
	return TRUE;
}

static JsonObject *next_chunk(Attributes *attributes)
{
	gsize size = MIN(attributes->size - attributes->sent, (gsize)XATTR_CHUNK);
	g_autofree char *text = g_base64_encode(attributes->value + attributes->sent, size);
	JsonObject *chunk = json_object_new();

	tn_control_set_name(chunk, "name", attributes->at);
	json_object_set_int_member(chunk, "offset", (gint64)attributes->sent);
	json_object_set_int_member(chunk, "size", (gint64)attributes->size);
	json_object_set_string_member(chunk, "base64", text);
	attributes->sent += size;
	if (attributes->sent == attributes->size) {
		g_clear_pointer(&attributes->value, g_free);
		attributes->at += strlen(attributes->at) + 1;
	}
	return chunk;
}

static gboolean produce_attributes(TnVarlinkCall *call, void *data)
{
	Attributes *attributes = data;
	JsonObject *reply = json_object_new();
	JsonArray *chunks = json_array_new();
	gsize used = 0;

	while (attributes->at < attributes->end && used < XATTR_CHUNK) {
		if (attributes->value == NULL && !load_value(attributes)) {
			attributes->at += strlen(attributes->at) + 1; /* gone since */
			continue;
		}
		used += MIN(attributes->size - attributes->sent, (gsize)XATTR_CHUNK) + 512;
		json_array_add_object_element(chunks, next_chunk(attributes));
	}
	json_object_set_array_member(reply, "xattrs", chunks);
	tn_control_reply_part(call, reply, attributes->at == attributes->end);
	return TRUE;
}

/* The file or directory at path, open so that its attributes can be read. */
static int open_for_attributes(TnNest *nest, const char *path)
{
	int fd = tn_nest_look_file(nest, path);

	return fd == -EISDIR ? tn_nest_look_dir(nest, path) : fd;
}

void tn_control_get_xattrs(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	g_auto(Place) place = {.owner = -1};
	const TnVarlinkParam params[] = {PLACE_PARAMS(place)};
	Attributes *attributes;
	ssize_t n;
	int fd;

	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)) ||
	    !find_place(data, call, &place))
		return;
	fd = open_for_attributes(place.nest, place.decoded);
	if (fd < 0) {
		fail_place(call, &place, fd);
		return;
	}
	attributes = g_new0(Attributes, 1);
	attributes->fd = fd;
	attributes->names = g_malloc(XATTR_LIST_MAX);
	n = flistxattr(fd, attributes->names, XATTR_LIST_MAX);
	attributes->at = attributes->names;
	attributes->end = attributes->names + (n > 0 ? n : 0);
	tn_varlink_call_stream(call, produce_attributes, attributes, attributes_free);
}
