/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "registry-private.h"

#include "journal.h"
#include "log.h"
#include "macros.h"
#include "stranger.h"
#include "sys.h"
#include "syscalls.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TN_SYSCALLS = {
	{SYS_mkdirat},
	{SYS_renameat2},
	{SYS_fsync},
};

static bool has_control_bytes(const char *text)
{
	for (; *text; text++) {
		if (iscntrl((unsigned char)*text))
			return true;
	}
	return false;
}

int tn_registry_add_rules(TnPolicy *policy, const char *const *patterns, size_t n, bool deny,
			  char *why, size_t why_size)
{
	for (size_t i = 0; i < n; i++) {
		int r = has_control_bytes(patterns[i]) ? -EINVAL
						       : tn_policy_add(policy, patterns[i], deny);

		if (r < 0) {
			char shown[160];

			snprintf(why, why_size,
				 "%s rule: %s: %s (give a path below /tmp or /var/tmp)",
				 deny ? "deny" : "read-only",
				 tn_log_escape(patterns[i], shown, sizeof(shown)),
				 r == -E2BIG ? "too many rules" : "not a usable pattern");
			return r == -E2BIG ? -EINVAL : r;
		}
	}
	return 0;
}

static int build_policy(const TnNestSpec *spec, TnPolicy **ret, char *why, size_t why_size)
{
	TnPolicy *policy = tn_policy_new();
	int r;

	if (!policy)
		return -ENOMEM;
	r = tn_registry_add_rules(policy, spec->deny, spec->n_deny, true, why, why_size);
	if (r == 0)
		r = tn_registry_add_rules(policy, spec->read_only, spec->n_read_only, false, why,
					  why_size);
	if (r < 0) {
		tn_policy_free(policy);
		return r;
	}
	*ret = policy;
	return 0;
}

/* A home's name, while it is made and afterwards. */
static void home_name(char ret[32], const char *prefix, uint64_t id)
{
	snprintf(ret, 32, "%s%016" PRIx64, prefix, id);
}

/*
 * A directory of its own for a new nest; it gets its lasting name when its description is whole,
 * so that what a killed daemon left half-made tells itself from a damaged nest. A descriptor, or
 * -errno.
 */
static int make_home(TnRegistry *registry, uint64_t id)
{
	char name[32];

	home_name(name, TN_NEW_PREFIX, id);
	if (mkdirat(registry->nests, name, 0700) < 0)
		return -errno;
	return tn_open_beneath(registry->nests, name, O_RDONLY | O_DIRECTORY, 0);
}

static int open_store(TnRegistry *registry, const TnNestSpec *spec, TnNestParts *parts)
{
	TnStoreKind kind = spec->store ? spec->store : registry->config.default_store;

	if (kind == TN_STORE_MEMORY) {
		TnStoreLimits limits = {
			.bytes = parts->bytes,
			.inodes = parts->inodes,
			.kernel_counts = parts->data_path == TN_PATH_PASSTHROUGH,
		};

		parts->space = NULL;
		return tn_store_open_memory(&parts->store, registry->config.keeper, &limits,
					    spec->uid, spec->gid);
	}
	if (kind == TN_STORE_IMAGE) {
		TnStoreLimits limits = {.bytes = parts->bytes, .inodes = parts->inodes};

		parts->space = NULL;
		return tn_store_open_image(&parts->store, registry->config.keeper, parts->home,
					   &limits, spec->uid, spec->gid);
	}
	return tn_store_open(&parts->store, kind, parts->home, spec->uid, spec->gid);
}

/* The way that the bytes of the nest's files will take. */
static TnDataPath choose_data_path(const TnRegistry *registry, const TnNestSpec *spec)
{
	TnStoreKind kind = spec->store ? spec->store : registry->config.default_store;

	if (kind == TN_STORE_DIR)
		return TN_PATH_STORE;
	if (registry->config.data_path != TN_PATH_PASSTHROUGH)
		return registry->config.data_path;
	if (spec->writeback)
		return TN_PATH_WRITEBACK;
	return spec->n_read_only ? TN_PATH_RULES : TN_PATH_PASSTHROUGH;
}

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
	return value ? value : otherwise;
}

static void clear_from(TnFrom *from)
{
	tn_close(&from->fd);
	free(from->path);
	*from = (TnFrom){.fd = -1};
}

void tn_registry_fill_parts(TnRegistry *registry, const TnNestSpec *spec, const char *name,
			    TnNestParts *ret)
{
	TnUser *user = tn_registry_user(registry, spec->uid);

	*ret = (TnNestParts){
		.config = &registry->config,
		.registry = registry,
		.id = spec->id ? spec->id : tn_random(),
		.name = name,
		.uid = spec->uid,
		.gid = spec->gid,
		.ephemeral = !spec->name,
		.keep = spec->keep,
		.durable = spec->durable,
		.no_xattrs = spec->no_xattrs,
		.writeback = spec->writeback,
		.data_path = choose_data_path(registry, spec),
		.bytes = or_default(spec->bytes, registry->config.default_bytes),
		.inodes = or_default(spec->inodes, registry->config.default_inodes),
		.ttl = or_default(spec->ttl, TN_UNLIMITED),
		.idle_ttl = or_default(spec->idle_ttl, TN_UNLIMITED),
		.created_ns = tn_now(),
		.dirs = registry->dirs,
		.files = registry->files,
		.space = &registry->space,
		.user_space = user ? &user->space : NULL,
		.from = {.fd = -1},
		.home = -1,
		.store = {.data = -1, .orphans = -1, .mount = -1, .image = -1},
	};
}

/* Keeps what the nest is named after. 0 or -errno, nothing to clear then. */
static int keep_from(TnRegistry *registry, const TnNestSpec *spec, TnFrom *ret)
{
	bool may_wait = !registry->config.many_owners;
	struct stat st;

	if (spec->from_fd < 0 || !spec->from_path)
		return 0;
	*ret = (TnFrom){
		.fd = fcntl(spec->from_fd, F_DUPFD_CLOEXEC, 3),
		.path = strdup(spec->from_path),
		.dev = spec->from_dev,
		.ino = spec->from_ino,
		.visible = tn_stranger_look(spec->from_path, may_wait, &st) == 0 &&
			   st.st_dev == spec->from_dev && st.st_ino == spec->from_ino,
	};
	if (ret->fd >= 0 && ret->path)
		return 0;
	clear_from(ret);
	return -ENOMEM;
}

/* Its directories reach the disk: only a durable nest is found again after a power cut. */
static int sync_home(TnRegistry *registry, const TnNestParts *parts)
{
	TN_AUTOFD here = tn_open_beneath(registry->config.store_fd, ".", O_RDONLY | O_DIRECTORY, 0);

	if (here < 0)
		return here;
	if (fsync(parts->store.data) < 0 || fsync(parts->home) < 0 || fsync(registry->nests) < 0 ||
	    fsync(here) < 0)
		return -errno;
	return 0;
}

/* The nest's description, and its home's lasting name. */
static int finish_home(TnRegistry *registry, TnNest *nest, const TnNestParts *parts)
{
	char before[32], after[32];
	int r;

	home_name(before, TN_NEW_PREFIX, parts->id);
	home_name(after, "", parts->id);
	pthread_mutex_lock(&nest->life);
	r = tn_describe_save(nest);
	pthread_mutex_unlock(&nest->life);
	tn_kill_point();
	if (r == 0 &&
	    renameat2(registry->nests, before, registry->nests, after, RENAME_NOREPLACE) < 0)
		r = -errno;
	tn_kill_point();
	if (r == 0 && parts->durable)
		r = sync_home(registry, parts);
	return r;
}

static void discard_half_made(TnRegistry *registry, uint64_t id)
{
	struct stat st;
	char name[32];

	home_name(name, TN_NEW_PREFIX, id);
	if (fstatat(registry->nests, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		home_name(name, "", id);
	tn_registry_discard_home(registry, name);
}

/* Who asks for a store of that kind may expect more: why it cannot be given. */
static void say_mediated(const TnNestParts *parts)
{
	if (parts->data_path != TN_PATH_PASSTHROUGH && parts->data_path != TN_PATH_STORE)
		tn_log(TN_LOG_INFO, "nest %s: mediated: %s", parts->name,
		       tn_data_path_reason(parts->data_path));
}

/* Everything but the list. Takes parts->policy on success. */
static int build_nest(TnRegistry *registry, const TnNestSpec *spec, TnNestParts *parts,
		      TnNest **ret)
{
	int r;

	r = keep_from(registry, spec, &parts->from);
	if (r < 0)
		return r;
	parts->home = make_home(registry, parts->id);
	if (parts->home < 0) {
		clear_from(&parts->from);
		return parts->home;
	}
	tn_kill_point();
	r = open_store(registry, spec, parts);
	say_mediated(parts);
	tn_kill_point();
	if (r == 0)
		r = tn_nest_new(ret, parts);
	tn_kill_point();
	if (r == 0) {
		r = finish_home(registry, *ret, parts);
		if (r == 0)
			return 0;
		(*ret)->policy = NULL; /* stays the caller's */
		tn_nest_unref(*ret);
	} else {
		clear_from(&parts->from);
		tn_store_clear(&parts->store);
		tn_close(&parts->home);
	}
	discard_half_made(registry, parts->id);
	return r;
}

static int check_spec(TnRegistry *registry, const TnNestSpec *spec, char *why, size_t why_size)
{
	TnStoreKind kind = spec->store ? spec->store : registry->config.default_store;

	if (spec->name && !tn_name_is_valid(spec->name)) {
		snprintf(why, why_size, "not a nest name (1 to 64 of A-Z a-z 0-9 . _ -)");
		return -EINVAL;
	}
	if (!tn_store_ops(kind)) {
		snprintf(why, why_size, "this daemon has no such store (use dir, memory or image)");
		return -ENOTSUP;
	}
	if (spec->durable && kind != TN_STORE_DIR) {
		snprintf(why, why_size,
			 "only a nest of the store dir can be durable (use --store dir)");
		return -EINVAL;
	}
	if (kind == TN_STORE_IMAGE && !registry->config.many_owners) {
		snprintf(why, why_size,
			 "a user's daemon has no right to mount an image (use --store dir)");
		return -ENOTSUP;
	}
	if (kind == TN_STORE_IMAGE && spec->bytes == TN_UNLIMITED) {
		snprintf(why, why_size, "an image store needs a limit of bytes: that is its size");
		return -EINVAL;
	}
	if (spec->from_path && has_control_bytes(spec->from_path)) {
		snprintf(why, why_size, "the directory it is named after has a strange name");
		return -EINVAL;
	}
	if (spec->name && tn_registry_list_find(registry, spec->uid, spec->name)) {
		snprintf(why, why_size, "a nest of that name exists");
		return -EEXIST;
	}
	return 0;
}

static int create(TnRegistry *registry, const TnNestSpec *spec, TnNest **ret, char *why,
		  size_t why_size)
{
	char name[TN_NAME_MAX + 1];
	TnNestParts parts;
	TnPolicy *policy = NULL;
	int r = check_spec(registry, spec, why, why_size);

	if (r == 0)
		r = tn_registry_check_user_nests(registry, spec->uid, why, why_size);
	if (r == 0)
		r = build_policy(spec, &policy, why, why_size);
	if (r < 0)
		return r;
	do {
		snprintf(name, sizeof(name), "run-%06x", (unsigned)(tn_random() & 0xffffff));
	} while (!spec->name && tn_registry_list_find(registry, spec->uid, name));
	tn_registry_fill_parts(registry, spec, spec->name ? spec->name : name, &parts);
	parts.policy = policy;
	r = build_nest(registry, spec, &parts, ret);
	if (r < 0) {
		snprintf(why, why_size, "the store refused a new nest: %s",
			 r == -ENOPKG ? "mke2fs is missing (install e2fsprogs)" : strerror(-r));
		tn_policy_free(policy);
		return r;
	}
	tn_registry_list_add(registry, *ret);
	tn_nest_ref(*ret);
	return 0;
}

/* Before the lock: room is made by evictions. */
static int make_room(TnRegistry *registry, const TnNestSpec *spec, char *why, size_t why_size)
{
	TnRoom wanted = {.bytes = TN_NEW_NEST_BYTES, .inodes = TN_NEW_NEST_INODES};
	TnStoreKind kind = spec->store ? spec->store : registry->config.default_store;

	const TnUser *user = tn_registry_find_user(registry, spec->uid);
	int r = 0;

	/* All of it at once; fallocate(2) has the last word. */
	if (kind == TN_STORE_IMAGE && spec->bytes != TN_UNLIMITED)
		wanted.bytes += or_default(spec->bytes, registry->config.default_bytes);
	if (kind != TN_STORE_MEMORY)
		r = tn_registry_make_room(registry, NULL, &wanted, why, why_size);
	if (r == 0 && user)
		r = tn_registry_make_room(registry, user, &wanted, why, why_size);
	return r;
}

int tn_registry_create(TnRegistry *registry, const TnNestSpec *spec, TnNest **ret, char *why,
		       size_t why_size)
{
	int r = make_room(registry, spec, why, why_size);

	if (r < 0)
		return r;
	pthread_mutex_lock(&registry->lock);
	r = create(registry, spec, ret, why, why_size);
	pthread_mutex_unlock(&registry->lock);
	return r;
}
