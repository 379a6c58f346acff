#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:javac:default-jdk-headless command:jcmd:default-jdk-headless
# long
# limit: 120
. "${0%/*}/lib"

# The JVM's performance file and attach socket are /tmp/hsperfdata_USER/PID and /tmp/.java_pidPID.
cat >Nest.java <<-'END'
	public class Nest {
	    public static void main(String[] a) throws Exception {
	        new java.io.File("/tmp/ready").createNewFile();
	        Thread.sleep(60000);
	    }
	}
END
export JAVA_TOOL_OPTIONS='-Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1'
javac Nest.java 2>/dev/null
java -cp /tmp Nest 2>/dev/null &
pid=$!
becomes test -e ready
[ -s /tmp/hsperfdata_*/$pid ] || fail 'no performance file'
jps 2>/dev/null | grep -qx "$pid Nest" || fail 'jps does not list it'
jcmd $pid VM.command_line 2>/dev/null | grep -q 'java_command: Nest' || fail 'jcmd could not attach'
[ -S .java_pid$pid ] || fail 'no attach socket'
jcmd $pid GC.heap_dump /tmp/heap >/dev/null 2>&1
[ -s heap ] || fail 'no heap dump'
kill $pid
wait $pid || true
[ ! -e .java_pid$pid ] && [ -z "$(ls /tmp/hsperfdata_*)" ] || fail 'left behind'
