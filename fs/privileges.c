/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "privileges.h"

#include "log.h"
#include "macros.h"
#include "seccomp.h"
#include "why.h"

#include <errno.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* Who has it in his permitted set, and for how long effective. */
enum { KEEPER = 1, KEEPER_EFFECTIVE = 2, WORKER = 4, ROOT_ONLY = 8 };

static const struct {
	cap_value_t cap;
	int who;
} table[] = {
	{CAP_SYS_ADMIN, KEEPER | KEEPER_EFFECTIVE}, /* fsopen(2) and its kin */
	/* whose user namespace a peer is in: /proc/PID/ns/user */
	{CAP_SYS_PTRACE, KEEPER | KEEPER_EFFECTIVE | ROOT_ONLY},
	{CAP_SETPCAP, KEEPER}, /* a worker's way down: its bounding set, its secure bits */
	{CAP_DAC_OVERRIDE, KEEPER | WORKER}, /* the store's directories have mode 0000 */
	{CAP_DAC_READ_SEARCH, KEEPER | WORKER},
	{CAP_CHOWN, KEEPER | WORKER},
	{CAP_FOWNER, KEEPER | WORKER},
	/* set-id bits that a payload keeps by its own rights; on the passthrough path the kernel
	 * writes with the keeper's */
	{CAP_FSETID, KEEPER | KEEPER_EFFECTIVE | WORKER},
	{CAP_SETUID, KEEPER | WORKER | ROOT_ONLY}, /* setfsuid(2), setfsgid(2) */
	{CAP_SETGID, KEEPER | WORKER | ROOT_ONLY},
};

static bool is_for(size_t i, int who, bool root)
{
	return (table[i].who & who) && (root || !(table[i].who & ROOT_ONLY));
}

static bool is_among(cap_value_t cap, int who, bool root)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(table); i++) {
		if (table[i].cap == cap && is_for(i, who, root))
			return true;
	}
	return false;
}

/* Those of the table that this process has: a container may have been given fewer. */
static int keep_some(int permitted, int effective, bool root)
{
	cap_t now = cap_get_proc();
	cap_t wanted = cap_init();
	int r = now && wanted ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < TN_ARRAY_LEN(table); i++) {
		cap_flag_value_t has = CAP_CLEAR;

		if (!is_for(i, permitted, root))
			continue;
		if (cap_get_flag(now, table[i].cap, CAP_PERMITTED, &has) < 0)
			r = -errno;
		else if (has == CAP_SET &&
			 (cap_set_flag(wanted, CAP_PERMITTED, 1, &table[i].cap, CAP_SET) < 0 ||
			  (is_for(i, effective, root) &&
			   cap_set_flag(wanted, CAP_EFFECTIVE, 1, &table[i].cap, CAP_SET) < 0)))
			r = -errno;
	}
	if (r == 0 && cap_set_proc(wanted) < 0)
		r = -errno;
	cap_free(now);
	cap_free(wanted);
	return r;
}

/* What no later exec may bring back. A container that forbids this loses nothing by it. */
static int lower_bounding_set(int keep, bool root)
{
	for (cap_value_t cap = 0; cap_get_bound(cap) >= 0; cap++)
		if (!is_among(cap, keep, root) && cap_drop_bound(cap) < 0)
			return errno == EPERM ? 0 : -errno;
	return 0;
}

static void limit(int resource, rlim_t most)
{
	struct rlimit now;

	if (getrlimit(resource, &now) == 0 && now.rlim_max > most)
		now.rlim_max = most;
	now.rlim_cur = now.rlim_max;
	if (setrlimit(resource, &now) < 0)
		tn_log(TN_LOG_WARNING, "limits: %d: %s", resource, strerror(errno));
}

/*
 * Request buffers hold what sandboxes write. A core limit of 1, and no other, keeps it from a
 * core_pattern that is a pipe too (core(5)); dumpable is lost with some changes of credentials.
 */
static int leave_no_core(char *why, size_t why_size)
{
	limit(RLIMIT_CORE, 1);
	limit(RLIMIT_MEMLOCK, 0);
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return tn_why(why, why_size, -errno, "prctl: not dumpable: %s", strerror(errno));
	return 0;
}

int tn_privileges_keeper(bool root, char *why, size_t why_size)
{
	int r = lower_bounding_set(KEEPER, root);

	if (r == 0)
		r = keep_some(KEEPER, KEEPER_EFFECTIVE, root);
	if (r < 0)
		return tn_why(why, why_size, r, "keeper: capabilities: %s", strerror(-r));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return tn_why(why, why_size, -errno, "keeper: no_new_privs: %s", strerror(errno));
	return leave_no_core(why, why_size);
}

int tn_privileges_worker(bool root, char *why, size_t why_size)
{
	int r = keep_some(KEEPER, KEEPER, root); /* what leaving the rest takes */

	if (r == 0)
		r = lower_bounding_set(0, root);
	if (r < 0)
		return tn_why(why, why_size, r, "worker: capability bounding set: %s",
			      strerror(-r));
	/* A thread that changes its file-system ids (setfsuid(2)) keeps its capabilities. */
	if (root && prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0)
		return tn_why(why, why_size, -errno, "worker: capabilities across setfsuid: %s",
			      strerror(errno));
	r = keep_some(WORKER, WORKER, root);
	if (r < 0)
		return tn_why(why, why_size, r, "worker: capabilities: %s", strerror(-r));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return tn_why(why, why_size, -errno, "worker: no_new_privs: %s", strerror(errno));
	return leave_no_core(why, why_size);
}

int tn_privileges_filter(void)
{
	int r = getenv("TMPNEST_NO_SECCOMP") ? -ENOSYS : tn_seccomp_install();

	if (r == -EOPNOTSUPP)
		tn_log(TN_LOG_INFO, "worker: refused system calls will not be logged");
	else if (r < 0)
		/* A daemon without it is worse than one with it, and better than none. */
		tn_log(TN_LOG_WARNING, "worker: no system call filter: %s", strerror(-r));
	return r < 0 ? -1 : r;
}
