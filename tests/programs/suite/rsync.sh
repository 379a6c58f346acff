#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:rsync:rsync
. "${0%/*}/lib"

make_tree tree
setfattr -n user.bird -v wren tree/nothing 2>/dev/null || true
rsync -aHX tree/ copy/
same_tree tree copy
echo changed >>tree/a/text5
rm tree/a/text6
rsync -aH --delete --inplace tree/ copy/
same_tree tree copy
rsync -aH --link-dest=/tmp/copy tree/ next/
equal 'a link to the copy before' "$(stat -c %i copy/a/text1)" "$(stat -c %i next/a/text1)"
noise 2000000 >big
cp big old
printf changed | dd of=old bs=1 seek=1000000 conv=notrunc status=none
rsync --ignore-times --no-whole-file --partial -T /tmp big old
cmp big old
equal 'a dry run' "$(rsync -aHi --dry-run tree/ copy/)" ''
rsync -a --remove-source-files tree/a/ moved/
[ -z "$(find tree/a -type f)" ]
