#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# The example of docs/integrations/stubs-node.md, as it says: EXAMPLE TMPNEST-STUBS. Prints TAP.
example=$1 stubs=$2
echo 1..1
command -v node >/dev/null || {
	echo 'ok 1 - the example for Node.js # SKIP node is missing (install nodejs)'
	exit
}
dir=$(mktemp -d /var/tmp/tmpnest-node-XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/w/.git" "$dir/h"
export TMPNEST_STUBS_LEDGER="$dir/ledger.json"
unset CLAUDE_CONFIG_DIR
said=$(node "$example" "$dir/w" "$dir/h" "$stubs" 2>&1)
left=$(cd "$dir" && find w h -mindepth 1 ! -path w/.git)
if [ "$said" = '{"made":29,"again":0,"missing":0,"first":0,"rest":29}' ] && [ -z "$left" ]; then
	echo 'ok 1 - the example for Node.js'
else
	echo 'not ok 1 - the example for Node.js'
	echo "# $said left: $left"
	exit 1
fi
