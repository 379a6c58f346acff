#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Everyday tools with their files in /tmp: SQLite, git, gcc, npm, Python.
. "$(dirname "$0")/../lib.sh"

case_sqlite_in_wal_mode_with_writers_in_two_sandboxes() {
	need sqlite3 sqlite3
	equal 'mode' "$(tmpnest run --nest db -- sqlite3 /tmp/db \
		'pragma journal_mode=wal; create table t(id integer primary key, n int);')" wal
	cat >writer.sh <<-'END'
		for k in $(seq 100); do
			echo "pragma busy_timeout=20000; insert into t(n) values ($k);"
		done | sqlite3 /tmp/db >/dev/null
	END
	local i pids=()
	for i in 1 2; do
		tmpnest run --nest db -- sh -e writer.sh 2>"errors$i" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i" || fail "a writer failed: $(cat errors1 errors2)"; done
	equal 'rows and integrity' "$(tmpnest run --nest db -- sqlite3 /tmp/db \
		'select count(*), sum(n) from t; pragma integrity_check;' | xargs)" '200|10100 ok'
	tmpnest evict --force db
}

case_git_clone() {
	need git git
	# shellcheck disable=SC2016
	runs 0 tmpnest run --setenv HOME=/tmp -- sh -ec '
		git config --global user.email bird@nest.example
		git config --global user.name Bird
		git init -q /tmp/source
		cd /tmp/source
		for i in $(seq 60); do mkdir -p d$i; echo "file $i" >d$i/f; ln -s f d$i/l; done
		git add . && git commit -qm one
		git mv d1 moved && git commit -qam two
		git gc -q
		git clone -q file:///tmp/source /tmp/clone
		git clone -q /tmp/source /var/tmp/local
		cd /tmp/clone
		git fsck --full 2>&1
		[ -z "$(git status --porcelain)" ]
		git checkout -q HEAD~1 && [ -e d1/f ]
		git log --oneline | wc -l
		cd /var/tmp/local && git status --porcelain'
	equal 'output' "$(grep -v notice <<<"$out")" 1
}

case_gcc() {
	need gcc gcc
	runs 0 tmpnest run -- sh -ec '
		cd /tmp
		printf "#include <stdio.h>\nint twice(int);\nint main(void){printf(\"%%d\\\\n\",twice(21));return 0;}\n" >main.c
		printf "int twice(int n){return 2*n;}\n" >twice.c
		gcc -O2 -save-temps=obj -o /tmp/program main.c twice.c
		./program
		gcc -shared -fPIC -o libtwice.so twice.c
		gcc -o /var/tmp/dynamic main.c -L. -ltwice -Wl,-rpath,/tmp
		/var/tmp/dynamic
		ar rcs lib.a program-twice.o && ranlib lib.a
		ls /tmp | grep -c "^cc" || true'
	equal 'output' "$(xargs <<<"$out")" '42 42 0'
}

case_npm_install() {
	need npm npm
	mkdir -p lib/bin
	cat >lib/package.json <<-'END'
		{"name": "nest-lib", "version": "1.2.3", "main": "i.js", "bin": {"nest-lib": "bin/run.js"},
		 "scripts": {"postinstall": "node make.js"}}
	END
	echo 'module.exports = 42' >lib/i.js
	echo 'require("fs").writeFileSync("made", "")' >lib/make.js
	printf '#!/usr/bin/env node\nconsole.log("run", require(".."))\n' >lib/bin/run.js
	runs 0 tmpnest run --setenv HOME=/tmp/home -- sh -ec '
		mkdir /tmp/home /tmp/app
		cp -r lib /tmp/lib
		cd /tmp/lib && npm pack --silent
		cd /tmp/app && echo "{\"name\": \"app\", \"version\": \"1.0.0\"}" >package.json
		npm install --offline --no-audit --no-fund --loglevel=error ../lib/nest-lib-1.2.3.tgz >/dev/null
		node -p "require(\"nest-lib\")"
		node_modules/.bin/nest-lib
		test -e node_modules/nest-lib/made'
	equal 'output' "$(xargs <<<"$out")" 'nest-lib-1.2.3.tgz 42 run 42'
}

case_python_tempfile_and_multiprocessing() {
	cat >program.py <<-'END'
		import multiprocessing, multiprocessing.connection, os, tempfile, threading

		def square(n):
		    return n * n

		def main():
		    assert tempfile.gettempdir() == "/tmp", tempfile.gettempdir()
		    with tempfile.NamedTemporaryFile() as f:
		        f.write(b"x" * 100000); f.flush()
		        assert open(f.name, "rb").read() == b"x" * 100000
		    assert not os.path.exists(f.name)
		    with tempfile.TemporaryFile() as f:
		        f.write(b"y" * 5000); f.seek(0)
		        assert f.read() == b"y" * 5000 and os.fstat(f.fileno()).st_nlink == 0
		    with tempfile.TemporaryDirectory() as d:
		        for i in range(50):
		            open(os.path.join(d, str(i)), "w").close()
		    assert not os.path.exists(d)
		    with tempfile.SpooledTemporaryFile(max_size=10) as f:
		        f.write(b"z" * 100)
		    with multiprocessing.Pool(3) as pool:
		        assert pool.map(square, range(100)) == [n * n for n in range(100)]
		    with multiprocessing.Manager() as manager:
		        shared = manager.dict()
		        p = multiprocessing.Process(target=shared.__setitem__, args=("k", "v"))
		        p.start(); p.join()
		        assert shared["k"] == "v"
		    with multiprocessing.connection.Listener(family="AF_UNIX") as listener:
		        assert listener.address.startswith("/tmp/"), listener.address
		        t = threading.Thread(target=lambda: multiprocessing.connection.Client(listener.address).send("hi"))
		        t.start()
		        assert listener.accept().recv() == "hi"
		        t.join()
		    print("all well", os.listdir("/tmp"))

		if __name__ == "__main__":
		    for method in ("fork", "spawn", "forkserver"):
		        multiprocessing.set_start_method(method, force=True)
		        main()
	END
	runs 0 tmpnest run -- "$TT_PYTHON" program.py
	equal 'runs' "$(grep -c 'all well' <<<"$out")" 3
}

case_tar_rsync_like_copies_and_find() {
	runs 0 tmpnest run -- sh -ec '
		cp -a /usr/share/perl5 /tmp/copy 2>/dev/null || cp -a /etc/alternatives /tmp/copy
		tar -C /tmp -cf /tmp/a.tar copy
		mkdir /var/tmp/out && tar -C /var/tmp/out -xf /tmp/a.tar
		diff -r --no-dereference /tmp/copy /var/tmp/out/copy
		n=$(find /tmp/copy | wc -l)
		[ "$n" = "$(find /var/tmp/out/copy | wc -l)" ] && [ "$n" -gt 3 ]
		rm -rf /tmp/copy /tmp/a.tar
		[ -z "$(ls -A /tmp)" ]'
}

main "$@"
