/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The descriptor cache: bounded, exact about who uses what, nothing left open. */
#include "fdcache.h"

#include "macros.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "scratch.h"

#define MOST 4

typedef struct Fixture {
	TnFdCache *cache;
	size_t fds; /* open before */
} Fixture;

static int set_up(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));

	f->fds = tn_count_fds();
	assert_int_equal(tn_fdcache_new(&f->cache, MOST), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	tn_fdcache_free(f->cache);
	assert_int_equal(tn_count_fds(), f->fds);
	free(f);
	return 0;
}

static int open_any(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void add_idle(Fixture *f, uint64_t nest, uint64_t node)
{
	TN_FD fd = tn_fdcache_add(f->cache, nest, node, open_any());

	assert_true(is_open(fd.fd));
}

static bool has(Fixture *f, uint64_t nest, uint64_t node)
{
	TN_FD fd = tn_fdcache_get(f->cache, nest, node);

	return fd.fd >= 0;
}

static void test_get(void **state)
{
	Fixture *f = *state;
	int raw = open_any();
	TnFd a = tn_fdcache_add(f->cache, 1, 5, raw), b;

	assert_int_equal(a.fd, raw);
	assert_false(has(f, 1, 6));
	assert_false(has(f, 2, 5));
	b = tn_fdcache_get(f->cache, 1, 5);
	assert_int_equal(b.fd, raw);
	tn_fd_put(&a);
	assert_int_equal(a.fd, -1);
	tn_fd_put(&a); /* nothing */
	assert_true(is_open(raw));
	tn_fd_put(&b);
	assert_true(is_open(raw)); /* idle, still cached */
	assert_int_equal(tn_fdcache_count(f->cache), 1);
}

static void test_borrowed(void **state)
{
	TN_AUTOFD raw = open_any();
	TnFd fd = {.fd = raw};

	(void)state;
	tn_fd_put(&fd);
	assert_true(is_open(raw));
}

static void test_twice(void **state)
{
	Fixture *f = *state;
	int first = open_any(), second = open_any();
	TN_FD a = tn_fdcache_add(f->cache, 1, 5, first);
	TN_FD b = tn_fdcache_add(f->cache, 1, 5, second);

	assert_int_equal(b.fd, first); /* the faster one's */
	assert_false(is_open(second));
	assert_int_equal(tn_fdcache_count(f->cache), 1);
}

static void test_eviction(void **state)
{
	Fixture *f = *state;

	for (uint64_t node = 1; node <= MOST; node++)
		add_idle(f, 1, node);
	assert_true(has(f, 1, 1)); /* makes it the newest */
	add_idle(f, 1, 100);
	assert_int_equal(tn_fdcache_count(f->cache), MOST);
	assert_true(has(f, 1, 1));
	assert_false(has(f, 1, 2)); /* the least recently used */
	assert_true(has(f, 1, 3));
	assert_true(has(f, 1, 100));
}

static void test_busy_stay(void **state)
{
	Fixture *f = *state;
	TnFd busy[MOST + 2];

	for (uint64_t i = 0; i < MOST + 2; i++)
		busy[i] = tn_fdcache_add(f->cache, 1, i, open_any());
	for (size_t i = 0; i < MOST + 2; i++)
		assert_true(is_open(busy[i].fd));
	assert_int_equal(tn_fdcache_count(f->cache), MOST + 2); /* as far as busy ones allow */
	for (size_t i = 0; i < MOST + 2; i++)
		tn_fd_put(&busy[i]);
	add_idle(f, 1, 50);
	assert_int_equal(tn_fdcache_count(f->cache), MOST);
}

static void test_drop(void **state)
{
	Fixture *f = *state;
	TnFd busy = tn_fdcache_add(f->cache, 1, 1, open_any()), again;
	int raw = busy.fd;

	tn_fdcache_drop(f->cache, 1, 99); /* unknown */
	tn_fdcache_drop(f->cache, 1, 1);
	assert_int_equal(tn_fdcache_count(f->cache), 0);
	assert_false(has(f, 1, 1));
	assert_true(is_open(raw)); /* until its user is done */
	again = tn_fdcache_add(f->cache, 1, 1, open_any());
	assert_int_not_equal(again.fd, raw);
	tn_fd_put(&busy);
	assert_false(is_open(raw));
	assert_true(is_open(again.fd)); /* the other one was not meant */
	raw = again.fd;
	tn_fd_put(&again);
	tn_fdcache_drop(f->cache, 1, 1);
	assert_false(is_open(raw));
}

static void test_drop_nest(void **state)
{
	Fixture *f = *state;
	TnFd busy;

	add_idle(f, 1, 1);
	add_idle(f, 2, 1);
	add_idle(f, 1, 2);
	busy = tn_fdcache_get(f->cache, 1, 2);
	tn_fdcache_drop_nest(f->cache, 1);
	assert_false(has(f, 1, 1));
	assert_false(has(f, 1, 2));
	assert_true(has(f, 2, 1));
	assert_true(is_open(busy.fd));
	tn_fd_put(&busy);
	assert_int_equal(tn_fdcache_count(f->cache), 1);
}

static void test_nothing_allowed(void **state)
{
	TnFdCache *cache;
	TnFd fd;

	(void)state;
	assert_int_equal(tn_fdcache_new(&cache, 0), 0);
	fd = tn_fdcache_add(cache, 1, 1, open_any());
	assert_true(is_open(fd.fd));
	tn_fd_put(&fd);
	tn_fdcache_free(cache);
	tn_fdcache_free(NULL);
}

/* --- threads -------------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS 4000
#define NODES 12

typedef struct User {
	pthread_t thread;
	TnFdCache *cache;
	TnDice dice;
	unsigned bad; /* descriptors in hand that were closed, or somebody else's */
} User;

/* Each node's descriptor is on a directory of its own: /proc/self/fd/N says whose it is. */
static int open_for(uint64_t node)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "node-%u", (unsigned)node);
	fd = memfd_create(name, MFD_CLOEXEC);
	return fd;
}

static bool belongs_to(int fd, uint64_t node)
{
	char path[32], target[64], expected[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	snprintf(expected, sizeof(expected), "/memfd:node-%u (deleted)", (unsigned)node);
	return strcmp(target, expected) == 0;
}

static void use_once(User *user)
{
	uint64_t node = tn_dice(&user->dice, NODES);
	TN_FD fd = tn_fdcache_get(user->cache, 1, node);

	if (fd.fd < 0) {
		int opened = open_for(node);

		if (opened < 0) {
			user->bad++;
			return;
		}
		fd = tn_fdcache_add(user->cache, 1, node, opened);
	}
	if (tn_dice(&user->dice, 4) == 0)
		tn_fdcache_drop(user->cache, 1, tn_dice(&user->dice, NODES));
	if (tn_dice(&user->dice, 500) == 0)
		tn_fdcache_drop_nest(user->cache, 1);
	user->bad += !belongs_to(fd.fd, node);
}

static void *use_often(void *data)
{
	User *user = data;

	for (int i = 0; i < ROUNDS; i++)
		use_once(user);
	return NULL;
}

static void test_threads(void **state)
{
	Fixture *f = *state;
	User users[THREADS];
	uint64_t seed = tn_test_seed();

	for (size_t i = 0; i < THREADS; i++) {
		users[i] = (User){.cache = f->cache, .dice = {seed + i}};
		assert_int_equal(pthread_create(&users[i].thread, NULL, use_often, &users[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(users[i].thread, NULL);
		assert_int_equal(users[i].bad, 0);
	}
	assert_true(tn_fdcache_count(f->cache) <= MOST + THREADS);
	assert_true(tn_count_fds() <= f->fds + MOST + THREADS);
}

/* Taken out, a descriptor is the caller's; one in use stays. */
static void test_take(void **state)
{
	Fixture *f = *state;
	int fd = open_any();
	TnFd used = tn_fdcache_add(f->cache, 1, 2, fd);

	assert_int_equal(tn_fdcache_take(f->cache, 1, 2), -1);
	assert_int_equal(tn_fdcache_count(f->cache), 1);
	tn_fd_put(&used);
	assert_int_equal(tn_fdcache_take(f->cache, 1, 3), -1);
	assert_int_equal(tn_fdcache_take(f->cache, 1, 2), fd);
	assert_int_equal(tn_fdcache_count(f->cache), 0);
	assert_int_equal(tn_fdcache_get(f->cache, 1, 2).fd, -1);
	assert_true(is_open(fd));
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_take),    TEST(test_get),       TEST(test_borrowed),
		TEST(test_twice),   TEST(test_eviction),  TEST(test_busy_stay),
		TEST(test_drop),    TEST(test_drop_nest), TEST(test_nothing_allowed),
		TEST(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
