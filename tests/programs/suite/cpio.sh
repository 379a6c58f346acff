#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:cpio:cpio
# long
. "${0%/*}/lib"

make_tree tree
(cd tree && find . -print0 | cpio --null --create --format=newc --quiet) >a.cpio
mkdir out
(cd out && cpio --extract --make-directories --preserve-modification-time --quiet) <a.cpio
same_tree tree out
mkdir passed
(cd tree && find . -depth -print0 | cpio --null --pass-through --make-directories --preserve-modification-time --link --quiet ../passed)
equal 'a link' "$(stat -c %i tree/a/text5)" "$(stat -c %i passed/a/text5)"
