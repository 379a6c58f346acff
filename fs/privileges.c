/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "privileges.h"

#include "macros.h"
#include "why.h"

#include <errno.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>

static const cap_value_t kept[] = {
	CAP_DAC_OVERRIDE, /* the store's directories have mode 0000 */
	CAP_DAC_READ_SEARCH, CAP_CHOWN,
	CAP_FOWNER,          CAP_FSETID, /* set-id bits that a payload keeps by its own rights */
	CAP_SETUID,                      /* setfsuid(2), setfsgid(2) */
	CAP_SETGID,
};

/* Those of `kept` that this process has: a container may have been given fewer. */
static int keep_some(void)
{
	cap_t now = cap_get_proc();
	cap_t wanted = cap_init();
	int r = now && wanted ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < TN_ARRAY_LEN(kept); i++) {
		cap_flag_value_t has = CAP_CLEAR;

		if (cap_get_flag(now, kept[i], CAP_PERMITTED, &has) < 0)
			r = -errno;
		else if (has == CAP_SET &&
			 (cap_set_flag(wanted, CAP_PERMITTED, 1, &kept[i], CAP_SET) < 0 ||
			  cap_set_flag(wanted, CAP_EFFECTIVE, 1, &kept[i], CAP_SET) < 0))
			r = -errno;
	}
	if (r == 0 && cap_set_proc(wanted) < 0)
		r = -errno;
	cap_free(now);
	cap_free(wanted);
	return r;
}

/* Nothing here executes a program, so a container that forbids this loses nothing. */
static int empty_bounding_set(void)
{
	for (cap_value_t cap = 0; cap_get_bound(cap) >= 0; cap++)
		if (cap_drop_bound(cap) < 0)
			return errno == EPERM ? 0 : -errno;
	return 0;
}

int tn_privileges_drop(bool change_ids, char *why, size_t why_size)
{
	int r;

	if (change_ids && prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0)
		return tn_why(why, why_size, -errno, "worker: capabilities across setfsuid: %s",
			      strerror(errno));
	r = empty_bounding_set();
	if (r < 0)
		return tn_why(why, why_size, r, "worker: capability bounding set: %s",
			      strerror(-r));
	r = keep_some();
	if (r < 0)
		return tn_why(why, why_size, r, "worker: capabilities: %s", strerror(-r));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return tn_why(why, why_size, -errno, "worker: no_new_privs: %s", strerror(errno));
	return 0;
}
