#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:rg:ripgrep
# long
. "${0%/*}/lib"

make_tree tree
echo 'needle in text' >tree/a/b/needle
printf '*.skip\n' >tree/.ignore
echo needle >tree/x.skip
equal found "$(rg -l --sort path needle tree)" tree/a/b/needle
rg --mmap -c '^300$' tree/a/text1 | grep -qx 1
equal files "$(rg --files tree | wc -l)" "$(find tree -type f ! -name '.*' ! -name '*.skip' | wc -l)"
