/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "macros.h"
#include "paths.h"
#include "stub-files.h"
#include "stubs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LEASE_SUFFIX ".stubs"
/* What a filled stub can look like at most; larger things are real. */
#define STUB_SIZE_MAX 64

/*
 * A path that is there needs no stub, but may be another sandbox's stub, which this one then
 * holds as well. What cannot be one spares the ledger.
 */
static bool may_be_stub(const struct stat *status)
{
	if (status->st_uid != geteuid())
		return false;
	if (S_ISREG(status->st_mode))
		return status->st_size <= STUB_SIZE_MAX && (status->st_mode & 0222) == 0;
	/* an ordinary directory has a subdirectory or is written to; this errs towards looking */
	return S_ISDIR(status->st_mode) && status->st_nlink <= 2;
}

static bool needs_keeper(const TnStubMask *masks, size_t n_masks)
{
	for (size_t i = 0; i < n_masks; i++) {
		struct stat status;

		if (lstat(masks[i].path, &status) < 0 || may_be_stub(&status))
			return true;
	}
	return false;
}

/* The path with its directory's links resolved; that directory itself may be none. */
static bool resolve_mask(const char *path, char ret[PATH_MAX])
{
	char dir[PATH_MAX], real[PATH_MAX];
	const char *slash = strrchr(path, '/');
	struct stat status;

	if (path[0] != '/' || !slash[1] || slash - path >= PATH_MAX)
		return false;
	snprintf(dir, sizeof(dir), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	/* not there yet: it may be a mask itself, and made before this one */
	if (lstat(dir, &status) < 0)
		return tn_path_normalize(path, ret, PATH_MAX);
	if (!S_ISDIR(status.st_mode) || !realpath(dir, real))
		return false;
	return snprintf(ret, PATH_MAX, "%s/%s", strcmp(real, "/") == 0 ? "" : real, slash + 1) <
	       PATH_MAX;
}

/* What was bound onto itself had a kind that is no longer to be seen: the profile knows. */
static TnStubKind kind_of(const TnStubMask *mask, const TnStubProfile *profile)
{
	if (mask->vanished && profile->json)
		return tn_stub_kind_of(profile, mask->path);
	return mask->as_dir ? TN_STUB_DIR : TN_STUB_FILE;
}

/*
 * A second name for the lease: the daemon removes the first one at the end of use, and a
 * reaper that starts later must still see that end. Where it cannot be made (another file
 * system) the first one serves.
 */
static void link_lease(const TnStubLaunch *launch, char ret[PATH_MAX])
{
	char dir[PATH_MAX];

	if (launch->runtime_dir &&
	    snprintf(dir, sizeof(dir), "%s/stubs", launch->runtime_dir) < PATH_MAX &&
	    (mkdir(dir, 0700) == 0 || errno == EEXIST) &&
	    snprintf(ret, PATH_MAX, "%s%s%s", dir, strrchr(launch->lease, '/'), LEASE_SUFFIX) <
		    PATH_MAX &&
	    link(launch->lease, ret) == 0)
		return;
	snprintf(ret, PATH_MAX, "%s", launch->lease);
}

static int hold(const TnStubLaunch *launch, TnStubs *stubs, const TnStubMask *masks, size_t n_masks)
{
	TN_AUTOFREE char *paths = calloc(n_masks + 1, PATH_MAX);
	TN_AUTOFREE TnStubWant *wants = calloc(n_masks + 1, sizeof(*wants));
	TnStubProfile profile = {0};
	char run_id[TN_LEDGER_RUN_ID_MAX], lease[PATH_MAX], why[256];
	TnStubHolder holder;
	size_t n_wants = 0;
	int result = paths && wants ? tn_holder_init(&stubs->self, getpid(), &holder) : -ENOMEM;

	if (result < 0)
		return result;
	snprintf(run_id, sizeof(run_id), "sandbox:%d", getpid());
	if (launch->lease) {
		link_lease(launch, lease);
		holder.lease = lease;
	}
	tn_stub_profile_load(stubs->options.profiles_dir, "builtin", &profile, why, sizeof(why));
	for (size_t i = 0; i < n_masks; i++) {
		char *path = paths + i * PATH_MAX;

		if (resolve_mask(masks[i].path, path))
			wants[n_wants++] =
				(TnStubWant){path, kind_of(&masks[i], &profile), .filled = true};
	}
	tn_stub_profile_clear(&profile);
	return tn_stubs_hold(stubs, run_id, &holder, !launch->lease, wants, n_wants);
}

int tn_stubs_hold_for_launch(const TnStubLaunch *launch, const TnStubMask *masks, size_t n_masks)
{
	char ledger_path[PATH_MAX], profiles_dir[PATH_MAX];
	TnStubsOptions options = {.ledger_path = ledger_path,
				  .profiles_dir = profiles_dir,
				  .runtime_dir = launch->runtime_dir,
				  .note = launch->note,
				  .note_data = launch->note_data};
	TnStubs stubs;
	int result;

	if (!needs_keeper(masks, n_masks))
		return 0;
	result = tn_ledger_file_path(launch->ledger_path, ledger_path);
	if (result < 0)
		return result;
	tn_stub_profiles_dir(profiles_dir);
	tn_stubs_init(&stubs, &options);
	result = hold(launch, &stubs, masks, n_masks);
	tn_stubs_clear(&stubs);
	if (result == 0 && launch->reaper)
		result = tn_stubs_start_reaper(launch->reaper, ledger_path, launch->runtime_dir);
	return result;
}
