/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "nest-private.h"

#include "describe.h"
#include "dispatch.h"
#include "handles.h"
#include "journal.h"
#include "log.h"
#include "macros.h"
#include "nest-pins.h"
#include "nest-roots.h"
#include "observe.h"
#include "ops.h"
#include "recount.h"
#include "registry-private.h"
#include "serve.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

/* --- birth and death ----------------------------------------------------------------------- */

static void init_locks(TnNest *nest)
{
	pthread_rwlockattr_t fair;

	pthread_mutex_init(&nest->life, NULL);
	/* Threads that look up without a pause must not keep a rename waiting. */
	pthread_rwlockattr_init(&fair);
	pthread_rwlockattr_setkind_np(&fair, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&nest->tree, &fair);
	pthread_rwlockattr_destroy(&fair);
	pthread_mutex_init(&nest->table_lock, NULL);
	pthread_mutex_init(&nest->refund_lock, NULL);
	pthread_cond_init(&nest->refunded, NULL);
	for (size_t i = 0; i < TN_NODE_LOCKS; i++)
		pthread_mutex_init(&nest->node_locks[i], NULL);
}

static void clear_locks(TnNest *nest)
{
	pthread_mutex_destroy(&nest->life);
	pthread_rwlock_destroy(&nest->tree);
	pthread_mutex_destroy(&nest->table_lock);
	pthread_mutex_destroy(&nest->refund_lock);
	pthread_cond_destroy(&nest->refunded);
	for (size_t i = 0; i < TN_NODE_LOCKS; i++)
		pthread_mutex_destroy(&nest->node_locks[i]);
}

static void nest_free(TnNest *nest)
{
	tn_events_free(nest->events);
	if (nest->state)
		tn_state_remove(nest->state, nest->id);
	tn_node_table_free(nest->table);
	if (nest->arena.base)
		tn_arena_trim(&nest->arena); /* a worker in waiting may have it mapped */
	tn_arena_clear(&nest->arena);
	clear_locks(nest);
	tn_policy_free(nest->policy);
	tn_store_clear(&nest->store);
	tn_close(&nest->home);
	tn_close(&nest->from.fd);
	free(nest->from.path);
	free(nest);
}

static void take_parts(TnNest *nest, const TnNestParts *parts)
{
	nest->refs = 1;
	nest->id = parts->id;
	strcpy(nest->name, parts->name); /* the registry has checked the name */
	nest->uid = parts->uid;
	nest->gid = parts->gid;
	nest->ephemeral = parts->ephemeral;
	nest->keep = parts->keep;
	nest->durable = parts->durable;
	nest->no_xattrs = parts->no_xattrs;
	nest->writeback = parts->writeback;
	nest->data_path = parts->data_path;
	nest->probe_passthrough = parts->config->probe_passthrough;
	nest->many_owners = parts->config->many_owners;
	nest->ttl = parts->ttl;
	nest->idle_ttl = parts->idle_ttl;
	nest->created_ns = parts->created_ns;
	nest->registry = parts->registry;
	nest->keeper = parts->config->keeper;
	nest->serve = parts->config->serve;
	nest->state = nest->serve ? tn_serve_state(nest->serve) : NULL;
	nest->dirs = parts->dirs;
	nest->files = parts->files;
	nest->space = parts->space;
	nest->user_space = parts->user_space;
	nest->device = -1;
	nest->from.fd = -1;
	nest->home = -1;
	nest->store = (TnStore){.data = -1, .orphans = -1, .mount = -1, .image = -1};
}

/* A new arena, which a successor will find. 0 or -errno. */
static int make_arena(TnNest *nest, const TnNestParts *parts)
{
	TnArenaHeader *header;
	int r = tn_arena_init(&nest->arena, parts->id);

	if (r == 0)
		r = tn_node_table_new(&nest->table, &nest->arena, nest->root_ino);
	if (r < 0)
		return r;
	header = nest->arena.header;
	header->descriptors.home = parts->home;
	header->descriptors.data = parts->store.data;
	header->descriptors.orphans = parts->store.orphans;
	header->descriptors.mount = parts->store.mount;
	header->descriptors.from = parts->from.fd;
	header->descriptors.image = parts->store.image;
	header->store_base = parts->store.base;
	atomic_store(&header->data_path, parts->data_path);
	atomic_store(&header->kernel_counts, parts->store.kernel_counts);
	atomic_store(&header->account.bytes_limit, parts->bytes);
	atomic_store(&header->account.inodes_limit, parts->inodes);
	header->shares[TN_SHARE_OTHERS] = parts->use;
	tn_quota_charge(&header->account, (uint64_t)parts->use.bytes, (uint64_t)parts->use.inodes);
	atomic_store(&header->xattr_bytes, (uint64_t)parts->use.xattrs);
	atomic_store(&header->last_used_ns, parts->created_ns);
	return nest->state ? tn_state_add(nest->state, nest->id, nest->arena.fd) : 0;
}

int tn_nest_new(TnNest **ret, const TnNestParts *parts)
{
	TnNest *nest = calloc(1, sizeof(*nest));
	struct stat root;
	int r;

	if (!nest)
		return -ENOMEM;
	take_parts(nest, parts);
	init_locks(nest);
	if (parts->registry) {
		nest->events =
			tn_events_new(parts->registry->events, parts->id, parts->uid, parts->name);
		nest->stats = &parts->registry->stats;
	}
	r = fstat(parts->store.data, &root) < 0 ? -errno : 0;
	nest->root_ino = root.st_ino;
	if (r == 0 && !parts->arena)
		r = make_arena(nest, parts);
	if (r < 0) {
		nest_free(nest);
		return r;
	}
	if (parts->arena) {
		nest->arena = *parts->arena;
		*parts->arena = (TnArena){.fd = -1};
		nest->data_path = atomic_load(&nest->arena.header->data_path);
	}
	nest->from = parts->from;
	nest->home = parts->home;
	nest->store = parts->store;
	nest->policy = parts->policy;
	nest->account = &nest->arena.header->account;
	*ret = nest;
	return 0;
}

TnNest *tn_nest_ref(TnNest *nest)
{
	atomic_fetch_add(&nest->refs, 1);
	return nest;
}

void tn_nest_unref(TnNest *nest)
{
	if (nest && atomic_fetch_sub(&nest->refs, 1) == 1)
		nest_free(nest);
}

uint64_t tn_nest_id(const TnNest *nest)
{
	return nest->id;
}

uid_t tn_nest_owner(const TnNest *nest)
{
	return nest->uid;
}

bool tn_nest_is_from(const TnNest *nest, const TnNestSpec *spec)
{
	const TnFrom *from = &nest->from;

	/* Who gives the plain name of such a nest means it. */
	if (!spec->from_path)
		return true;
	return from->path && from->dev == spec->from_dev && from->ino == spec->from_ino &&
	       strcmp(from->path, spec->from_path) == 0;
}

/* --- the superblock -------------------------------------------------------------------------- */

void tn_nest_ended(TnNest *nest)
{
	/* It cannot change under a serving thread: see tn_serve_remove(). */
	atomic_store(&nest->ended, nest->arena.header->generation);
	tn_registry_wake_janitor(nest->registry);
}

static void tell_detached(TnNest *nest)
{
	tn_events_add(nest->events, TN_EVENT_DETACH);
	if (nest->stats)
		tn_stats_add(&nest->stats->detached);
}

void tn_nest_drop_attachments(TnNest *nest)
{
	while (nest->attachments) {
		TnLiveAttachment *attachment = nest->attachments;

		nest->attachments = attachment->next;
		tn_nest_release_pins(nest, attachment);
		free(attachment);
		tell_detached(nest);
	}
	nest->n_attachments = 0;
}

void tn_nest_forget_all(TnNest *nest)
{
	TnReleased released = {.nest = nest};

	pthread_mutex_lock(&nest->table_lock);
	for (uint32_t i = tn_node_next(nest->table, TN_ROOT_INDEX); i;
	     i = tn_node_next(nest->table, i)) {
		TnNode *node = tn_node_at(nest->table, i);

		if ((node->flags & TN_NODE_ORPHAN) || node->held_fd >= 0)
			tn_released_collect(node, &released);
		if (node->flags & TN_NODE_ORPHAN)
			node->flags |= TN_NODE_DYING;
		else
			node->held_fd = -1;
	}
	pthread_mutex_unlock(&nest->table_lock);
	tn_released_finish(&released);
	pthread_mutex_lock(&nest->table_lock);
	tn_node_table_reset(nest->table, nest->root_ino);
	tn_opened_reset(nest);
	pthread_mutex_unlock(&nest->table_lock);
	tn_fdcache_drop_nest(nest->dirs, nest->id);
	tn_fdcache_drop_nest(nest->files, nest->id);
}

/* Caller holds the life lock; a device is open. */
static void end_superblock(TnNest *nest)
{
	tn_serve_remove(nest->serve, nest, nest->device);
	atomic_store(&nest->arena.header->descriptors.device, -1);
	/* The last descriptor of the connection: what still waits in it is aborted. */
	tn_close(&nest->device);
	tn_work_begin(nest);
	tn_nest_forget_all(nest);
	tn_nest_recount_given_up(nest);
	tn_nest_drop_attachments(nest);
	tn_work_end(nest);
	tn_nest_save_life(nest);
	atomic_store(&nest->arena.header->last_used_ns, tn_now());
}

bool tn_nest_end_superblock(TnNest *nest, uint64_t generation)
{
	bool mine;

	pthread_mutex_lock(&nest->life);
	mine = nest->device >= 0 && nest->arena.header->generation == generation;
	if (mine)
		end_superblock(nest);
	pthread_mutex_unlock(&nest->life);
	return mine;
}

/* Caller holds the life lock. */
static uint32_t count_users(const TnNest *nest)
{
	return nest->n_attachments == 0 && nest->device >= 0 ? 1 : nest->n_attachments;
}

uint32_t tn_nest_users(TnNest *nest)
{
	uint32_t users;

	pthread_mutex_lock(&nest->life);
	users = count_users(nest);
	pthread_mutex_unlock(&nest->life);
	return users;
}

uint32_t tn_nest_retire(TnNest *nest, bool force)
{
	uint32_t users;

	pthread_mutex_lock(&nest->life);
	users = force ? 0 : count_users(nest);
	if (users == 0) {
		nest->evicting = true;
		atomic_store(&nest->arena.header->evicting, 1);
	}
	pthread_mutex_unlock(&nest->life);
	return users;
}

void tn_nest_stop(TnNest *nest)
{
	pthread_mutex_lock(&nest->life);
	nest->evicting = true;
	if (nest->device >= 0)
		end_superblock(nest);
	pthread_mutex_unlock(&nest->life);
}

/* A mount of the live superblock, or of a new one. Caller holds the life lock. */
static int mount_view(TnNest *nest)
{
	TN_AUTOFD mount = -1;
	int r;

	if (nest->device >= 0) {
		mount = tn_keeper_mount(nest->keeper, &nest->device, nest->uid, nest->gid);
		if (mount != -ENOTCONN)
			return tn_steal_fd(&mount);
		end_superblock(nest);
	}
	mount = tn_keeper_mount(nest->keeper, &nest->device, nest->uid, nest->gid);
	if (mount < 0)
		return tn_steal_fd(&mount);
	tn_kill_point();
	nest->arena.header->generation++;
	atomic_store(&nest->arena.header->descriptors.device, nest->device);
	tn_kill_point();
	r = tn_serve_add(nest->serve, nest, nest->device);
	if (r < 0) {
		atomic_store(&nest->arena.header->descriptors.device, -1);
		tn_close(&nest->device);
		return r;
	}
	return tn_steal_fd(&mount);
}

/* Which device the view is, for who looks for its users. Not synced: that would ask ourselves. */
static void note_device(TnNest *nest, int mount)
{
	struct statx stx;

	if (statx(mount, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &stx) == 0)
		atomic_store(&nest->arena.header->view_dev,
			     makedev(stx.stx_dev_major, stx.stx_dev_minor));
}

static int attach(TnNest *nest, TnAttachment *ret)
{
	TnLiveAttachment *attachment;
	int mount;

	if (nest->evicting)
		return -ENOENT;
	if (nest->ephemeral && !nest->keep && nest->attached_once)
		return -EBUSY;
	attachment = calloc(1, sizeof(*attachment));
	if (!attachment)
		return -ENOMEM;
	mount = tn_nest_restore_roots(nest);
	if (mount == 0)
		mount = mount_view(nest);
	if (mount < 0) {
		free(attachment);
		return mount;
	}
	note_device(nest, mount);
	attachment->id = tn_random();
	attachment->lease = -1;
	attachment->next = nest->attachments;
	nest->attachments = attachment;
	nest->n_attachments++;
	nest->attached_once = true;
	atomic_store(&nest->arena.header->attached_once, 1);
	nest->detached = false;
	tn_events_add(nest->events, TN_EVENT_ATTACH);
	if (nest->stats)
		tn_stats_add(&nest->stats->attached);
	atomic_store(&nest->arena.header->last_used_ns, tn_now());
	*ret = (TnAttachment){.id = attachment->id, .mount = mount, .frozen = nest->frozen};
	return 0;
}

int tn_nest_attach(TnNest *nest, TnAttachment *ret)
{
	int r;

	pthread_mutex_lock(&nest->life);
	r = attach(nest, ret);
	pthread_mutex_unlock(&nest->life);
	return r;
}

void tn_nest_set_lease(TnNest *nest, uint64_t attachment_id, int lease)
{
	pthread_mutex_lock(&nest->life);
	for (TnLiveAttachment *at = nest->attachments; at; at = at->next) {
		if (at->id == attachment_id) {
			at->lease = lease;
			at->is_known = true;
		}
	}
	tn_nest_save_life(nest);
	pthread_mutex_unlock(&nest->life);
}

void tn_nest_each_lease(TnNest *nest, TnLeaseVisit visit, void *data)
{
	pthread_mutex_lock(&nest->life);
	for (TnLiveAttachment *at = nest->attachments; at; at = at->next) {
		if (at->lease >= 0)
			visit(nest, at->id, at->lease, data);
	}
	pthread_mutex_unlock(&nest->life);
}

void tn_nest_detach(TnNest *nest, uint64_t attachment_id)
{
	pthread_mutex_lock(&nest->life);
	for (TnLiveAttachment **at = &nest->attachments; *at; at = &(*at)->next) {
		TnLiveAttachment *attachment = *at;

		if (attachment->id == attachment_id) {
			*at = attachment->next;
			tn_work_begin(nest);
			tn_nest_release_pins(nest, attachment);
			tn_work_end(nest);
			free(attachment);
			nest->n_attachments--;
			tell_detached(nest);
			break;
		}
	}
	tn_nest_save_life(nest);
	atomic_store(&nest->arena.header->last_used_ns, tn_now());
	pthread_mutex_unlock(&nest->life);
}

/* --- the account ------------------------------------------------------------------------------ */

#define REFUND_STEP_NS 5000000L /* how long to wait before looking at the queue again */
#define REFUND_STEPS_MOST 100
#define ROOM_ENOUGH (UINT64_C(1) << 20) /* what is about to be written need not be known then */

/*
 * Waits for a refund, when one may be under way: a deleted file is given back at its
 * FORGET, which the kernel has queued before the next request but which another thread may
 * still be about to read, or to serve, when it gets a processor. False: there will be none.
 */
static bool await_refund(TnNest *nest)
{
	bool refunded = false;
	TnServeWait wait;

	if (atomic_load(&nest->arena.header->orphans) == 0 || !nest->serve ||
	    !tn_serve_begin_wait(nest->serve, nest, &wait))
		return false;
	pthread_mutex_lock(&nest->refund_lock);
	nest->refund_waiters++;
	for (int i = 0; i < REFUND_STEPS_MOST && !refunded; i++) {
		if (tn_serve_has_settled(nest->serve, nest->device, &wait))
			break;
		refunded = tn_cond_wait_for(&nest->refunded, &nest->refund_lock, REFUND_STEP_NS);
	}
	nest->refund_waiters--;
	pthread_mutex_unlock(&nest->refund_lock);
	tn_serve_end_wait(nest->serve, nest);
	return refunded;
}

int tn_nest_reserve(TnNest *nest, uint64_t bytes, uint64_t inodes, TnReservation *ret)
{
	bool more = true;
	int r;

	if (nest->store.kernel_counts) {
		tn_nest_await_room(nest, bytes);
		bytes = 0;
	}
	r = tn_quota_reserve(nest->account, bytes, inodes, ret);
	/* Once more also when no refund was seen: it may have come just before the wait. */
	while (r == -ENOSPC && more) {
		more = await_refund(nest);
		atomic_fetch_sub(&nest->account->refusals, 1); /* only the last one is one */
		r = tn_quota_reserve(nest->account, bytes, inodes, ret);
	}
	if (r < 0)
		tn_observe_quota(nest);
	else
		r = tn_nest_take_space(nest, bytes, inodes, ret);
	return r;
}

uint64_t tn_nest_reserve_some(TnNest *nest, uint64_t bytes, TnReservation *ret)
{
	uint64_t got;

	if (nest->store.kernel_counts)
		return bytes;
	got = tn_quota_reserve_some(nest->account, bytes, ret);
	if (got == 0 && bytes > 0)
		tn_observe_quota(nest);
	return got > 0 && tn_nest_take_space(nest, got, 0, ret) < 0 ? 0 : got;
}

void tn_nest_await_room(TnNest *nest, uint64_t bytes)
{
	struct statvfs fs;

	if (!nest->store.kernel_counts || atomic_load(&nest->arena.header->orphans) == 0 ||
	    fstatvfs(nest->store.data, &fs) < 0 ||
	    (uint64_t)fs.f_bavail * fs.f_frsize >= bytes + ROOM_ENOUGH)
		return;
	await_refund(nest);
}

void tn_nest_refund(TnNest *nest, uint64_t bytes, uint64_t inodes)
{
	tn_quota_refund(nest->account, bytes, inodes);
	pthread_mutex_lock(&nest->refund_lock);
	if (nest->refund_waiters > 0)
		pthread_cond_broadcast(&nest->refunded);
	pthread_mutex_unlock(&nest->refund_lock);
}

/* --- for operators ------------------------------------------------------------------------------
 */

static TnNestState state_of(const TnNest *nest)
{
	if (nest->evicting)
		return TN_NEST_EVICTING;
	if (nest->frozen)
		return TN_NEST_FROZEN;
	if (nest->detached)
		return TN_NEST_DETACHED;
	return nest->device >= 0 ? TN_NEST_ACTIVE : TN_NEST_IDLE;
}

static uint64_t count_requests(const TnArenaHeader *header)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < TN_OPCODES; i++)
		sum += atomic_load(&header->requests[i]);
	return sum;
}

void tn_nest_info(TnNest *nest, TnNestInfo *ret)
{
	const TnArenaHeader *header = nest->arena.header;
	const TnAccount *account = nest->account;

	pthread_mutex_lock(&nest->life);
	*ret = (TnNestInfo){
		.id = nest->id,
		.owner_uid = nest->uid,
		.owner_gid = nest->gid,
		.state = state_of(nest),
		.ephemeral = nest->ephemeral,
		.keep = nest->keep,
		.durable = nest->durable,
		.no_xattrs = nest->no_xattrs,
		.writeback = nest->writeback,
		.data_path = nest->data_path,
		.store = nest->store.ops->kind,
		.attachments = nest->n_attachments,
		.ttl = nest->ttl,
		.idle_ttl = nest->idle_ttl,
		.created_ns = nest->created_ns,
		.from = nest->from.path,
	};
	pthread_mutex_unlock(&nest->life);
	strcpy(ret->name, nest->name);
	ret->bytes_used = tn_nest_bytes_used(nest);
	ret->bytes_limit = atomic_load(&account->bytes_limit);
	ret->inodes_used = atomic_load(&account->inodes_used);
	ret->inodes_limit = atomic_load(&account->inodes_limit);
	ret->denied_total = atomic_load(&header->denied);
	ret->quota_hits_total = atomic_load(&account->refusals);
	ret->store_full_total = atomic_load(&nest->store_full);
	ret->requests_total = count_requests(header);
	ret->last_used_ns = atomic_load(&header->last_used_ns);
	ret->view_dev = (dev_t)atomic_load(&header->view_dev);
	ret->busy_ns = atomic_load(&nest->busy_ns);
	pthread_mutex_lock(&nest->table_lock);
	ret->nodes_cached = tn_node_count(nest->table);
	ret->open_files = nest->open_files;
	ret->open_writers = nest->open_writers;
	pthread_mutex_unlock(&nest->table_lock);
}

int tn_nest_set_limits(TnNest *nest, uint64_t bytes, uint64_t inodes, uint64_t ttl,
		       uint64_t idle_ttl)
{
	TnAccount *account = nest->account;
	uint64_t new_bytes = bytes ? bytes : atomic_load(&account->bytes_limit);
	uint64_t new_inodes = inodes ? inodes : atomic_load(&account->inodes_limit);
	int r;

	pthread_mutex_lock(&nest->life);
	r = nest->evicting ? -ENOENT : tn_nest_apply_limits(nest, new_bytes, new_inodes);
	if (r == 0) {
		atomic_store(&account->bytes_limit, new_bytes);
		atomic_store(&account->inodes_limit, new_inodes);
		nest->ttl = ttl ? ttl : nest->ttl;
		nest->idle_ttl = idle_ttl ? idle_ttl : nest->idle_ttl;
		r = tn_describe_save(nest);
	}
	pthread_mutex_unlock(&nest->life);
	return r;
}

void tn_nest_each_rule(TnNest *nest, TnRuleVisit visit, void *data)
{
	pthread_mutex_lock(&nest->life);
	tn_policy_each(nest->policy, visit, data);
	pthread_mutex_unlock(&nest->life);
}

void tn_nest_each_count(TnNest *nest, TnCountVisit visit, void *data)
{
	for (uint32_t i = 0; i < TN_OPCODES; i++) {
		uint64_t count = atomic_load(&nest->arena.header->requests[i]);

		if (count > 0 && tn_opcode_name(i))
			visit(tn_opcode_name(i), count, data);
	}
}

int tn_nest_recount(TnNest *nest, uint64_t *ret_bytes, uint64_t *ret_inodes)
{
	TnUsage usage = {0};
	int r;

	/* No name goes or moves meanwhile; what is written meanwhile may be counted or not. */
	pthread_rwlock_wrlock(&nest->tree);
	r = tn_recount_store(&nest->store, &usage);
	if (r == 0)
		r = tn_nest_count_held(nest, &usage);
	pthread_rwlock_unlock(&nest->tree);
	if (r < 0)
		return r;
	*ret_bytes = usage.bytes;
	*ret_inodes = usage.inodes;
	return 0;
}
