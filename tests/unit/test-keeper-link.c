/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The worker's side of the link, against a keeper that only records and answers. */
#include "keeper-link.h"
#include "keeper-proto.h"
#include "macros.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#define THREADS 4
#define CALLS 200

typedef struct Fixture {
	int sock, other; /* the keeper\'s end, the worker\'s */ /* the keeper's end */
	pthread_t thread;
	TnKeeperLink *link;
	TnKeeperRequest last;
	TnKeeperAnswer answer;
	size_t answer_size;
	bool echo; /* answers with what was asked */
} Fixture;

static void *keep(void *data)
{
	Fixture *fixture = data;
	TnKeeperRequest request;

	while (recv(fixture->sock, &request, sizeof(request), 0) == sizeof(request)) {
		TnKeeperAnswer answer = fixture->answer;

		fixture->last = request;
		if (fixture->echo)
			answer = (TnKeeperAnswer){.dev = (uint64_t)request.fd, .ino = 1};
		if (fixture->answer_size == 0 ||
		    send(fixture->sock, &answer, fixture->answer_size, MSG_NOSIGNAL) < 0)
			break;
	}
	shutdown(fixture->sock, SHUT_RDWR);
	return NULL;
}

static int set_up(void **state)
{
	Fixture *fixture = calloc(1, sizeof(*fixture));
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fixture->sock = pair[0];
	fixture->other = pair[1];
	fixture->link = tn_keeper_link_new(pair[1]);
	fixture->answer_size = sizeof(fixture->answer);
	assert_int_equal(pthread_create(&fixture->thread, NULL, keep, fixture), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	tn_keeper_link_free(fixture->link);
	close(fixture->other);
	pthread_join(fixture->thread, NULL);
	close(fixture->sock);
	free(fixture);
	return 0;
}

static void test_mount(void **state)
{
	Fixture *fixture = *state;
	int device = -1;

	fixture->answer = (TnKeeperAnswer){.mount = 21, .device = 20};
	assert_int_equal(tn_keeper_mount(fixture->link, &device, 1001, 1002), 21);
	assert_int_equal(device, 20);
	assert_int_equal(fixture->last.op, TN_KEEPER_MOUNT);
	assert_int_equal(fixture->last.fd, -1);
	assert_int_equal(fixture->last.uid, 1001);
	assert_int_equal(fixture->last.gid, 1002);
	/* Again, with the device. */
	assert_int_equal(tn_keeper_mount(fixture->link, &device, 1001, 1002), 21);
	assert_int_equal(fixture->last.fd, 20);
	/* It ended: the device stays the caller's. */
	fixture->answer = (TnKeeperAnswer){.result = -ENOTCONN, .mount = -1, .device = -1};
	assert_int_equal(tn_keeper_mount(fixture->link, &device, 1001, 1002), -ENOTCONN);
	assert_int_equal(device, 20);
}

static void test_memory(void **state)
{
	Fixture *fixture = *state;

	fixture->answer = (TnKeeperAnswer){.mount = 33};
	assert_int_equal(tn_keeper_memory_new(fixture->link, 1 << 20, 100), 33);
	assert_int_equal(fixture->last.op, TN_KEEPER_MEMORY_NEW);
	assert_int_equal(fixture->last.bytes, 1 << 20);
	assert_int_equal(fixture->last.inodes, 100);
	assert_int_equal(tn_keeper_memory_resize(fixture->link, 33, 2 << 20, UINT64_MAX), 0);
	assert_int_equal(fixture->last.op, TN_KEEPER_MEMORY_RESIZE);
	assert_int_equal(fixture->last.fd, 33);
	assert_int_equal(fixture->last.bytes, 2 << 20);
	assert_true(fixture->last.inodes == UINT64_MAX);
	fixture->answer = (TnKeeperAnswer){.result = -EINVAL, .mount = -1};
	assert_int_equal(tn_keeper_memory_new(fixture->link, 1, 1), -EINVAL);
	assert_int_equal(tn_keeper_memory_resize(fixture->link, 33, 1, 1), -EINVAL);
}

static void test_words(void **state)
{
	Fixture *fixture = *state;
	char text[1000];

	assert_int_equal(tn_keeper_ready(fixture->link), 0);
	assert_int_equal(fixture->last.op, TN_KEEPER_READY);
	assert_int_equal(tn_keeper_stopping(fixture->link), 0);
	assert_int_equal(fixture->last.op, TN_KEEPER_STOPPING);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(tn_keeper_failed(fixture->link, text), 0);
	assert_int_equal(fixture->last.op, TN_KEEPER_FAILED);
	assert_int_equal(strlen(fixture->last.text), sizeof(fixture->last.text) - 1);
}

static void test_keeper_is_gone(void **state)
{
	Fixture *fixture = *state;
	int device = 5;

	fixture->answer_size = 0;
	assert_int_equal(tn_keeper_ready(fixture->link), -EPIPE);
	assert_int_equal(tn_keeper_mount(fixture->link, &device, 0, 0), -EPIPE);
	assert_int_equal(device, 5);
}

static void test_short_answer(void **state)
{
	Fixture *fixture = *state;
	uint64_t dev = 1, ino = 2;

	fixture->answer_size = 4;
	assert_int_equal(tn_keeper_peer_userns(fixture->link, 3, &dev, &ino), -EPIPE);
	assert_int_equal(dev, 1);
	assert_int_equal(ino, 2);
}

typedef struct Caller {
	Fixture *fixture;
	int base;
	unsigned wrong;
} Caller;

static void *call_often(void *data)
{
	Caller *caller = data;

	for (int i = 0; i < CALLS; i++) {
		uint64_t dev, ino;
		int fd = caller->base + i;

		if (tn_keeper_peer_userns(caller->fixture->link, fd, &dev, &ino) != 0 ||
		    dev != (uint64_t)fd)
			caller->wrong++;
	}
	return NULL;
}

static void test_threads_get_their_own_answers(void **state)
{
	Fixture *fixture = *state;
	pthread_t threads[THREADS];
	Caller callers[THREADS];

	fixture->echo = true;
	for (int i = 0; i < THREADS; i++) {
		callers[i] = (Caller){.fixture = fixture, .base = i * 1000};
		assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(callers[i].wrong, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_mount, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_words, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_keeper_is_gone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_short_answer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_threads_get_their_own_answers, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
