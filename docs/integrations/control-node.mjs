// SPDX-License-Identifier: LGPL-2.1-or-later
// A client of tmpnest's control interface without dependencies: `tmpnest bridge` proves who
// we are and relays, what is left is JSON objects that end in a NUL byte.
//
//   node control-node.mjs [tmpnest's arguments, such as --runtime-dir DIR]
//
// prints every nest and follows the events of all of them for a second.
import { spawn } from "node:child_process";

export class Control {
  constructor(args = [], program = "tmpnest") {
    this.bridge = spawn(program, ["bridge", ...args], { stdio: ["pipe", "pipe", "inherit"] });
    this.input = Buffer.alloc(0);
    this.waiting = []; // one for each call that is not answered whole, in order
    this.bridge.stdout.on("data", (data) => this.#take(data));
    this.bridge.on("error", (error) => this.#end(error));
    this.bridge.on("close", (status) => this.#end(new Error(`tmpnest bridge ended (${status})`)));
  }

  // Calls a method; its parameters.
  call(method, parameters = {}) {
    return new Promise((resolve, reject) => this.#send(method, parameters, false, resolve, reject));
  }

  // Calls one that answers several times; each answer goes to onPart. Resolves at the end.
  stream(method, parameters, onPart) {
    return new Promise((resolve, reject) =>
      this.#send(method, parameters, true, resolve, reject, onPart));
  }

  close() {
    this.bridge.stdin.end();
    this.bridge.kill();
  }

  #send(method, parameters, more, resolve, reject, onPart = () => {}) {
    this.waiting.push({ resolve, reject, onPart });
    const message = { method: `org.tmpnest.Control.${method}`, parameters, ...(more && { more }) };
    this.bridge.stdin.write(JSON.stringify(message) + "\0");
  }

  #take(data) {
    this.input = Buffer.concat([this.input, data]);
    for (let end; (end = this.input.indexOf(0)) >= 0; ) {
      const message = JSON.parse(this.input.subarray(0, end).toString());
      this.input = this.input.subarray(end + 1);
      this.#answer(message);
    }
  }

  #answer({ error, parameters = {}, continues }) {
    const { resolve, reject, onPart } = this.waiting[0];
    if (!error) onPart(parameters);
    if (continues) return;
    this.waiting.shift();
    if (error) reject(Object.assign(new Error(`${error}: ${parameters.reason ?? ""}`), parameters));
    else resolve(parameters);
  }

  #end(error) {
    for (const { reject } of this.waiting.splice(0)) reject(error);
  }
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const control = new Control(process.argv.slice(2));
  const { nests } = await control.call("ListNests");
  for (const nest of nests) console.log(`${nest.name} ${nest.bytes_used} of ${nest.bytes_limit}`);
  const events = control.stream("GetEvents", { follow: true }, (part) => {
    for (const event of part.events) console.log(`${event.event} ${event.nest ?? "-"} ${event.path ?? ""}`);
  });
  events.catch(() => {}); // it ends with the bridge
  setTimeout(() => control.close(), 1000);
}
