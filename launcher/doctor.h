/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What this machine has and lacks for tmpnest: one result per check, in the order of
 * their use. Checks leave nothing behind; those that need other namespaces run in a child.
 */
#pragma once

#include "daemon-choice.h"

#include <glib.h>

typedef enum TnCheckStatus {
	TN_CHECK_OK,
	TN_CHECK_WARNING, /* works, with less */
	TN_CHECK_MISSING, /* nothing works without it */
} TnCheckStatus;

typedef struct TnCheck {
	const char *name;
	TnCheckStatus status;
	char *found; /* what is there; owned */
	char *hint;  /* how to get it, NULL when all is well; owned */
} TnCheck;

/* The results; freed with g_ptr_array_unref(). */
GPtrArray *tn_doctor_new(void);
/* Takes found and hint (NULL: none). */
void tn_doctor_add(GPtrArray *checks, const char *name, TnCheckStatus status, char *found,
		   char *hint);

/* doctor-kernel.c */
void tn_doctor_kernel(GPtrArray *checks);
/* by_system: a system daemon does it for us, so that what we lack ourselves is no loss. */
void tn_doctor_fuse_device(GPtrArray *checks, gboolean by_system);
void tn_doctor_user_namespaces(GPtrArray *checks);
void tn_doctor_features(GPtrArray *checks);

/* doctor-host.c */
void tn_doctor_bwrap(GPtrArray *checks);
void tn_doctor_programs(GPtrArray *checks);
/* Adds a warning, and TRUE, when this runs inside one of our sandboxes. */
gboolean tn_doctor_sandbox(GPtrArray *checks);
void tn_doctor_dirs(GPtrArray *checks, const TnDaemonChoice *choice);

/* Is "bubblewrap 0.8.0" at least that version? Pure. */
gboolean tn_doctor_version_at_least(const char *text, guint major, guint minor);
