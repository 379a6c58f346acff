/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Between the files of the control interface: control.c (thread and admission),
 * control-methods.c (daemon and changes), control-life.c (freezing, the store),
 * control-query.c (listings), control-files.c and control-usage.c (what is in a nest),
 * control-nests.c (which nest does a caller mean), control-json.c (what it looks like).
 * Everything runs on the control thread unless it says otherwise.
 */
#pragma once

#include "control-jobs.h"
#include "control.h"
#include "nest.h"
#include "varlink.h"

#define TN_CONTROL_INTERFACE "org.tmpnest.Control"

struct TnControl {
	const TnWorkerEnv *env;
	TnRegistry *registry;
	TnWorkerStop *stop;
	GMainContext *context;
	GMainLoop *loop;
	GThread *thread;
	TnJobs *recounts, *walks;
	gint stopping; /* atomic: waiting recounts and walks give up */
	TnVarlinkServer *server;
	GQueue followers;        /* of event streams, see control-events.c */
	GSource *event_source;   /* NULL: none */
	int64_t started_ns;      /* CLOCK_REALTIME */
	int64_t started_mono_ns; /* CLOCK_MONOTONIC */
};

/* control-methods.c */
const TnVarlinkMethod *tn_control_methods(size_t *ret_n);

/* Answers with the nest as it is now; consumes the reference. */
void tn_control_reply_nest(TnVarlinkCall *call, TnNest *nest);

/* control-life.c */
void tn_control_set_frozen(TnVarlinkCall *call, JsonObject *parameters, void *data);
void tn_control_change_rules(TnVarlinkCall *call, JsonObject *parameters, void *data);
void tn_control_collect_garbage(TnVarlinkCall *call, JsonObject *parameters, void *data);
JsonObject *tn_control_store_json(TnControl *control);

/* control-query.c */
void tn_control_list_nests(TnVarlinkCall *call, JsonObject *parameters, void *data);
void tn_control_get_nest(TnVarlinkCall *call, JsonObject *parameters, void *data);
/* One recount on a thread of control->recounts. */
void tn_control_recount(void *job, void *control);

void tn_control_fail_expected_more(TnVarlinkCall *call);
/* One reply of a stream, the last one or not; takes it. An error where the caller takes one only.
 */
void tn_control_reply_part(TnVarlinkCall *call, JsonObject *reply, gboolean last);

/* control-files.c */
void tn_control_list_files(TnVarlinkCall *call, JsonObject *parameters, void *data);
void tn_control_stat_file(TnVarlinkCall *call, JsonObject *parameters, void *data);
void tn_control_open_file(TnVarlinkCall *call, JsonObject *parameters, void *data);
void tn_control_get_xattrs(TnVarlinkCall *call, JsonObject *parameters, void *data);
/* Answers with what a -errno means for a path of a nest. */
void tn_control_fail_path(TnVarlinkCall *call, const char *path, int r);
/* "file", "directory" and so on. */
const char *tn_control_file_type(mode_t mode);
/* Adds a file's name, encoded (names.h). */
void tn_control_set_name(JsonObject *object, const char *key, const char *name);

/* control-usage.c */
void tn_control_get_usage(TnVarlinkCall *call, JsonObject *parameters, void *data);
/* One walk on a thread of control->walks. */
void tn_control_walk(void *job, void *control);

/* control-events.c */
void tn_control_get_events(TnVarlinkCall *call, JsonObject *parameters, void *data);
/* Before the thread runs, and after. */
void tn_control_events_start(TnControl *control);
void tn_control_events_stop(TnControl *control);

/* control-metrics.c */
void tn_control_get_metrics(TnVarlinkCall *call, JsonObject *parameters, void *data);

/* control-nests.c: an error of the interface that may go into a reply or into a result. */
typedef struct TnControlError {
	const char *error; /* short name; NULL: none */
	char reason[256];
	const char *hint;
	JsonObject *extra; /* owned; NULL: none */
} TnControlError;

void tn_control_error_clear(TnControlError *error);
/* Answers the call with it and clears it. */
void tn_control_fail(TnVarlinkCall *call, const char *name, TnControlError *error);
/* One of ours for a -errno of registry or nest; why may be "" or NULL. */
void tn_control_error_from(TnControlError *error, int r, const char *why);

/*
 * The nest that caller calls `name`; owner is -1, or the uid that it named. A reference,
 * or NULL with *error filled.
 */
TnNest *tn_control_find(TnControl *control, const TnPeer *caller, const char *name, gint64 owner,
			TnControlError *error);

/* All that caller may see; as tn_registry_list(). */
TnNest **tn_control_visible(TnControl *control, const TnPeer *caller, size_t *ret_n);

/* control-json.c. Pure. */
JsonObject *tn_control_nest_json(const TnNestInfo *info);
/* The same as text, at the end of out; a name is one that tn_name_is_valid() accepts. */
void tn_control_nest_text(GString *out, const TnNestInfo *info);
/* Adds a string that may hold any byte: what is no UTF-8 becomes \xNN. */
void tn_control_set_text(JsonObject *object, const char *key, const char *text);
/* Adds a time in nanoseconds as RFC 3339 in UTC, in milliseconds. */
void tn_control_set_time(JsonObject *object, const char *key, int64_t ns);
/* Adds a number; TN_UNLIMITED becomes null. */
void tn_control_set_limit(JsonObject *object, const char *key, uint64_t value);
void tn_control_set_count(JsonObject *object, const char *key, uint64_t value);
