/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* scm: descriptors travel, surplus ones and cut messages leave nothing open behind. */
#include "scm.h"

#include "macros.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

static size_t count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

typedef struct Pair {
	int a, b;
	size_t open_before;
} Pair;

static int setup(void **state)
{
	static Pair pair;
	int ends[2];

	pair.open_before = count_open();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	pair.a = ends[0];
	pair.b = ends[1];
	*state = &pair;
	return 0;
}

static int teardown(void **state)
{
	Pair *pair = *state;

	tn_close(&pair->a);
	tn_close(&pair->b);
	return count_open() == pair->open_before ? 0 : -1;
}

static void travels(void **state)
{
	const Pair *pair = *state;
	const int sent[TN_SCM_MAX_FDS] = {pair->a, pair->b, pair->a, pair->b};
	int fds[TN_SCM_MAX_FDS];
	size_t n_fds;
	char text[8];

	for (size_t n = 0; n <= TN_SCM_MAX_FDS; n++) {
		assert_int_equal(tn_scm_send(pair->a, "hello", 6, sent, n), 6);
		assert_int_equal(tn_scm_recv(pair->b, text, sizeof(text), fds, &n_fds), 6);
		assert_string_equal(text, "hello");
		assert_int_equal(n_fds, n);
		for (size_t i = 0; i < TN_SCM_MAX_FDS; i++) {
			struct stat original, copy;

			if (i >= n) {
				assert_int_equal(fds[i], -1);
				continue;
			}
			assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
			assert_int_equal(fstat(fds[i], &copy), 0);
			assert_int_equal(fstat(sent[i], &original), 0);
			assert_int_equal(copy.st_ino, original.st_ino);
			tn_close(&fds[i]);
		}
	}
	assert_int_equal(tn_scm_send(pair->a, "x", 1, sent, TN_SCM_MAX_FDS + 1), -EINVAL);
}

/* Sends n descriptors in one message, more than tn_scm_send() would. */
static void send_many(int sock, size_t n)
{
	char control[CMSG_SPACE(sizeof(int) * 64)] = {0};
	struct iovec part = {.iov_base = (char[]){"x"}, .iov_len = 1};
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(sizeof(int) * n),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	if (!head) {
		fail_msg("no room");
		return;
	}
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int) * n);
	for (size_t i = 0; i < n; i++)
		memcpy(CMSG_DATA(head) + i * sizeof(int), &sock, sizeof(sock));
	assert_int_equal(sendmsg(sock, &message, 0), 1);
}

static void surplus(void **state)
{
	static const size_t counts[] = {TN_SCM_MAX_FDS + 1, TN_SCM_MAX_FDS + 2, 16, 17, 18, 64};
	const Pair *pair = *state;
	size_t open_before = count_open();

	for (size_t i = 0; i < TN_ARRAY_LEN(counts); i++) {
		int fds[TN_SCM_MAX_FDS];
		size_t n_fds = 99;
		char text[8];

		send_many(pair->a, counts[i]);
		assert_int_equal(tn_scm_recv(pair->b, text, sizeof(text), fds, &n_fds), -EMSGSIZE);
		assert_int_equal(n_fds, 0);
		for (size_t j = 0; j < TN_SCM_MAX_FDS; j++)
			assert_int_equal(fds[j], -1);
		assert_int_equal(count_open(), open_before);
	}
}

static void too_long(void **state)
{
	const Pair *pair = *state;
	size_t open_before = count_open();
	int fds[TN_SCM_MAX_FDS];
	size_t n_fds;
	char text[4];

	assert_int_equal(tn_scm_send(pair->a, "hello", 5, &pair->a, 1), 5);
	assert_int_equal(tn_scm_recv(pair->b, text, sizeof(text), fds, &n_fds), -EMSGSIZE);
	assert_int_equal(count_open(), open_before);
}

static void end_of_file(void **state)
{
	Pair *pair = *state;
	int fds[TN_SCM_MAX_FDS];
	size_t n_fds;
	char text[4];

	tn_close(&pair->a);
	assert_int_equal(tn_scm_recv(pair->b, text, sizeof(text), fds, &n_fds), 0);
	/* and no signal either */
	assert_int_equal(tn_scm_send(pair->b, "x", 1, NULL, 0), -EPIPE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(travels, setup, teardown),
		cmocka_unit_test_setup_teardown(surplus, setup, teardown),
		cmocka_unit_test_setup_teardown(too_long, setup, teardown),
		cmocka_unit_test_setup_teardown(end_of_file, setup, teardown),
	};

	return cmocka_run_group_tests_name("scm", tests, NULL, NULL);
}
