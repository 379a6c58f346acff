#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:node:nodejs
. "${0%/*}/lib"

cat >program.mjs <<-'END'
	import fs from "node:fs"; import net from "node:net"; import os from "node:os"
	import path from "node:path"; import assert from "node:assert"
	import { fork } from "node:child_process"; import { once } from "node:events"
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), "nest-"))
	const at = path.join(dir, "s.sock")
	const server = net.createServer(s => s.pipe(s)).listen(at)
	await once(server, "listening")
	for (let i = 0; i < 20; i++) {
		const c = net.connect(at)
		c.end("x".repeat(70000))
		let n = 0
		for await (const d of c) n += d.length
		assert.equal(n, 70000)
	}
	assert.ok(fs.statSync(at).isSocket())
	const again = net.createServer().listen(at)
	assert.equal((await once(again, "error"))[0].code, "EADDRINUSE")
	const seen = []
	const watcher = fs.watch(dir, (kind, name) => seen.push(name))
	await Promise.all([...Array(50).keys()].map(i => fs.promises.writeFile(path.join(dir, "f" + i), "x" + i)))
	while (new Set(seen).size < 50) await new Promise(r => setTimeout(r, 20))
	watcher.close()
	fs.cpSync(dir, dir + ".copy", { recursive: true, filter: f => !f.endsWith(".sock") })
	assert.equal(fs.readdirSync(dir + ".copy").length, 50)
	const f = fs.openSync(path.join(dir, "appended"), "a")
	for (let i = 0; i < 100; i++) fs.writeSync(f, i + "\n")
	fs.closeSync(f)
	assert.equal(fs.readFileSync(path.join(dir, "appended"), "utf8").split("\n").length, 101)
	server.close()
	await once(server, "close")
	assert.ok(!fs.existsSync(at))
	fs.rmSync(dir, { recursive: true })
	console.log("done")
END
equal output "$(timeout 40 node program.mjs)" done
