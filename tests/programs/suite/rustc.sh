#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:rustc:rustc command:cargo:cargo
# long
# limit: 180
. "${0%/*}/lib"

export CARGO_HOME=/tmp/cargo
cargo new --quiet --vcs none nest
cd nest
cat >src/main.rs <<-'END'
	use std::io::{Read, Write};
	fn main() {
	    let d = std::env::temp_dir().join("of-rust");
	    std::fs::File::create(&d).unwrap().write_all(b"wren").unwrap();
	    let mut s = String::new();
	    std::fs::File::open(&d).unwrap().read_to_string(&mut s).unwrap();
	    println!("{s}");
	}
END
cargo build --quiet --offline
equal output "$(target/debug/nest)" wren
echo '// changed' >>src/main.rs
cargo build --offline 2>&1 | grep -q Compiling || fail 'a change was not seen'
cargo build --offline 2>&1 | grep -qv Compiling
