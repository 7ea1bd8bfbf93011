// Which role each file takes, and where it lies for the command. These are pure functions of the files, without the page.
//
// Each file comes from one of two areas. `provider` holds what the provider of the window published, `own` what the verifier
// has from elsewhere. The areas share no role but `part` and `none`, and a part lies only beside files of its own area. So a
// provider's file becomes neither the trust file, nor a challenge of the verifier, nor a receipt, whatever its name and content.
const ROLES = {
  provider: { window: "the window to verify", part: "a part of the window", none: "ignored" },
  own: {
    trust: "your trust file",
    receipt: "a receipt from an account",
    previous: "an earlier window",
    challenge: "a challenge that you drew",
    attacks: "attack results, shown beside the verdict",
    part: "a part of an earlier window or of packed receipts",
    none: "ignored",
  },
};

// For each kind of file, the role that it takes in each area, and the reason.
const RULES = {
  provider: {
    window: ["window", "It is a window file."],
    part: ["part", "Its name is a digest, as the names of a window's parts are."],
    trust: ["none", "Only a trust file of yours counts: drop your own in area 2."],
    challenge: ["none", "The window file repeats the draws that the provider published. A challenge that you drew goes in area 2."],
    note: ["none", "The window file repeats the checkpoints that count."],
    opening: ["none", "The window file repeats the opening."],
    receipt: ["none", "A receipt counts only if an account gave it to you: drop such receipts in area 2."],
    attacks: ["none", "Attack results are shown only if you choose so: drop them in area 2."],
    other: ["none", "The verifier reads nothing of this kind from a provider."],
  },
  own: {
    window: ["previous", "It is a window file. The window to verify goes in area 1."],
    part: ["part", "Its name is a digest, as the names of a window's parts are."],
    trust: ["trust", "It is a TOML file."],
    challenge: ["challenge", "It is a challenge note."],
    note: ["none", "It is a note, and no challenge."],
    opening: ["none", "It is an opening, which the window file repeats."],
    receipt: ["receipt", "It is a receipt."],
    attacks: ["attacks", "It holds attack results."],
    json: ["receipt", "It does not say what it is, so the verifier judges it as a receipt."],
    other: ["none", "The verifier reads nothing of this kind."],
  },
};
const PUBLISHED = "It came in one folder with a window, which may be a provider's. If this file is yours, drop it without that folder.";

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

// What a file is by its name and content, whoever it comes from.
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
  if (media) return { window: "window", opening: "opening", receipts: "receipt" }[media[1]] || "other";
  if ("entries" in fields) return "window";
  if (typeof fields.type !== "string") return "json";
  return { receipt: "receipt", attacks: "attacks" }[fields.type] || "other";
}

// Gives each file {area, folder, name, bytes, chosen} its role and the reason for it. A person's choice counts where the area
// has that role.
function assignRoles(files) {
  const top = (file) => `${file.area}/${file.folder.split("/")[0]}`;
  const published = new Set();
  for (const file of files) {
    file.kind ??= kindOf(file);
    if (file.folder && ["window", "opening"].includes(file.kind)) published.add(top(file));
  }
  for (const file of files) {
    const roles = ROLES[file.area], rules = RULES[file.area];
    [file.role, file.why] = rules[file.kind] || rules.other;
    if (file.area === "own" && file.folder && published.has(top(file)) && !["previous", "part", "none"].includes(file.role)) [file.role, file.why] = ["none", PUBLISHED];
    if (file.chosen !== undefined && Object.hasOwn(roles, file.chosen)) [file.role, file.why] = [file.chosen, "You chose this."];
  }
}

// The files of a role. A role belongs to one area; `part` alone is asked for with its area.
function withRole(files, role, area = Object.hasOwn(ROLES.own, role) ? "own" : "provider") {
  return files.filter((file) => file.area === area && file.role === role);
}

// The tiles that a window file, or a file of packed receipts, names: large ones have their content in a folder `tiles`.
function tiles(file) {
  const value = json(file.bytes) || {};
  const listed = [value.entries, value.proofs, value].flatMap((part) => (part && Array.isArray(part.tiles) ? part.tiles : []));
  return listed.filter((tile) => tile && typeof tile === "object");
}

// What is missing or ambiguous, in words, or nothing.
function missing(files) {
  const of = (role) => withRole(files, role).length;
  if (of("window") !== 1) return of("window") ? "There are several windows in area 1: choose which one is to be verified, and set the others to ignored." : "No window yet: drop it in area 1.";
  if (of("trust") !== 1) return of("trust") ? "There are several trust files in area 2: choose one, and set the others to ignored." : "No trust file yet: drop yours in area 2.";
  if (of("attacks") > 1) return "There are several files of attack results in area 2: choose one, and set the others to ignored.";
  return "";
}

// Where each file lies for the command, under its own name, and the words of the command. `limit` is a tighter limit on epsilon.
function commandFor(files, { limit = "", unsafe = false } = {}) {
  const placed = [], options = ["verify"];
  const put = (path, file) => placed.push({ path, bytes: file.bytes });
  const beside = (folder, file) => {
    const named = new Set(tiles(file).map((tile) => `${tile.sha256}.json`));
    for (const part of withRole(files, "part", file.area)) put(`${folder}/${named.has(part.name) ? "tiles/" : ""}${part.name}`, part);
  };
  const [window] = withRole(files, "window"), [trust] = withRole(files, "trust");
  put(`window/${window.name}`, window);
  beside("window", window);
  put(`trust/${trust.name}`, trust);
  options.push(`window/${window.name}`, "--trust", `trust/${trust.name}`);
  const names = new Set();
  withRole(files, "receipt").forEach((file, i) => {
    // The command reads the files of a folder that end in .json. Other names, two files of one name and packed receipts,
    // which have parts, are named one by one.
    const packed = tiles(file).length > 0;
    const alone = packed || names.has(file.name) || !file.name.endsWith(".json");
    const folder = alone ? `receipts-${i}` : "receipts";
    if (!alone) names.add(file.name);
    put(`${folder}/${file.name}`, file);
    if (packed) beside(folder, file);
    if (alone) options.push("--receipts", `${folder}/${file.name}`);
  });
  if (names.size) options.push("--receipts", "receipts");
  withRole(files, "previous").forEach((file, i) => {
    put(`previous-${i}/${file.name}`, file);
    beside(`previous-${i}`, file);
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
