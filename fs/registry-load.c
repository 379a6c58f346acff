/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What an earlier daemon left in the store: named nests are counted anew, the rest is wiped. */
#include "registry-private.h"

#include "log.h"
#include "macros.h"
#include "recount.h"
#include "sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Does the description's nest live on in this daemon? Others are wiped. */
static bool survives(TnRegistry *registry, const TnDescription *description, const char *name)
{
	char expected[20];

	snprintf(expected, sizeof(expected), "%016" PRIx64, description->id);
	if (strcmp(expected, name) != 0 ||
	    tn_registry_list_find(registry, description->uid, description->name))
		return false;
	if (description->store == TN_STORE_MEMORY || (description->ephemeral && !description->keep))
		return false;
	if (!registry->config.many_owners && description->uid != geteuid())
		return false;
	return description->durable || strcmp(description->boot_id, registry->boot_id) == 0;
}

static int restore(TnRegistry *registry, int home, TnDescription *description, TnNest **ret)
{
	TnNestSpec spec = {
		.name = description->name,
		.from_fd = -1,
		.uid = description->uid,
		.gid = description->gid,
		.keep = description->keep,
		.durable = description->durable,
		.no_xattrs = description->no_xattrs,
		.bytes = description->bytes,
		.inodes = description->inodes,
		.ttl = description->ttl,
		.idle_ttl = description->idle_ttl,
	};
	TnUsage usage = {0};
	TnNestParts parts;
	int r;

	tn_registry_fill_parts(registry, &spec, description->name, &parts);
	parts.id = description->id;
	parts.created_ns = description->created_ns;
	parts.home = home;
	parts.from = description->from;
	parts.policy = description->policy;
	r = tn_store_open(&parts.store, description->store, home, spec.uid, spec.gid);
	if (r == 0)
		r = tn_recount_store(&parts.store, &usage);
	if (r == 0)
		r = tn_nest_new(ret, &parts);
	if (r < 0) {
		tn_store_clear(&parts.store);
		return r;
	}
	description->policy = NULL;
	description->from.path = NULL;
	tn_quota_charge((*ret)->account, usage.bytes, usage.inodes);
	atomic_store(&(*ret)->arena.header->xattr_bytes, usage.xattr_bytes);
	(*ret)->ephemeral = description->ephemeral;
	(*ret)->detached = true;
	return 0;
}

/* What a killed worker left of unlinked files goes before the store is counted. */
static void empty_orphans(int home)
{
	TN_AUTOFD orphans = tn_open_beneath(home, "orphans", O_RDONLY | O_DIRECTORY, 0);
	TnWipe wipe = {.trash = orphans};

	while (orphans >= 0 && tn_wipe_some(&wipe, TN_WIPE_STEPS) > 0)
		;
}

static int load_one(TnRegistry *registry, const char *name)
{
	TN_AUTOFD home = tn_open_beneath(registry->nests, name, O_RDONLY | O_DIRECTORY, 0);
	TnDescription description = {0};
	TnNest *nest;
	int r;

	if (home < 0)
		return home;
	r = tn_describe_load(home, &description);
	if (r == 0 && !survives(registry, &description, name))
		r = -ESTALE;
	if (r == 0) {
		empty_orphans(home);
		r = restore(registry, home, &description, &nest);
	}
	tn_description_clear(&description);
	if (r < 0)
		return r;
	tn_steal_fd(&home);
	tn_registry_list_add(registry, nest);
	return 0;
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
		char shown[128];
		int r;

		if (item->d_name[0] == '.')
			continue;
		r = load_one(registry, item->d_name);
		if (r < 0 && r != -ESTALE)
			tn_log(TN_LOG_WARNING, "load: %s: %s; it is wiped",
			       tn_log_escape(item->d_name, shown, sizeof(shown)), strerror(-r));
		if (r < 0)
			tn_registry_discard_home(registry, item->d_name);
	}
	closedir(stream);
	return 0;
}
