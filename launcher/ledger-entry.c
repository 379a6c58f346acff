/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ledger-entry.h"

#include "macros.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

typedef struct Reader {
	TnLedger *ledger;
	const char *at, *end;
	bool failed;
} Reader;

static bool reads(Reader *reader, const char *literal)
{
	size_t length = strlen(literal);

	if (reader->failed || (size_t)(reader->end - reader->at) < length ||
	    memcmp(reader->at, literal, length) != 0)
		return false;
	reader->at += length;
	return true;
}

static void expect(Reader *reader, const char *literal)
{
	if (!reads(reader, literal))
		reader->failed = true;
}

/* Plain ASCII up to the closing quote; anything that needs decoding fails. */
static const char *read_plain(Reader *reader)
{
	const char *start = reader->at, *text;

	while (!reader->failed && reader->at < reader->end && *reader->at != '"') {
		if (*reader->at == '\\' || *reader->at < 0x20)
			reader->failed = true;
		reader->at++;
	}
	if (reader->failed || reader->at == reader->end) {
		reader->failed = true;
		return NULL;
	}
	text = tn_ledger_string(reader->ledger, start, (size_t)(reader->at - start));
	reader->at++;
	if (!text)
		reader->failed = true;
	return text;
}

static uint64_t read_number(Reader *reader)
{
	const char *start = reader->at;
	uint64_t value = 0;

	while (!reader->failed && reader->at < reader->end && *reader->at >= '0' &&
	       *reader->at <= '9') {
		if (reader->at - start >= 18)
			reader->failed = true;
		value = value * 10 + (uint64_t)(*reader->at++ - '0');
	}
	if (reader->at == start || (*start == '0' && reader->at - start > 1))
		reader->failed = true;
	return value;
}

/* Nanoseconds in quotes; 19 digits are this century's. */
static int64_t read_nanoseconds(Reader *reader)
{
	const char *text = read_plain(reader);
	char *end = NULL;
	int64_t value;

	if (!text || *text < '0' || *text > '9')
		reader->failed = true;
	if (reader->failed)
		return 0;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || *end)
		reader->failed = true;
	return value;
}

/* The change time in milliseconds: digits, a point, digits, as write_own() prints it. */
static double read_milliseconds(Reader *reader)
{
	char *end = NULL;
	double value;

	for (const char *c = reader->at; c < reader->end && *c != ','; c++) {
		if (!(*c >= '0' && *c <= '9') && *c != '.')
			reader->failed = true;
	}
	if (reader->failed || reader->at == reader->end || *reader->at == '.' || *reader->at == '0')
		return 0;
	value = strtod(reader->at, &end);
	reader->at = end;
	if (end[-1] == '.')
		reader->failed = true;
	return value;
}

/* "pid:[4026531836]" -> 4026531836; 0 for anything else. */
static uint64_t namespace_number(const char *text)
{
	uint64_t value = 0;
	int used = 0;

	if (strncmp(text, "pid:[", 5) != 0 || text[5] < '0' || text[5] > '9' || strlen(text) > 26 ||
	    sscanf(text, "pid:[%" SCNu64 "]%n", &value, &used) != 1 || used == 0 ||
	    text[used] != '\0')
		return 0;
	return value;
}

static void set_boot(TnStubHolder *holder, const char *text)
{
	/* one that does not fit is no boot id, and is as good as another boot's */
	snprintf(holder->boot_id, sizeof(holder->boot_id), "%s", text);
}

static void read_holder(Reader *reader, TnLedgerEntry *entry)
{
	expect(reader, ",\"pid\":");
	entry->holder.pid = (int64_t)read_number(reader);
	if (reads(reader, ",\"pidNamespace\":\"")) {
		const char *text = read_plain(reader);

		entry->holder.pid_namespace = text ? namespace_number(text) : 0;
		if (entry->holder.pid_namespace == 0)
			reader->failed = true;
	}
	if (reads(reader, ",\"bootId\":\"")) {
		const char *text = read_plain(reader);

		if (text)
			set_boot(&entry->holder, text);
	}
}

size_t tn_ledger_entry_read_own(TnLedger *ledger, const char *text, const char *end,
				TnLedgerEntry *ret)
{
	Reader reader = {.ledger = ledger, .at = text, .end = end};
	TnLedgerEntry entry = {0};

	expect(&reader, "{\"path\":\"");
	entry.path = read_plain(&reader);
	expect(&reader, ",\"ino\":");
	entry.ino = read_number(&reader);
	expect(&reader, ",\"dev\":");
	entry.dev = read_number(&reader);
	entry.kind = reads(&reader, ",\"kind\":\"dir\"") ? TN_STUB_DIR : TN_STUB_FILE;
	if (entry.kind == TN_STUB_FILE)
		expect(&reader, ",\"kind\":\"file\"");
	entry.has_ctime_ms = reads(&reader, ",\"ctimeMs\":");
	if (entry.has_ctime_ms)
		entry.ctime_ms = read_milliseconds(&reader);
	read_holder(&reader, &entry);
	expect(&reader, ",\"runId\":\"");
	entry.run_id = read_plain(&reader);
	expect(&reader, ",\"createdAt\":");
	entry.created_ms = (int64_t)read_number(&reader);
	if (reads(&reader, ",\"startTime\":"))
		entry.holder.start_time = read_number(&reader);
	if (reads(&reader, ",\"ctimeNs\":\""))
		entry.ctime_ns = read_nanoseconds(&reader);
	if (reads(&reader, ",\"btimeNs\":\""))
		entry.btime_ns = read_nanoseconds(&reader);
	if (reads(&reader, ",\"lease\":\""))
		entry.holder.lease = read_plain(&reader);
	entry.planned = reads(&reader, ",\"planned\":true");
	entry.filled = reads(&reader, ",\"filled\":true");
	entry.adopted = reads(&reader, ",\"adopted\":true");
	entry.by_mounts = reads(&reader, ",\"byMounts\":true");
	expect(&reader, "}");
	if (reader.failed)
		return 0;
	*ret = entry;
	return (size_t)(reader.at - text);
}

/*
 * A whole number >= 0: a JSON integer, a real without fraction (as JavaScript writes
 * large ones) or digits in a string. False for anything else.
 */
static bool whole_number(const json_t *value, uint64_t *ret)
{
	if (json_is_integer(value)) {
		if (json_integer_value(value) < 0)
			return false;
		*ret = (uint64_t)json_integer_value(value);
		return true;
	}
	if (json_is_real(value)) {
		double real = json_real_value(value);

		if (!(real >= 0 && real <= 0x1p53 && real == floor(real)))
			return false;
		*ret = (uint64_t)real;
		return true;
	}
	if (json_is_string(value)) {
		const char *text = json_string_value(value);
		char *end = NULL;

		if (*text < '0' || *text > '9')
			return false;
		errno = 0;
		*ret = strtoull(text, &end, 10);
		return errno == 0 && *end == '\0';
	}
	return false;
}

/* A missing or null member leaves *ret alone; a member of the wrong form is false. */
static bool optional_number(const json_t *object, const char *key, uint64_t max, uint64_t *ret)
{
	const json_t *value = json_object_get(object, key);
	uint64_t number;

	if (!value || json_is_null(value))
		return true;
	if (!whole_number(value, &number) || number > max)
		return false;
	*ret = number;
	return true;
}

static bool flag(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

static int64_t created_at(const json_t *value)
{
	int64_t ms = 0;

	/* others may write text here: it is kept, and shown as unknown */
	if (json_is_integer(value))
		ms = json_integer_value(value);
	else if (json_is_real(value) && fabs(json_real_value(value)) < 0x1p53)
		ms = (int64_t)json_real_value(value);
	return ms > 0 ? ms : 0;
}

static bool read_json_holder(const json_t *object, TnStubHolder *holder)
{
	const json_t *ns = json_object_get(object, "pidNamespace");
	const json_t *boot = json_object_get(object, "bootId");
	uint64_t pid = 0;

	if (!whole_number(json_object_get(object, "pid"), &pid) || pid > INT32_MAX)
		return false;
	holder->pid = (int64_t)pid;
	if (json_is_string(ns))
		holder->pid_namespace = namespace_number(json_string_value(ns));
	/* any other text that is there names a namespace that we cannot decide about */
	if (ns && !json_is_null(ns) && holder->pid_namespace == 0 &&
	    !whole_number(ns, &holder->pid_namespace))
		holder->pid_namespace = TN_PID_NAMESPACE_ODD;
	if (json_is_string(boot))
		set_boot(holder, json_string_value(boot));
	else if (boot && !json_is_null(boot))
		return false;
	return optional_number(object, "startTime", INT64_MAX, &holder->start_time);
}

static bool read_json_times(const json_t *object, TnLedgerEntry *entry)
{
	const json_t *ms = json_object_get(object, "ctimeMs");
	uint64_t ctime = 0, btime = 0;

	if (json_is_number(ms)) {
		entry->has_ctime_ms = true;
		entry->ctime_ms = json_number_value(ms);
	} else if (ms && !json_is_null(ms)) {
		return false;
	}
	if (!optional_number(object, "ctimeNs", INT64_MAX, &ctime) ||
	    !optional_number(object, "btimeNs", INT64_MAX, &btime))
		return false;
	entry->ctime_ns = (int64_t)ctime;
	entry->btime_ns = (int64_t)btime;
	return true;
}

static bool read_json_kind(const json_t *object, TnStubKind *ret)
{
	const char *kind = json_string_value(json_object_get(object, "kind"));

	if (!kind)
		return false;
	*ret = strcmp(kind, "file") == 0 ? TN_STUB_FILE : TN_STUB_DIR;
	return strcmp(kind, "file") == 0 || strcmp(kind, "dir") == 0 ||
	       strcmp(kind, "directory") == 0;
}

static bool read_json_object(const json_t *object, TnLedgerEntry *entry)
{
	const json_t *lease = json_object_get(object, "lease");

	if (!json_is_string(json_object_get(object, "path")) ||
	    !json_is_string(json_object_get(object, "runId")) ||
	    (lease && !json_is_null(lease) && !json_is_string(lease)) ||
	    !whole_number(json_object_get(object, "ino"), &entry->ino) ||
	    !whole_number(json_object_get(object, "dev"), &entry->dev) ||
	    !read_json_kind(object, &entry->kind) || !read_json_times(object, entry) ||
	    !read_json_holder(object, &entry->holder))
		return false;
	entry->path = json_string_value(json_object_get(object, "path"));
	entry->run_id = json_string_value(json_object_get(object, "runId"));
	entry->holder.lease = json_string_value(lease);
	entry->created_ms = created_at(json_object_get(object, "createdAt"));
	entry->planned = flag(object, "planned");
	entry->filled = flag(object, "filled");
	entry->adopted = flag(object, "adopted");
	entry->by_mounts = flag(object, "byMounts");
	return true;
}

int tn_ledger_entry_read_json(TnLedger *ledger, const char *text, size_t size, TnLedgerEntry *ret)
{
	TnLedgerEntry entry = {0};
	json_error_t error;
	json_t *object = json_loadb(text, size, 0, &error);
	int result = -EBADMSG;

	if (object && json_is_object(object) && read_json_object(object, &entry)) {
		entry.path = tn_ledger_string(ledger, entry.path, strlen(entry.path));
		entry.run_id = tn_ledger_string(ledger, entry.run_id, strlen(entry.run_id));
		if (entry.holder.lease)
			entry.holder.lease = tn_ledger_string(ledger, entry.holder.lease,
							      strlen(entry.holder.lease));
		result = entry.path && entry.run_id ? 0 : -ENOMEM;
	}
	json_decref(object);
	if (result == 0)
		*ret = entry;
	return result;
}

static void write_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void write_optional_ns(FILE *out, const char *key, int64_t ns)
{
	if (ns > 0)
		fprintf(out, ",\"%s\":\"%" PRId64 "\"", key, ns);
}

static void write_own(FILE *out, const TnLedgerEntry *entry)
{
	const TnStubHolder *holder = &entry->holder;

	fputs("{\"path\":", out);
	write_string(out, entry->path);
	fprintf(out, ",\"ino\":%" PRIu64 ",\"dev\":%" PRIu64 ",\"kind\":\"%s\"", entry->ino,
		entry->dev, entry->kind == TN_STUB_DIR ? "dir" : "file");
	if (entry->has_ctime_ms)
		fprintf(out, ",\"ctimeMs\":%.17g", entry->ctime_ms);
	fprintf(out, ",\"pid\":%" PRId64, holder->pid);
	if (holder->pid_namespace)
		fprintf(out, ",\"pidNamespace\":\"pid:[%" PRIu64 "]\"", holder->pid_namespace);
	if (holder->boot_id[0]) {
		fputs(",\"bootId\":", out);
		write_string(out, holder->boot_id);
	}
	fputs(",\"runId\":", out);
	write_string(out, entry->run_id);
	fprintf(out, ",\"createdAt\":%" PRId64, entry->created_ms);
	if (holder->start_time)
		fprintf(out, ",\"startTime\":%" PRIu64, holder->start_time);
	write_optional_ns(out, "ctimeNs", entry->ctime_ns);
	write_optional_ns(out, "btimeNs", entry->btime_ns);
	if (holder->lease) {
		fputs(",\"lease\":", out);
		write_string(out, holder->lease);
	}
	fputs(entry->planned ? ",\"planned\":true" : "", out);
	fputs(entry->filled ? ",\"filled\":true" : "", out);
	fputs(entry->adopted ? ",\"adopted\":true" : "", out);
	fputs(entry->by_mounts ? ",\"byMounts\":true" : "", out);
	fputc('}', out);
}

/* Puts the members of the written entry over those of the one that was read. */
static int write_merged(FILE *out, const TnLedgerEntry *entry, const char *own)
{
	json_error_t error;
	json_t *object = json_loadb(entry->raw, entry->raw_size, 0, &error);
	json_t *update = json_loads(own, 0, &error);
	TN_AUTOFREE char *text = NULL;

	if (object && update) {
		/* what we know and no longer say must not survive from before */
		for (size_t i = 0; i < 8; i++)
			json_object_del(object,
					(const char *const[]){"planned", "filled", "adopted",
							      "byMounts", "lease", "startTime",
							      "pidNamespace", "bootId"}[i]);
		json_object_update(object, update);
		text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
	}
	json_decref(object);
	json_decref(update);
	if (!text)
		return -ENOMEM;
	fputs(text, out);
	return 0;
}

int tn_ledger_entry_write(FILE *out, const TnLedgerEntry *entry)
{
	TN_AUTOFREE char *own = NULL;
	size_t size = 0;
	FILE *stream;

	if (!entry->raw) {
		write_own(out, entry);
		return 0;
	}
	stream = open_memstream(&own, &size);
	if (!stream)
		return -ENOMEM;
	write_own(stream, entry);
	if (fclose(stream) != 0)
		return -ENOMEM;
	return write_merged(out, entry, own);
}
