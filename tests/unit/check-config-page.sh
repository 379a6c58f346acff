#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# The man pages name every key and every variable that tmpnest-bwrap reads.
#   check-config-page.sh FRONT-OPTIONS.C TMPNEST.CONF.5 TMPNEST-BWRAP.1
set -u
export LC_ALL=C
source=$1 config=$2 front=$3 n=0 failed=0

check() { # WHAT PATTERN FILE
	n=$((n + 1))
	if grep -qE -- "$2" "$3"; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1: not in $3"
		failed=1
	fi
}

keys=$(sed -nE 's/^\t\{"(nest|bwrap)", "([a-z_]+)", (NULL|"([A-Z_]+)").*/\1 \2 \4/p' "$source")
[ "$(printf '%s\n' "$keys" | wc -l)" -ge 10 ] || { echo "not ok 1 - the keys of $source"; echo 1..1; exit 1; }
while read -r section key variable; do
	check "section [$section]" "^# \\[$section\\]" "$config"
	check "key $key" "^\\*([a-z_]+\\*, \\*)*$key\\*" "$config"
	[ -n "$variable" ] || continue
	check "variable $variable with its key" "$variable[],]" "$config"
	check "variable $variable" "^\\*([A-Z_]+\\*, \\*)*$variable\\*" "$front"
done <<END
$keys
END
echo "1..$n"
exit $failed
