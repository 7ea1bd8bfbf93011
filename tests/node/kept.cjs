// The command line of snarkjs or of circom2, one run after another in one process: `node kept.cjs <cli.js>`. The wasm of a
// curve, or of the compiler, is then built once, which takes longer than most runs. A request is one line of JSON,
// {"arguments", "cwd"}; so is the answer, {"status", "stdout", "stderr"}. The end of the input ends the process.
"use strict";
const fs = require("fs");
const path = require("path");
const script = process.argv[2];
const { exit } = process;
const write = fs.writeSync;
const said = { stdout: "", stderr: "" };
const streams = { 1: "stdout", 2: "stderr" };

for (const name of Object.values(streams)) {
  process[name].write = (data) => {
    said[name] += data;
    return true;
  };
}
fs.writeSync = (fd, data, offset = 0, length = data.length - offset, ...rest) => {
  if (!(fd in streams)) return write(fd, data, offset, length, ...rest);
  said[streams[fd]] += Buffer.from(data).subarray(offset, offset + length);
  return length;
};

// Of a module that is compiled again, by its size: there are few.
const compile = WebAssembly.compile;
const modules = new Map();
WebAssembly.compile = (bytes) => {
  if (!modules.has(bytes.length)) modules.set(bytes.length, compile(bytes));
  return modules.get(bytes.length);
};

// circom2 says nothing where it is done.
const runner = path.join(path.dirname(script), "index.js");
if (fs.existsSync(runner)) {
  const { CircomRunner } = require(runner);
  const execute = CircomRunner.prototype.execute;
  CircomRunner.prototype.execute = async function (bytes) {
    await execute.call(this, bytes);
    process.exit(0);
  };
}

class Exit extends Error {}
process.on("unhandledRejection", (error) => {
  if (!(error instanceof Exit)) throw error;
});

function run({ arguments: words, cwd }) {
  process.chdir(cwd);
  process.argv = [process.argv[0], script, ...words];
  delete require.cache[require.resolve(script)];
  return new Promise((resolve) => {
    // The last thing that a run does: what it says after that is of a caller that took the end for an error.
    process.exit = (status) => {
      resolve({ status: status || 0, ...said });
      throw new Exit();
    };
    require(script);
  });
}

async function main() {
  for await (const line of require("readline").createInterface({ input: process.stdin })) {
    Object.assign(said, { stdout: "", stderr: "" });
    const answer = await run(JSON.parse(line));
    write(1, JSON.stringify(answer) + "\n");
  }
  exit(0); // the curve's threads go on waiting
}

main().catch((error) => {
  write(2, String(error && error.stack));
  exit(1);
});
