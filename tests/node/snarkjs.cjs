// snarkjs's command line, one run after another in one process: `node snarkjs.cjs <cli.cjs>`. The wasm of its curve is then
// built once, which takes longer than most runs. A request is one line of JSON, {"arguments", "cwd"}; so is the answer,
// {"status", "stdout", "stderr"}. The end of the input ends the process.
"use strict";
const fs = require("fs");
const script = process.argv[2];
const exit = process.exit;
const said = { stdout: "", stderr: "" };

for (const name of ["stdout", "stderr"]) {
  process[name].write = (data) => {
    said[name] += data;
    return true;
  };
}

function run({ arguments: words, cwd }) {
  process.chdir(cwd);
  process.argv = [process.argv[0], script, ...words];
  delete require.cache[require.resolve(script)];
  return new Promise((resolve) => {
    process.exit = (status) => resolve(status || 0); // the last thing that a run does
    require(script);
  });
}

async function main() {
  for await (const line of require("readline").createInterface({ input: process.stdin })) {
    Object.assign(said, { stdout: "", stderr: "" });
    const status = await run(JSON.parse(line));
    fs.writeSync(1, JSON.stringify({ status, ...said }) + "\n");
  }
  exit(0); // the curve's threads go on waiting
}

main().catch((error) => {
  fs.writeSync(2, String(error && error.stack));
  exit(1);
});
