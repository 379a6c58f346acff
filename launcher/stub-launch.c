/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "macros.h"
#include "paths.h"
#include "stub-files.h"
#include "stub-keeper.h"
#include "stubs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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
	    snprintf(ret, PATH_MAX, "%s%s%s", dir, strrchr(launch->lease, '/'),
		     TN_STUBS_LEASE_SUFFIX) < PATH_MAX &&
	    link(launch->lease, ret) == 0)
		return;
	snprintf(ret, PATH_MAX, "%s", launch->lease);
}

typedef struct Count {
	const TnStubLaunch *launch;
	size_t n_held;
} Count;

static void count_held(void *data, TnStubOutcome outcome, const char *path, const char *why)
{
	Count *count = data;

	count->n_held += outcome == TN_STUB_CREATED || outcome == TN_STUB_SHARED ||
			 outcome == TN_STUB_ADOPTED;
	if (count->launch->note)
		count->launch->note(count->launch->note_data, outcome, path, why);
}

/*
 * A directory whose name says that it is a stub is held with what is in it: it may go at any
 * moment, and bwrap would then fail, or make one and leave it behind.
 */
static bool want_enclosing(const char *path, const TnStubProfile *profile, TnStubWant *ret)
{
	char *dir = strdup(path);
	bool wanted;

	if (!dir)
		return false;
	*strrchr(dir, '/') = '\0';
	wanted = *dir && profile->json && tn_stub_kind_of(profile, dir) == TN_STUB_DIR;
	if (wanted)
		*ret = (TnStubWant){dir, TN_STUB_DIR, .filled = true};
	else
		free(dir);
	return wanted;
}

/* Twice as many as there are masks, at most: each with what it lies in. */
typedef struct Wants {
	TnStubWant *wants;
	size_t n_wants;
} Wants;

static void clear_wants(Wants *wants)
{
	for (size_t i = 0; i < wants->n_wants; i++)
		free((char *)wants->wants[i].path);
	free(wants->wants);
}

static int collect_wants(const TnStubs *stubs, const TnStubMask *masks, size_t n_masks, Wants *ret)
{
	TnStubProfile profile = {0};
	char path[PATH_MAX], why[256];
	int result = 0;

	ret->wants = calloc(2 * n_masks + 1, sizeof(*ret->wants));
	if (!ret->wants)
		return -ENOMEM;
	tn_stub_profile_load(stubs->options.profiles_dir, "builtin", &profile, why, sizeof(why));
	for (size_t i = 0; i < n_masks && result == 0; i++) {
		TnStubWant *want = &ret->wants[ret->n_wants];

		if (!resolve_mask(masks[i].path, path))
			continue;
		*want = (TnStubWant){strdup(path), kind_of(&masks[i], &profile), .filled = true};
		if (!want->path)
			result = -ENOMEM;
		else
			ret->n_wants++;
		if (result == 0 && want_enclosing(path, &profile, want + 1))
			ret->n_wants++;
	}
	tn_stub_profile_clear(&profile);
	return result;
}

static int hold(const TnStubLaunch *launch, TnStubs *stubs, const TnStubMask *masks, size_t n_masks,
		const Count *count)
{
	char run_id[TN_LEDGER_RUN_ID_MAX], lease[PATH_MAX];
	Wants wants = {0};
	TnStubHolder holder;
	int result = tn_holder_init(&stubs->self, getpid(), &holder);

	if (result < 0)
		return result;
	snprintf(run_id, sizeof(run_id), "sandbox:%d", getpid());
	if (launch->lease) {
		link_lease(launch, lease);
		holder.lease = lease;
	}
	result = collect_wants(stubs, masks, n_masks, &wants);
	if (result == 0)
		result = tn_stubs_hold(stubs, run_id, &holder, !launch->lease, wants.wants,
				       wants.n_wants);
	clear_wants(&wants);
	/* no entry names it: nobody would remove it later */
	if (launch->lease && strcmp(lease, launch->lease) != 0 &&
	    (result < 0 || count->n_held == 0))
		unlink(lease);
	return result;
}

int tn_stubs_hold_for_launch(const TnStubLaunch *launch, const TnStubMask *masks, size_t n_masks)
{
	char ledger_path[PATH_MAX], profiles_dir[PATH_MAX];
	Count count = {.launch = launch};
	TnStubsOptions options = {.ledger_path = ledger_path,
				  .profiles_dir = profiles_dir,
				  .runtime_dir = launch->runtime_dir,
				  .note = count_held,
				  .note_data = &count};
	TnStubs stubs;
	int result;

	if (!needs_keeper(masks, n_masks))
		return 0;
	result = tn_ledger_file_path(launch->ledger_path, ledger_path);
	if (result < 0)
		return result;
	tn_stub_profiles_dir(profiles_dir);
	tn_stubs_init(&stubs, &options);
	result = hold(launch, &stubs, masks, n_masks, &count);
	tn_stubs_clear(&stubs);
	if (result == 0 && launch->reaper && count.n_held > 0)
		result = tn_stubs_start_reaper(launch->reaper, ledger_path, launch->runtime_dir);
	return result;
}
