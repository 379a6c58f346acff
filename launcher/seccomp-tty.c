/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "seccomp-tty.h"
#include "macros.h"
#include "message.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif
#ifndef AUDIT_ARCH_RISCV64
#define AUDIT_ARCH_RISCV64 (EM_RISCV | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE)
#endif

/* The kernel looks at the low half only, so comparing all 64 bits could be fooled. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define COMMAND_OFFSET offsetof(struct seccomp_data, args[1])
#else
#define COMMAND_OFFSET (offsetof(struct seccomp_data, args[1]) + 4)
#endif

/* ioctl in each calling convention of a kernel that takes more than one. */
#define IOCTL_X86_64 16
#define IOCTL_X32 (0x40000000 | 514)
#define IOCTL_32_BIT 54  /* i386, arm */
#define IOCTL_GENERIC 29 /* arm64, riscv64 */

/* Where the parts of the program begin. */
enum { START = 0, ON_X86_64 = 7, ON_32_BIT = 11, ON_GENERIC = 14, IS_IOCTL = 17, REFUSE = 21, END };

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (value))
#define GO_IF(here, value, there) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (there) - (here)-1, 0)

static const struct sock_filter program[END] = {
	[START] = LOAD(offsetof(struct seccomp_data, arch)),
	[1] = GO_IF(1, AUDIT_ARCH_X86_64, ON_X86_64),
	[2] = GO_IF(2, AUDIT_ARCH_I386, ON_32_BIT),
	[3] = GO_IF(3, AUDIT_ARCH_ARM, ON_32_BIT),
	[4] = GO_IF(4, AUDIT_ARCH_AARCH64, ON_GENERIC),
	[5] = GO_IF(5, AUDIT_ARCH_RISCV64, ON_GENERIC),
	[6] = RETURN(SECCOMP_RET_ALLOW),

	[ON_X86_64] = LOAD(offsetof(struct seccomp_data, nr)),
	[ON_X86_64 + 1] = GO_IF(ON_X86_64 + 1, IOCTL_X86_64, IS_IOCTL),
	[ON_X86_64 + 2] = GO_IF(ON_X86_64 + 2, IOCTL_X32, IS_IOCTL),
	[ON_X86_64 + 3] = RETURN(SECCOMP_RET_ALLOW),

	[ON_32_BIT] = LOAD(offsetof(struct seccomp_data, nr)),
	[ON_32_BIT + 1] = GO_IF(ON_32_BIT + 1, IOCTL_32_BIT, IS_IOCTL),
	[ON_32_BIT + 2] = RETURN(SECCOMP_RET_ALLOW),

	[ON_GENERIC] = LOAD(offsetof(struct seccomp_data, nr)),
	[ON_GENERIC + 1] = GO_IF(ON_GENERIC + 1, IOCTL_GENERIC, IS_IOCTL),
	[ON_GENERIC + 2] = RETURN(SECCOMP_RET_ALLOW),

	[IS_IOCTL] = LOAD(COMMAND_OFFSET),
	[IS_IOCTL + 1] = GO_IF(IS_IOCTL + 1, TIOCSTI, REFUSE),
	[IS_IOCTL + 2] = GO_IF(IS_IOCTL + 2, TIOCLINUX, REFUSE),
	[IS_IOCTL + 3] = RETURN(SECCOMP_RET_ALLOW),

	[REFUSE] = RETURN(SECCOMP_RET_ERRNO | EPERM),
};

const struct sock_filter *tn_seccomp_tty_program(size_t *ret_n)
{
	*ret_n = END;
	return program;
}

int tn_seccomp_tty_open(void)
{
	TN_AUTOFD fd = memfd_create("tmpnest-seccomp", MFD_CLOEXEC);
	int error;

	if (fd >= 0 && write(fd, program, sizeof(program)) == (ssize_t)sizeof(program) &&
	    lseek(fd, 0, SEEK_SET) == 0)
		return tn_steal_fd(&fd);
	error = errno ? -errno : -EIO;
	return tn_fail(error, "seccomp filter: cannot write it: %s", strerror(-error));
}
