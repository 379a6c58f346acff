/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A worker takes over from one that was killed: the nests from their arenas, then the
 * requests that were in work. For the kernel and its clients nothing has happened.
 *
 * In this order: account changes and references that were half made are made whole, for all
 * journals; references of unanswered requests are taken back; then the node tables and sums
 * can be built; then the requests are answered, first those that had begun to change the
 * store, since the others may have been waiting for their locks.
 */
#include "registry-private.h"

#include "arena-set.h"
#include "charge.h"
#include "dispatch.h"
#include "events.h"
#include "handles.h"
#include "journal.h"
#include "log.h"
#include "macros.h"
#include "ops.h"
#include "serve.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>

/* The first slot from i on that a thread has used, or that is for the nests' own work. */
static uint32_t used_slot(TnState *state, uint32_t i)
{
	return i < atomic_load(&state->slots_end) || i > TN_SHARE_WORK ? i : TN_SHARE_WORK;
}

/* --- nests ----------------------------------------------------------------------------------- */

static void close_descriptors(TnArenaHeader *header)
{
	TnArenaDescriptors *fds = &header->descriptors;
	int device = atomic_exchange(&fds->device, -1);

	tn_close(&device);
	tn_close(&fds->home);
	tn_close(&fds->data);
	tn_close(&fds->orphans);
	tn_close(&fds->mount);
	tn_close(&fds->from);
	tn_close(&fds->image);
}

static int build(TnRegistry *registry, TnArena *arena, TnDescription *description, TnNest **ret)
{
	const TnArenaDescriptors *fds = &arena->header->descriptors;
	TnNestParts parts;
	int r;

	tn_registry_parts_of(registry, description, &parts);
	parts.home = fds->home;
	parts.from.fd = fds->from;
	parts.store = (TnStore){
		.ops = tn_store_ops(description->store),
		.data = fds->data,
		.orphans = fds->orphans,
		.mount = fds->mount,
		.image = fds->image,
		.base = arena->header->store_base,
		.kernel_counts = atomic_load(&arena->header->kernel_counts),
	};
	parts.arena = arena;
	if (!parts.store.ops)
		return -EBADMSG;
	r = tn_nest_new(ret, &parts);
	if (r < 0)
		return r;
	tn_registry_parts_taken(description, *ret);
	return 0;
}

/* Nobody was told of it yet; tn_registry_load() takes its home away. */
static bool is_half_made(TnRegistry *registry, uint64_t id)
{
	char name[32];
	struct stat st;

	snprintf(name, sizeof(name), TN_NEW_PREFIX "%016" PRIx64, id);
	return fstatat(registry->nests, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int open_arena(TnRegistry *registry, uint32_t place, TnArena *ret)
{
	TnArenaSet *set = registry->config.arenas;
	const TnStateNest *entry = &registry->state->nests[place];
	TnArena *found = set ? tn_arena_set_at(set, registry->state, place) : NULL;

	if (!found)
		return tn_arena_open(ret, entry->arena, atomic_load(&entry->id));
	*ret = *found;
	*found = (TnArena){.fd = -1};
	return 0;
}

/* The first step for one nest. 0, -EAGAIN (half-made: nothing is lost) or another -errno. */
static int open_nest(TnRegistry *registry, uint32_t place)
{
	uint64_t id = atomic_load(&registry->state->nests[place].id);
	TnDescription description = {0};
	TnArena arena;
	TnNest *nest;
	int r = open_arena(registry, place, &arena);

	if (r < 0)
		return r;
	r = is_half_made(registry, id)
		    ? -EAGAIN
		    : tn_describe_load(arena.header->descriptors.home, &description);
	if (r == 0 && description.id != id)
		r = -EBADMSG;
	if (r == 0)
		r = build(registry, &arena, &description, &nest);
	tn_description_clear(&description);
	if (r < 0) {
		close_descriptors(arena.header);
		tn_arena_clear(&arena);
		return r;
	}
	tn_registry_list_add(registry, nest);
	return 0;
}

/* Its views are lost; what it holds in the store is found by tn_registry_load(). */
static void give_up(TnRegistry *registry, TnNest *nest, const char *why)
{
	tn_log(TN_LOG_ERROR, "nest %s: cannot be taken over: %s; its running views are lost",
	       nest->name, why);
	close_descriptors(nest->arena.header);
	nest->home = nest->device = nest->from.fd = -1;
	nest->store = (TnStore){.data = -1, .orphans = -1, .mount = -1, .image = -1};
	tn_registry_list_drop(registry, nest);
}

static void open_nests(TnRegistry *registry)
{
	TnState *state = registry->state;

	for (uint32_t i = 0; i < atomic_load(&state->nests_end); i++) {
		TnStateNest *entry = &state->nests[i];
		uint64_t id = atomic_load(&entry->id);
		int r;

		if (!id)
			continue;
		if (atomic_fetch_add(&entry->attempts, 1) >= TN_ATTEMPTS_MOST)
			r = -ECANCELED;
		else
			r = open_nest(registry, i);
		if (r < 0)
			atomic_store(&entry->id, 0);
		if (r < 0 && r != -EAGAIN)
			tn_log(TN_LOG_ERROR,
			       "nest %016" PRIx64 ": cannot be taken over: %s; its running views "
			       "are lost",
			       id, r == -ECANCELED ? "the worker has died of it" : strerror(-r));
	}
}

static void forget_attempts(TnState *state)
{
	for (uint32_t i = 0; i < atomic_load(&state->nests_end); i++)
		atomic_store(&state->nests[i].attempts, 0);
}

/* Who was killed by somebody else has not died of what it was doing. */
static void forgive(TnState *state)
{
	if (atomic_load(&state->fault))
		return;
	forget_attempts(state);
	for (uint32_t i = used_slot(state, 0); i < TN_SLOTS; i = used_slot(state, i + 1))
		atomic_store(&state->slots[i].attempts, 0);
}

/* --- requests -------------------------------------------------------------------------------- */

/* Makes the slot's state one of READ, REPLIED, WORK and IDLE; IDLE without a nest. */
static void settle_state(TnRegistry *registry, TnSlot *slot)
{
	const struct fuse_in_header *in = (const void *)slot->request;
	uint32_t state = atomic_load(&slot->state);

	if (state == TN_SLOT_READING && in->len >= sizeof(*in) && in->len <= TN_REQUEST_SIZE) {
		slot->request_size = in->len;
		atomic_store(&slot->state, TN_SLOT_READ);
	} else if (state == TN_SLOT_READING || state > TN_SLOT_WORK ||
		   slot->request_size > TN_REQUEST_SIZE || slot->reply_size > TN_REPLY_SIZE) {
		atomic_store(&slot->state, TN_SLOT_IDLE);
	}
	if (!tn_registry_list_find_id(registry, slot->nest_id))
		atomic_store(&slot->state, TN_SLOT_IDLE);
}

static void settle_states(TnRegistry *registry)
{
	TnState *state = registry->state;

	for (uint32_t i = used_slot(state, 0); i < TN_SLOTS; i = used_slot(state, i + 1))
		settle_state(registry, &state->slots[i]);
}

/* Calls for each slot that holds anything, with its nest; its journal is the thread's meanwhile. */
static void each_slot(TnRegistry *registry, void (*call)(TnNest *nest, TnSlot *slot))
{
	TnState *state = registry->state;

	for (uint32_t i = used_slot(state, 0); i < TN_SLOTS; i = used_slot(state, i + 1)) {
		TnSlot *slot = &state->slots[i];

		if (atomic_load(&slot->state) == TN_SLOT_IDLE)
			continue;
		tn_journal_enter(&slot->journal);
		call(tn_registry_list_find_id(registry, slot->nest_id), slot);
		tn_journal_enter(NULL);
	}
}

static void mend_journal(TnNest *nest, TnSlot *slot)
{
	tn_journal_mend(nest, &slot->journal);
}

static void redo(TnNest *nest, TnSlot *slot)
{
	tn_journal_redo(nest, &slot->journal);
}

static void mend_references(TnNest *nest, TnSlot *slot)
{
	tn_journal_mend_references(nest, &slot->journal);
}

/* References and open files of a whole reply are the kernel's; all others are given anew. */
static void take_references_back(TnNest *nest, TnSlot *slot)
{
	if (atomic_load(&slot->state) != TN_SLOT_READ)
		return;
	tn_journal_undo_references(nest, &slot->journal);
	tn_handle_take_back(nest);
}

/* What a file is charged is looked up anew when the store may have been changed already. */
static void recount_file(TnNest *nest, TnSlot *slot)
{
	const struct fuse_in_header *in = (const void *)slot->request;
	const struct fuse_write_in *write_in = (const void *)(in + 1);
	uint32_t index;

	if (atomic_load(&slot->state) != TN_SLOT_READ ||
	    (in->opcode != FUSE_WRITE && in->opcode != FUSE_SETATTR &&
	     in->opcode != FUSE_FALLOCATE))
		return;
	index = tn_node_by_id(nest->table, in->nodeid);
	if (index && tn_node_at(nest->table, index)->type == S_IFREG)
		tn_charge_after_death(nest, index, in->opcode == FUSE_WRITE ? write_in->offset : 0,
				      in->opcode == FUSE_FALLOCATE);
}

static void send_reply(TnSlot *slot)
{
	ssize_t n;

	tn_kill_point();
	if (slot->reply_size == 0)
		return;
	/* It may be the dead worker's: the kernel must not find it absent while we are killed. */
	(void)madvise(slot->reply, slot->reply_size, MADV_POPULATE_WRITE);
	do {
		n = write(slot->device, slot->reply, slot->reply_size);
	} while (n < 0 && errno == EINTR);
	/* ENOENT: it was sent before. The kernel waits for the answer of whatever it has handed
	 * out, so there is no other reason. */
	if (n < 0 && errno != ENOENT && errno != ENODEV && errno != ECONNABORTED)
		tn_log(TN_LOG_ERROR, "reply: %s", strerror(errno));
	tn_kill_point();
}

/*
 * Of a request that had begun to change the store nobody knows whether it has. These errors
 * make the kernel look at the name again (fs/fuse/dir.c: fuse_unlink, fuse_rename_common and
 * create_new_entry invalidate it); after EIO it would go by what it has cached.
 */
static int error_of_given_up(const TnSlot *slot)
{
	const struct fuse_in_header *in = (const void *)slot->request;

	if (atomic_load(&slot->journal.step) == TN_STEP_NONE)
		return -EIO;
	switch (in->opcode) {
	case FUSE_UNLINK:
	case FUSE_RMDIR:
	case FUSE_RENAME:
	case FUSE_RENAME2:
		return -EINTR;
	case FUSE_MKNOD:
	case FUSE_MKDIR:
	case FUSE_SYMLINK:
	case FUSE_LINK:
	case FUSE_CREATE:
		return -EEXIST;
	default:
		return -EIO;
	}
}

static size_t give_up_request(const TnSlot *slot, uint8_t *reply)
{
	const struct fuse_in_header *in = (const void *)slot->request;
	struct fuse_out_header *out = (void *)reply;

	*out = (struct fuse_out_header){
		.len = sizeof(*out),
		.error = error_of_given_up(slot),
		.unique = in->unique,
	};
	return in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET ||
			       in->opcode == FUSE_INTERRUPT
		       ? 0
		       : sizeof(*out);
}

/* This thread has the ids that it was given for the last request. */
static void become_daemon_again(void)
{
	setfsgid(getegid());
	setfsuid(geteuid());
}

static void answer(TnNest *nest, TnSlot *slot)
{
	const struct fuse_in_header *in = (const void *)slot->request;
	TnIdentity identity = {.uid = geteuid(), .gid = getegid()};

	if (atomic_load(&slot->state) == TN_SLOT_WORK)
		return;
	if (atomic_load(&slot->state) == TN_SLOT_READ) {
		atomic_store(&slot->journal.again, 1);
		if (atomic_fetch_add(&slot->attempts, 1) >= TN_ATTEMPTS_MOST) {
			tn_log(TN_LOG_ERROR, "nest %s: request %s has killed %u workers: given up",
			       nest->name, tn_opcode_name(in->opcode) ?: "of unknown kind",
			       TN_ATTEMPTS_MOST);
			slot->reply_size = give_up_request(slot, slot->reply);
			if (atomic_load(&slot->journal.step) == TN_STEP_BEGUN)
				atomic_store(&nest->arena.header->recount_due, 1);
		} else {
			slot->reply_size = tn_dispatch(nest, &identity, slot->request,
						       slot->request_size, slot->reply);
		}
		become_daemon_again();
		tn_kill_point();
		atomic_store(&slot->state, TN_SLOT_REPLIED);
	}
	atomic_fetch_add(&nest->state->progress, 1);
	send_reply(slot);
	atomic_store(&slot->state, TN_SLOT_IDLE);
}

static void answer_begun(TnNest *nest, TnSlot *slot)
{
	if (atomic_load(&slot->journal.step) != TN_STEP_NONE)
		answer(nest, slot);
}

static void finish_work(TnNest *nest, TnSlot *slot)
{
	tn_remove_resume(nest);
	atomic_store(&slot->state, TN_SLOT_IDLE);
}

/* --- all of it ------------------------------------------------------------------------------- */

static void adopt_each(TnRegistry *registry)
{
	TnNest *next;

	for (TnNest *nest = registry->list; nest; nest = next) {
		int r = tn_nest_adopt(nest);

		next = nest->next;
		if (r < 0)
			give_up(registry, nest, strerror(-r));
	}
}

/*
 * The second net: what the dead worker had read and not even noted (Linux 6.9 and later).
 * Before anybody reads from the device: the kernel gives out anew all that is unanswered.
 */
static void ask_for_more(const TnNest *nest)
{
	struct fuse_out_header header = {
		.len = sizeof(header),
		.error = TN_FUSE_NOTIFY_RESEND,
	};

	if (nest->device >= 0 && write(nest->device, &header, sizeof(header)) < 0 &&
	    errno != EINVAL && errno != ENOTCONN && errno != ENODEV)
		tn_log(TN_LOG_DEBUG, "resend: %s", strerror(errno));
}

static void resume_each(TnRegistry *registry)
{
	TnNest *next;

	for (TnNest *nest = registry->list; nest; nest = next) {
		int r;

		next = nest->next;
		if (registry->config.use_resend)
			ask_for_more(nest);
		r = tn_nest_resume(nest);
		if (r < 0)
			give_up(registry, nest, strerror(-r));
	}
}

/* An eviction that was under way goes on. */
static void finish_evictions(TnRegistry *registry)
{
	TnNest *next;

	for (TnNest *nest = registry->list; nest; nest = next) {
		next = nest->next;
		if (nest->evicting)
			tn_registry_evict(registry, nest, true, NULL);
	}
}

void tn_registry_adopt(TnRegistry *registry)
{
	if (!registry->state)
		return;
	tn_state_bound(registry->state);
	forgive(registry->state);
	open_nests(registry);
	settle_states(registry);
	each_slot(registry, mend_journal);
	each_slot(registry, redo);
	each_slot(registry, mend_references);
	each_slot(registry, take_references_back);
	adopt_each(registry);
	settle_states(registry); /* some nests may be given up by now */
	/* What comes now is counted by request: once answered, its client goes on. */
	forget_attempts(registry->state);
	each_slot(registry, answer_begun);
	/* Their names lead to them again: those that moved have arrived. */
	each_slot(registry, recount_file);
	each_slot(registry, answer);
	each_slot(registry, finish_work); /* only that slot holds anything now */
	resume_each(registry);
	finish_evictions(registry);
	atomic_fetch_add(&registry->state->progress, 1);
	if (atomic_load(&registry->state->restarts) > 0)
		tn_event_hub_add(registry->events, TN_EVENT_RESTART, 0, (uid_t)-1, NULL);
}
