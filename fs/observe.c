/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "observe.h"

#include "events.h"
#include "macros.h"
#include "stats.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/*
 * Whom this thread serves. Refusals happen far below the request, in code that needs it for
 * nothing else, and they are the only ones to look.
 */
static _Thread_local const TnRequest *serving;

int64_t tn_observe_begin(const TnRequest *request)
{
	serving = request;
	return tn_monotonic();
}

void tn_observe_end(const TnRequest *request, int64_t begun)
{
	TnNest *nest = request->nest;
	int64_t took = tn_monotonic() - begun;

	serving = NULL;
	if (!nest->stats || took < 0 || request->in->opcode >= TN_STATS_OPERATIONS)
		return;
	tn_stats_took(&nest->stats->latency[request->in->opcode], (uint64_t)took);
	atomic_fetch_add_explicit(&nest->busy_ns, (uint64_t)took, memory_order_relaxed);
}

/* --- events ------------------------------------------------------------------------------------
 */

/* Writes components from the last to the first, as many as fit: the end of a path tells more. */
static void write_path(const char *subtree, const char *const components[], size_t n,
		       char path[TN_EVENT_PATH_MAX])
{
	size_t at = TN_EVENT_PATH_MAX - 1;

	path[at] = '\0';
	for (size_t i = n; i > 0; i--) {
		size_t length = strlen(components[i - 1]);

		if (length + 1 + 4 > at) {
			at -= 3;
			memcpy(path + at, "...", 3);
			memmove(path, path + at, TN_EVENT_PATH_MAX - at);
			return;
		}
		at -= length;
		memcpy(path + at, components[i - 1], length);
		path[--at] = '/';
	}
	memmove(path, path + at, TN_EVENT_PATH_MAX - at);
	at = TN_EVENT_PATH_MAX - 1 - at;
	if (at + strlen(subtree) < TN_EVENT_PATH_MAX) {
		memmove(path + strlen(subtree), path, at + 1);
		memcpy(path, subtree, strlen(subtree));
	}
}

/* The place of a node, or of a name in it, and the rule that holds there. */
static void describe_place(TnNest *nest, uint32_t node, const char *name, TnEvent *event)
{
	const char *components[TN_RULE_DEPTH_MAX];
	TnSubtree subtree;
	const char *rule;
	size_t n;

	pthread_mutex_lock(&nest->table_lock);
	n = tn_node_place(nest->table, node, name, components, TN_RULE_DEPTH_MAX, &subtree);
	write_path(subtree == TN_SUBTREE_VAR_TMP ? "/var/tmp"
		   : subtree == TN_SUBTREE_TMP   ? "/tmp"
						 : "/",
		   components, n, event->path);
	rule = event->kind == TN_EVENT_DENIED ? tn_policy_find(nest->policy, subtree, components, n)
					      : NULL;
	if (rule)
		strncpy(event->rule, rule, sizeof(event->rule) - 1);
	pthread_mutex_unlock(&nest->table_lock);
}

/* What the process calls itself, as /proc shows it. */
static void read_process(pid_t pid, char process[16])
{
	TN_AUTOFD fd = -1;
	char path[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, process, 15);
	process[n > 0 ? n : 0] = '\0';
	process[strcspn(process, "\n")] = '\0';
}

static void describe_request(const TnRequest *request, TnEvent *event)
{
	const char *operation = tn_opcode_name(request->in->opcode);

	event->pid = (pid_t)request->in->pid;
	event->uid = request->in->uid;
	strncpy(event->operation, operation ? operation : "", sizeof(event->operation) - 1);
	if (event->pid > 0)
		read_process(event->pid, event->process);
}

void tn_observe_denied(TnNest *nest, uint32_t node, const char *name, int error)
{
	TnEvent event = {.kind = TN_EVENT_DENIED, .error = error};

	if (!tn_events_admit(nest->events, event.kind))
		return;
	describe_place(nest, node, name, &event);
	if (serving)
		describe_request(serving, &event);
	tn_events_note(nest->events, &event);
}

static void note_full(TnNest *nest, TnEventKind kind)
{
	TnEvent event = {.kind = kind, .error = ENOSPC};

	if (!tn_events_admit(nest->events, kind))
		return;
	if (serving) {
		if (serving->node)
			describe_place(nest, serving->node, serving->name, &event);
		describe_request(serving, &event);
	}
	tn_events_note(nest->events, &event);
}

void tn_observe_quota(TnNest *nest)
{
	note_full(nest, TN_EVENT_QUOTA);
}

void tn_observe_store_full(TnNest *nest)
{
	note_full(nest, TN_EVENT_STORE_FULL);
}
