/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seccomp-tty: the program is run here, on every calling convention that it knows and on
 * some that it does not; then the kernel takes it and refuses for real.
 */
#include "seccomp-tty.h"

#include "macros.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

/* Enough of classic BPF for such a program; fails on anything else, and on a wild jump. */
static uint32_t evaluate(const struct seccomp_data *data)
{
	size_t n;
	const struct sock_filter *program = tn_seccomp_tty_program(&n);
	uint32_t a = 0;

	for (size_t at = 0; at < n; at++) {
		const struct sock_filter *step = &program[at];

		switch (step->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(step->k % 4 == 0 && step->k + 4 <= sizeof(*data));
			memcpy(&a, (const char *)data + step->k, 4);
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			at += a == step->k ? step->jt : step->jf;
			break;
		case BPF_RET | BPF_K:
			return step->k;
		default:
			fail_msg("instruction %zu: code %#x", at, step->code);
		}
	}
	fail_msg("ran past the end");
	return 0;
}

static void judgements(void **state)
{
	static const struct {
		uint32_t arch;
		int nr;
		uint64_t command;
		bool refused;
	} cases[] = {
		{AUDIT_ARCH_X86_64, 16, TIOCSTI, true},
		{AUDIT_ARCH_X86_64, 16, TIOCLINUX, true},
		{AUDIT_ARCH_X86_64, 16, TIOCSTI | 1ULL << 32, true},
		{AUDIT_ARCH_X86_64, 16, TIOCSTI | 0xffffffffULL << 32, true},
		{AUDIT_ARCH_X86_64, 0x40000000 | 514, TIOCSTI, true},
		{AUDIT_ARCH_I386, 54, TIOCSTI, true},
		{AUDIT_ARCH_AARCH64, 29, TIOCSTI, true},
		{AUDIT_ARCH_AARCH64, 29, TIOCLINUX, true},
		{AUDIT_ARCH_ARM, 54, TIOCLINUX, true},

		{AUDIT_ARCH_X86_64, 16, TCGETS, false},
		{AUDIT_ARCH_X86_64, 16, TIOCGPGRP, false},
		{AUDIT_ARCH_X86_64, 16, TIOCSPGRP, false},
		{AUDIT_ARCH_X86_64, 16, 0, false},
		/* the same argument to another call: shmget, munmap, ... */
		{AUDIT_ARCH_X86_64, 29, TIOCSTI, false},
		{AUDIT_ARCH_X86_64, 54, TIOCSTI, false},
		{AUDIT_ARCH_AARCH64, 16, TIOCSTI, false},
		{AUDIT_ARCH_I386, 16, TIOCSTI, false},
		{AUDIT_ARCH_S390X, 54, 0, false},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		struct seccomp_data data = {.arch = cases[i].arch, .nr = cases[i].nr};
		uint32_t wanted = cases[i].refused ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_ALLOW;

		data.args[1] = cases[i].command;
		if (evaluate(&data) != wanted)
			fail_msg("case %zu", i);
	}
}

/* No other number or command is touched, on any convention. */
static void nothing_else(void **state)
{
	static const uint32_t arches[] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64, AUDIT_ARCH_I386,
					  AUDIT_ARCH_ARM, AUDIT_ARCH_PPC64LE};

	for (size_t i = 0; i < TN_ARRAY_LEN(arches); i++) {
		size_t refused = 0;

		for (int nr = 0; nr < 1024; nr++) {
			struct seccomp_data data = {.arch = arches[i], .nr = nr};

			data.args[1] = TIOCSTI;
			refused += evaluate(&data) != SECCOMP_RET_ALLOW;
		}
		assert_int_equal(refused, arches[i] == AUDIT_ARCH_PPC64LE ? 0 : 1);
	}
}

/* What bwrap does with the file: reads it whole and installs it. */
static void in_the_kernel(void **state)
{
	struct sock_filter filter[64];
	int fd = tn_seccomp_tty_open();
	ssize_t size = read(fd, filter, sizeof(filter));
	size_t n;
	int status;
	pid_t child;

	close(fd);
	tn_seccomp_tty_program(&n);
	assert_int_equal(size, n * sizeof(filter[0]));
	child = fork();
	if (child == 0) {
		struct sock_fprog program = {.len = (unsigned short)n, .filter = filter};
		int r;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
			_exit(2);
		/* no terminal, no descriptor even: without the filter these say EBADF */
		r = ioctl(-1, TIOCSTI, "x");
		if (r != -1 || errno != EPERM)
			_exit(3);
		r = (int)syscall(SYS_ioctl, -1, TIOCSTI | 1ULL << 32, "x");
		if (r != -1 || errno != EPERM)
			_exit(4);
		r = ioctl(-1, TIOCGPGRP, &status);
		_exit(r == -1 && errno == EBADF ? 0 : 5);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judgements),
		cmocka_unit_test(nothing_else),
		cmocka_unit_test(in_the_kernel),
	};

	return cmocka_run_group_tests_name("seccomp-tty", tests, NULL, NULL);
}
