/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "describe.h"

#include "macros.h"
#include "sys.h"
#include "syscalls.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

TN_SYSCALLS = {
	{SYS_fsync},
	{SYS_utimensat},
};

#define FILE_NAME "nest"
#define FIRST_LINE "tmpnest-nest 1"
#define LAST_LINE "end" /* what was cut short might lack its last rules and look whole */
#define SIZE_MOST (8UL * 1024 * 1024) /* 1,024 rules of the longest path, and more */

void tn_boot_id(char ret[TN_BOOT_ID_MAX])
{
	TN_AUTOFD fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, ret, TN_BOOT_ID_MAX - 1);

	ret[n > 0 ? n : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

void tn_description_clear(TnDescription *description)
{
	free(description->from.path);
	tn_policy_free(description->policy);
	*description = (TnDescription){0};
}

/* --- writing ------------------------------------------------------------------------------- */

static bool write_rule(const char *pattern, bool deny, bool built_in, void *data)
{
	if (!built_in)
		fprintf(data, "%s %s\n", deny ? "deny" : "read-only", pattern);
	return true;
}

static void write_description(FILE *out, TnNest *nest)
{
	char boot_id[TN_BOOT_ID_MAX];

	tn_boot_id(boot_id);
	fprintf(out, FIRST_LINE "\n");
	fprintf(out, "id %016" PRIx64 "\n", nest->id);
	fprintf(out, "name %s\n", nest->name);
	fprintf(out, "uid %u\n", (unsigned)nest->uid);
	fprintf(out, "gid %u\n", (unsigned)nest->gid);
	fprintf(out, "ephemeral %d\n", nest->ephemeral);
	fprintf(out, "keep %d\n", nest->keep);
	fprintf(out, "durable %d\n", nest->durable);
	fprintf(out, "no-xattrs %d\n", nest->no_xattrs);
	fprintf(out, "writeback %d\n", nest->writeback);
	fprintf(out, "frozen %d\n", atomic_load(&nest->frozen));
	fprintf(out, "store %s\n", nest->store.ops->name);
	fprintf(out, "bytes %" PRIu64 "\n", atomic_load(&nest->account->bytes_limit));
	fprintf(out, "inodes %" PRIu64 "\n", atomic_load(&nest->account->inodes_limit));
	fprintf(out, "ttl %" PRIu64 "\n", nest->ttl);
	fprintf(out, "idle-ttl %" PRIu64 "\n", nest->idle_ttl);
	fprintf(out, "created %" PRId64 "\n", nest->created_ns);
	fprintf(out, "boot %s\n", boot_id);
	if (nest->from.path)
		fprintf(out, "from %" PRIu64 " %" PRIu64 " %d %s\n", nest->from.dev, nest->from.ino,
			nest->from.visible, nest->from.path);
	tn_policy_each(nest->policy, write_rule, out);
	fprintf(out, LAST_LINE "\n");
}

int tn_describe_save(TnNest *nest)
{
	TN_AUTOFREE char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (!out)
		return -ENOMEM;
	write_description(out, nest);
	if (fclose(out) != 0)
		return -ENOMEM;
	/* Only a durable nest is found again after a power cut: only it waits for the disk. */
	r = tn_replace_file(nest->home, FILE_NAME, text, size, 0600, nest->durable);
	if (r == 0 && nest->durable && fsync(nest->home) < 0)
		r = -errno;
	if (r == 0)
		tn_describe_stamp(nest->home, atomic_load(&nest->arena.header->last_used_ns));
	return r;
}

void tn_describe_stamp(int home, int64_t used_ns)
{
	const struct timespec times[2] = {
		{.tv_nsec = UTIME_OMIT},
		{.tv_sec = used_ns / 1000000000, .tv_nsec = used_ns % 1000000000},
	};

	/* If it fails, the last use seems longer ago than it is, after a restart. */
	(void)utimensat(home, FILE_NAME, times, AT_SYMLINK_NOFOLLOW);
}

/* --- reading ------------------------------------------------------------------------------- */

static bool parse_number(const char *text, int base, uint64_t *ret)
{
	char *end;

	if (!isxdigit((unsigned char)*text)) /* strtoull() takes spaces and signs */
		return false;
	errno = 0;
	*ret = strtoull(text, &end, base);
	return errno == 0 && end != text && *end == '\0';
}

/* A uid or gid; the highest means "none" to chown(2). */
static bool parse_owner(const char *text, uint32_t *ret)
{
	uint64_t number;

	if (!parse_number(text, 10, &number) || number >= UINT32_MAX)
		return false;
	*ret = (uint32_t)number;
	return true;
}

static bool parse_flag(const char *text, bool *ret)
{
	*ret = text[0] == '1';
	return (text[0] == '0' || text[0] == '1') && text[1] == '\0';
}

static bool parse_store(const char *text, TnStoreKind *ret)
{
	for (int kind = TN_STORE_DIR; kind <= TN_STORE_IMAGE; kind++) {
		const TnStoreOps *ops = tn_store_ops((TnStoreKind)kind);

		if (ops && strcmp(ops->name, text) == 0) {
			*ret = (TnStoreKind)kind;
			return true;
		}
	}
	return false;
}

static bool parse_text(const char *text, char *ret, size_t size)
{
	size_t length = strlen(text);

	if (length >= size)
		return false;
	memcpy(ret, text, length + 1);
	return true;
}

/* "DEV INO VISIBLE PATH". False: it is not. */
static bool parse_from(const char *text, TnFrom *ret)
{
	int visible, at = 0;

	if (ret->path ||
	    sscanf(text, "%" SCNu64 " %" SCNu64 " %d %n", &ret->dev, &ret->ino, &visible, &at) !=
		    3 ||
	    at == 0 || text[at] != '/')
		return false;
	ret->visible = visible;
	ret->path = strdup(text + at);
	return ret->path != NULL;
}

/* One line; a key that this version does not know is passed over. False: a bad value. */
static bool parse_line(const char *key, const char *value, TnDescription *ret)
{
	uint64_t number = 0;
	bool is_number = parse_number(value, strcmp(key, "id") == 0 ? 16 : 10, &number);

	if (strcmp(key, "name") == 0)
		return tn_name_is_valid(value) && parse_text(value, ret->name, sizeof(ret->name));
	if (strcmp(key, "from") == 0)
		return parse_from(value, &ret->from);
	if (strcmp(key, "store") == 0)
		return parse_store(value, &ret->store);
	if (strcmp(key, "boot") == 0)
		return parse_text(value, ret->boot_id, sizeof(ret->boot_id));
	if (strcmp(key, "deny") == 0 || strcmp(key, "read-only") == 0)
		return tn_policy_add(ret->policy, value, key[0] == 'd') == 0;
	if (strcmp(key, "uid") == 0)
		return parse_owner(value, &ret->uid);
	if (strcmp(key, "gid") == 0)
		return parse_owner(value, &ret->gid);
	if (strcmp(key, "ephemeral") == 0)
		return parse_flag(value, &ret->ephemeral);
	if (strcmp(key, "keep") == 0)
		return parse_flag(value, &ret->keep);
	if (strcmp(key, "durable") == 0)
		return parse_flag(value, &ret->durable);
	if (strcmp(key, "no-xattrs") == 0)
		return parse_flag(value, &ret->no_xattrs);
	if (strcmp(key, "writeback") == 0)
		return parse_flag(value, &ret->writeback);
	if (strcmp(key, "frozen") == 0)
		return parse_flag(value, &ret->frozen);
	if (number > INT64_MAX && strcmp(key, "created") == 0)
		return false;
	if (strcmp(key, "id") == 0)
		ret->id = number;
	else if (strcmp(key, "bytes") == 0)
		ret->bytes = number;
	else if (strcmp(key, "inodes") == 0)
		ret->inodes = number;
	else if (strcmp(key, "ttl") == 0)
		ret->ttl = number;
	else if (strcmp(key, "idle-ttl") == 0)
		ret->idle_ttl = number;
	else if (strcmp(key, "created") == 0)
		ret->created_ns = (int64_t)number;
	else
		return true;
	return is_number;
}

int tn_describe_parse(char *text, TnDescription *ret)
{
	TnDescription description = {.from = {.fd = -1}, .policy = tn_policy_new()};
	char *line = strsep(&text, "\n");
	bool good = line && strcmp(line, FIRST_LINE) == 0;

	if (!description.policy)
		return -ENOMEM;
	while (good && (line = strsep(&text, "\n")) && strcmp(line, LAST_LINE) != 0) {
		char *value = strchr(line, ' ');

		if (value) {
			*value++ = '\0';
			good = parse_line(line, value, &description);
		} else {
			good = false;
		}
	}
	if (!good || !line || !description.id || !description.name[0] || !description.store ||
	    !description.bytes || !description.inodes) {
		tn_description_clear(&description);
		return -EBADMSG;
	}
	*ret = description;
	return 0;
}

int tn_describe_load(int home, TnDescription *ret)
{
	TN_AUTOFREE char *text = NULL;
	ssize_t n = tn_read_file(home, FILE_NAME, SIZE_MOST, &text);
	struct stat st;
	int r;

	if (n < 0)
		return (int)n;
	r = strlen(text) == (size_t)n ? tn_describe_parse(text, ret) : -EBADMSG;
	if (r == 0 && fstatat(home, FILE_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0)
		ret->last_used_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	return r;
}
