#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:mktemp:coreutils
. "${0%/*}/lib"

file=$(mktemp)
case $file in /tmp/tmp.*) ;; *) fail "$file" ;; esac
equal 'mode and size' "$(stat -c '%a %s' "$file")" '600 0'
dir=$(mktemp -d)
equal 'mode of the directory' "$(stat -c %a "$dir")" 700
for k in 1 2 3 4; do
	(for i in $(seq 15); do mktemp -p "$dir" n.XXX; done >>names$k) & makers+=($!)
done
for pid in "${makers[@]}"; do wait "$pid"; done
equal 'different names' "$(sort -u names? | wc -l)" 60
equal files "$(ls "$dir" | wc -l)" 60
rm -r "$dir" "$file"
! mktemp -p /tmp/none x.XXXXXX 2>/dev/null || fail 'in no directory'
