/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capacity-config.h"

#include "log.h"
#include "macros.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX ((size_t)256 * 1024)
#define SECTION "store"

static int set_quota(TnCapacity *capacity, const char *value)
{
	return tn_parse_count(value, &capacity->bytes);
}

static int set_inodes(TnCapacity *capacity, const char *value)
{
	return tn_parse_count(value, &capacity->inodes);
}

static int set_user_quota(TnCapacity *capacity, const char *value)
{
	return tn_parse_size(value, &capacity->user_bytes);
}

static int set_user_inodes(TnCapacity *capacity, const char *value)
{
	return tn_parse_count(value, &capacity->user_inodes);
}

static int set_user_nests(TnCapacity *capacity, const char *value)
{
	return tn_parse_count(value, &capacity->user_nests);
}

static int set_user_sandboxes(TnCapacity *capacity, const char *value)
{
	return tn_parse_count(value, &capacity->user_sandboxes);
}

static int set_reserve(TnCapacity *capacity, const char *value)
{
	uint64_t reserve = 0;
	int r = tn_parse_size(value, &reserve);

	if (r == 0 && reserve == TN_UNLIMITED)
		r = -EINVAL;
	if (r == 0) {
		capacity->reserve = reserve;
		capacity->has_reserve = true;
	}
	return r;
}

static const struct {
	const char *name, *variable;
	int (*set)(TnCapacity *capacity, const char *value);
	const char *wanted;
} keys[] = {
	{"quota", "TMPNEST_STORE_QUOTA", set_quota, "a number with K, M, G or T, or max"},
	{"inodes", "TMPNEST_STORE_INODES", set_inodes, "a number, or max"},
	{"reserve", "TMPNEST_STORE_RESERVE", set_reserve, "a number with K, M, G or T, or 0"},
	{"user_quota", "TMPNEST_STORE_USER_QUOTA", set_user_quota,
	 "a number with K, M, G or T, or max"},
	{"user_inodes", "TMPNEST_STORE_USER_INODES", set_user_inodes, "a number, or max"},
	{"user_nests", "TMPNEST_STORE_USER_NESTS", set_user_nests, "a number, or max"},
	{"user_sandboxes", "TMPNEST_STORE_USER_SANDBOXES", set_user_sandboxes, "a number, or max"},
};

typedef struct Reader {
	TnCapacity *capacity;
	const char *name;
} Reader;

static int take_line(void *user, const char *section, const char *name, const char *value)
{
	Reader *reader = user;
	char shown[128];

	if (strcmp(section, SECTION) != 0)
		return 1;
	for (size_t i = 0; i < TN_ARRAY_LEN(keys); i++) {
		if (strcmp(keys[i].name, name) != 0)
			continue;
		if (keys[i].set(reader->capacity, value) < 0)
			tn_log(TN_LOG_ERROR, "%s: [" SECTION "] %s: not %s: %s (ignored)",
			       reader->name, keys[i].name, keys[i].wanted,
			       tn_log_escape(value, shown, sizeof(shown)));
		return 1;
	}
	tn_log(TN_LOG_WARNING, "%s: [" SECTION "] %s: unknown, ignored", reader->name,
	       tn_log_escape(name, shown, sizeof(shown)));
	return 1;
}

void tn_capacity_parse(const char *text, const char *name, TnCapacity *capacity)
{
	Reader reader = {.capacity = capacity, .name = name};
	int line = ini_parse_string(text, take_line, &reader);

	if (line > 0)
		tn_log(TN_LOG_ERROR, "%s:%d: neither [SECTION] nor KEY = VALUE", name, line);
}

static void read_file(const char *path, TnCapacity *capacity)
{
	TN_AUTOFD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	TN_AUTOFREE char *text = fd < 0 ? NULL : malloc(FILE_MAX + 1);
	size_t used = 0;
	ssize_t n = 1;

	if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
		tn_log(TN_LOG_ERROR, "%s: cannot be read: %s", path, strerror(errno));
	while (text && n > 0 && used < FILE_MAX) {
		n = read(fd, text + used, FILE_MAX - used);
		used += n > 0 ? (size_t)n : 0;
	}
	if (!text)
		return;
	if (n != 0) {
		tn_log(TN_LOG_ERROR, "%s: %s (ignored)", path,
		       n < 0 ? strerror(errno) : "too large");
		return;
	}
	text[used] = '\0';
	tn_capacity_parse(text, path, capacity);
}

void tn_capacity_load(const char *const files[TN_CONFIG_FILES], TnCapacity *ret)
{
	*ret = tn_capacity_default();
	for (size_t i = 0; i < TN_CONFIG_FILES; i++) {
		if (files[i])
			read_file(files[i], ret);
	}
	for (size_t i = 0; i < TN_ARRAY_LEN(keys); i++) {
		const char *value = getenv(keys[i].variable);

		if (value && *value && keys[i].set(ret, value) < 0)
			tn_log(TN_LOG_ERROR, "%s: not %s (ignored)", keys[i].variable,
			       keys[i].wanted);
	}
}

bool tn_config_changed(TnConfigStamp *stamp, const char *const files[TN_CONFIG_FILES])
{
	TnConfigStamp now = {.known = true};
	bool changed = !stamp->known;

	for (size_t i = 0; i < TN_CONFIG_FILES; i++) {
		struct stat st;

		if (!files[i] || stat(files[i], &st) < 0)
			continue;
		/* The inode changes with a replaced file, its ctime with every other change. */
		now.changed_ns[i] = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
		now.ino[i] = st.st_ino;
	}
	changed |= memcmp(now.changed_ns, stamp->changed_ns, sizeof(now.changed_ns)) != 0 ||
		   memcmp(now.ino, stamp->ino, sizeof(now.ino)) != 0;
	*stamp = now;
	return changed;
}
