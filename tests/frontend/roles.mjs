// Assigns roles as the page does, without a browser: node roles.mjs ROLES_JS, with one JSON list of cases on standard input.
// A case is {files: [{area, folder, name, source, chosen?, role?}], options}; its answer has each file's role and reason, what is
// missing, and the command with the sources of its files. `role` is set after roles are assigned, as a fault of the page would.
import { readFileSync } from "node:fs";

const code = readFileSync(process.argv[2], "utf8");
const { assignRoles, missing, commandFor } = new Function(`"use strict";${code}\nreturn { assignRoles, missing, commandFor };`)();

const answers = JSON.parse(readFileSync(0, "utf8")).map(({ files, options }) => {
  const sources = new Map();
  const dropped = files.map(({ area, folder, name, source, chosen }) => {
    const bytes = new Uint8Array(readFileSync(source));
    sources.set(bytes, source);
    return { area, folder, name, bytes, chosen };
  });
  assignRoles(dropped);
  const roles = dropped.map(({ role, why }) => ({ role, why }));
  files.forEach(({ role }, i) => role && (dropped[i].role = role));
  const words = missing(dropped);
  const command = words ? null : commandFor(dropped, options);
  return {
    roles,
    missing: words,
    options: command && command.options,
    placed: command && command.files.map(({ path, bytes }) => ({ path, source: sources.get(bytes) })),
  };
});
process.stdout.write(JSON.stringify(answers));
