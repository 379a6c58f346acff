/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which system calls the worker's filter lets through. Each file lists those that its own
 * code needs, so that a new call and its permission are one change:
 *
 *	TN_SYSCALLS = {{SYS_openat2}, {SYS_ioctl, TN_ARG_IS(1, FS_IOC_FIEMAP)}};
 *
 * The linker joins the lists, so the filter holds exactly what the program is made of;
 * fs/seccomp.c makes it, and lists what the C library needs by itself. Costs nothing else.
 */
#pragma once

#include <stdint.h>
#include <sys/syscall.h>

typedef enum TnSyscallCheck {
	TN_CHECK_NOTHING,
	TN_CHECK_IS,    /* the argument is this value */
	TN_CHECK_HAS,   /* it has all these bits */
	TN_CHECK_LACKS, /* it has none of them */
} TnSyscallCheck;

/* One permission; a call with several is allowed when one of them fits. */
typedef struct TnSyscall {
	uint32_t number;
	uint16_t check;    /* TnSyscallCheck */
	uint16_t argument; /* from 0; its lower 32 bits are looked at, as the kernel does */
	uint32_t value;
} TnSyscall;

#define TN_ARG_IS(argument, value) TN_CHECK_IS, argument, (uint32_t)(value)
#define TN_ARG_HAS(argument, value) TN_CHECK_HAS, argument, (uint32_t)(value)
#define TN_ARG_LACKS(argument, value) TN_CHECK_LACKS, argument, (uint32_t)(value)

/* Without the alignment a compiler may leave gaps between the lists. */
#define TN_SYSCALLS \
	static const TnSyscall needed_syscalls[] \
		__attribute__((used, section("tn_syscalls"), aligned(4)))

/* Calls that older architectures have under a second number, which their C library uses. */
#ifdef SYS_poll
#define TN_CALL_POLL \
	{SYS_poll}, \
	{ \
		SYS_ppoll \
	}
#else
#define TN_CALL_POLL \
	{ \
		SYS_ppoll \
	}
#endif
#ifdef SYS_epoll_wait
#define TN_CALL_EPOLL \
	{SYS_epoll_create1}, {SYS_epoll_ctl}, {SYS_epoll_wait}, \
	{ \
		SYS_epoll_pwait \
	}
#else
#define TN_CALL_EPOLL \
	{SYS_epoll_create1}, {SYS_epoll_ctl}, \
	{ \
		SYS_epoll_pwait \
	}
#endif
#ifdef SYS_renameat
#define TN_CALL_RENAMEAT \
	{SYS_renameat}, \
	{ \
		SYS_renameat2 \
	}
#else
#define TN_CALL_RENAMEAT \
	{ \
		SYS_renameat2 \
	}
#endif
#ifdef SYS_readlink
#define TN_CALL_READLINK \
	{SYS_readlink}, \
	{ \
		SYS_readlinkat \
	}
#else
#define TN_CALL_READLINK \
	{ \
		SYS_readlinkat \
	}
#endif
