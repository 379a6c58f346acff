/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "seccomp.h"

#include "log.h"
#include "macros.h"
#include "syscalls.h"

#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/* The lists of all files, one after the other: made by the linker. */
extern const TnSyscall __start_tn_syscalls[], __stop_tn_syscalls[];

/*
 * What the C library needs for threads, memory and standard input and output, whatever the
 * rest does. A thread is not a process: that one is what CLONE_THREAD decides.
 */
TN_SYSCALLS = {
	{SYS_clone, TN_ARG_HAS(0, CLONE_THREAD)},
	{SYS_set_robust_list},
	{SYS_rseq},
	{SYS_futex},
	{SYS_gettid},
	{SYS_getpid},
	{SYS_sched_getaffinity},
	{SYS_sched_yield},
	{SYS_exit},
	{SYS_exit_group},
	{SYS_rt_sigprocmask},
	{SYS_rt_sigaction},
	{SYS_rt_sigreturn},
	{SYS_tgkill}, /* abort(3); there is no capability to signal others with */
	{SYS_restart_syscall},
	{SYS_brk},
	{SYS_munmap},
	{SYS_mremap},
	{SYS_madvise},
	/* Memory is never made executable: what runs was mapped before. */
	{SYS_mmap, TN_ARG_LACKS(2, PROT_EXEC)},
	{SYS_mprotect, TN_ARG_LACKS(2, PROT_EXEC)},
	{SYS_prctl, TN_ARG_IS(0, PR_SET_NAME)},
	{SYS_getrandom},
	{SYS_sysinfo}, /* qsort(3) of much */
	{SYS_clock_gettime},
	{SYS_clock_nanosleep},
	{SYS_close},
	{SYS_read},
	{SYS_write},
	{SYS_writev},
	{SYS_lseek},
	{SYS_fcntl},
	{SYS_openat},
	{SYS_newfstatat},
};

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCHITECTURE (EM_RISCV | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE)
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offset))
#define LOAD_NUMBER LOAD(offsetof(struct seccomp_data, nr))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (value))

#define PROGRAM_MOST 1024
#define PERMISSION_LENGTH 6

typedef struct Program {
	struct sock_filter code[PROGRAM_MOST];
	unsigned short length;
} Program;

static void add(Program *program, struct sock_filter instruction)
{
	program->code[program->length++] = instruction;
}

/* The number is in the accumulator before and after. */
static void add_permission(Program *program, const TnSyscall *allowed)
{
	size_t offset = offsetof(struct seccomp_data, args) + allowed->argument * sizeof(uint64_t);

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	offset += sizeof(uint32_t);
#endif
	if (allowed->check == TN_CHECK_NOTHING) {
		add(program,
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed->number, 0, 1));
		add(program, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
		return;
	}
	add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed->number, 0,
						  PERMISSION_LENGTH - 1));
	add(program, (struct sock_filter)LOAD(offset));
	if (allowed->check != TN_CHECK_IS)
		add(program,
		    (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, allowed->value));
	else
		add(program, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_OR | BPF_K, 0));
	add(program, (struct sock_filter)BPF_JUMP(
			     BPF_JMP | BPF_JEQ | BPF_K,
			     allowed->check == TN_CHECK_LACKS ? 0 : allowed->value, 0, 1));
	add(program, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
	add(program, (struct sock_filter)LOAD_NUMBER);
}

/* Leaves the number in the accumulator. */
static void begin(Program *program)
{
#ifdef ARCHITECTURE
	add(program, (struct sock_filter)LOAD(offsetof(struct seccomp_data, arch)));
	add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
	/* Another calling convention: no code of ours has one. */
	add(program, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
#endif
	add(program, (struct sock_filter)LOAD_NUMBER);
}

/* -E2BIG: more permissions than a program has room for. */
static int build(Program *program, uint32_t refusal)
{
	begin(program);
	for (const TnSyscall *allowed = __start_tn_syscalls; allowed < __stop_tn_syscalls;
	     allowed++) {
		if (program->length + PERMISSION_LENGTH + 3 > PROGRAM_MOST)
			return -E2BIG;
		add_permission(program, allowed);
	}
	/* Quietly: the C library tries it first for every thread, and its flags are in memory,
	 * where no filter can look. */
	add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1));
	add(program, (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | ENOSYS));
	add(program, (struct sock_filter)RETURN(refusal));
	return 0;
}

static int load(const Program *program, unsigned flags)
{
	struct sock_fprog filter = {
		.len = program->length,
		.filter = (struct sock_filter *)program->code,
	};
	long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);

	return r < 0 ? -errno : (int)r;
}

static int install(uint32_t refusal, unsigned flags)
{
	Program program = {.length = 0};
	int r = build(&program, refusal);

	return r < 0 ? r : load(&program, flags);
}

bool tn_seccomp_is_built(void)
{
#if defined(SANITIZED) || !defined(ARCHITECTURE)
	return false;
#else
	return true;
#endif
}

int tn_seccomp_install(void)
{
	int r;

	if (!tn_seccomp_is_built())
		return -ENOSYS;
	r = install(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER |
						    SECCOMP_FILTER_FLAG_TSYNC |
						    SECCOMP_FILTER_FLAG_TSYNC_ESRCH);
	if (r != -EBUSY)
		return r == -EINVAL ? -ENOSYS : r;
	r = install(SECCOMP_RET_ERRNO | ENOSYS, SECCOMP_FILTER_FLAG_TSYNC);
	return r < 0 ? r : -EOPNOTSUPP;
}

int tn_seccomp_allow_only(int number)
{
	const TnSyscall allowed[] = {{(uint32_t)number}, {SYS_exit}};
	Program program = {.length = 0};
	int r;

	if (!tn_seccomp_is_built())
		return -ENOSYS;
	begin(&program);
	for (size_t i = 0; i < TN_ARRAY_LEN(allowed); i++)
		add_permission(&program, &allowed[i]);
	add(&program, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
	r = load(&program, 0);
	return r == -EINVAL ? -ENOSYS : r;
}

size_t tn_seccomp_count(void)
{
	return (size_t)(__stop_tn_syscalls - __start_tn_syscalls);
}

static bool is_new(TnSeccompLog *log, int number)
{
	size_t most = TN_ARRAY_LEN(log->seen) * 64;
	size_t bit = number >= 0 && (size_t)number < most ? (size_t)number : most - 1;
	uint64_t mask = UINT64_C(1) << bit % 64;
	bool seen = log->seen[bit / 64] & mask;

	log->seen[bit / 64] |= mask;
	return !seen;
}

int tn_seccomp_answer(int listener, TnSeccompLog *log)
{
	/* A later kernel's structures may be longer. */
	union {
		struct seccomp_notif notice;
		char space[512];
	} in;
	union {
		struct seccomp_notif_resp answer;
		char space[256];
	} out;

	memset(&in, 0, sizeof(in));
	memset(&out, 0, sizeof(out));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &in) < 0)
		return -errno;
	if (is_new(log, in.notice.data.nr))
		tn_log(TN_LOG_WARNING,
		       "worker: system call %d (arguments %#llx, %#llx, %#llx) is not on its list: "
		       "refused (this kernel or C library may need it: please report)",
		       in.notice.data.nr, (unsigned long long)in.notice.data.args[0],
		       (unsigned long long)in.notice.data.args[1],
		       (unsigned long long)in.notice.data.args[2]);
	out.answer.id = in.notice.id;
	out.answer.error = -ENOSYS;
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &out) < 0 ? -errno : 0;
}
