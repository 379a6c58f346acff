#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:ffmpeg:ffmpeg command:ffprobe:ffmpeg
# long
# limit: 120
. "${0%/*}/lib"

export AV_LOG_FORCE_NOCOLOR=1
quiet=(-hide_banner -loglevel error -nostdin -y -threads 1)
ffmpeg "${quiet[@]}" -f lavfi -i testsrc=duration=1:size=96x64:rate=10 -f lavfi -i sine=duration=1 \
	-c:v mpeg4 -c:a aac -movflags +faststart a.mp4
equal frames "$(ffprobe -v error -count_frames -select_streams v -show_entries stream=nb_read_frames -of csv=p=0 a.mp4)" 10
mkdir hls frames
ffmpeg "${quiet[@]}" -i a.mp4 -c copy -f hls -hls_time 1 hls/list.m3u8
ffmpeg "${quiet[@]}" -i a.mp4 frames/%03d.png
[ -n "$(ls hls/*.ts)" ]
equal pictures "$(ls frames | wc -l)" 10
ffmpeg "${quiet[@]}" -i a.mp4 -c:v mpeg4 -b:v 100k -pass 1 -passlogfile /tmp/two -an -f null -
ffmpeg "${quiet[@]}" -i a.mp4 -c:v mpeg4 -b:v 100k -pass 2 -passlogfile /tmp/two -an two.avi
[ -s two.avi ] && [ -s two-0.log ]
