#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:lockfile-create:lockfile-progs
# long
. "${0%/*}/lib"

echo mail >box
lockfile-create box
[ -e box.lock ]
lockfile-check box
! lockfile-create --retry 0 box 2>/dev/null || fail 'two holders'
lockfile-touch --oneshot box
lockfile-remove box
! lockfile-check box || fail 'a lock after its removal'
