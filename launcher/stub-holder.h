/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who holds a stub, and does it still live? Reads /proc and leases; changes nothing.
 *
 * Never guesses: a holder about which nothing can be proved is TN_HOLDER_UNKNOWN, and
 * its stubs are left alone.
 */
#pragma once

#include "ledger.h"

typedef enum TnHolderState {
	TN_HOLDER_ALIVE,
	TN_HOLDER_DEAD,
	TN_HOLDER_UNKNOWN,
} TnHolderState;

/* What this process knows about itself and its machine. Fill once per command. */
typedef struct TnSelf {
	const char *proc;       /* where procfs is mounted: "/proc"; tests use another */
	uint64_t pid_namespace; /* 0: could not be read */
	char boot_id[40];       /* "": could not be read */
	bool in_first_namespace;
	/* the answer for the last holders asked about; forgotten with the object */
	struct TnHolderMemo {
		TnStubHolder holder;
		TnHolderState state;
	} memo[16];
	size_t n_memo;
} TnSelf;

void tn_self_init(TnSelf *ret, const char *proc);

/* Fills *ret for the process pid of our namespace. -ESRCH when it does not live. */
int tn_holder_init(const TnSelf *self, int64_t pid, TnStubHolder *ret);

/*
 * Dead means, in this order: with a lease, its reading end says end of file (or it is gone and
 * the boot is another one); another boot; in our pid namespace no such process, or one
 * that started at another time; in another one that it provably has no process left, which
 * only the first pid namespace can tell. A holder without namespace and boot, and every
 * holder when we cannot read our own, is judged by the bare pid.
 */
TnHolderState tn_holder_state(TnSelf *self, const TnStubHolder *holder);

bool tn_holder_is_same(const TnStubHolder *a, const TnStubHolder *b);

/* The lease alone. ALIVE: it has a writer, or holds bytes, as none does. UNKNOWN: there is none. */
TnHolderState tn_lease_state(const char *lease);

/*
 * Opens the reading end of a lease, close-on-exec and non-blocking; -errno (-ENOTSUP: no
 * FIFO that only we can open). Whoever polls it must read once first: a FIFO that had no writer yet
 * says nothing.
 */
int tn_lease_open(const char *lease);

/* Has the last writer of an opened lease closed it? Takes no byte out of what is no lease. */
bool tn_lease_has_ended(int fd);

/* The mount points in the mount tables of our user's processes. */
typedef struct TnMountPoints {
	char **paths; /* sorted */
	size_t n_paths, n_allocated;
	bool complete; /* every process could be looked at */
} TnMountPoints;

int tn_mount_points_scan(const TnSelf *self, TnMountPoints *ret);
/* ALIVE: path is one. UNKNOWN: it is none that we see, but we do not see all. */
TnHolderState tn_mount_points_state(const TnMountPoints *points, const char *path);
void tn_mount_points_clear(TnMountPoints *points);
