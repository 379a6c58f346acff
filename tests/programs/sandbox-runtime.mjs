// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A worker that runs its commands in sandbox-runtime, with the options that LibreChat's code
// interpreter passes: the workspace (the working directory) and a scratch directory are
// writable, the two claude directories denied, Unix sockets allowed.
//
//   sandbox-runtime.mjs [OPTION...] SCRATCH COMMAND...
//     --bwrap PATH       bwrapPath, instead of bwrap in PATH
//     --allow HOST       a host that the proxy lets through
//     --deny-write PATH  one more path that may not be written
//     --no-sockets       allowAllUnixSockets false: the seccomp helper
//     --helper PATH      the seccomp helper to use
//     --many-denies DIR  deny everything that is in DIR, by name
//
// A COMMAND is a line for the shell inside; `& COMMAND` is not waited for before the next
// one starts; `@remove` removes SCRATCH. What the commands print is passed on, and after
// each one `exit STATUS`.
import { spawn } from 'node:child_process'
import { readdirSync, rmSync } from 'node:fs'
import { SandboxManager } from '@anthropic-ai/sandbox-runtime'

const claude = ['/tmp/claude', '/private/tmp/claude']
const options = { allow: [], deny: [], sockets: true }
const words = process.argv.slice(2)
const takes = {
  '--bwrap': value => (options.bwrap = value),
  '--allow': value => options.allow.push(value),
  '--deny-write': value => options.deny.push(value),
  '--helper': value => (options.helper = value),
  '--many-denies': value => options.deny.push(...readdirSync(value).map(name => `${value}/${name}`)),
}
while (words[0].startsWith('--')) {
  const word = words.shift()
  if (word === '--no-sockets') options.sockets = false
  else takes[word](words.shift())
}
const [scratch, ...commands] = words
process.env.CLAUDE_CODE_TMPDIR = scratch

async function run(command) {
  const { argv, env } = await SandboxManager.wrapWithSandboxArgv(command)
  const child = spawn(argv[0], argv.slice(1), {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  })
  const status = await new Promise(done => child.on('close', (code, signal) => done(code ?? signal)))
  console.log(`exit ${status}`)
}

// On a busy machine its network bridge does not come up within the second that it allows.
for (let attempt = 1; ; attempt++) {
  try {
    await SandboxManager.initialize({
      network: {
        allowedDomains: options.allow,
        deniedDomains: [],
        allowAllUnixSockets: options.sockets,
      },
      filesystem: {
        denyRead: claude,
        allowWrite: [process.cwd(), scratch],
        denyWrite: [...claude, ...options.deny],
      },
      ...(options.bwrap && { bwrapPath: options.bwrap }),
      ...(options.helper && { seccomp: { applyPath: options.helper } }),
    })
    break
  } catch (error) {
    if (attempt === 10) throw error
    await SandboxManager.reset()
  }
}
const running = []
for (const command of commands) {
  if (command === '@remove') rmSync(scratch, { recursive: true })
  else if (command.startsWith('& ')) running.push(run(command.slice(2)))
  else await run(command)
}
await Promise.all(running)
SandboxManager.cleanupAfterCommand()
await SandboxManager.reset()
process.exit(0)
