/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control-jobs.h"

/* Walks use the disk that the sandboxes use, so more of them at a time help nobody. */
#define THREADS_MOST 8

struct TnJobs {
	GThreadPool *pool;
	guint threads;
	void (*run)(void *job, void *data);
	void *data;

	GMutex lock;        /* guards the table */
	GHashTable *counts; /* uid -> jobs that have not ended yet */
	guint64 serial;
};

typedef struct Ticket {
	TnJobs *jobs;
	uid_t uid;
	guint rank;     /* how many of the same user's were before it */
	guint64 serial; /* among equals the first */
	void *job;
} Ticket;

static gint compare(gconstpointer a, gconstpointer b, gpointer data)
{
	const Ticket *left = a, *right = b;

	if (left->rank != right->rank)
		return left->rank < right->rank ? -1 : 1;
	return left->serial < right->serial ? -1 : left->serial > right->serial;
}

/* Changes the user's count; what it was before. */
static guint count(TnJobs *jobs, uid_t uid, int change)
{
	gpointer key = GUINT_TO_POINTER(uid);
	guint before, now;

	g_mutex_lock(&jobs->lock);
	before = GPOINTER_TO_UINT(g_hash_table_lookup(jobs->counts, key));
	now = before + (guint)change;
	if (now > 0)
		g_hash_table_insert(jobs->counts, key, GUINT_TO_POINTER(now));
	else
		g_hash_table_remove(jobs->counts, key);
	g_mutex_unlock(&jobs->lock);
	return before;
}

static void work(void *data, void *user_data)
{
	Ticket *ticket = data;
	TnJobs *jobs = ticket->jobs;

	jobs->run(ticket->job, jobs->data);
	count(jobs, ticket->uid, -1);
	g_free(ticket);
}

static guint wanted_threads(TnJobs *jobs)
{
	guint users;

	g_mutex_lock(&jobs->lock);
	users = g_hash_table_size(jobs->counts);
	g_mutex_unlock(&jobs->lock);
	return MIN(jobs->threads + (users > 1 ? users - 1 : 0), THREADS_MOST);
}

TnJobs *tn_jobs_new(guint threads, void (*run)(void *job, void *data), void *data)
{
	TnJobs *jobs = g_new0(TnJobs, 1);

	jobs->threads = threads;
	jobs->run = run;
	jobs->data = data;
	g_mutex_init(&jobs->lock);
	jobs->counts = g_hash_table_new(NULL, NULL);
	jobs->pool = g_thread_pool_new(work, NULL, (gint)threads, FALSE, NULL);
	g_thread_pool_set_sort_function(jobs->pool, compare, NULL);
	return jobs;
}

void tn_jobs_push(TnJobs *jobs, uid_t uid, void *job)
{
	Ticket *ticket = g_new0(Ticket, 1);

	ticket->jobs = jobs;
	ticket->uid = uid;
	ticket->rank = count(jobs, uid, 1);
	ticket->serial = jobs->serial++;
	ticket->job = job;
	g_thread_pool_set_max_threads(jobs->pool, (gint)wanted_threads(jobs), NULL);
	g_thread_pool_push(jobs->pool, ticket, NULL);
}

void tn_jobs_free(TnJobs *jobs)
{
	g_thread_pool_free(jobs->pool, FALSE, TRUE);
	g_hash_table_unref(jobs->counts);
	g_mutex_clear(&jobs->lock);
	g_free(jobs);
}
