#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# The man page names every verb and every long option that the program's help names.
#   check-man-page.sh TMPNEST-CTL PAGE
set -u
export LC_ALL=C
ctl=$1 page=$2 n=0 failed=0

check() { # WHAT PATTERN
	n=$((n + 1))
	if grep -qE -- "$2" "$page"; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1: not in $page"
		failed=1
	fi
}

verbs=$("$ctl" help | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p')
[ -n "$verbs" ] || { echo "not ok 1 - no verbs in the help"; echo 1..1; exit 1; }
for verb in $verbs; do
	check "verb $verb" "^\*$verb\*|^\*tmpnest $verb\*"
	[ "$verb" = run ] && continue
	for option in $("$ctl" help "$verb" | sed -n 's/^  \(-., \)\{0,1\}\(--[a-z-]*\).*/\2/p'); do
		[ "$option" = --help ] || check "$verb $option" "(^|[^a-z-])$option([^a-z-]|\$)"
	done
done
echo "1..$n"
exit $failed
