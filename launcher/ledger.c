/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ledger.h"

#include "ledger-entry.h"
#include "macros.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define NESTING_MAX 64

/* Strings are never freed one by one: they live in chunks that go with the ledger. */
struct TnLedgerChunk {
	struct TnLedgerChunk *next;
	size_t used, size;
	char bytes[];
};

typedef struct Cursor {
	const char *at, *end;
} Cursor;

TnLedger *tn_ledger_new(void)
{
	TnLedger *ledger = calloc(1, sizeof(*ledger));

	if (ledger)
		ledger->others = "";
	return ledger;
}

void tn_ledger_free(TnLedger *ledger)
{
	if (!ledger)
		return;
	while (ledger->chunks) {
		struct TnLedgerChunk *chunk = ledger->chunks;

		ledger->chunks = chunk->next;
		free(chunk);
	}
	free(ledger->entries);
	free(ledger);
}

/* Room for a string of size bytes and its end, which is not yet written. */
static char *new_string(TnLedger *ledger, size_t size)
{
	struct TnLedgerChunk *chunk = ledger->chunks;

	if (!chunk || chunk->size - chunk->used < size + 1) {
		size_t bytes = size + 1 > 65536 ? size + 1 : 65536;

		chunk = malloc(sizeof(*chunk) + bytes);
		if (!chunk)
			return NULL;
		*chunk = (struct TnLedgerChunk){.next = ledger->chunks, .size = bytes};
		ledger->chunks = chunk;
	}
	chunk->used += size + 1;
	return chunk->bytes + chunk->used - size - 1;
}

const char *tn_ledger_string(TnLedger *ledger, const char *text, size_t size)
{
	char *copy = new_string(ledger, size);

	if (copy) {
		memcpy(copy, text, size);
		copy[size] = '\0';
	}
	return copy;
}

static bool string_fits(const char *text, size_t max)
{
	return text && strnlen(text, max + 1) <= max;
}

/* Absolute, with no empty, "." or ".." component and no slash at the end. */
static bool path_is_sound(const char *path)
{
	if (!string_fits(path, PATH_MAX - 1) || path[0] != '/' || path[1] == '\0')
		return false;
	for (const char *part = path; *part; part += strcspn(part, "/")) {
		size_t length = strcspn(++part, "/");

		if (length == 0 || length > NAME_MAX || (length == 1 && part[0] == '.') ||
		    (length == 2 && part[0] == '.' && part[1] == '.'))
			return false;
	}
	return true;
}

/* JSON can hold no other bytes. */
static bool is_utf8(const char *text)
{
	json_t *string;

	while (*text && (unsigned char)*text < 0x80)
		text++;
	if (!*text)
		return true;
	string = json_string(text);
	json_decref(string);
	return string != NULL;
}

bool tn_ledger_entry_is_sound(const TnLedgerEntry *entry)
{
	const TnStubHolder *holder = &entry->holder;

	return path_is_sound(entry->path) && (entry->ino != 0 || entry->planned) &&
	       (holder->pid > 0 && holder->pid <= INT_MAX) &&
	       string_fits(entry->run_id, TN_LEDGER_RUN_ID_MAX) && entry->run_id[0] != '\0' &&
	       (!holder->lease || path_is_sound(holder->lease)) && is_utf8(entry->path) &&
	       is_utf8(entry->run_id) && (!holder->lease || is_utf8(holder->lease));
}

static int append(TnLedger *ledger, const TnLedgerEntry *entry)
{
	if (ledger->n_entries == TN_LEDGER_ENTRIES_MAX)
		return -ENOSPC;
	if (ledger->n_entries == ledger->n_allocated) {
		size_t more = ledger->n_allocated ? ledger->n_allocated * 2 : 64;
		TnLedgerEntry *entries =
			reallocarray(ledger->entries, more, sizeof(*ledger->entries));

		if (!entries)
			return -ENOMEM;
		ledger->entries = entries;
		ledger->n_allocated = more;
	}
	ledger->entries[ledger->n_entries++] = *entry;
	return 0;
}

int tn_ledger_add(TnLedger *ledger, const TnLedgerEntry *entry, TnLedgerEntry **ret)
{
	TnLedgerEntry copy = *entry;
	int result;

	if (!tn_ledger_entry_is_sound(entry))
		return -EINVAL;
	copy.raw = NULL;
	copy.path = tn_ledger_string(ledger, entry->path, strlen(entry->path));
	copy.run_id = tn_ledger_string(ledger, entry->run_id, strlen(entry->run_id));
	if (entry->holder.lease)
		copy.holder.lease =
			tn_ledger_string(ledger, entry->holder.lease, strlen(entry->holder.lease));
	if (!copy.path || !copy.run_id || (entry->holder.lease && !copy.holder.lease))
		return -ENOMEM;
	result = append(ledger, &copy);
	if (result == 0 && ret)
		*ret = &ledger->entries[ledger->n_entries - 1];
	return result;
}

void tn_ledger_purge(TnLedger *ledger)
{
	size_t kept = 0;

	for (size_t i = 0; i < ledger->n_entries; i++) {
		if (!ledger->entries[i].dropped)
			ledger->entries[kept++] = ledger->entries[i];
	}
	ledger->n_entries = kept;
}

static void skip_space(Cursor *cursor)
{
	while (cursor->at < cursor->end && strchr(" \t\r\n", *cursor->at) && *cursor->at)
		cursor->at++;
}

static bool take(Cursor *cursor, char wanted)
{
	skip_space(cursor);
	if (cursor->at == cursor->end || *cursor->at != wanted)
		return false;
	cursor->at++;
	return true;
}

static bool skip_string(Cursor *cursor)
{
	if (!take(cursor, '"'))
		return false;
	while (cursor->at < cursor->end) {
		char c = *cursor->at++;

		if (c == '"')
			return true;
		if (c == '\\' && cursor->at < cursor->end)
			cursor->at++;
	}
	return false;
}

/*
 * Moves past one value by its brackets and quotes alone; jansson judges what is inside.
 * False when it is cut short, wrongly closed or nested too deeply.
 */
static bool skip_value(Cursor *cursor)
{
	char closers[NESTING_MAX];
	size_t depth = 0;

	skip_space(cursor);
	do {
		char c;

		if (cursor->at == cursor->end)
			return false;
		c = *cursor->at;
		if (c == '"') {
			if (!skip_string(cursor))
				return false;
		} else if (c == '{' || c == '[') {
			if (depth == NESTING_MAX)
				return false;
			closers[depth++] = c == '{' ? '}' : ']';
			cursor->at++;
		} else if (depth && (c == '}' || c == ']')) {
			if (closers[--depth] != c)
				return false;
			cursor->at++;
		} else if (depth) {
			cursor->at++;
		} else {
			const char *start = cursor->at;

			while (cursor->at < cursor->end &&
			       strchr("+-.0123456789aefElnrstu", *cursor->at) && *cursor->at)
				cursor->at++;
			return cursor->at > start;
		}
	} while (depth);
	return true;
}

static int read_entry(TnLedger *ledger, Cursor *cursor)
{
	TnLedgerEntry entry = {0};
	const char *start;
	size_t size;
	int result;

	skip_space(cursor);
	start = cursor->at;
	size = tn_ledger_entry_read_own(ledger, start, cursor->end, &entry);
	if (size > 0) {
		cursor->at += size;
	} else {
		if (!skip_value(cursor))
			return -EBADMSG;
		size = (size_t)(cursor->at - start);
		result = tn_ledger_entry_read_json(ledger, start, size, &entry);
		if (result == -ENOMEM)
			return result;
		if (result < 0) {
			ledger->n_malformed++;
			return 0;
		}
	}
	if (!tn_ledger_entry_is_sound(&entry)) {
		ledger->n_malformed++;
		return 0;
	}
	entry.raw = start;
	entry.raw_size = size;
	result = append(ledger, &entry);
	return result == -ENOSPC ? -EFBIG : result;
}

static int read_entries(TnLedger *ledger, Cursor *cursor)
{
	if (!take(cursor, '['))
		return -EBADMSG;
	if (take(cursor, ']'))
		return 0;
	do {
		int result = read_entry(ledger, cursor);

		if (result < 0)
			return result;
	} while (take(cursor, ','));
	return take(cursor, ']') ? 0 : -EBADMSG;
}

/* Keeps a member that is not ours as ",\n" and its text. */
static int keep_member(FILE *others, const char *key, const char *value, const char *end)
{
	json_error_t error;
	json_t *json = json_loadb(value, (size_t)(end - value), JSON_DECODE_ANY, &error);

	if (!json)
		return -EBADMSG;
	json_decref(json);
	fputs(",\n", others);
	fwrite(key, 1, (size_t)(end - key), others);
	return 0;
}

static int read_members(TnLedger *ledger, Cursor *cursor, FILE *others)
{
	bool seen = false;

	if (!take(cursor, '{'))
		return -EBADMSG;
	if (take(cursor, '}'))
		return 0;
	do {
		const char *key, *value;
		size_t key_size;
		int result;

		skip_space(cursor);
		key = cursor->at;
		if (!skip_string(cursor))
			return -EBADMSG;
		key_size = (size_t)(cursor->at - key);
		if (!take(cursor, ':'))
			return -EBADMSG;
		skip_space(cursor);
		value = cursor->at;
		if (key_size == 9 && memcmp(key, "\"entries\"", 9) == 0) {
			if (seen)
				return -EBADMSG;
			seen = true;
			result = read_entries(ledger, cursor);
		} else {
			result = skip_value(cursor) ? keep_member(others, key, value, cursor->at)
						    : -EBADMSG;
		}
		if (result < 0)
			return result;
	} while (take(cursor, ','));
	return take(cursor, '}') ? 0 : -EBADMSG;
}

TnLedger *tn_ledger_new_with_room(size_t size, char **ret_room)
{
	TnLedger *ledger = tn_ledger_new();
	const char *room = ledger ? new_string(ledger, size) : NULL;

	if (!room) {
		tn_ledger_free(ledger);
		return NULL;
	}
	*ret_room = (char *)room;
	return ledger;
}

int tn_ledger_parse_room(TnLedger *ledger, const char *room, size_t size)
{
	TN_AUTOFREE char *others = NULL;
	size_t others_size = 0;
	Cursor cursor = {.at = room, .end = room + size};
	FILE *stream;
	int result;

	if (memchr(room, '\0', size))
		return -EBADMSG;
	skip_space(&cursor);
	if (cursor.at == cursor.end)
		return 0;
	stream = open_memstream(&others, &others_size);
	if (!stream)
		return -ENOMEM;
	result = read_members(ledger, &cursor, stream);
	if (fclose(stream) != 0 && result == 0)
		result = -ENOMEM;
	skip_space(&cursor);
	if (result == 0 && cursor.at != cursor.end)
		result = -EBADMSG;
	if (result == 0 && others_size > 0)
		ledger->others = tn_ledger_string(ledger, others, others_size);
	return result == 0 && !ledger->others ? -ENOMEM : result;
}

int tn_ledger_parse(const char *text, size_t size, TnLedger **ret)
{
	TnLedger *ledger;
	char *room;
	int result;

	if (size > TN_LEDGER_TEXT_MAX)
		return -EFBIG;
	ledger = tn_ledger_new_with_room(size, &room);
	if (!ledger)
		return -ENOMEM;
	memcpy(room, text, size);
	room[size] = '\0';
	result = tn_ledger_parse_room(ledger, room, size);
	if (result < 0)
		tn_ledger_free(ledger);
	else
		*ret = ledger;
	return result;
}

static bool is_as_read(const TnLedgerEntry *entry)
{
	return entry->raw && !entry->changed && !entry->dropped;
}

/*
 * Entries that stand one after the other in the text that was read are written in one piece: most
 * of a long ledger is never touched. Returns the place after the run that starts at i.
 */
static size_t print_run(const TnLedger *ledger, size_t i, FILE *out)
{
	const TnLedgerEntry *first = &ledger->entries[i], *last = first;

	for (i++; i < ledger->n_entries; i++) {
		const TnLedgerEntry *next = &ledger->entries[i];
		const char *end = last->raw + last->raw_size;

		if (!is_as_read(next) || next->raw != end + 2 || memcmp(end, ",\n", 2) != 0)
			break;
		last = next;
	}
	fwrite(first->raw, 1, (size_t)(last->raw + last->raw_size - first->raw), out);
	return i;
}

int tn_ledger_print(const TnLedger *ledger, FILE *out)
{
	const char *separator = "\n";
	int result = 0;

	fputs("{\"entries\":[", out);
	for (size_t i = 0; i < ledger->n_entries && result == 0;) {
		const TnLedgerEntry *entry = &ledger->entries[i];

		if (entry->dropped) {
			i++;
			continue;
		}
		fputs(separator, out);
		separator = ",\n";
		if (is_as_read(entry)) {
			i = print_run(ledger, i, out);
		} else {
			result = tn_ledger_entry_write(out, entry);
			i++;
		}
	}
	fprintf(out, "\n]%s}\n", ledger->others);
	return result;
}

int tn_ledger_serialize(const TnLedger *ledger, char **ret, size_t *ret_size)
{
	TN_AUTOFREE char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	int result;

	if (!stream)
		return -ENOMEM;
	result = tn_ledger_print(ledger, stream);
	if (fclose(stream) != 0 && result == 0)
		result = -ENOMEM;
	if (result == 0 && size > TN_LEDGER_TEXT_MAX)
		result = -EFBIG;
	if (result == 0) {
		*ret = text;
		*ret_size = size;
		text = NULL;
	}
	return result;
}
