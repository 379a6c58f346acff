/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What an earlier daemon left in the store: named nests are counted anew, what ends with a daemon
 * is wiped, what is damaged stays as it is.
 */
#include "registry-private.h"

#include "log.h"
#include "macros.h"
#include "recount.h"
#include "sys.h"
#include "syscalls.h"
#include "wipe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TN_SYSCALLS = {
	{SYS_getdents64},
};

#define ORPHAN_STEPS 1024U

typedef enum Fate {
	LIVES_ON,
	IS_WIPED,
	IS_DAMAGED, /* stays where it is: nothing that might be somebody's is ever lost */
} Fate;

/*
 * Does the description's nest live on in this daemon? What ends with a daemon or a boot is wiped;
 * what should not be here at all stays.
 */
static Fate decide(TnRegistry *registry, const TnDescription *description, const char *name,
		   const char **ret_why)
{
	char expected[20];

	snprintf(expected, sizeof(expected), "%016" PRIx64, description->id);
	if (strcmp(expected, name) != 0) {
		*ret_why = "its description is of another nest";
		return IS_DAMAGED;
	}
	if (!registry->config.many_owners && description->uid != geteuid()) {
		*ret_why = "it belongs to another user";
		return IS_DAMAGED;
	}
	if (tn_registry_list_find(registry, description->uid, description->name)) {
		*ret_why = "its owner has another nest of that name";
		return IS_DAMAGED;
	}
	/* A tmpfs went with the daemon; so did the mount of an image, which is a nest's size of
	 * disk. */
	if (description->store != TN_STORE_DIR || (description->ephemeral && !description->keep))
		return IS_WIPED;
	return description->durable || strcmp(description->boot_id, registry->boot_id) == 0
		       ? LIVES_ON
		       : IS_WIPED;
}

/* By the time of the description's file; a clock that was set back must not keep it for ever. */
static void note_last_use(TnNest *nest, int64_t used_ns)
{
	int64_t now = tn_now();

	if (used_ns > now)
		used_ns = now;
	if (used_ns > nest->created_ns)
		atomic_store(&nest->arena.header->last_used_ns, used_ns);
	nest->stamped_ns = atomic_load(&nest->arena.header->last_used_ns);
}

void tn_registry_parts_of(TnRegistry *registry, const TnDescription *description, TnNestParts *ret)
{
	TnNestSpec spec = {
		.name = description->name,
		.from_fd = -1,
		.uid = description->uid,
		.gid = description->gid,
		.keep = description->keep,
		.durable = description->durable,
		.no_xattrs = description->no_xattrs,
		.writeback = description->writeback,
		.store = description->store,
		.bytes = description->bytes,
		.inodes = description->inodes,
		.ttl = description->ttl,
		.idle_ttl = description->idle_ttl,
	};

	tn_registry_fill_parts(registry, &spec, description->name, ret);
	ret->id = description->id;
	ret->ephemeral = description->ephemeral;
	ret->created_ns = description->created_ns;
	ret->from = description->from;
	ret->policy = description->policy;
}

void tn_registry_parts_taken(TnDescription *description, TnNest *nest)
{
	description->policy = NULL;
	description->from.path = NULL;
	atomic_store(&nest->frozen, description->frozen);
}

static int restore(TnRegistry *registry, int home, TnDescription *description, TnNest **ret)
{
	TnUsage usage = {0};
	TnNestParts parts;
	int r;

	tn_registry_parts_of(registry, description, &parts);
	parts.home = home;
	r = tn_store_open(&parts.store, description->store, home, description->uid,
			  description->gid);
	if (r == 0)
		r = tn_recount_store(&parts.store, &usage);
	/* With it, so that a worker that is killed from here on leaves a whole one. */
	parts.use = (TnShare){
		.bytes = (int64_t)usage.bytes,
		.inodes = (int64_t)usage.inodes,
		.xattrs = (int64_t)usage.xattr_bytes,
	};
	if (r == 0)
		r = tn_nest_new(ret, &parts);
	if (r < 0) {
		tn_store_clear(&parts.store);
		return r;
	}
	tn_registry_parts_taken(description, *ret);
	(*ret)->detached = true;
	note_last_use(*ret, description->last_used_ns);
	return 0;
}

/* What a killed worker left of unlinked files goes before the store is counted. */
static void empty_orphans(int home)
{
	TN_AUTOFD orphans = tn_open_beneath(home, "orphans", O_RDONLY | O_DIRECTORY, 0);
	TnWipe wipe = {.trash = orphans};

	while (orphans >= 0 && tn_wipe_some(&wipe, ORPHAN_STEPS) > 0)
		;
}

static bool is_adopted(TnRegistry *registry, const char *name)
{
	const TnNest *nest = tn_registry_list_find_id(registry, strtoull(name, NULL, 16));
	char expected[20];

	if (!nest)
		return false;
	snprintf(expected, sizeof(expected), "%016" PRIx64, nest->id);
	return strcmp(expected, name) == 0;
}

/* The store's layout would be made anew where it is missing: not when it held something. */
static bool has_data(int home)
{
	struct stat st;

	return fstatat(home, "data", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static Fate load_nest(TnRegistry *registry, const char *name, const char **ret_why)
{
	TN_AUTOFD home = tn_open_beneath(registry->nests, name, O_RDONLY | O_DIRECTORY, 0);
	TnDescription description = {0};
	TnNest *nest;
	Fate fate;
	int r = home < 0 ? home : tn_describe_load(home, &description);

	if (r < 0) {
		*ret_why = home < 0        ? "it is no directory of ours"
			   : r == -ENOENT  ? "its description is missing"
			   : r == -EBADMSG ? "its description is damaged"
					   : strerror(-r);
		return IS_DAMAGED;
	}
	fate = decide(registry, &description, name, ret_why);
	if (fate == LIVES_ON && !has_data(home)) {
		*ret_why = "its directory data is missing or is something else";
		fate = IS_DAMAGED;
	}
	if (fate == LIVES_ON) {
		empty_orphans(home);
		r = restore(registry, home, &description, &nest);
		if (r < 0) {
			*ret_why = strerror(-r);
			fate = IS_DAMAGED;
		}
	}
	tn_description_clear(&description);
	if (fate == LIVES_ON) {
		tn_steal_fd(&home);
		tn_registry_list_add(registry, nest);
	}
	return fate;
}

static void note_damaged(TnRegistry *registry, const char *name, const char *why)
{
	char **grown = reallocarray(registry->damaged, registry->n_damaged + 1, sizeof(*grown));
	char shown[128];

	tn_log(TN_LOG_ERROR,
	       "load: nests/%s: %s; it is left as it is (look at it, move what you need, then "
	       "remove "
	       "it, or have tmpnest gc --damaged wipe it)",
	       tn_log_escape(name, shown, sizeof(shown)), why);
	if (!grown)
		return;
	registry->damaged = grown;
	grown[registry->n_damaged] = strdup(name);
	if (grown[registry->n_damaged])
		registry->n_damaged++;
}

static void load_one(TnRegistry *registry, const char *name)
{
	const char *why = "";

	if (is_adopted(registry, name))
		return;
	/* Nobody has used it yet. */
	if (strncmp(name, TN_NEW_PREFIX, strlen(TN_NEW_PREFIX)) == 0) {
		tn_registry_discard_home(registry, name);
		return;
	}
	switch (load_nest(registry, name, &why)) {
	case LIVES_ON:
		return;
	case IS_WIPED:
		tn_registry_discard_home(registry, name);
		return;
	case IS_DAMAGED:
		note_damaged(registry, name, why);
		return;
	}
}

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int tn_registry_load(TnRegistry *registry)
{
	int copy = tn_open_beneath(registry->nests, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *item;

	if (!stream) {
		int r = copy < 0 ? copy : -errno;

		tn_close(&copy);
		return r;
	}
	while ((item = readdir(stream))) {
		if (!is_dot(item->d_name))
			load_one(registry, item->d_name);
	}
	closedir(stream);
	return 0;
}
