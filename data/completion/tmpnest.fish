# SPDX-License-Identifier: LGPL-2.1-or-later
# fish completion of tmpnest. Verbs, their words and options are asked of tmpnest itself, nests of the
# daemon, so that nothing here has to follow them.

function __tmpnest_verbs # [stubs]
    tmpnest help $argv 2>/dev/null | string replace -rf '^  ([a-z][a-z-]*) .*' '$1'
end

# The words one of which a verb takes, as help has them: a|b|c.
function __tmpnest_words # VERB
    tmpnest help 2>/dev/null | string replace -rf "^  $argv[1] .* ([a-z]+\|[a-z|]+) .*" '$1' | string split '|'
end

function __tmpnest_nests # names, as the daemon lists them now
    tmpnest metrics 2>/dev/null | string replace -rf '^tmpnest_nest_used_bytes\{nest="([^"]*)".*' '$1'
end

function __tmpnest_rules # VERB NEST: what `rm` can take away
    tmpnest $argv[1] $argv[2] ls --json 2>/dev/null | string replace -rf '.*"pattern" *: *"([^"\\\\]*)".*' '$1'
end

# Does this option take a word? As help shows it: --option=WORD or --option WORD.
function __tmpnest_takes_word # OPTION HELP...
    string match -qr -- "(^|[ ,(])$argv[1](, --[a-z-]+)?[= ][^\\] \\[]" $argv[2..-1]
end

function __tmpnest_option_word # VERB OPTION
    switch $argv[2]
        case --nest
            __tmpnest_nests
        case --store
            printf '%s\n' dir memory image
        case --net
            printf '%s\n' host none
        case --run-as
            __fish_complete_users
        case --owner
            test $argv[1] = stubs; or __fish_complete_users
        case --workspace --runtime-dir --store-dir --cwd --home --config-dir --writable
            __fish_complete_directories (commandline -ct)
        case '*'
            __fish_complete_path (commandline -ct)
    end
end

function __tmpnest_argument # VERB ARGUMENT-BEFORE...
    set -l verb $argv[1]
    set -l before $argv[2..-1]
    switch $verb:(count $before)
        case help:0
            __tmpnest_verbs
        case stubs:0
            __tmpnest_verbs stubs
        case daemon:0
            __tmpnest_words daemon
        case cp:0
            __tmpnest_nests | string replace -r '$' ':'
        case 'df:*' 'evict:*' deny:0 read-only:0
            __tmpnest_nests
        case deny:1 read-only:1
            __tmpnest_words $verb
        case 'deny:*' 'read-only:*'
            test $before[2] = rm; and __tmpnest_rules $verb $before[1]
        case show:0 limits:0 du:0 files:0 cat:0 export:0 events:0 lsof:0 freeze:0 thaw:0
            __tmpnest_nests
        case '*'
            __fish_complete_path (commandline -ct)
    end
end

function __tmpnest
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -e words[1]
    if test (count $words) -eq 0
        __tmpnest_verbs
        return
    end
    set -l verb $words[1]
    set -l text (tmpnest help $verb 2>/dev/null)
    set -l before
    set -l i 2
    while test $i -le (count $words)
        switch $words[$i]
            case --
                set i (math $i + 1)
                set -a before --
                break
            case '-*'
                if __tmpnest_takes_word $words[$i] $text
                    set i (math $i + 1)
                    if test $i -gt (count $words)
                        __tmpnest_option_word $verb $words[(math $i - 1)]
                        return
                    end
                end
            case '*'
                set -a before $words[$i]
                test $verb = run; and break
        end
        set i (math $i + 1)
    end
    if test $verb = run -a (count $before) -gt 0; or test $verb = stubs -a "$before[-1]" = --
        # what is run has a completion of its own
        complete -C (string join ' ' -- (string escape -- $words[$i..-1]) $current)
    else if string match -q -- '-*' $current
        string match -ra -- '--[a-z][a-z-]*' $text | sort -u
    else if test $verb = run
        complete -C $current
    else
        __tmpnest_argument $verb $before
    end
end
complete -c tmpnest -f -a '(__tmpnest)'
