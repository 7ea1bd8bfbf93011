// The role of each file, and its path for the command. These are pure functions of the files and do not use the page.
//
// Each file comes from one of two areas. `provider` has the files that the provider published, and `own` has the verifier's own
// files. The areas share only the roles `part` and `none`, and the command finds a part only with files of the same area. So a file of
// the provider never becomes the trust file, a challenge of the verifier, or a receipt, for any name and any content.
const ROLES = {
  provider: { window: "the window to verify", part: "a part of the window", none: "ignored" },
  own: {
    trust: "your trust file",
    receipt: "a receipt from an account",
    previous: "an earlier window",
    challenge: "a challenge that you drew",
    attacks: "attack results, shown with the verdict",
    part: "a part of an earlier window or of packed receipts",
    none: "ignored",
  },
};

// For each kind of file, the role that it takes in each area, and the reason.
const RULES = {
  provider: {
    window: ["window", "It is a window file."],
    part: ["part", "Its name is a digest, like the names of all parts of a window."],
    trust: ["none", "Only your own trust file counts: drop it in area 2."],
    challenge: ["none", "The window file contains the draws that the provider published. Drop a challenge that you drew in area 2."],
    note: ["none", "The window file contains the relevant checkpoints."],
    header: ["none", "The window file contains the window header."],
    receipt: ["none", "A receipt counts only if an account gave it to you: drop such receipts in area 2."],
    attacks: ["none", "The page shows attack results only if you drop them in area 2."],
    other: ["none", "The verifier does not read such a file from a provider."],
  },
  own: {
    window: ["previous", "It is a window file. The window to verify goes in area 1."],
    part: ["part", "Its name is a digest, like the names of all parts of a window."],
    trust: ["trust", "It is a TOML file."],
    challenge: ["challenge", "It is a challenge note."],
    note: ["none", "It is a note, but not a challenge."],
    header: ["none", "It is a window header, and the window file contains it."],
    receipt: ["receipt", "It is a receipt."],
    attacks: ["attacks", "It contains attack results."],
    json: ["receipt", "It has no field for its type, so the verifier checks it as a receipt."],
    other: ["none", "The verifier does not read such a file."],
  },
};
const PUBLISHED = "It is in one folder with a window, and the window may come from the provider. If this file is yours, drop it without that folder.";

function text(bytes) {
  return new TextDecoder().decode(bytes);
}

function json(bytes) {
  try {
    return JSON.parse(text(bytes));
  } catch {
    return undefined;
  }
}

// The kind of a file by its name and content, for files of both areas.
function kindOf({ name, bytes }) {
  if (name.endsWith(".toml")) return "trust";
  if (/^[0-9a-f]{64}\.json$/.test(name)) return (json(bytes) || {}).type === "receipt" ? "receipt" : "part";
  if (name === "window.json") return "window";
  if (!name.endsWith(".json")) {
    const start = text(bytes.subarray(0, 4096));
    if (start.startsWith("rag-audit/challenge/")) return "challenge";
    return /^\u2014 /m.test(text(bytes.subarray(0, 65536))) ? "note" : "other";
  }
  const value = json(bytes);
  const fields = value && typeof value === "object" && !Array.isArray(value) ? value : {};
  const media = /^application\/vnd\.rag-audit\.([a-z]+)\+json/.exec(String(fields.mediaType || ""));
  if (media) return { window: "window", header: "header", receipts: "receipt" }[media[1]] || "other";
  if ("entries" in fields) return "window";
  if (typeof fields.type !== "string") return "json";
  return { receipt: "receipt", attacks: "attacks" }[fields.type] || "other";
}

// Sets the role of each file {area, folder, name, bytes, chosen} and its reason. The user's choice counts if the area has that
// role.
function assignRoles(files) {
  const top = (file) => `${file.area}/${file.folder.split("/")[0]}`;
  const published = new Set();
  for (const file of files) {
    file.kind ??= kindOf(file);
    if (file.folder && ["window", "header"].includes(file.kind)) published.add(top(file));
  }
  for (const file of files) {
    const roles = ROLES[file.area], rules = RULES[file.area];
    [file.role, file.why] = rules[file.kind] || rules.other;
    if (file.area === "own" && file.folder && published.has(top(file)) && !["previous", "part", "none"].includes(file.role)) [file.role, file.why] = ["none", PUBLISHED];
    if (file.chosen !== undefined && Object.hasOwn(roles, file.chosen)) [file.role, file.why] = [file.chosen, "You chose this."];
  }
}

// The files of a role. A role belongs to one area; only for `part` does the caller name the area.
function withRole(files, role, area = Object.hasOwn(ROLES.own, role) ? "own" : "provider") {
  return files.filter((file) => file.area === area && file.role === role);
}

// The tiles of a window file or of a file of packed receipts. The content of large files is in a folder `tiles`.
function tiles(file) {
  const value = json(file.bytes) || {};
  const listed = [value.entries, value.proofs, value].flatMap((part) => (part && Array.isArray(part.tiles) ? part.tiles : []));
  return listed.filter((tile) => tile && typeof tile === "object");
}

// A sentence about a missing or ambiguous file, or an empty text.
function missing(files) {
  const of = (role) => withRole(files, role).length;
  if (of("window") !== 1) return of("window") ? "There are several windows in area 1: choose the window to verify, and set the others to ignored." : "The window is missing: drop it in area 1.";
  if (of("trust") !== 1) return of("trust") ? "There are several trust files in area 2: choose one, and set the others to ignored." : "The trust file is missing: drop yours in area 2.";
  if (of("attacks") > 1) return "There are several files of attack results in area 2: choose one, and set the others to ignored.";
  return "";
}

// The path of each file for the command, with the file's own name, and the arguments of the command. `limit` is a lower limit on
// epsilon.
function commandFor(files, { limit = "", unsafe = false } = {}) {
  const placed = [], options = ["verify"];
  const put = (path, file) => placed.push({ path, bytes: file.bytes });
  const putParts = (folder, file) => {
    const named = new Set(tiles(file).map((tile) => `${tile.sha256}.json`));
    for (const part of withRole(files, "part", file.area)) put(`${folder}/${named.has(part.name) ? "tiles/" : ""}${part.name}`, part);
  };
  const [window] = withRole(files, "window"), [trust] = withRole(files, "trust");
  put(`window/${window.name}`, window);
  putParts("window", window);
  put(`trust/${trust.name}`, trust);
  options.push(`window/${window.name}`, "--trust", `trust/${trust.name}`);
  const names = new Set();
  withRole(files, "receipt").forEach((file, i) => {
    // The command reads the .json files of a folder. Files with other names, two files with the same name, and packed receipts
    // (they have parts) are separate arguments.
    const packed = tiles(file).length > 0;
    const separate = packed || names.has(file.name) || !file.name.endsWith(".json");
    const folder = separate ? `receipts-${i}` : "receipts";
    if (!separate) names.add(file.name);
    put(`${folder}/${file.name}`, file);
    if (packed) putParts(folder, file);
    if (separate) options.push("--receipts", `${folder}/${file.name}`);
  });
  if (names.size) options.push("--receipts", "receipts");
  withRole(files, "previous").forEach((file, i) => {
    put(`previous-${i}/${file.name}`, file);
    putParts(`previous-${i}`, file);
    options.push("--previous", `previous-${i}/${file.name}`);
  });
  withRole(files, "challenge").forEach((file, i) => {
    put(`challenge-${i}/${file.name}`, file);
    options.push("--challenge", `challenge-${i}/${file.name}`);
  });
  for (const file of withRole(files, "attacks")) {
    put(`attacks/${file.name}`, file);
    options.push("--attacks", `attacks/${file.name}`);
  }
  if (limit) options.push("--max-epsilon", limit);
  if (unsafe) options.push("--allow-unsafe-setup");
  options.push("--format", "text", "--output", "-");
  for (const format of ["json", "html"]) options.push("--format", format, "--output", `report.${format}`);
  return { files: placed, options };
}
