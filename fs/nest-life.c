/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A nest's attachments and pins, written into its arena at each change, so that a successor
 * knows who uses the nest. Two copies take turns: the header says which one holds.
 */
#include "nest-life.h"

#include "nest-private.h"

#include "log.h"
#include "macros.h"
#include "stranger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Followed by n_pins pins. */
typedef struct SavedAttachment {
	uint64_t id;
	int32_t lease;
	uint32_t n_pins;
} SavedAttachment;

/* Followed by `size` bytes: the place as a payload sees it, with its NUL. */
typedef struct SavedPin {
	uint32_t kind, made_from, size;
} SavedPin;

typedef struct Copy {
	char *at;
	size_t left;
	bool short_of_room;
} Copy;

/* --- writing --------------------------------------------------------------------------------- */

static void add(Copy *copy, const void *data, size_t size)
{
	if (size > copy->left) {
		copy->short_of_room = true;
		return;
	}
	memcpy(copy->at, data, size);
	copy->at += size;
	copy->left -= size;
}

static void add_pin(Copy *copy, const TnPin *pin)
{
	const char *top = pin->subtree == TN_SUBTREE_VAR_TMP ? "/var/tmp" : "/tmp";
	SavedPin saved = {
		.kind = pin->kind,
		.made_from = (uint32_t)pin->made_from,
		.size = (uint32_t)strlen(top) + 1,
	};

	for (size_t i = 0; i < pin->n; i++)
		saved.size += (uint32_t)strlen(pin->components[i]) + 1;
	add(copy, &saved, sizeof(saved));
	add(copy, top, strlen(top));
	for (size_t i = 0; i < pin->n; i++) {
		add(copy, "/", 1);
		add(copy, pin->components[i], strlen(pin->components[i]));
	}
	add(copy, "", 1);
}

static void add_attachment(Copy *copy, const TnLiveAttachment *attachment)
{
	SavedAttachment saved = {
		.id = attachment->id,
		.lease = attachment->lease,
		.n_pins = (uint32_t)attachment->n_pins,
	};

	add(copy, &saved, sizeof(saved));
	for (size_t i = 0; i < attachment->n_pins; i++)
		add_pin(copy, attachment->pins[i]);
}

void tn_nest_save_life(TnNest *nest)
{
	TnArenaHeader *header = nest->arena.header;
	uint32_t next = atomic_load(&header->life_copy) == 1 ? 2 : 1;
	Copy copy = {nest->arena.life + (next - 1) * TN_LIFE_SIZE, TN_LIFE_SIZE, false};
	uint32_t n = 0;

	/* Of one whose launcher was told nothing nobody could tell the end. */
	for (const TnLiveAttachment *at = nest->attachments; at; at = at->next)
		n += at->is_known;
	add(&copy, &n, sizeof(n));
	pthread_mutex_lock(&nest->table_lock);
	for (const TnLiveAttachment *at = nest->attachments; at; at = at->next)
		if (at->is_known)
			add_attachment(&copy, at);
	pthread_mutex_unlock(&nest->table_lock);
	if (copy.short_of_room)
		tn_log(TN_LOG_WARNING, "nest %s: too many mount points to keep them over a restart",
		       nest->name);
	else
		atomic_store(&header->life_copy, next);
}

/* --- reading --------------------------------------------------------------------------------- */

/* The next `size` bytes, or NULL when the copy ends before. */
static const void *take(Copy *copy, size_t size)
{
	const void *data = copy->at;

	if (size > copy->left)
		return NULL;
	copy->at += size;
	copy->left -= size;
	return data;
}

/* The pin of a saved one, known already or new. 0 or -errno. */
static int load_pin(TnNest *nest, Copy *copy, TnLiveAttachment *attachment)
{
	const void *head = take(copy, sizeof(SavedPin));
	const char *path;
	SavedPin saved;
	TnPin *pin, *known;
	int r;

	if (!head)
		return -EBADMSG;
	memcpy(&saved, head, sizeof(saved));
	path = take(copy, saved.size);
	if (!path || saved.size == 0 || path[saved.size - 1])
		return -EBADMSG;
	r = tn_pin_new(&pin, saved.kind, path);
	if (r < 0)
		return r;
	known = tn_pins_find(&nest->pins, pin);
	if (known) {
		known->users++;
		tn_pin_free(pin);
	} else {
		pin->made_from = saved.made_from < pin->n ? saved.made_from : pin->n;
		tn_pins_add(&nest->pins, pin);
		known = pin;
	}
	attachment->pins[attachment->n_pins++] = known;
	return 0;
}

/* A descriptor that was closed meanwhile may have become anything. */
static bool is_lease(int fd)
{
	struct stat st;

	return fd >= 0 && tn_stranger_stat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

static int load_attachment(TnNest *nest, Copy *copy)
{
	const void *head = take(copy, sizeof(SavedAttachment));
	TnLiveAttachment *attachment;
	SavedAttachment saved;
	int r = 0;

	if (!head)
		return -EBADMSG;
	memcpy(&saved, head, sizeof(saved));
	attachment = calloc(1, sizeof(*attachment));
	if (!attachment)
		return -ENOMEM;
	attachment->id = saved.id;
	attachment->is_known = true;
	attachment->lease = is_lease(saved.lease) ? saved.lease : -1;
	attachment->next = nest->attachments;
	nest->attachments = attachment;
	nest->n_attachments++;
	if (saved.n_pins > copy->left / sizeof(SavedPin))
		return -EBADMSG;
	attachment->pins = calloc(saved.n_pins ? saved.n_pins : 1, sizeof(TnPin *));
	if (!attachment->pins)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < saved.n_pins; i++)
		r = load_pin(nest, copy, attachment);
	return r;
}

/* The copy that holds, behind its count; the count. */
static uint32_t begin_reading(const TnArena *arena, Copy *ret)
{
	uint32_t which = atomic_load(&arena->header->life_copy), n = 0;

	if (which != 1 && which != 2)
		return 0;
	*ret = (Copy){arena->life + (which - 1) * TN_LIFE_SIZE, TN_LIFE_SIZE, false};
	memcpy(&n, take(ret, sizeof(n)), sizeof(n));
	return n;
}

int tn_nest_load_life(TnNest *nest)
{
	Copy copy;
	uint32_t n = begin_reading(&nest->arena, &copy);
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < n; i++)
		r = load_attachment(nest, &copy);
	return r;
}

void tn_life_each_lease(const TnArena *arena, void (*visit)(int fd, void *data), void *data)
{
	Copy copy;
	uint32_t n = begin_reading(arena, &copy);

	for (uint32_t i = 0; i < n; i++) {
		const void *head = take(&copy, sizeof(SavedAttachment));
		SavedAttachment saved;

		if (!head)
			return;
		memcpy(&saved, head, sizeof(saved));
		visit(saved.lease, data);
		for (uint32_t j = 0; j < saved.n_pins; j++) {
			const void *pin = take(&copy, sizeof(SavedPin));
			SavedPin saved_pin;

			if (!pin)
				return;
			memcpy(&saved_pin, pin, sizeof(saved_pin));
			take(&copy, saved_pin.size);
		}
	}
}
