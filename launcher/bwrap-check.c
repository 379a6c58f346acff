/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a parsed line means for us as a whole: is it only a probe, can it work, is it a
 * boundary.
 */
#include "bwrap-args.h"

#include <string.h>

static bool is_slash(const char *path)
{
	return path[0] == '/' && strspn(path, "/") == strlen(path);
}

static bool is_true(const char *command)
{
	const char *slash = strrchr(command, '/');

	return strcmp(slash ? slash + 1 : command, "true") == 0;
}

bool tn_bwrap_is_probe(const TnBwrapLine *line)
{
	bool root = false;

	if (line->summary.loaded || line->n_command != 1 || !is_true(line->command[0]))
		return false;
	for (size_t i = 0; i < line->n_ops; i++) {
		const TnBwrapOp *op = &line->ops[i];
		unsigned traits = tn_bwrap_traits(op->option);

		if (op->option == TN_BWRAP_PROC || op->option == TN_BWRAP_DEV)
			continue;
		if (!(traits & TN_BWRAP_HAS_DEST))
			continue;
		if (!(traits & TN_BWRAP_FROM_PATH) || !is_slash(tn_bwrap_argument(line, op, 0)) ||
		    !is_slash(tn_bwrap_dest(line, op)))
			return false;
		root = true;
	}
	return root;
}

size_t tn_bwrap_concerns(const TnBwrapSummary *summary, unsigned uid,
			 TnBwrapConcern ret[TN_BWRAP_CONCERNS_MAX])
{
	size_t n = 0;

	if (uid != 0) {
		if (summary->userns)
			ret[n++] = TN_BWRAP_REFUSE_USERNS;
		if (summary->userns2)
			ret[n++] = TN_BWRAP_REFUSE_USERNS2;
		if (summary->userns_block_fd)
			ret[n++] = TN_BWRAP_REFUSE_USERNS_BLOCK_FD;
		if (summary->pidns)
			ret[n++] = TN_BWRAP_REFUSE_PIDNS;
	}
	if (n > 0)
		return n;
	if (uid == 0 && !summary->unshare_user && !summary->userns && !summary->drops_caps)
		ret[n++] = TN_BWRAP_WARN_ROOT_CAPS;
	if (!summary->unshare_pid && !summary->pidns)
		ret[n++] = TN_BWRAP_WARN_SHARED_PIDS;
	return n;
}

bool tn_bwrap_concern_refuses(TnBwrapConcern concern)
{
	return concern >= TN_BWRAP_REFUSE_USERNS && concern <= TN_BWRAP_REFUSE_PIDNS;
}

const char *tn_bwrap_concern_text(TnBwrapConcern concern)
{
	switch (concern) {
	case TN_BWRAP_NO_CONCERN:
		break;
	case TN_BWRAP_REFUSE_USERNS:
		return "--userns: the private /tmp needs a user namespace of its own above the "
		       "sandbox, from which another one cannot be entered (use --unshare-user, or "
		       "set "
		       "TMPNEST_VIEW=possible to do without)";
	case TN_BWRAP_REFUSE_USERNS2:
		return "--userns2: the private /tmp needs a user namespace of its own above the "
		       "sandbox, from which another one cannot be entered (use --unshare-user, or "
		       "set "
		       "TMPNEST_VIEW=possible to do without)";
	case TN_BWRAP_REFUSE_USERNS_BLOCK_FD:
		return "--userns-block-fd: the sandbox's user namespace lies below the one of the "
		       "private /tmp, so the caller cannot write its id maps (use --uid, --gid, or "
		       "set "
		       "TMPNEST_VIEW=possible to do without)";
	case TN_BWRAP_REFUSE_PIDNS:
		return "--pidns: a process namespace of another user namespace cannot be entered "
		       "from that of the private /tmp (use --unshare-pid, or set "
		       "TMPNEST_VIEW=possible to do without)";
	case TN_BWRAP_WARN_ROOT_CAPS:
		return "root without --unshare-user or --cap-drop ALL: the command keeps root's "
		       "rights over mounts and can uncover the host's /tmp and every nest's files "
		       "(add one of them)";
	case TN_BWRAP_WARN_SHARED_PIDS:
		return "no --unshare-pid: the command sees the host's processes and can signal "
		       "those of its user, the daemon's too (add --unshare-pid)";
	}
	return "";
}
