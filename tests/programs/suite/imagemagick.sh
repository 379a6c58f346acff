#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:identify:imagemagick command:compare:imagemagick
# long
. "${0%/*}/lib"

PATH=/usr/bin:$PATH
export MAGICK_TMPDIR=/tmp MAGICK_CONFIGURE_PATH=/tmp
# a pixel cache on disk, which is a mapped file of MAGICK_TMPDIR
limits=(-limit memory 0 -limit map 64MiB)
convert "${limits[@]}" -size 300x200 gradient:red-blue -rotate 30 -blur 0x1 a.png
convert -limit memory 0 -limit map 0 a.png -resize 50% b.ppm
equal size "$(identify -format '%m %wx%h' a.png | cut -d' ' -f1)" PNG
convert "${limits[@]}" a.png -flip -flip c.png
equal difference "$(compare -metric AE a.png c.png null: 2>&1)" 0
equal 'left in /tmp' "$(ls /tmp | grep -c '^magick' || true)" 0
