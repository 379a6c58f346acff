#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# `meson install` into an empty folder: what is there, that it is well-formed, and that the programs
# work from a place where they were not meant to be.
#   check-install.sh BUILD-FOLDER
set -u
export LC_ALL=C.UTF-8
PATH=$PATH:/usr/sbin:/sbin
build=$1 n=0 failed=0
state=/var/lib
[ "$(id -u)" -eq 0 ] || state=${XDG_STATE_HOME:-$HOME/.local/state}
work=$state/tmpnest-install.$$
root=$work/root
prefix=$(meson introspect --buildoptions "$build" |
	/usr/bin/env python3 -c 'import json,sys; print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')
below=$root$prefix
etc=$root/etc
case $prefix in /usr) ;; *) etc=$below/etc ;; esac
export TMPNEST_RUNTIME_DIR=$work/r TMPNEST_STORE_DIR=$work/s
mkdir -p "$work" || exit 1
clean_up() {
	[ ! -S "$TMPNEST_RUNTIME_DIR/control.sock" ] || "$work/moved/bin/tmpnest" daemon stop --force >/dev/null 2>&1
	rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

result() { # STATUS NAME [COMPLAINT]
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		[ -z "${3:-}" ] || printf '%s\n' "$3" | sed 's/^/# /'
		failed=1
	fi
}

skip() { # NAME WHY
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

quiet() { # NAME COMMAND...: succeeds and says nothing
	local name=$1 said
	shift
	said=$("$@" 2>&1 >/dev/null </dev/null) && [ -z "$said" ]
	result $? "$name" "$said"
}

log=$(meson install --no-rebuild -C "$build" --destdir "$root" 2>&1)
result $? 'meson install' "$log"
[ "$failed" -eq 0 ] || { echo "1..$n" && exit 1; }

command -v scdoc >/dev/null || skip 'the man pages' 'scdoc is missing (install scdoc)'

# ---- what is there ---------------------------------------------------------------------
programs='bin/tmpnest bin/tmpnest-bwrap libexec/tmpnest/tmpnest-ctl libexec/tmpnest/tmpnest-serve
	libexec/tmpnest/tmpnest-shim libexec/tmpnest/tmpnest-stubs libexec/tmpnest/tmpnestd'
# where libc can be linked statically, each program that starts sandboxes has a twin
for file in tmpnest tmpnest-bwrap; do
	[ ! -e "$build/launcher/$file-dynamic" ] || programs+=" libexec/tmpnest/$file-dynamic"
done
pages='man1/tmpnest.1 man1/tmpnest-bwrap.1 man1/tmpnest-serve.1 man1/tmpnest-stubs.1
	man5/tmpnest.conf.5 man8/tmpnestd.8'
command -v scdoc >/dev/null || pages=
files='lib/systemd/system/tmpnest.service lib/systemd/system/tmpnest-serve.service
	lib/sysusers.d/tmpnest.conf lib/tmpfiles.d/tmpnest.conf
	share/bash-completion/completions/tmpnest share/zsh/site-functions/_tmpnest
	share/fish/vendor_completions.d/tmpnest.fish
	share/tmpnest/monitoring/tmpnest.rules.yml share/tmpnest/monitoring/tmpnest.dashboard.json
	share/tmpnest/org.tmpnest.Control.varlink share/tmpnest/apparmor/tmpnest-userns'
wanted=$(for file in $programs $files; do echo "$below/$file"; done
	for page in $pages; do echo "$below/share/man/$page"; done
	echo "$etc/apparmor.d/tmpnest-serve"
	for file in "$(dirname "$0")"/../../data/stubs/*.json; do echo "$below/share/tmpnest/stubs/${file##*/}"; done)
said=$(diff <(printf '%s\n' "$wanted" | sort) <(find "$root" ! -type d | sort))
result $? 'exactly these files' "$said"
for file in $programs; do
	[ -x "$below/$file" ] || result 1 "$file can be executed"
done

# ---- well-formed -----------------------------------------------------------------------
said=$(grep -rl '@[A-Z]*@' "$below/lib" "$below/share" "$etc" --exclude=_tmpnest --exclude=tmpnest-serve)
result $((${#said} > 0)) 'nothing is left to fill in' "$said"
for page in $pages; do
	quiet "page $page" env MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$below/share/man/$page"
done

# In the root that they are for, as the units' programs are looked for there.
units="$below/lib/systemd/system/tmpnest.service $below/lib/systemd/system/tmpnest-serve.service"
if command -v systemd-analyze >/dev/null; then
	mkdir "$work/units"
	for unit in $units; do
		sed "s|=$prefix/|=$below/|" "$unit" >"$work/units/${unit##*/}"
	done
	said=$(systemd-analyze verify --man=no "$work"/units/*.service 2>&1 | grep -F "$work/units")
	result $((${#said} > 0)) 'the units' "$said"
	for unit in $units; do
		program=$(sed -n 's/^ExecStart=\([^ ]*\) .*/\1/p' "$unit")
		[ -x "$root$program" ]
		result $? "${unit##*/} starts $program"
	done
	# what would be done is said, and what it cannot read only complained about
	said=$(systemd-sysusers --dry-run "$below/lib/sysusers.d/tmpnest.conf" 2>&1) && ! grep -vE "^(Creating (user|group) 'tmpnest(-store)?'|Would write )" <<<"$said" | grep -q .
	result $? 'the entry of systemd-sysusers' "$said"
else
	skip 'the units' 'systemd-analyze is missing (install systemd)'
fi
if command -v systemd-tmpfiles >/dev/null && [ "$(id -u)" -eq 0 ]; then
	mkdir -p "$work/etc/etc"
	printf 'root:x:0:0::/:/bin/sh\ntmpnest-store:x:990:990::/:/bin/false\n' >"$work/etc/etc/passwd"
	printf 'root:x:0:\ntmpnest-store:x:990:\n' >"$work/etc/etc/group"
	quiet 'the entry of systemd-tmpfiles' systemd-tmpfiles --create --root "$work/etc" "$below/lib/tmpfiles.d/tmpnest.conf"
	[ "$(stat -c %a "$work/etc/run/tmpnest" "$work/etc/var/lib/tmpnest" | xargs)" = '755 700' ]
	result $? 'it makes both directories'
fi
if command -v apparmor_parser >/dev/null; then
	parse() { # NAME PROFILE; a kernel without AppArmor is complained about
		local said status
		said=$(apparmor_parser -Q -K "$2" 2>&1)
		status=$?
		said=$(grep -v '^Cache read/write disabled' <<<"$said")
		[ "$status" -eq 0 ] && [ -z "$said" ]
		result $? "$1" "$said"
	}
	parse 'the AppArmor profile' "$etc/apparmor.d/tmpnest-serve"
	profile=$below/share/tmpnest/apparmor/tmpnest-userns
	if [ ! -e /etc/apparmor.d/abi/4.0 ]; then # what an older parser does not know is left out
		sed 's|<abi/4.0>|<abi/3.0>|; /^  userns,$/d' "$profile" >"$work/tmpnest-userns"
		profile=$work/tmpnest-userns
	fi
	parse 'the AppArmor profile for user namespaces' "$profile"
	result $(($(apparmor_parser -N "$profile" 2>/dev/null | grep -c .) != 3)) 'it has three profiles'
else
	skip 'the AppArmor profiles' 'apparmor_parser is missing (install apparmor)'
fi
quiet 'completion of bash' bash -n "$below/share/bash-completion/completions/tmpnest"
! command -v zsh >/dev/null || quiet 'completion of zsh' zsh -n "$below/share/zsh/site-functions/_tmpnest"
! command -v fish >/dev/null || quiet 'completion of fish' fish -n "$below/share/fish/vendor_completions.d/tmpnest.fish"

# ---- from another place ----------------------------------------------------------------
moved=$work/moved
mv "$below" "$moved"
for words in --version 'help run' 'help serve' 'stubs --help' 'daemon start' 'daemon status --json' 'create moved' \
	'ls --json' 'evict moved' 'daemon stop'; do
	# shellcheck disable=SC2086
	said=$("$moved/bin/tmpnest" $words 2>&1 </dev/null)
	result $? "moved: tmpnest $words" "$said"
	[ "$words" != 'daemon status --json' ] || case $said in
	*"\"running\" : true"*)
		exe=$(readlink "/proc/$(sed -n 's/.*"keeper_pid" : \([0-9]*\).*/\1/p' <<<"$said")/exe")
		[ "$exe" = "$moved/libexec/tmpnest/tmpnestd" ]
		result $? 'moved: the daemon is its own' "$exe"
		;;
	esac
done

# Beside a program in somebody else's folder there is nothing of ours.
if [ "$(id -u)" -eq 0 ]; then
	mkdir -p "$work/public/bin" "$work/public/libexec/tmpnest"
	cp "$moved/bin/tmpnest" "$work/public/bin/"
	printf '#!/bin/sh\necho taken >&2\n' >"$work/public/libexec/tmpnest/tmpnest-ctl"
	chmod 755 "$work/public/libexec/tmpnest/tmpnest-ctl"
	chown nobody "$work/public/libexec/tmpnest/tmpnest-ctl"
	said=$("$work/public/bin/tmpnest" ls 2>&1)
	case $said in *taken*) result 1 'a program of another owner is not executed' "$said" ;;
	*) result 0 'a program of another owner is not executed' ;; esac
fi
echo "1..$n"
exit $failed
