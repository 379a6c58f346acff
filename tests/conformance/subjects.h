/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cases, a file for each subject. */
#pragma once

#include "conformance.h"

extern const TcCase tc_names[], tc_directories[], tc_links[], tc_rename[], tc_attributes[],
	tc_times[], tc_set_id[], tc_files[], tc_mmap[], tc_locks[], tc_sockets[], tc_xattr[],
	tc_space[], tc_tmpfile[], tc_limits[], tc_listing[], tc_unlinked[], tc_parallel[],
	tc_watch[], tc_owners[], tc_asynchronous[], tc_odd[];

static const TcSubject tc_subjects[] = {
	{"names", tc_names},
	{"directories", tc_directories},
	{"links", tc_links},
	{"rename", tc_rename},
	{"attributes", tc_attributes},
	{"times", tc_times},
	{"set-id", tc_set_id},
	{"files", tc_files},
	{"mmap", tc_mmap},
	{"locks", tc_locks},
	{"sockets", tc_sockets},
	{"xattr", tc_xattr},
	{"space", tc_space},
	{"tmpfile", tc_tmpfile},
	{"limits", tc_limits},
	{"listing", tc_listing},
	{"unlinked", tc_unlinked},
	{"parallel", tc_parallel},
	{"watch", tc_watch},
	{"owners", tc_owners},
	{"asynchronous", tc_asynchronous},
	{"odd", tc_odd},
	{NULL, NULL},
};
