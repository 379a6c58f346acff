/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A filter that refuses the two ioctls by which a payload types into the terminal it
 * shares with its caller (TIOCSTI, TIOCLINUX). With it a sandbox needs no session of its
 * own, and interactive shells keep their job control.
 */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

/* The program; *ret_n instructions. */
const struct sock_filter *tn_seccomp_tty_program(size_t *ret_n);

/* A memory file with it, as bwrap's --seccomp reads it. The descriptor, or -errno, said. */
int tn_seccomp_tty_open(void);
