#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:stress-ng:stress-ng
# long
# limit: 180
. "${0%/*}/lib"

cd "$HOME"
known=" $(stress-ng --stressors) "
ran=0
# not chown: it takes ids at random, which no user namespace maps
for stressor in access chmod copy-file dentry dir dirdeep dirmany dup fallocate fcntl fiemap file-ioctl \
	filename flock fpunch fstat getdent hdd inotify io-uring iomix lease link lockf locka lockofd mknod \
	mmapfixed open pipe readahead rename revio seek sendfile sock splice sync-file symlink \
	tee touch unlink utime verity vdso xattr; do
	case $known in *" $stressor "*) ;; *) continue ;; esac # of another version
	ran=$((ran + 1))
	stress-ng --$stressor 1 --$stressor-ops 40 --timeout 1 --temp-path "$HOME" --verify \
		--hdd-bytes 1m --iomix-bytes 1m --fallocate-bytes 4m --quiet >log 2>&1 || {
		status=$?
		# 3 and 4: not there on this kernel or file system, which stress-ng finds out itself
		case $status in 3 | 4) echo "$stressor: not supported" >>/tmp/skipped ;; *) cat log; fail "$stressor: status $status" ;; esac
	}
done
[ $ran -ge 30 ] || fail "only $ran stressors"
equal 'left behind' "$(ls -A "$HOME" | grep -v '^log$' || true)" ''
