#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Measures tmpnest against native file systems and other FUSE file systems, interleaved in
# one run; prints medians, spread and ratios, and writes everything as JSON.
#
#   bench/run.sh [OPTION...]
#
#   --quick               a small subset, to see that it works: its times mean little
#   --only PART,...       of micro, clients, macro, launch, scale (all)
#   --rounds N            measurements of each (9; of whole programs a third)
#   --placements WHERE,...  client and daemon on one processor (one), on two (two), where
#                         the kernel likes (free); all three by default
#   --subjects NAME,...   of tmpfs, ext4 (the name of the disk's file system), fuse-overlayfs,
#                         tmpnest (store dir), tmpnest-memory, and the names of peers (all)
#   --operations NAME,... of micro (see `build/bench/ops list`); --jobs NAME,...: of macro
#   --peer NAME=COMMAND   another FUSE program: %s in its command stands for the directory
#                         to show, %m for the mount point (both are appended if missing)
#   --backing tmpfs|disk  what lies below store dir and below the FUSE peers (tmpfs)
#   --nests N             for scale (1000)
#   --output FILE.json    (bench/results.json in the build folder)
#   --no-install          takes what is installed, leaves the rest out
#
# bench/plot.sh FILE.json FILE.svg draws them; docs/performance.md says how to read them.
set -u
export LC_ALL=C.UTF-8
ARGUMENTS=("$@") FROM=$PWD
cd "$(dirname "$0")" || exit 1
PARTS=micro,clients,macro,launch,scale ROUNDS=9 PLACEMENTS='' BACKING=tmpfs NESTS=1000
INSTALL=yes OUTPUT='' MORE=()

usage() { sed -n '7,27s/^# \{0,1\}//p' run.sh; }

die() {
	echo "bench: $*" >&2
	exit 2
}

while [ $# -gt 0 ]; do
	case $1 in
	--quick) PARTS=micro,launch ROUNDS=2 PLACEMENTS=free NESTS=20 MORE+=(--quick) && shift && continue ;;
	--no-install) INSTALL='' && shift && continue ;;
	-h | --help) usage && exit ;;
	esac
	[ $# -ge 2 ] || die "$1: unknown, or without its value (bench/run.sh --help)"
	case $1 in
	--only) PARTS=$2 ;;
	--rounds) ROUNDS=$2 ;;
	--placements) PLACEMENTS=$2 ;;
	--backing) BACKING=$2 ;;
	--nests) NESTS=$2 ;;
	--output) OUTPUT=$(cd "$FROM" && realpath -m "$2") ;;
	--subjects | --operations | --jobs | --peer) MORE+=("$1" "$2") ;;
	*) die "$1: unknown option (bench/run.sh --help)" ;;
	esac
	shift 2
done
for part in ${PARTS//,/ }; do
	case $part in
	micro | clients | macro | launch | scale) ;;
	*) die "--only: $part: no such part (micro, clients, macro, launch, scale)" ;;
	esac
done
case $BACKING in tmpfs | disk) ;; *) die "--backing: $BACKING: tmpfs or disk" ;; esac
[[ $ROUNDS =~ ^[1-9][0-9]*$ ]] || die "--rounds: $ROUNDS: a number from 1"
[[ $NESTS =~ ^[1-9][0-9]*$ ]] || die "--nests: $NESTS: a number from 1"
[ "$(id -u)" -eq 0 ] || die "it mounts what tmpnest is compared with: run it as root (sudo bench/run.sh ...)"
if [ -z "$PLACEMENTS" ]; then
	PLACEMENTS=one,two,free
	[ "$(nproc)" -gt 1 ] || PLACEMENTS=one,free
fi

# A mount namespace of its own: what is mounted here goes with the last process of it.
if [ -z "${TN_BENCH_INSIDE:-}" ]; then
	if [ -n "$INSTALL" ]; then
		. ../launcher/packages.sh
		needs=(command:python3:python3 command:bwrap:bubblewrap command:fuse-overlayfs:fuse-overlayfs)
		case ,$PARTS, in *,macro,*)
			needs+=(command:git:git command:gcc:gcc command:npm:npm command:sqlite3:sqlite3 command:fio:fio)
			;;
		esac
		tn_install_missing "${needs[@]}" || exit 1
	fi
	script=$PWD/run.sh
	cd "$FROM" && TN_BENCH_INSIDE=yes exec unshare --mount --propagation private -- \
		bash "$script" "${ARGUMENTS[@]}"
fi

. ./lib.sh
[ -n "$OUTPUT" ] || OUTPUT=$BUILD/bench/results.json
place=/var/lib/tmpnest-bench.$$
trap 'umount -l "$place/tmpfs"; rm -rf --one-file-system "$place"' EXIT # until bench_begin has its own
mkdir -p "$place/tmpfs" && mount -t tmpfs -o mode=755 tmpnest-bench "$place/tmpfs" || exit 1
[ "$BACKING" = disk ] || BENCH_STORE=$place/tmpfs/store
bench_begin
cp "$BUILD/bench/ops" "$PLACE/work/ops" || exit 1
"$PYTHON" "$ROOT/bench/measure.py" --place "$PLACE" --ops "$PLACE/work/ops" --output "$OUTPUT" \
	--backing "$BACKING" --parts "$PARTS" --rounds "$ROUNDS" --placements "$PLACEMENTS" \
	--nests "$NESTS" --command "bench/run.sh ${ARGUMENTS[*]}" "${MORE[@]}" || exit 1
echo "written: $OUTPUT"
