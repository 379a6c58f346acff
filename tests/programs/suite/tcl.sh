#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:tclsh:tcl
# long
. "${0%/*}/lib"

cat >program.tcl <<-'END'
	set c [file tempfile name /tmp/nest.txt]
	puts $c [string repeat x 50000]
	close $c
	if {[file size $name] != 50001} {error "size"}
	file mkdir /tmp/a/b/c
	file copy $name /tmp/a/copy
	file rename /tmp/a/copy /tmp/a/b/moved
	file link -symbolic /tmp/l /tmp/a/b/moved
	file link -hard /tmp/h /tmp/a/b/moved
	if {[file type /tmp/l] ne "link" || [file size /tmp/h] != 50001} {error "links"}
	file stat /tmp/h s
	if {$s(nlink) != 2} {error "nlink"}
	file attributes /tmp/h -permissions 0640
	set p [open "|cat > /tmp/piped" w]; puts $p wren; close $p
	file delete -force /tmp/a $name
	puts [lsort [glob -tails -directory /tmp *]]
END
equal output "$(tclsh program.tcl)" 'h home l piped program.tcl'
