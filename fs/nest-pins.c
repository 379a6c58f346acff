/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A nest's mount points: registered with an attachment, and what bwrap made for them taken
 * away again, if still empty, with the last attachment that uses them.
 */
#include "nest-pins.h"

#include "journal.h"
#include "log.h"
#include "macros.h"
#include "ops.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

/* --- registering ----------------------------------------------------------------------------- */

static const char *subtree_name(TnSubtree subtree)
{
	return subtree == TN_SUBTREE_VAR_TMP ? "var-tmp" : "tmp";
}

/* Opens the directory that components [0, n) lead to, following no link. */
static int open_above(TnNest *nest, const TnPin *pin, size_t n)
{
	TN_AUTOFD dir = tn_open_beneath(nest->store.data, subtree_name(pin->subtree),
					O_RDONLY | O_DIRECTORY, 0);

	for (size_t i = 0; dir >= 0 && i < n; i++) {
		int below = tn_open_beneath(dir, pin->components[i],
					    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

		tn_close(&dir);
		dir = below;
	}
	return tn_steal_fd(&dir);
}

/*
 * How many leading components of the pin exist. -ELOOP when one is a link: the mount would
 * land where an earlier command of the nest has wanted it.
 */
static int count_existing(TnNest *nest, const TnPin *pin, size_t *ret)
{
	TN_AUTOFD dir = open_above(nest, pin, 0);
	size_t n = 0;

	while (dir >= 0 && n < pin->n) {
		struct stat st;
		int below;

		if (fstatat(dir, pin->components[n], &st, AT_SYMLINK_NOFOLLOW) < 0)
			break;
		if (S_ISLNK(st.st_mode))
			return -ELOOP;
		below = tn_open_beneath(dir, pin->components[n++],
					O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		tn_close(&dir);
		dir = below;
	}
	*ret = n;
	return 0;
}

static TnMountPointState state_by_rules(TnNest *nest, const TnPin *pin)
{
	switch (tn_policy_match(nest->policy, pin->subtree, pin->components, pin->n)) {
	case TN_DENIED:
		return TN_POINT_DENIED;
	case TN_READ_ONLY:
		return TN_POINT_READ_ONLY;
	default:
		return TN_POINT_PINNED;
	}
}

static int remember(TnLiveAttachment *attachment, TnPin *pin)
{
	TnPin **grown = reallocarray(attachment->pins, attachment->n_pins + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	attachment->pins = grown;
	grown[attachment->n_pins++] = pin;
	return 0;
}

/* Registers one place for the attachment. Takes the pin. */
static int hold_pin(TnNest *nest, TnLiveAttachment *attachment, TnPin *pin)
{
	size_t existing = 0;
	TnPin *known;
	int r = count_existing(nest, pin, &existing);

	if (r == 0 && nest->frozen && existing < pin->n)
		r = -EROFS;
	if (r < 0) {
		tn_pin_free(pin);
		return r;
	}
	pthread_mutex_lock(&nest->table_lock);
	known = tn_pins_find(&nest->pins, pin);
	r = remember(attachment, known ? known : pin);
	if (r == 0 && known) {
		known->users++;
	} else if (r == 0) {
		pin->made_from = tn_pins_lasting(&nest->pins, pin, existing);
		tn_pins_add(&nest->pins, pin);
	}
	pthread_mutex_unlock(&nest->table_lock);
	if (r < 0 || known)
		tn_pin_free(pin);
	return r;
}

static TnLiveAttachment *find_attachment(TnNest *nest, uint64_t id)
{
	TnLiveAttachment *attachment = nest->attachments;

	while (attachment && attachment->id != id)
		attachment = attachment->next;
	return attachment;
}

static int pin_all(TnNest *nest, TnLiveAttachment *attachment, TnMountPoint *points, size_t n,
		   size_t *ret_done)
{
	for (size_t i = 0; i < n; i++) {
		TnPin *pin;
		int r = tn_pin_new(&pin, points[i].kind, points[i].path);

		*ret_done = i;
		if (r < 0)
			return r;
		points[i].state = state_by_rules(nest, pin);
		if (points[i].state == TN_POINT_DENIED) {
			tn_pin_free(pin);
			continue;
		}
		r = hold_pin(nest, attachment, pin);
		if (r < 0)
			return r;
	}
	return 0;
}

int tn_nest_pin(TnNest *nest, uint64_t attachment_id, TnMountPoint *points, size_t n,
		size_t *ret_done)
{
	TnLiveAttachment *attachment;
	int r = -ENOENT;

	pthread_mutex_lock(&nest->life);
	attachment = find_attachment(nest, attachment_id);
	if (attachment) {
		pthread_rwlock_rdlock(&nest->tree);
		r = pin_all(nest, attachment, points, n, ret_done);
		pthread_rwlock_unlock(&nest->tree);
		tn_nest_save_life(nest);
	}
	pthread_mutex_unlock(&nest->life);
	return r;
}

/* --- releasing ------------------------------------------------------------------------------- */

/* Tells the kernel that a name has gone without its doing. Needs no lock but the life lock. */
static void invalidate(TnNest *nest, uint64_t parent, const char *name)
{
	struct fuse_notify_inval_entry_out entry = {
		.parent = parent,
		.namelen = (uint32_t)strlen(name),
	};
	struct fuse_out_header header = {
		.error = FUSE_NOTIFY_INVAL_ENTRY,
		.len = (uint32_t)(sizeof(header) + sizeof(entry) + entry.namelen + 1),
	};
	struct iovec parts[] = {
		{&header, sizeof(header)},
		{&entry, sizeof(entry)},
		{(void *)(uintptr_t)name, entry.namelen + 1U},
	};

	/* ENOENT: it did not know the name. */
	if (nest->device >= 0 && writev(nest->device, parts, TN_ARRAY_LEN(parts)) < 0 &&
	    errno != ENOENT && errno != ENOTCONN && errno != ENODEV)
		tn_log(TN_LOG_DEBUG, "pin: invalidation: %s", strerror(errno));
}

/* Removes component i of the pin if it is empty; false when it has to stay. */
static bool remove_component(TnNest *nest, const TnPin *pin, size_t i)
{
	TN_AUTOFD dir = -1;
	uint64_t parent = 0;
	int r;

	if (tn_journal_current())
		tn_journal_start(tn_journal_current());
	pthread_rwlock_wrlock(&nest->tree);
	dir = open_above(nest, pin, i);
	r = dir < 0 ? dir : tn_remove_if_empty(nest, dir, pin->components[i], &parent);
	pthread_rwlock_unlock(&nest->tree);
	tn_kill_point();
	if ((r == 0 || r == -ENOENT) && parent)
		invalidate(nest, parent, pin->components[i]);
	/* Gone already: what is above may go as well. */
	return r == 0 || r == -ENOENT;
}

static void take_away(TnNest *nest, const TnPin *pin)
{
	for (size_t i = pin->n; i > pin->made_from; i--) {
		if (!remove_component(nest, pin, i - 1))
			return;
	}
}

void tn_nest_release_pins(TnNest *nest, TnLiveAttachment *attachment)
{
	for (size_t i = 0; i < attachment->n_pins; i++) {
		TnPin *pin = attachment->pins[i];
		bool last;

		pthread_mutex_lock(&nest->table_lock);
		last = --pin->users == 0;
		if (last)
			tn_pins_remove(&nest->pins, pin);
		pthread_mutex_unlock(&nest->table_lock);
		if (last) {
			take_away(nest, pin);
			tn_pin_free(pin);
		}
	}
	free(attachment->pins);
	attachment->pins = NULL;
	attachment->n_pins = 0;
}

int tn_check_pinned(TnNest *nest, uint32_t parent, const char *name, bool above)
{
	const char *components[TN_PIN_DEPTH_MAX + 1];
	TnSubtree subtree;
	bool held = false;

	pthread_mutex_lock(&nest->table_lock);
	if (nest->pins.first) {
		size_t n = tn_node_place(nest->table, parent, name, components,
					 nest->pins.depth + 1, &subtree);

		held = tn_pins_hold(&nest->pins, subtree, components, n, above);
	}
	pthread_mutex_unlock(&nest->table_lock);
	return held ? -EBUSY : 0;
}
