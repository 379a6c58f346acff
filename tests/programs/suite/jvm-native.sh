#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:javac:default-jdk-headless command:gcc:gcc
# long
# limit: 120
. "${0%/*}/lib"

# A jar that unpacks its native library into java.io.tmpdir; file locks and mappings besides.
cat >Native.java <<-'END'
	import java.nio.*; import java.nio.channels.*; import java.nio.file.*;
	public class Native {
	    static native int twice(int n);
	    public static void main(String[] a) throws Exception {
	        Path lib = Files.createTempFile("native", ".so");
	        lib.toFile().deleteOnExit();
	        try (var in = Native.class.getResourceAsStream("/libtwice.so")) {
	            Files.copy(in, lib, StandardCopyOption.REPLACE_EXISTING);
	        }
	        System.load(lib.toString());
	        Path file = Path.of("/tmp/mapped");
	        try (var c = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
	            try (var lock = c.lock()) {
	                MappedByteBuffer b = c.map(FileChannel.MapMode.READ_WRITE, 0, 1 << 20);
	                for (int i = 0; i < 1 << 18; i++) b.putInt(i * 4, i);
	                b.force();
	            }
	            ByteBuffer back = ByteBuffer.allocate(4);
	            c.read(back, 4 * 77777);
	            System.out.println(twice(21) + " " + back.getInt(0) + " " + lib.startsWith("/tmp"));
	        }
	        Files.move(file, Path.of("/tmp/moved"), StandardCopyOption.ATOMIC_MOVE);
	    }
	}
END
export JAVA_TOOL_OPTIONS='-Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1'
javac -h . Native.java 2>/dev/null
home=$(readlink -f "$(command -v javac)")
home=${home%/bin/javac}
cat >twice.c <<-'END'
	#include "Native.h"
	JNIEXPORT jint JNICALL Java_Native_twice(JNIEnv *e, jclass c, jint n) { return 2 * n; }
END
gcc -shared -fPIC -I"$home/include" -I"$home/include/linux" -o libtwice.so twice.c
jar cfe app.jar Native Native.class libtwice.so 2>/dev/null
equal output "$(java -jar app.jar 2>/dev/null)" '42 77777 true'
[ -z "$(ls native*.so 2>/dev/null)" ] && [ -s moved ] || fail "left: $(ls)"
