/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a nest tells the registry that lists it. Any thread. */
#pragma once

#include "registry.h"

/* There is something to do: a superblock has ended, the trash is not empty. Never blocks long. */
void tn_registry_wake_janitor(TnRegistry *registry);
