/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bwrap's command line as a list of operations: every option of bwrap 0.4 to 0.11, in
 * order, each word kept exactly so that it can be given to bwrap again.
 *
 * Pure: no I/O (what `--args FD` holds comes from a callback), no state, any thread.
 * Reads a line as bwrap does: the first word that does not start with "-" ends the
 * options, so does "--"; what follows an end inside an `--args` block is ignored; the
 * options' words may not run past the end of a block; at most TN_BWRAP_WORDS_MAX words.
 * What bwrap would refuse for its form is refused here with a sentence of its own; what
 * depends on files is left to bwrap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN_BWRAP_WORDS_MAX 9000 /* bwrap's own cap on command line and blocks together */

typedef enum TnBwrapOption {
	/* no word */
	TN_BWRAP_HELP,
	TN_BWRAP_VERSION,
	TN_BWRAP_UNSHARE_ALL,
	TN_BWRAP_UNSHARE_USER,
	TN_BWRAP_UNSHARE_USER_TRY,
	TN_BWRAP_UNSHARE_IPC,
	TN_BWRAP_UNSHARE_PID,
	TN_BWRAP_UNSHARE_NET,
	TN_BWRAP_UNSHARE_UTS,
	TN_BWRAP_UNSHARE_CGROUP,
	TN_BWRAP_UNSHARE_CGROUP_TRY,
	TN_BWRAP_SHARE_NET,
	TN_BWRAP_DISABLE_USERNS,
	TN_BWRAP_ASSERT_USERNS_DISABLED,
	TN_BWRAP_CLEARENV,
	TN_BWRAP_NEW_SESSION,
	TN_BWRAP_DIE_WITH_PARENT,
	TN_BWRAP_AS_PID_1,
	TN_BWRAP_LEVEL_PREFIX,
	/* one word */
	TN_BWRAP_ARGS,
	TN_BWRAP_ARGV0,
	TN_BWRAP_CHDIR,
	TN_BWRAP_UNSETENV,
	TN_BWRAP_LOCK_FILE,
	TN_BWRAP_REMOUNT_RO,
	TN_BWRAP_PROC,
	TN_BWRAP_DEV,
	TN_BWRAP_TMPFS,
	TN_BWRAP_MQUEUE,
	TN_BWRAP_DIR,
	TN_BWRAP_EXEC_LABEL,
	TN_BWRAP_FILE_LABEL,
	TN_BWRAP_SECCOMP,
	TN_BWRAP_ADD_SECCOMP_FD,
	TN_BWRAP_SYNC_FD,
	TN_BWRAP_BLOCK_FD,
	TN_BWRAP_USERNS_BLOCK_FD,
	TN_BWRAP_INFO_FD,
	TN_BWRAP_JSON_STATUS_FD,
	TN_BWRAP_USERNS,
	TN_BWRAP_USERNS2,
	TN_BWRAP_PIDNS,
	TN_BWRAP_UID,
	TN_BWRAP_GID,
	TN_BWRAP_HOSTNAME,
	TN_BWRAP_CAP_ADD,
	TN_BWRAP_CAP_DROP,
	TN_BWRAP_PERMS,
	TN_BWRAP_SIZE,
	TN_BWRAP_OVERLAY_SRC,
	TN_BWRAP_TMP_OVERLAY,
	TN_BWRAP_RO_OVERLAY,
	/* two words */
	TN_BWRAP_BIND,
	TN_BWRAP_BIND_TRY,
	TN_BWRAP_RO_BIND,
	TN_BWRAP_RO_BIND_TRY,
	TN_BWRAP_DEV_BIND,
	TN_BWRAP_DEV_BIND_TRY,
	TN_BWRAP_BIND_FD,
	TN_BWRAP_RO_BIND_FD,
	TN_BWRAP_FILE,
	TN_BWRAP_BIND_DATA,
	TN_BWRAP_RO_BIND_DATA,
	TN_BWRAP_SYMLINK,
	TN_BWRAP_CHMOD,
	TN_BWRAP_SETENV,
	/* three words */
	TN_BWRAP_OVERLAY,

	TN_BWRAP_N_OPTIONS,
} TnBwrapOption;

/* What an option does to the sandbox's file system; tn_bwrap_traits(). */
enum {
	TN_BWRAP_HAS_DEST = 1 << 0,  /* the last word is a path inside the sandbox */
	TN_BWRAP_MOUNTS = 1 << 1,    /* makes a mount at it */
	TN_BWRAP_FROM_PATH = 1 << 2, /* a bind whose first word is a host path */
	TN_BWRAP_FROM_FD = 1 << 3,   /* a bind whose first word is a directory's descriptor */
	TN_BWRAP_TRY = 1 << 4,       /* does nothing when the source is missing */
	TN_BWRAP_READ_ONLY = 1 << 5,
	TN_BWRAP_ENTRY = 1 << 6,       /* makes or changes a real entry, no mount */
	TN_BWRAP_MOUNTS_FILE = 1 << 7, /* the mount point is a file, whatever the source */
	TN_BWRAP_OVERLAYS = 1 << 8,
	TN_BWRAP_MODIFIER = 1 << 9, /* belongs to the next operation */
};

typedef struct TnBwrapOp {
	TnBwrapOption option;
	uint16_t first;       /* index of the first word in TnBwrapLine.words, modifiers included */
	uint16_t n_words;     /* all its words: modifiers, the option itself, its arguments */
	uint16_t n_modifiers; /* how many of them come before the option */
	bool from_block;      /* read from an --args block */
} TnBwrapOp;

typedef enum TnBwrapEnv {
	TN_BWRAP_ENV_INHERITED,
	TN_BWRAP_ENV_SET,
	TN_BWRAP_ENV_UNSET,
} TnBwrapEnv;

/* What the whole line asks for, beside its operations. */
typedef struct TnBwrapSummary {
	bool unshare_user; /* also by --unshare-user-try and --unshare-all */
	bool unshare_pid;  /* also by --unshare-all */
	bool as_pid_1;
	bool drops_caps; /* --cap-drop ALL, and no --cap-add after it */
	const char *sync_fd, *userns, *userns2, *userns_block_fd, *pidns; /* NULL: not given */
	const char *chdir;
	TnBwrapEnv tmpdir_state;
	const char *tmpdir; /* when set */
	bool loaded;        /* an --args descriptor was read and is used up */
} TnBwrapSummary;

typedef struct TnBwrapLine {
	const char **words; /* borrowed: the caller's argv and blocks must outlive the line */
	size_t n_words, words_room;
	TnBwrapOp *ops; /* without --args itself */
	size_t n_ops, ops_room;
	const char *const *command;
	size_t n_command;
	TnBwrapSummary summary;
} TnBwrapLine;

/*
 * Reads descriptor fd to its end. *ret_block stays the callee's, lives as long as the
 * line, and has a NUL at [*ret_size]. 0 or -errno.
 */
typedef int (*TnBwrapLoad)(void *data, int fd, const char **ret_block, size_t *ret_size);

#define TN_BWRAP_WHY_MAX 256

/* Outcomes of tn_bwrap_parse() beside 0 and -errno: nothing to sandbox. */
enum {
	TN_BWRAP_WANTS_HELP = 1,
	TN_BWRAP_WANTS_VERSION = 2,
	TN_BWRAP_NO_COMMAND = 3, /* bwrap prints its usage and fails */
};

/*
 * Parses argv (without the program's name). 0; a positive outcome above; -EINVAL with
 * one sentence in why; -ENOMEM; -EIO when load failed (why says so). Call
 * tn_bwrap_clear() after any result.
 */
int tn_bwrap_parse(TnBwrapLine *line, const char *const *argv, size_t argc, TnBwrapLoad load,
		   void *data, char why[TN_BWRAP_WHY_MAX]);
void tn_bwrap_clear(TnBwrapLine *line);

unsigned tn_bwrap_traits(TnBwrapOption option);
const char *tn_bwrap_name(TnBwrapOption option); /* "--bind" */

/* The index-th argument after the option itself; index must be below its count. */
const char *tn_bwrap_argument(const TnBwrapLine *line, const TnBwrapOp *op, unsigned index);
/* The path inside the sandbox of an option with TN_BWRAP_HAS_DEST. */
const char *tn_bwrap_dest(const TnBwrapLine *line, const TnBwrapOp *op);

/*
 * True for the line by which runtimes find out whether bwrap works here: `true` alone as
 * the command and the host's root as the only thing mounted. It needs no view.
 */
bool tn_bwrap_is_probe(const TnBwrapLine *line);

typedef enum TnBwrapConcern {
	TN_BWRAP_NO_CONCERN,
	/* cannot work below the launcher's user namespace: refuse */
	TN_BWRAP_REFUSE_USERNS,
	TN_BWRAP_REFUSE_USERNS2,
	TN_BWRAP_REFUSE_USERNS_BLOCK_FD,
	TN_BWRAP_REFUSE_PIDNS,
	/* works, but is weaker than it looks: warn */
	TN_BWRAP_WARN_ROOT_CAPS,
	TN_BWRAP_WARN_SHARED_PIDS,
} TnBwrapConcern;

#define TN_BWRAP_CONCERNS_MAX 4

/*
 * What speaks against starting line for caller uid, refusals first; returns how many.
 */
size_t tn_bwrap_concerns(const TnBwrapSummary *summary, unsigned uid,
			 TnBwrapConcern ret[TN_BWRAP_CONCERNS_MAX]);
bool tn_bwrap_concern_refuses(TnBwrapConcern concern);
/* One line: "OPTION: why (what to do)". */
const char *tn_bwrap_concern_text(TnBwrapConcern concern);
