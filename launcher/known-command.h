/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Can bwrap start the command by itself? The exec shim is needed only to say why a command
 * cannot be started; for a program of the system, which can be, it is one more exec at
 * every start: a quarter of what the launcher adds. Looks at files, changes nothing.
 */
#pragma once

#include "run-plan.h"

#include <stdbool.h>

/*
 * True when command is certain to be found and executed inside: a binary below /usr that
 * everybody may execute, with nothing mounted over it. False when in any doubt.
 */
bool tn_command_is_known(const TnRunPlan *plan, const TnRunOptions *options);
