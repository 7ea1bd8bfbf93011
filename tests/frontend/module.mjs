// Answers requests to the WebAssembly module on standard input, each behind its length in four bytes: node module.mjs FILE
import { readFileSync, readSync, writeSync } from "node:fs";

const { exports } = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(process.argv[2])), {});

function read(count) {
  const bytes = Buffer.alloc(count);
  for (let at = 0; at < count; ) {
    const got = readSync(0, bytes, at, count - at, null);
    if (got === 0) process.exit(0);
    at += got;
  }
  return bytes;
}

for (;;) {
  const request = read(read(4).readUInt32LE());
  const at = exports.room(request.length);
  new Uint8Array(exports.memory.buffer).set(request, at);
  let answer, spent;
  const start = performance.now();
  try {
    const length = exports.call();
    answer = new Uint8Array(exports.memory.buffer, exports.answer(), length);
  } catch (error) {
    const words = new Uint8Array(exports.memory.buffer, exports.panic_words(), exports.panic_length());
    answer = Buffer.concat([Buffer.from([2]), words]);
  }
  spent = performance.now() - start;
  const head = Buffer.alloc(12);
  head.writeUInt32LE(answer.length);
  head.writeDoubleLE(spent, 4);
  for (const part of [head, answer]) for (let done = 0; done < part.length; ) done += writeSync(1, part, done);
}
