// SPDX-License-Identifier: LGPL-2.1-or-later
// Stubs for a runtime in Node.js: see stubs-node.md. Run as a program it tries itself.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** What needs to be held: where commands run, and what they may write. */
export class Stubs {
  /** @param {{ program?: string[], cwd: string, home: string, writable: string[] }} options */
  constructor({ program = ['tmpnest', 'stubs'], cwd, home, writable }) {
    this.program = program
    this.places = ['--cwd', cwd, '--home', home, '--writable', ...writable]
  }

  async verb(...words) {
    const [file, ...first] = this.program
    const { stdout } = await run(file, [...first, ...words, '--json'])
    return JSON.parse(stdout)
  }

  /** Before the first command of a session. Resolves to the paths that were made now. */
  async hold(owner) {
    const done = await this.verb('hold', '--owner', owner, '--pid', `${process.pid}`, ...this.places)
    return done.created
  }

  /** Paths that bwrap would still make by itself: those could not be held. */
  async missing() {
    return (await this.verb('missing', ...this.places)).missing
  }

  /** After the last command of a session. Resolves to the paths that were removed. */
  async release(owner) {
    return (await this.verb('release', '--owner', owner, '--pid', `${process.pid}`)).removed
  }

  /** At the end of the process, whatever sessions it had. */
  async releaseAll() {
    return (await this.verb('release', '--all', '--pid', `${process.pid}`)).removed
  }
}

if (process.argv[1] && import.meta.url.endsWith(process.argv[1].split('/').pop())) {
  const [cwd, home, ...program] = process.argv.slice(2)
  const stubs = new Stubs({ cwd, home, writable: [cwd], ...(program.length && { program }) })
  const made = await stubs.hold('session-1')
  const again = await stubs.hold('session-2')
  const missing = await stubs.missing()
  const first = await stubs.release('session-1')
  const rest = await stubs.releaseAll()
  console.log(JSON.stringify({
    made: made.length, again: again.length, missing: missing.length, first: first.length, rest: rest.length,
  }))
}
