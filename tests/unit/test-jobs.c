/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Long jobs of several users: in which order they run, and how many at a time. */
#include "control-jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static GMutex lock;
static GCond changed;
static GString *order;
static guint running, most_running;
static gboolean gate_open;

/* Notes its letter, then waits until the gate is open. */
static void job(void *data, void *user_data)
{
	g_mutex_lock(&lock);
	g_string_append_c(order, (char)GPOINTER_TO_INT(data));
	running++;
	most_running = MAX(most_running, running);
	g_cond_broadcast(&changed);
	while (!gate_open)
		g_cond_wait(&changed, &lock);
	running--;
	g_mutex_unlock(&lock);
}

static void wait_for_running(guint n)
{
	g_mutex_lock(&lock);
	while (running < n)
		g_cond_wait(&changed, &lock);
	g_mutex_unlock(&lock);
}

static void open_gate(gboolean open)
{
	g_mutex_lock(&lock);
	gate_open = open;
	g_cond_broadcast(&changed);
	g_mutex_unlock(&lock);
}

static int set_up(void **state)
{
	order = g_string_new("");
	running = most_running = 0;
	gate_open = FALSE;
	return 0;
}

static int tear_down(void **state)
{
	g_string_free(order, TRUE);
	return 0;
}

/* Both threads are one user's, and more of his wait: another one is served at once. */
static void test_a_second_user_gets_a_thread(void **state)
{
	TnJobs *jobs = tn_jobs_new(2, job, NULL);

	for (int i = 0; i < 6; i++)
		tn_jobs_push(jobs, 1000, GINT_TO_POINTER('a'));
	wait_for_running(2);
	tn_jobs_push(jobs, 1001, GINT_TO_POINTER('b'));
	wait_for_running(3);
	assert_string_equal(order->str, "aab");
	open_gate(TRUE);
	tn_jobs_free(jobs);
	assert_int_equal(order->len, 7);
}

/* Each further user's first job comes before what others have waiting. */
static void test_first_jobs_come_first(void **state)
{
	TnJobs *jobs = tn_jobs_new(1, job, NULL);

	tn_jobs_push(jobs, 1, GINT_TO_POINTER('.'));
	wait_for_running(1);
	for (int i = 0; i < 3; i++)
		tn_jobs_push(jobs, 1000, GINT_TO_POINTER('a'));
	wait_for_running(2);
	tn_jobs_push(jobs, 1001, GINT_TO_POINTER('b'));
	wait_for_running(3);
	tn_jobs_push(jobs, 1002, GINT_TO_POINTER('c'));
	wait_for_running(4);
	assert_string_equal(order->str, ".abc");
	assert_int_equal(most_running, 4);
	open_gate(TRUE);
	tn_jobs_free(jobs);
	assert_int_equal(order->len, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_second_user_gets_a_thread, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_first_jobs_come_first, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
