// Full witness of a compiled circuit: `node witness.cjs <calculator.js> <circuit.wasm>`.
// Inputs come as one JSON object on standard input, because they are secret; the .wtns file leaves on
// standard output. Status 3: the circuit has no witness for these inputs (standard error says where).
"use strict";

const fs = require("fs");

async function main() {
  const [calculator, wasm] = process.argv.slice(2);
  console.log = console.error; // circom's code logs to standard output, which carries the witness
  const inputs = JSON.parse(fs.readFileSync(0, "utf8"));
  const instance = await require(calculator)(fs.readFileSync(wasm));
  let witness;
  try {
    witness = await instance.calculateWTNSBin(inputs, 0);
  } catch (error) {
    process.stderr.write(String(error.message));
    process.exitCode = 3;
    return;
  }
  let sent = 0;
  while (sent < witness.length) {
    try {
      sent += fs.writeSync(1, witness, sent);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

main().catch((error) => {
  process.stderr.write(String(error && error.stack));
  process.exitCode = 1;
});
