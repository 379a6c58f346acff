#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What operators watch: events, metrics, the bridge, the web page, top.
. "$(dirname "$0")/../lib.sh"

only root the_page_shows_hostile_names_as_text # a browser once is enough
only root a_reader_sees_a_nest_grow
long a_reader_sees_a_nest_grow
limit the_page_shows_hostile_names_as_text 240 # a browser, on a busy machine

case_events_tell_what_was_refused_and_to_whom() {
	runs 0 tmpnest run --nest ev --quota 1M --read-only ro -- sh -c '
		mkdir /tmp/claude; head -c 3000000 /dev/zero >/tmp/big; echo "$$"' 2>/dev/null
	eventually 5 nest_has ev state idle
	runs 0 tmpnest events ev --json
	"$TT_PYTHON" -c 'import json,sys; print(json.dumps([json.loads(l) for l in sys.stdin]))' <<<"$out" >events.json
	equal 'kinds' "$(json 'sorted(set(e["event"] for e in d))' <events.json)" '["attach", "denied", "detach", "quota_hit"]'
	equal 'the refusal' "$(json '[[e["operation"], e["path"], e["rule"], e["process"], e["uid"] >= 0] for e in d if e["event"] == "denied" and e["operation"] == "MKDIR"]' <events.json)" \
		'[["MKDIR", "/tmp/claude", "/tmp/claude", "mkdir", true]]'
	equal 'the quota' "$(json '[[e["operation"], e["path"], e["process"]] for e in d if e["event"] == "quota_hit"][0]' <events.json)" \
		'["WRITE", "/tmp/big", "head"]'
	runs 0 tmpnest events
	contains 'a line' "$out" 'MKDIR /tmp/claude: Permission denied, by mkdir['
	tmpnest evict ev
	runs 0 tmpnest events
	contains 'the eviction' "$out" 'evict          ev'
	runs 3 tmpnest events ev
	runs 2 tmpnest events a b
}

case_events_of_hostile_names_are_escaped() {
	capture tmpnest run --nest ev --deny '*evil*' -- sh -c 'mkdir "$(printf "/tmp/evil\033[2J\n\377")"'
	runs 0 tmpnest events ev
	equal 'control characters' "$(tr -d '[:print:]\n' <<<"$out" | wc -c)" 0
	contains 'the name' "$out" '/tmp/evil\x1b[2J\x0a\xff'
	runs 0 tmpnest events ev --json
	while read -r line; do json 'd["event"]' <<<"$line" >/dev/null; done <<<"$out"
	tmpnest evict ev
}

case_events_are_followed() {
	tmpnest create ev
	background follower tmpnest events --follow
	sleep 0.3
	runs 0 tmpnest run --nest ev -- sh -c 'mkdir /tmp/claude || true'
	wait_for_line follower 'attach         ev'
	wait_for_line follower 'MKDIR /tmp/claude'
	eventually 10 tmpnest evict ev
	wait_for_line follower 'evict          ev'
}

case_a_flood_of_refusals_grows_nothing() {
	runs 0 tmpnest run --nest ev -- "$TT_PYTHON" -c '
import os
for i in range(20000):
    try: os.mkdir("/tmp/claude/" if i % 2 else "/tmp/claude")
    except OSError: pass'
	equal 'refused' "$(tmpnest show ev --json | json 'd["denied_total"] >= 10000')" true
	at_most 'events kept' "$(tmpnest events ev | wc -l)" 200
	contains 'who attached is still there' "$(tmpnest events ev)" attach
	differ 'counted' "$(tmpnest metrics --json | json 'd["events_dropped"]["denied"]')" 0
	eventually 5 nest_has ev state idle
	tmpnest evict ev
}

case_a_follower_that_never_reads_stops_nobody() {
	tmpnest create ev
	mkfifo pipe
	background stuck sh -c 'tmpnest events --follow --json >pipe'
	exec 7<pipe
	runs 0 tmpnest run --nest ev -- "$TT_PYTHON" -c '
import os, time
for i in range(200):
    try: os.mkdir("/tmp/claude")
    except OSError: pass
    time.sleep(0.01)'
	runs 0 timeout 5 tmpnest ls
	runs 0 timeout 5 tmpnest events
	exec 7<&-
	end_background
	eventually 5 nest_has ev state idle
	tmpnest evict ev
}

case_metrics_are_in_the_prometheus_format() {
	runs 0 tmpnest run --nest m --quota 8M -- sh -c 'head -c 100000 /dev/zero >/tmp/f; mkdir /tmp/claude || true'
	tmpnest create free --quota max
	tmpnest metrics >metrics
	grep -qx "tmpnest_nest_used_bytes{nest=\"m\",owner_uid=\"$(id -u)\"} 102400" metrics || fail 'the use'
	grep -qx "tmpnest_nest_limit_bytes{nest=\"free\",owner_uid=\"$(id -u)\"} +Inf" metrics || fail 'no limit'
	grep -q 'tmpnest_request_duration_seconds_bucket{operation="WRITE",le="0.000064"}' metrics || fail 'a histogram'
	grep -q '^tmpnest_nest_denied_total{nest="m".*} [1-9]' metrics || fail 'refusals'
	equal 'as JSON' "$(tmpnest metrics --json | json 'sorted(n["name"] for n in d["nests"])')" '["free", "m"]'
	need promtool prometheus
	runs 0 sh -c 'promtool check metrics <metrics'
	equal 'complaints' "$out$err" ''
	tmpnest evict m free
}

case_the_example_in_node_lists_and_follows() {
	need node nodejs
	tmpnest create shown --quota 3M
	local example
	example=$(readlink -f "$TT_TESTS/../docs/integrations/control-node.mjs")
	runs 0 node "$example"
	contains 'the nest' "$out" 'shown 0 of 3145728'
	runs 0 node --input-type=module -e "
		import { Control } from '$example';
		const control = new Control();
		console.log((await control.call('GetNest', { name: 'shown' })).nest.name);
		await control.call('GetNest', { name: 'missing' }).catch((e) => console.log(e.message));
		control.close();"
	contains 'a call' "$out" shown
	contains 'an error' "$out" 'org.tmpnest.Control.NoSuchNest'
	tmpnest evict shown
}

# Starts `serve` on a free port: $url.
start_serve() {
	background serve tmpnest serve --listen 127.0.0.1:0
	eventually 10 grep -q ^http "$TT_WORK/serve.log"
	url=$(head -1 "$TT_WORK/serve.log")
}

http_status() { curl -so /dev/null -w '%{http_code}' "$@"; }

case_serve_answers_prometheus_and_only_shows() {
	need curl curl
	tmpnest run --nest web --quota 8M -- sh -c 'head -c 100000 /dev/zero >/tmp/f'
	start_serve
	curl -sf "${url}metrics" >metrics
	grep -q 'tmpnest_nest_used_bytes{nest="web"' metrics || fail 'no metrics'
	need promtool prometheus
	runs 0 sh -c 'promtool check metrics <metrics'
	equal 'POST' "$(http_status -X POST "$url")" 405
	equal 'a foreign name' "$(http_status -H 'Host: evil.example' "$url")" 403
	equal 'nothing there' "$(http_status "${url}api/nest/../../etc/passwd")" 404
	contains 'the policy' "$(curl -si "$url")" "default-src 'none'"
	local id
	id=$(curl -sf "${url}api/nests" | json 'd["nests"][0]["id"]')
	equal 'usage' "$(curl -sf "${url}api/usage/$id" | json 'd["files"][0]')" '{"path": "f", "type": "file", "bytes": 102400, "inodes": 1}'
	equal 'events' "$(curl -sf "${url}api/events/$id" | json 'd["events"][0]["event"]')" attach
	if [ "$TT_ROLE" = root ]; then
		local pid
		pid=$(pgrep -f "tmpnest-serve|serve --listen" | while read -r p; do [ "$(stat -c %u "/proc/$p")" -ne 65534 ] || echo "$p"; done | head -1)
		equal 'its rights' "$(awk '/CapEff|^Uid/ { print $2 }' "/proc/$pid/status" | xargs)" '65534 0000000000000000'
	fi
	local address
	for address in 0.0.0.0:8080 192.0.2.1:80 nonsense ::; do
		runs 2 tmpnest serve --listen "$address"
	done
	end_background
	background serve tmpnest serve --unix "$PWD/socket"
	eventually 10 test -S socket
	runs 0 curl -sfo got --unix-socket socket http://localhost/metrics
	grep -qx "tmpnest_up 1" got || fail "no metrics on the socket"
	end_background
	tmpnest evict web
}

case_the_page_shows_hostile_names_as_text() {
	need chromium chromium
	need curl curl
	runs 0 tmpnest run --nest web -- "$TT_PYTHON" -c '
open("/tmp/<img src=x onerror=alert(1)>", "w").write("x" * 50000)
open(b"/tmp/\xff\x1b[2J<script>document.title=1<", "w").write("y")'
	capture tmpnest run --nest web -- mkdir /tmp/claude
	start_serve
	local id dom
	id=$(curl -sf "${url}api/nests" | json 'd["nests"][0]["id"]')
	dom() {
		timeout 50 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
			--user-data-dir="$TT_WORK/profile" --virtual-time-budget=4000 --dump-dom "$1" 2>/dev/null
	}
	dom=$(dom "$url")
	contains 'the list' "$dom" "href=\"#/nest/$id\">web</a>"
	dom=$(dom "$url#/nest/$id")
	contains 'the name as text' "$dom" '&lt;img src=x onerror=alert(1)&gt;'
	lacks 'no image' "$dom" '<img'
	contains 'the other name' "$dom" '\xff\u001b[2J&lt;script&gt;document.title=1&lt;'
	contains 'the refusal' "$dom" MKDIR
	contains 'the plot' "$dom" '<polyline'
	contains 'the title is ours' "$dom" '<title>tmpnest</title>'
	end_background
	tmpnest evict web
}

case_a_reader_sees_a_nest_grow() {
	need chromium chromium
	tmpnest run --nest grows --quota 64M -- sh -c 'head -c 1048576 /dev/zero >/tmp/first'
	start_serve
	runs 0 "$TT_PYTHON" "$TT_TESTS/tools/watch-page" "$TT_WORK/profile" "$url" grows --screenshot page.png \
		"$(command -v tmpnest)" run --nest grows -- sh -c 'head -c 4194304 /dev/zero >/tmp/second'
	equal 'what the page showed' "$(head -2 <<<"$out" | xargs)" '1.0 MiB of 64.0 MiB 5.0 MiB of 64.0 MiB'
	contains 'a picture' "$(head -c 4 page.png)" PNG
	end_background
	eventually 5 nest_has grows state idle
	tmpnest evict grows
}

query() { curl -sG "$1/api/v1/query" --data-urlencode "query=$2"; }
value_is() { [ "$(query "$1" "$2" | json '[r["value"][1] for r in d["data"]["result"]]')" = "[\"$3\"]" ]; }

case_a_real_prometheus_scrapes_and_answers() {
	need prometheus prometheus
	need curl curl
	tmpnest run --nest web --quota 8M -- sh -c 'head -c 100000 /dev/zero >/tmp/f'
	start_serve
	local port target=${url#http://}
	port=$("$TT_PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	cp "$TT_TESTS/../data/monitoring/tmpnest.rules.yml" .
	printf '%s\n' 'global: {scrape_interval: 1s, evaluation_interval: 1s}' 'rule_files: [tmpnest.rules.yml]' \
		'scrape_configs:' "  - {job_name: tmpnest, static_configs: [{targets: ['${target%/}']}]}" >prometheus.yml
	background prometheus prometheus --config.file=prometheus.yml --storage.tsdb.path="$TT_WORK/tsdb" \
		--web.listen-address="127.0.0.1:$port"
	eventually 30 value_is "http://127.0.0.1:$port" 'tmpnest_nest_used_bytes{nest="web"}' 102400
	tmpnest run --nest web -- sh -c 'head -c 100000 /dev/zero >/tmp/g'
	eventually 30 value_is "http://127.0.0.1:$port" 'sum(tmpnest_nest_used_bytes)' 204800
	equal 'the rules' "$(curl -s "http://127.0.0.1:$port/api/v1/rules" | json 'sorted(set(r["health"] for g in d["data"]["groups"] for r in g["rules"]))')" '["ok"]'
	end_background
	eventually 5 nest_has web state idle
	tmpnest evict web
}

case_lsof_names_processes_and_what_they_hold() {
	tmpnest create other
	background holder tmpnest run --nest held -- "$TT_PYTHON" -c '
import mmap, os, socket, time
os.makedirs("/tmp/dir"); os.chdir("/tmp/dir")
f = open("/tmp/open", "w+b"); f.write(b"x" * 4096); f.flush()
m = mmap.mmap(f.fileno(), 4096)
g = open("/tmp/gone", "w"); os.unlink("/tmp/gone")
s = socket.socket(socket.AF_UNIX); s.bind("/tmp/sock"); s.listen()
print("ready", flush=True)
time.sleep(60)'
	wait_for_line holder ready
	runs 0 tmpnest lsof held --json
	equal 'paths' "$(json 'sorted(set(e["path"] for e in d))' <<<"$out")" \
		'["/tmp/dir", "/tmp/gone (deleted)", "/tmp/open", "/tmp/sock"]'
	equal 'how the directory is held' "$(json '[e["descriptor"] for e in d if e["path"] == "/tmp/dir"]' <<<"$out")" '["cwd"]'
	equal 'how the file is held' "$(json '"mem" in [e["descriptor"] for e in d if e["path"] == "/tmp/open"]' <<<"$out")" true
	runs 0 tmpnest lsof held
	contains 'the process' "$out" python3
	runs 0 tmpnest lsof other
	contains 'nobody' "$out" 'no process'
	runs 3 tmpnest lsof missing
	end_background
	eventually 5 nest_has held state idle
	runs 0 tmpnest lsof held --json
	equal 'nobody' "$(json 'd' <<<"$out")" '[]'
	tmpnest evict held other
}

worker_is_new() { [ "$(worker_pid)" != "$1" ]; }

case_a_replaced_worker_is_told_and_counted() {
	own_daemon
	background holder tmpnest run --nest held -- sh -c 'exec 7>/tmp/open; echo ready; sleep 60'
	wait_for_line holder ready
	background follower tmpnest events --follow
	wait_for_line follower attach
	runs 0 tmpnest daemon status
	lacks 'nothing yet' "$out" replaced
	local worker
	worker=$(worker_pid)
	kill -9 "$worker"
	eventually 10 worker_is_new "$worker"
	runs 0 tmpnest events --json
	contains 'the event' "$out" '"worker_restart"'
	wait_for_line follower worker_restart
	equal 'in the metrics' "$(tmpnest metrics | grep ^tmpnest_worker_restarts_total)" 'tmpnest_worker_restarts_total 1'
	runs 0 tmpnest daemon status
	contains 'in the status' "$out" '1 worker replaced'
	equal 'who holds what' "$(tmpnest lsof held --json | json 'sorted(set(e["path"] for e in d))')" '["/tmp/open"]'
	end_background
	stop_daemon
}

screen() { tmux -L "$socket" capture-pane -p; }
screen_shows() { screen | grep -qF -- "$1"; }
screen_lacks() { ! screen_shows "$1"; }
keys() { tmux -L "$socket" send-keys "$@"; }

case_top_shows_nests_and_acts_after_a_yes() {
	need tmux tmux
	tmpnest create quiet --quota 8M
	runs 0 tmpnest run --nest busy --quota 16M -- "$TT_PYTHON" -c '
open("/tmp/evil\033[2Jname", "w").write("x" * 5000000)'
	socket=$(unique) # not local: the trap needs it
	export TMUX_TMPDIR=$TT_BASE
	trap 'tmux -L "$socket" kill-server 2>/dev/null; rm -rf "$TT_BASE/tmux-$(id -u)"; end_case' EXIT
	tmux -L "$socket" new-session -d -x 80 -y 24 'tmpnest top; echo "ended with $?"; sleep 60'
	eventually 10 screen_shows '2 nests, by use'
	equal 'the largest is the first' "$(screen | sed -n '3s/ .*//p')" busy
	at_most 'width' "$(screen | awk '{ if (length > n) n = length } END { print n }')" 80
	for sort in growth operations latency denied name; do
		keys s
		eventually 5 screen_shows "by $sort"
	done
	keys /
	eventually 5 screen_shows 'only names with:'
	keys quie Enter
	eventually 5 screen_shows '1 nests'
	keys / Enter
	eventually 5 screen_shows '2 nests'
	keys k k
	keys Enter
	eventually 10 screen_shows 'largest files'
	screen_shows 'evil\x1b[2Jname' || fail "the name: $(screen)"
	screen_shows attach || fail "the events: $(screen)"
	tmux -L "$socket" resize-window -x 100 -y 30
	eventually 5 screen_shows 'largest files'
	keys q
	eventually 5 screen_shows 'by name'
	keys l
	eventually 5 screen_shows 'bytes that busy may hold'
	keys 32M Enter
	eventually 5 screen_shows 'type yes'
	keys yes Enter
	eventually 5 screen_shows 'limit of busy: 32M'
	nest_has busy bytes_limit 33554432 || fail 'the limit is as before'
	keys e
	eventually 5 screen_shows 'evict busy'
	keys no Enter
	eventually 5 screen_shows 'not evicted'
	keys e
	eventually 5 screen_shows 'type yes'
	keys yes Enter
	eventually 5 screen_shows 'evicted busy'
	eventually 5 nests_are quiet
	keys q
	eventually 5 screen_shows 'ended with 0'
	runs 2 tmpnest top
	tmpnest evict quiet
}

case_alert_rules_do_what_they_say() {
	need promtool prometheus
	cp "$TT_TESTS"/../data/monitoring/*.yml .
	runs 0 promtool check rules tmpnest.rules.yml
	runs 0 promtool test rules tmpnest.rules.test.yml
	# every figure that a rule or the dashboard asks for is one that metrics has
	tmpnest create named
	tmpnest run --nest named -- true
	tmpnest metrics >metrics
	local name
	for name in $(grep -ohE 'tmpnest_[a-z_]+' tmpnest.rules.yml "$TT_TESTS/../data/monitoring/tmpnest.dashboard.json" | sort -u); do
		grep -q "^$name[{ ]" metrics || fail "no metric $name"
	done
	eventually 5 nest_has named state idle
	tmpnest evict named
}

main "$@"
