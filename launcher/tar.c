/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 512
#define RECORD (20 * BLOCK) /* what tapes and old readers expect the size to be a multiple of */
#define OCTAL_11 077777777777ULL
#define OCTAL_7 07777777ULL

/* ustar's header block (POSIX.1-1988). */
typedef struct Header {
	char name[100];
	char mode[8], uid[8], gid[8];
	char size[12], mtime[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[6], version[2];
	char user[32], group[32];
	char major[8], minor[8];
	char prefix[155];
	char padding[12];
} Header;
G_STATIC_ASSERT(sizeof(Header) == BLOCK);

struct TnTar {
	int fd;
	guint64 written;
	guint64 missing; /* of the present entry's data */
	gsize pad;       /* zeros after it */
	GByteArray *buffer;
};

TnTar *tn_tar_new(int fd)
{
	TnTar *tar = g_new0(TnTar, 1);

	tar->fd = fd;
	tar->buffer = g_byte_array_sized_new(2 * RECORD);
	return tar;
}

void tn_tar_free(TnTar *tar)
{
	if (tar == NULL)
		return;
	g_byte_array_unref(tar->buffer);
	g_free(tar);
}

guint64 tn_tar_written(const TnTar *tar)
{
	return tar->written;
}

guint64 tn_tar_missing(const TnTar *tar)
{
	return tar->missing;
}

/* --- output ------------------------------------------------------------------------------------
 */

static int flush(TnTar *tar)
{
	gsize done = 0;

	while (done < tar->buffer->len) {
		ssize_t n = write(tar->fd, tar->buffer->data + done, tar->buffer->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (gsize)n;
	}
	g_byte_array_set_size(tar->buffer, 0);
	return 0;
}

static int put(TnTar *tar, const void *data, gsize size)
{
	const guint8 *at = data;

	tar->written += size;
	while (size > 0) {
		gsize some = MIN(size, (gsize)RECORD);

		g_byte_array_append(tar->buffer, at, (guint)some);
		at += some;
		size -= some;
		if (tar->buffer->len >= RECORD) {
			int r = flush(tar);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int put_zeros(TnTar *tar, guint64 size)
{
	static const char zeros[RECORD];

	while (size > 0) {
		gsize some = (gsize)MIN(size, (guint64)sizeof(zeros));
		int r = put(tar, zeros, some);

		if (r < 0)
			return r;
		size -= some;
	}
	return 0;
}

static gsize padding_of(guint64 size)
{
	return (gsize)((BLOCK - size % BLOCK) % BLOCK);
}

/* --- headers -----------------------------------------------------------------------------------
 */

/* A field of octal digits with a NUL; a value that does not fit is in the pax records. */
static void set_octal(char *field, gsize size, guint64 value, guint64 most)
{
	char text[32];

	g_snprintf(text, sizeof(text), "%0*" G_GINT64_MODIFIER "o", (int)size - 1,
		   value > most ? 0 : value);
	memcpy(field, text, size);
}

static void seal(Header *header)
{
	const guchar *bytes = (const guchar *)header;
	unsigned sum = 0;

	memcpy(header->magic, "ustar", 6);
	memcpy(header->version, "00", 2);
	memset(header->checksum, ' ', sizeof(header->checksum));
	for (gsize i = 0; i < sizeof(*header); i++)
		sum += bytes[i];
	g_snprintf(header->checksum, sizeof(header->checksum), "%06o", sum);
}

/* A record is "LENGTH KEY=VALUE\n", where LENGTH counts its own digits. */
static void add_record(GByteArray *records, const char *key, const void *value, gsize size)
{
	gsize rest = strlen(key) + size + 3, length = rest + 1;
	g_autofree char *head = NULL;

	while (length < rest + (gsize)snprintf(NULL, 0, "%" G_GSIZE_FORMAT, length))
		length++;
	head = g_strdup_printf("%" G_GSIZE_FORMAT " %s=", length, key);
	g_byte_array_append(records, (const guint8 *)head, (guint)strlen(head));
	g_byte_array_append(records, value, (guint)size);
	g_byte_array_append(records, (const guint8 *)"\n", 1);
}

static void add_text(GByteArray *records, const char *key, const char *value)
{
	add_record(records, key, value, strlen(value));
}

static void add_number(GByteArray *records, const char *key, guint64 value)
{
	char text[24];

	g_snprintf(text, sizeof(text), "%" G_GUINT64_FORMAT, value);
	add_text(records, key, text);
}

static void add_time(GByteArray *records, gint64 ns)
{
	/* A fraction always counts upwards: -0.5 is half a second before the epoch. */
	guint64 size = ns < 0 ? 0 - (guint64)ns : (guint64)ns;
	char text[48];

	g_snprintf(text, sizeof(text), "%s%" G_GUINT64_FORMAT ".%09u", ns < 0 ? "-" : "",
		   size / 1000000000, (unsigned)(size % 1000000000));
	add_text(records, "mtime", text);
}

static gboolean is_ascii(const char *text)
{
	for (; *text != '\0'; text++) {
		if ((guchar)*text >= 0x80)
			return FALSE;
	}
	return TRUE;
}

static gboolean fits(const char *text, gsize size)
{
	return strlen(text) <= size && is_ascii(text);
}

static void add_xattrs(GByteArray *records, const GPtrArray *xattrs)
{
	for (guint i = 0; xattrs != NULL && i + 1 < xattrs->len; i += 2) {
		g_autofree char *key =
			g_strconcat("SCHILY.xattr.", g_ptr_array_index(xattrs, i), NULL);
		gsize size;
		const void *value = g_bytes_get_data(g_ptr_array_index(xattrs, i + 1), &size);

		/* "=" ends the key, so a name that holds one could not be read back. */
		if (strchr(key, '=') == NULL)
			add_record(records, key, value, size);
	}
}

static GByteArray *make_records(const TnTarEntry *entry, guint64 stored)
{
	GByteArray *records = g_byte_array_new();

	if (entry->ranges != NULL) {
		add_text(records, "GNU.sparse.major", "1");
		add_text(records, "GNU.sparse.minor", "0");
		add_text(records, "GNU.sparse.name", entry->path);
		add_number(records, "GNU.sparse.realsize", entry->size);
	} else if (!fits(entry->path, sizeof(((Header *)0)->name))) {
		add_text(records, "path", entry->path);
	}
	if (entry->target != NULL && !fits(entry->target, sizeof(((Header *)0)->link)))
		add_text(records, "linkpath", entry->target);
	if (stored > OCTAL_11)
		add_number(records, "size", stored);
	if (entry->uid > OCTAL_7)
		add_number(records, "uid", entry->uid);
	if (entry->gid > OCTAL_7)
		add_number(records, "gid", entry->gid);
	if (entry->mtime_ns % 1000000000 != 0 || entry->mtime_ns < 0 ||
	    (guint64)entry->mtime_ns / 1000000000 > OCTAL_11)
		add_time(records, entry->mtime_ns);
	add_xattrs(records, entry->xattrs);
	return records;
}

static int put_records(TnTar *tar, const GByteArray *records)
{
	Header header = {.name = "PaxHeaders/entry", .type = 'x'};
	int r;

	if (records->len == 0)
		return 0;
	set_octal(header.mode, sizeof(header.mode), 0644, OCTAL_7);
	set_octal(header.uid, sizeof(header.uid), 0, OCTAL_7);
	set_octal(header.gid, sizeof(header.gid), 0, OCTAL_7);
	set_octal(header.size, sizeof(header.size), records->len, OCTAL_11);
	set_octal(header.mtime, sizeof(header.mtime), 0, OCTAL_11);
	seal(&header);
	r = put(tar, &header, sizeof(header));
	if (r == 0)
		r = put(tar, records->data, records->len);
	return r < 0 ? r : put_zeros(tar, padding_of(records->len));
}

static char type_flag(char type)
{
	switch (type) {
	case 'd':
		return '5';
	case 'l':
		return '2';
	case 'p':
		return '6';
	case 'h':
		return '1';
	default:
		return '0';
	}
}

/* Where the data is, at the start of a sparse entry's data; padded to a block. */
static GString *make_map(const TnTarEntry *entry)
{
	GString *map = g_string_new(NULL);

	g_string_append_printf(map, "%" G_GSIZE_FORMAT "\n", entry->n_ranges);
	for (gsize i = 0; i < entry->n_ranges; i++)
		g_string_append_printf(map, "%" G_GUINT64_FORMAT "\n%" G_GUINT64_FORMAT "\n",
				       entry->ranges[i].offset, entry->ranges[i].size);
	while (map->len % BLOCK != 0)
		g_string_append_c(map, '\0');
	return map;
}

static int put_header(TnTar *tar, const TnTarEntry *entry, guint64 stored)
{
	g_autoptr(GByteArray) records = make_records(entry, stored);
	const char *name = entry->ranges != NULL ? "GNUSparseFile.0/sparse" : entry->path;
	Header header = {.type = type_flag(entry->type)};
	int r;

	memcpy(header.name, name, MIN(strlen(name), sizeof(header.name)));
	if (entry->target != NULL)
		memcpy(header.link, entry->target, MIN(strlen(entry->target), sizeof(header.link)));
	set_octal(header.mode, sizeof(header.mode), entry->mode, OCTAL_7);
	set_octal(header.uid, sizeof(header.uid), entry->uid, OCTAL_7);
	set_octal(header.gid, sizeof(header.gid), entry->gid, OCTAL_7);
	set_octal(header.size, sizeof(header.size), stored, OCTAL_11);
	set_octal(header.mtime, sizeof(header.mtime),
		  entry->mtime_ns < 0 ? 0 : (guint64)entry->mtime_ns / 1000000000, OCTAL_11);
	seal(&header);
	r = put_records(tar, records);
	return r < 0 ? r : put(tar, &header, sizeof(header));
}

int tn_tar_begin(TnTar *tar, const TnTarEntry *entry)
{
	g_autoptr(GString) map = NULL;
	guint64 data = entry->type == '-' ? entry->size : 0;
	int r;

	g_assert(tar->missing == 0);
	if (entry->ranges != NULL) {
		data = 0;
		for (gsize i = 0; i < entry->n_ranges; i++)
			data += entry->ranges[i].size;
		map = make_map(entry);
	}
	r = put_header(tar, entry, data + (map != NULL ? map->len : 0));
	if (r == 0 && map != NULL)
		r = put(tar, map->str, map->len);
	tar->missing = data;
	tar->pad = padding_of(data);
	return r;
}

static int took(TnTar *tar, guint64 size, int r)
{
	tar->missing -= size;
	if (r == 0 && tar->missing == 0)
		r = put_zeros(tar, tar->pad);
	return r;
}

int tn_tar_data(TnTar *tar, const void *data, gsize size)
{
	g_assert(size <= tar->missing);
	return size == 0 ? 0 : took(tar, size, put(tar, data, size));
}

int tn_tar_fill(TnTar *tar, guint64 size)
{
	g_assert(size <= tar->missing);
	return size == 0 ? 0 : took(tar, size, put_zeros(tar, size));
}

int tn_tar_end(TnTar *tar)
{
	int r = put_zeros(tar, (guint64)2 * BLOCK);

	if (r == 0)
		r = put_zeros(tar, (RECORD - tar->written % RECORD) % RECORD);
	return r < 0 ? r : flush(tar);
}
