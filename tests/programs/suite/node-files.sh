#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:node:nodejs
# long
. "${0%/*}/lib"

# Node's own temporary files, streams, watchers, test runner and workers
cat >t.test.mjs <<-'END'
	import test from "node:test"; import fs from "node:fs"; import os from "node:os"; import assert from "node:assert"
	import { pipeline } from "node:stream/promises"; import zlib from "node:zlib"
	import { Worker } from "node:worker_threads"; import { execFileSync } from "node:child_process"
	test("gzip there and back", async () => {
		fs.writeFileSync("a", Buffer.alloc(300000, "wren"))
		await pipeline(fs.createReadStream("a"), zlib.createGzip(), fs.createWriteStream("a.gz"))
		await pipeline(fs.createReadStream("a.gz"), zlib.createGunzip(), fs.createWriteStream("b"))
		assert.ok(fs.readFileSync("a").equals(fs.readFileSync("b")))
	})
	test("watchFile", async () => {
		fs.writeFileSync("w", "1")
		await new Promise(done => {
			fs.watchFile("w", { interval: 30 }, () => { fs.unwatchFile("w"); done() })
			setTimeout(() => fs.writeFileSync("w", "22"), 60)
		})
	})
	test("opendir while deleting", async () => {
		fs.mkdirSync("many")
		for (let i = 0; i < 500; i++) fs.writeFileSync("many/" + i, "")
		let n = 0
		for await (const e of await fs.promises.opendir("many")) { n++; fs.unlinkSync("many/" + e.name) }
		assert.equal(n, 500)
		fs.rmdirSync("many")
	})
	test("workers append", async () => {
		const code = `const fs = require("fs"); for (let i = 0; i < 200; i++) fs.appendFileSync("log", "line of a worker\\n")`
		await Promise.all([1, 2, 3].map(() => new Promise((ok, no) => new Worker(code, { eval: true }).on("exit", ok).on("error", no))))
		const lines = fs.readFileSync("log", "utf8").trimEnd().split("\n")
		assert.equal(lines.length, 600)
		assert.ok(lines.every(l => l === "line of a worker"))
	})
END
node --test t.test.mjs >result || { cat result; fail "the tests of node"; }
grep -q "pass 4" result || fail "$(cat result)"
