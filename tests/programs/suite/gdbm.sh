#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:gdbmtool:gdbmtool
# long
. "${0%/*}/lib"

numbered 'store key# value#' 800 >commands
gdbmtool --newdb db <commands
equal 'number of keys' "$(gdbmtool --read-only db count | grep -oE '[0-9]+' | head -1)" 800
equal 'a value' "$(gdbmtool --read-only db fetch key33)" value33
gdbmtool db delete key33
gdbmtool db reorganize
gdbm_dump db dump
gdbm_load dump other
equal 'after dump and load' "$(gdbmtool --read-only other count | grep -oE '[0-9]+' | head -1)" 799
