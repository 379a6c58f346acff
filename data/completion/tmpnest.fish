# SPDX-License-Identifier: LGPL-2.1-or-later
# fish completion of tmpnest. Verbs and options are asked of tmpnest itself, nests of the daemon.
function __tmpnest_verbs
    tmpnest help 2>/dev/null | string replace -rf '^  ([a-z][a-z-]*) .*' '$1'
end
function __tmpnest_nests
    tmpnest metrics 2>/dev/null | string replace -rf '^tmpnest_nest_used_bytes\{nest="([^"]*)".*' '$1'
end
function __tmpnest_options
    set -l words (commandline -opc)
    tmpnest help $words[2] 2>/dev/null | string match -ra -- '--[a-z][a-z-]*'
end
set -l nests show limits df du files cat cp export events lsof evict freeze thaw deny read-only
complete -c tmpnest -n '__fish_is_first_token' -f -a '(__tmpnest_verbs)'
complete -c tmpnest -n "__fish_seen_subcommand_from $nests" -f -a '(__tmpnest_nests)'
complete -c tmpnest -n '__fish_seen_subcommand_from daemon' -f -a 'start stop status'
complete -c tmpnest -n 'string match -q -- "-*" (commandline -ct)' -f -a '(__tmpnest_options)'
