#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:tdbtool:tdb-tools command:tdbbackup:tdb-tools
# long
. "${0%/*}/lib"

{ echo 'create db'; numbered 'insert key# value#' 300; echo 'delete key7'; } | tdbtool >/dev/null
equal keys "$(tdbdump db | grep -c '^key')" 299
tdbbackup db
tdbbackup -v db
cmp <(tdbdump db | sort) <(tdbdump db.bak | sort)
tdbdump db | tdbrestore restored
cmp <(tdbdump db | sort) <(tdbdump restored | sort)
tdbtool db check | grep -qi 'is OK' || fail 'the check'
