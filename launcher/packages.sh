# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What a build or a test needs, and how to get it; sourced by quickstart.sh and tests/run.sh.
# A need is met when the thing itself is there, whoever installed it; the names of the
# packages are Debian's.

# KIND:NAME:PACKAGE, where KIND is a command, a pkg-config module, a C header, or a path
# with wildcards.
TN_BUILD_NEEDS=(
	command:cc:gcc command:pkg-config:pkg-config command:meson:meson command:ninja:ninja-build
	command:bwrap:bubblewrap header:fcntl.h:libc6-dev header:linux/fuse.h:linux-libc-dev
	module:gio-unix-2.0:libglib2.0-dev module:json-glib-1.0:libjson-glib-dev
	module:jansson:libjansson-dev module:inih:libinih-dev module:libcap:libcap-dev
	module:libseccomp:libseccomp-dev module:cmocka:libcmocka-dev
	module:libsoup-3.0:libsoup-3.0-dev module:ncursesw:libncurses-dev
)

tn_need_is_met() { # KIND:NAME:PACKAGE
	local kind name
	IFS=: read -r kind name _ <<<"$1"
	case $kind in
	command) command -v "$name" >/dev/null ;;
	module) command -v pkg-config >/dev/null && pkg-config --exists "$name" ;;
	path) compgen -G "$name" >/dev/null ;;
	header) command -v cc >/dev/null && echo "#include <$name>" | cc -E - >/dev/null 2>&1 ;;
	*) return 1 ;;
	esac
}

# Packages of the unmet needs, one line.
tn_missing_packages() {
	local need packages=()
	for need in "$@"; do
		tn_need_is_met "$need" || packages+=("${need##*:}")
	done
	printf '%s\n' "${packages[*]}"
}

# Installs what is missing when we are root on a system with apt; else says what to
# install and fails. Services of the packages are not started (RUNLEVEL, invoke-rc.d(8)).
tn_install_missing() {
	local missing
	missing=$(tn_missing_packages "$@")
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
		echo "missing packages: $missing" >&2
		echo "install them first, on Debian or Ubuntu: sudo apt-get install $missing" >&2
		return 1
	fi
	echo "installing: $missing"
	local log
	log=$(mktemp)
	# shellcheck disable=SC2086  # a list of words
	if ! tn_apt install $missing >"$log" 2>&1; then
		# the package lists may be absent or too old
		if ! { tn_apt update && tn_apt install $missing; } >"$log" 2>&1; then
			tail -n 20 "$log" >&2
			rm -f "$log"
			echo "apt-get could not install: $missing" >&2
			return 1
		fi
	fi
	rm -f "$log"
	missing=$(tn_missing_packages "$@")
	[ -z "$missing" ] || {
		echo "still missing after the installation: $missing" >&2
		return 1
	}
}

tn_apt() {
	local verb=$1
	shift
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends "$verb" "$@" </dev/null
}

# tn_build SOURCE BUILD LOG [TARGET...]: configures when needed, compiles the targets
# (default: all); the end of the log is shown on failure.
tn_build() {
	local source=$1 build=$2 log=$3
	shift 3
	{ [ -f "$build/build.ninja" ] || meson setup "$build" "$source"; } >"$log" 2>&1 &&
		meson compile -C "$build" "$@" >>"$log" 2>&1 && return
	tail -n 40 "$log" >&2
	echo "the build in $build failed; the whole log: $log" >&2
	return 1
}
