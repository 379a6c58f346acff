// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Commands in a real sandbox-runtime, in the working directory, which is writable.
//
//   runtime.mjs many N             N commands, one after the other; says how many failed
//   runtime.mjs first|second N     the two sides of N rounds of the silent bypass; the second counts
//   runtime.mjs mountinfo          the mount table of one command
//
// The two sides meet by files: both plan while the denied path is missing, both start, the
// first ends and its runtime cleans up, then the second writes.
import { spawn } from 'node:child_process'
import { existsSync, writeFileSync, rmSync } from 'node:fs'
import { SandboxManager } from '@anthropic-ai/sandbox-runtime'

const [what, count] = process.argv.slice(2)
const cwd = process.cwd()
const denied = `${cwd}/.bashrc`
const pause = ms => new Promise(done => setTimeout(done, ms))

async function there(name) {
  for (let i = 0; i < 1500; i++) {
    if (existsSync(name)) return
    await pause(10)
  }
  throw new Error(`${name} never came`)
}

function run(line) {
  return new Promise(done => {
    const child = spawn(line, { shell: '/bin/bash', stdio: ['ignore', 'pipe', 'pipe'] })
    let out = ''
    child.stdout.on('data', data => (out += data))
    child.stderr.on('data', data => (out += data))
    child.on('close', code => done({ code, out }))
  })
}

// It looks for its shell with a program to which a busy machine may not give the second it allows.
async function plan(command) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await SandboxManager.wrapWithSandbox(command)
    } catch (error) {
      if (attempt === 10 || !error.message.includes('not found in PATH')) throw error
    }
  }
}

// The runtime binds /tmp/claude where it is, and other programs make and remove that.
const disturbed = ({ code, out }) => code !== 0 && out.trim().split('\n')[0].includes('/tmp/claude')

async function many(n) {
  let failed = 0
  for (let i = 0; i < n; ) {
    const result = await run(await plan('true'))
    if (result.code !== 0) console.log(result.out.trim().split('\n')[0])
    if (result.code !== 0 && !disturbed(result)) failed++
    if (!disturbed(result)) i++
    SandboxManager.cleanupAfterCommand()
  }
  console.log(`failed ${failed}`)
}

async function first() {
  for (let i = 0; !existsSync('ended'); i++) {
    const line = await plan(`while [ ! -e ready${i} ]; do sleep 0.01; done`)
    writeFileSync(`planned-first${i}`, '')
    await there(`planned-second${i}`)
    if (disturbed(await run(line))) writeFileSync(`void${i}`, '')
    SandboxManager.cleanupAfterCommand()
    writeFileSync(`cleaned${i}`, '')
    await there(`done${i}`)
  }
}

// One round; whether it counts, and whether the denied path was written.
async function secondRound(i) {
  const line = await plan(
    `touch ready${i}; while [ ! -e cleaned${i} ]; do sleep 0.01; done; echo evil >.bashrc && echo written`)
  writeFileSync(`planned-second${i}`, '')
  await there(`planned-first${i}`)
  const result = await run(line)
  const written = result.out.includes('written') && existsSync(denied)
  const started = existsSync(`ready${i}`)
  if (!started && !disturbed(result)) throw new Error(result.out)
  writeFileSync(`ready${i}`, '')
  await there(`cleaned${i}`)
  SandboxManager.cleanupAfterCommand()
  const counts = started && !existsSync(`void${i}`)
  for (const name of ['planned-first', 'planned-second', 'ready', 'cleaned', 'void'])
    rmSync(`${name}${i}`, { force: true })
  // the next round starts with the path missing
  for (let j = 0; existsSync(denied) && j < 300; j++) {
    if (written) rmSync(denied, { force: true })
    await pause(10)
  }
  return { counts, written }
}

async function second(n) {
  let written = 0, rounds = 0
  for (let i = 0; rounds < n; i++) {
    const round = await secondRound(i)
    if (round.counts) rounds++
    if (round.written) written++
    if (rounds === n) writeFileSync('ended', '')
    writeFileSync(`done${i}`, '')
  }
  console.log(`written ${written}`)
}

// On a busy machine its network bridge does not come up within the second that it allows.
for (let attempt = 1; ; attempt++) {
  try {
    await SandboxManager.initialize({
      network: { allowedDomains: [], deniedDomains: [] },
      filesystem: { denyRead: [], allowWrite: [cwd], denyWrite: [] },
    })
    break
  } catch (error) {
    if (attempt === 10) throw error
    await SandboxManager.reset()
  }
}
if (what === 'many') await many(Number(count))
if (what === 'first') await first()
if (what === 'second') await second(Number(count))
if (what === 'mountinfo')
  console.log((await run(await plan('cat /proc/self/mountinfo'))).out)
await SandboxManager.reset()
process.exit(0)
