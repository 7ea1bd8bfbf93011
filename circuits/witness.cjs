// Full witnesses of a compiled circuit, one after another: `node witness.cjs <calculator.js> <circuit.wasm>`.
// A request is the inputs as one JSON object on standard input, because they are secret; the answer leaves on standard
// output: a status (0: a .wtns file, 3: the circuit has no witness for these inputs, 1: any other failure, each with a
// message) and its bytes. Lengths and status are 32-bit, little-endian. The end of the input ends the process.
"use strict";
const fs = require("fs");

function read(count) {
  const data = Buffer.alloc(count);
  for (let got = 0; got < count; ) {
    const more = fs.readSync(0, data, got, count - got, null);
    if (more === 0) return null;
    got += more;
  }
  return data;
}

function write(data) {
  for (let sent = 0; sent < data.length; ) {
    try {
      sent += fs.writeSync(1, data, sent);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

function answer(status, body) {
  const head = Buffer.alloc(8);
  head.writeUInt32LE(status, 0);
  head.writeUInt32LE(body.length, 4);
  write(head);
  write(body);
}

// The calculator's own writer fetches eight words a value; this one reads each where the circuit's code puts it.
function wtns(exports) {
  const size = 4 * exports.getFieldNumLen32();
  const count = exports.getWitnessSize();
  const value = new Uint8Array(exports.memory.buffer, exports.getSharedRWMemoryStart(), size);
  const file = Buffer.alloc(44 + size + size * count);
  let at = file.write("wtns", "latin1");
  const number = (x) => (at = file.writeUInt32LE(x, at));
  const long = (x) => (at = file.writeBigUInt64LE(BigInt(x), at));
  number(2); // version
  number(2); // sections
  number(1);
  long(8 + size);
  number(size);
  exports.getRawPrime();
  file.set(value, at);
  at += size;
  number(count);
  number(2);
  long(size * count);
  for (let i = 0; i < count; i++, at += size) {
    exports.getWitness(i);
    file.set(value, at);
  }
  return file;
}

async function main() {
  const [calculator, wasm] = process.argv.slice(2);
  console.log = console.error; // circom's code logs to standard output, which carries the answers
  const build = require(calculator);
  const code = fs.readFileSync(wasm);
  let first = await build(code); // V8 keeps its compiled code for the instances of later requests
  for (let head; (head = read(4)) !== null; ) {
    const request = read(head.readUInt32LE(0));
    if (request === null) return;
    const inputs = JSON.parse(request.toString("utf8"));
    request.fill(0);
    const instance = first || (await build(code));
    first = null;
    const exports = instance.instance.exports;
    // Of no further use, but V8 clears nothing. The inputs' text stays, since strings cannot be overwritten.
    const wipe = () => new Uint8Array(exports.memory.buffer).fill(0);
    try {
      await instance._doCalculateWitness(inputs, 0);
    } catch (error) {
      wipe();
      answer(3, Buffer.from(String(error.message)));
      continue;
    }
    const file = wtns(exports);
    wipe();
    answer(0, file);
    file.fill(0);
  }
}

main().catch((error) => {
  answer(1, Buffer.from(String(error && error.stack)));
  process.exitCode = 1;
});
