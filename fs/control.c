/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control-private.h"

#include "sys.h"
#include "syscalls.h"

#include <errno.h>

/* GLib's main loop and threads; the kernel's version, for the list of features. */
TN_SYSCALLS = {
	TN_CALL_POLL, {SYS_eventfd2}, {SYS_sched_getattr}, {SYS_sched_setattr}, {SYS_uname},
};

/* Recounts read a whole tree; two at a time leave the disk to the sandboxes. */
#define RECOUNT_THREADS 2
#define WALK_THREADS 2

/* data/org.tmpnest.Control.varlink */
extern const char tn_control_interface[];

static int admit(int sock, const TnPeer *peer, int ns_fd, char *why, size_t why_size, void *data)
{
	const TnControl *control = data;

	return tn_peer_check(control->env, sock, peer, ns_fd, why, why_size);
}

/* The server lives on this thread, with its sources and calls. */
static gpointer run(gpointer data)
{
	TnControl *control = data;

	g_main_context_push_thread_default(control->context);
	g_main_loop_run(control->loop);
	g_clear_pointer(&control->server, tn_varlink_server_free);
	g_main_context_pop_thread_default(control->context);
	return NULL;
}

static gboolean quit(gpointer data)
{
	TnControl *control = data;

	g_main_loop_quit(control->loop);
	return G_SOURCE_REMOVE;
}

/* From a source: a g_main_loop_quit() before the loop runs would be lost. */
static void end_thread(TnControl *control)
{
	GSource *source = g_idle_source_new();

	g_source_set_priority(source, G_PRIORITY_HIGH);
	g_source_set_callback(source, quit, control, NULL);
	g_source_attach(source, control->context);
	g_source_unref(source);
	g_thread_join(control->thread);
}

static TnVarlinkServer *make_server(TnControl *control)
{
	TnVarlinkConfig config = {
		.interface = TN_CONTROL_INTERFACE,
		.description = tn_control_interface,
		.data = control,
		.admit = admit,
	};

	config.methods = tn_control_methods(&config.n_methods);
	return tn_varlink_server_new(&config, control->context);
}

int tn_control_new(TnControl **ret, const TnWorkerEnv *env, TnRegistry *registry,
		   TnWorkerStop *stop)
{
	TnControl *control = g_new0(TnControl, 1);
	int r;

	control->env = env;
	control->registry = registry;
	control->stop = stop;
	control->started_ns = tn_now();
	control->started_mono_ns = tn_monotonic();
	control->context = g_main_context_new();
	control->loop = g_main_loop_new(control->context, FALSE);
	control->recounts = tn_jobs_new(RECOUNT_THREADS, tn_control_recount, control);
	control->walks = tn_jobs_new(WALK_THREADS, tn_control_walk, control);
	control->server = make_server(control);
	tn_control_events_start(control);
	r = tn_varlink_server_listen(control->server, env->control_listener);
	if (r == 0) {
		control->thread = g_thread_try_new("control", run, control, NULL);
		if (control->thread == NULL)
			r = -EAGAIN;
	}
	if (r < 0) {
		tn_control_free(control);
		return r;
	}
	*ret = control;
	return 0;
}

void tn_control_free(TnControl *control)
{
	if (control == NULL)
		return;
	g_atomic_int_set(&control->stopping, 1);
	if (control->thread != NULL)
		end_thread(control);
	/* Nobody asks for a recount any more; what one still reports is freed with the context. */
	tn_jobs_free(control->recounts);
	tn_jobs_free(control->walks);
	tn_varlink_server_free(control->server);
	tn_control_events_stop(control);
	g_main_loop_unref(control->loop);
	g_main_context_unref(control->context);
	g_free(control);
}
