/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The model test: one random sequence of operations, done on two file systems at once (a
 * nest's view and a native tmpfs of the same size) by several processes in turns. After each
 * operation its outcome must be the same on both; now and then both trees are compared.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { MD_SIDES = 2, MD_WORKERS = 3, MD_SLOTS = 6, MD_PATH = 64 };

/* One operation, made by the parent from the seed; numbers mean what the kind makes of them. */
typedef struct MdOperation {
	uint32_t kind, worker;
	uint32_t slot, slot2; /* open files of the worker */
	uint32_t flags;
	uint32_t mode;
	uint64_t offset, size;
	char path[MD_PATH], path2[MD_PATH];
	bool tick; /* let the clock move first, and compare whose stamps moved */
} MdOperation;

/* What it did; compared as it is. */
typedef struct MdOutcome {
	int64_t result; /* of the call, or -errno */
	uint64_t data;  /* hash of what was read */
	uint32_t moved; /* stamps of path (bits 0-1: mtime, ctime) and of its directory (2-3) */
	uint32_t unused;
} MdOutcome;

/* The state of a worker: per side its root and its open files. */
typedef struct MdWorker {
	int root[MD_SIDES], cwd[MD_SIDES];
	int slots[MD_SLOTS][MD_SIDES];
} MdWorker;

/* What the parent remembers of earlier outcomes, so that most operations find something. */
typedef struct MdKnown {
	char paths[24][MD_PATH];
	bool open[MD_WORKERS][MD_SLOTS];
} MdKnown;

uint32_t md_kinds(void);
const char *md_kind_name(uint32_t kind);
void md_operation_make(MdOperation *ret, const MdKnown *known, uint64_t *random);
void md_learn(MdKnown *known, const MdOperation *operation, int64_t result, uint64_t *random);
void md_operation_print(const MdOperation *operation);
void md_operation_run(MdWorker *worker, const MdOperation *operation, int side, MdOutcome *ret);

uint64_t md_random(uint64_t *state);
uint64_t md_hash(uint64_t hash, const void *data, size_t size);

/* Says what differs and returns false. */
bool md_trees_equal(const int root[MD_SIDES]);
bool md_files_equal(const int fd[MD_SIDES], const char *what);
bool md_free_equal(const int root[MD_SIDES]);
