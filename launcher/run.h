/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tmpnest run`: becomes bwrap, in which the command has a /tmp of its own.
 */
#pragma once

/* argv are the words after "run". Returns an exit status only when it did not become bwrap. */
int tn_run(char **argv);
