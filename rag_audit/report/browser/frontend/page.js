// The user interface: the two areas, the role of each file (roles.js), and the worker's answers. The command writes every verdict;
// this script makes no decision about a window.
const MAX_CAPACITY = /*MAX_CAPACITY*/ 0;
const MAX_BYTES = /*MAX_BYTES*/ 0;
const OUTCOMES = { 0: "every check passed, and the window meets the limits of your trust file; the line privacy explains the value of this result", 1: "a check is proven false", 2: "malformed or missing input: no decision", 3: "the window does not meet the trust file", 70: "this program has a fault; there is no result about the window" };
// Two verdicts share exit code 3, so the first word of the verdict selects the explanation.
const MEANINGS = { UNMET: "the window is sound, and it does not meet the trust file", UNPROVEN: "no check proved a false statement, and the evidence for the window's figures is incomplete: it has no privacy figure" };
const by = (id) => document.getElementById(id);
const AREAS = Object.keys(ROLES);
const dropped = []; // {area, folder, name, bytes, kind, chosen, role, why, choice}
const saves = new Map(); // the content behind each link
let worker, started, waiting, busy = false;

async function add(area, folder, blob) {
  dropped.push({ area, folder, name: blob.name, bytes: new Uint8Array(await blob.arrayBuffer()) });
}

async function walk(area, entry, folder) {
  if (entry.isFile) {
    await add(area, folder, await new Promise((done, failed) => entry.file(done, failed)));
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (!some.length) return;
    for (const inside of some) await walk(area, inside, `${folder}${entry.name}/`);
  }
}

function cell(row, content) {
  const inserted = row.insertCell();
  if (content instanceof Node) inserted.append(content);
  else inserted.textContent = content;
}

function show() {
  assignRoles(dropped);
  for (const area of AREAS) {
    const table = by(`${area}-list`), rows = table.tBodies[0], files = dropped.filter((file) => file.area === area);
    rows.replaceChildren();
    for (const file of files) {
      const choice = document.createElement("select");
      choice.setAttribute("aria-label", `role of ${file.name}`);
      for (const [role, words] of Object.entries(ROLES[area])) choice.add(new Option(words, role, false, role === file.role));
      choice.onchange = () => {
        file.chosen = choice.value;
        show();
        file.choice.focus(); // the table is new
      };
      file.choice = choice;
      const row = rows.insertRow();
      cell(row, file.folder + file.name);
      cell(row, file.bytes.length.toLocaleString("en"));
      cell(row, choice);
      cell(row, file.why);
    }
    table.hidden = !files.length;
  }
  look();
  if (dropped.length) begin();
}

// Reports missing and too large files before the verification starts.
function look() {
  const [window] = withRole(dropped, "window"), count = (role) => withRole(dropped, role).length;
  const complaint = missing(dropped) || tooLarge(window);
  by("readiness").textContent = complaint || `Ready: ${count("receipt")} receipts, ${count("previous")} earlier windows, ${count("challenge")} challenges of your own.${size(window)}`;
  by("verify").disabled = busy || Boolean(complaint);
}

function tenants(file) {
  const value = json(file.bytes);
  const listed = value && value.policy && value.policy.tenants;
  return Array.isArray(listed) ? listed.filter((tenant) => tenant && typeof tenant === "object") : [];
}

function size(file) {
  const value = json(file.bytes);
  const tiled = tiles(file).flatMap((tile) => tile.seqs || []).length;
  const proofs = tiled || (value && value.proofs && typeof value.proofs === "object" ? Object.keys(value.proofs).length : 0);
  const largest = Math.max(0, ...tenants(file).map((tenant) => Number(tenant.capacity) || 0));
  return ` The largest index has ${largest.toLocaleString("en")} positions; ${proofs.toLocaleString("en")} records have proofs.`;
}

function tooLarge(file) {
  if (!file) return "";
  const bytes = dropped.filter((other) => other.role !== "none").reduce((sum, other) => sum + other.bytes.length, 0);
  const instead = "Use the command rag-audit verify for this window.";
  if (bytes > MAX_BYTES) return `The files have ${bytes.toLocaleString("en")} bytes, and the limit of this page is ${MAX_BYTES.toLocaleString("en")}. ${instead}`;
  const largest = Math.max(0, ...tenants(file).map((tenant) => Number(tenant.capacity) || 0));
  if (largest > MAX_CAPACITY) return `An index of ${largest.toLocaleString("en")} positions is too large for this page, with its limit of ${MAX_CAPACITY.toLocaleString("en")}. ${instead}`;
  return "";
}

// The files and the arguments of the command.
function laid() {
  return commandFor(dropped, { limit: by("max-epsilon").value.trim(), unsafe: by("unsafe").checked });
}

function ask(message) {
  return new Promise((done, failed) => {
    waiting = { done, failed };
    worker.postMessage(message);
  });
}

async function start() {
  const parts = {};
  for (const part of document.querySelectorAll("script[type='text/plain']")) parts[part.id] = part.textContent;
  const program = await unpacked(parts["worker.js"]);
  delete parts["worker.js"];
  worker = new Worker(URL.createObjectURL(new Blob([program], { type: "text/javascript" })));
  worker.onmessage = ({ data }) => {
    if (data.kind === "stage") by("progress").textContent = data.text;
    else if (data.kind === "progress") by("progress").textContent = `${data.done.toLocaleString("en")} proofs verified`;
    else if (data.kind === "failed") waiting.failed(new Error(data.reason));
    else waiting.done(data.verdict);
  };
  worker.onerror = (event) => waiting.failed(new Error(event.message || "the worker could not be started"));
  await ask({ kind: "start", parts });
}

// Python starts while the user is still choosing files. The page reports an error of the start when it needs Python.
function begin() {
  if (started) return started;
  started = start();
  started.then(() => busy || (by("progress").textContent = ""), () => {});
  return started;
}

async function unpacked(content) {
  const bytes = Uint8Array.from(atob(content), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

async function verify() {
  busy = true;
  look();
  by("result").hidden = true;
  const pressed = performance.now();
  const clock = setInterval(() => (by("verify").title = `${Math.round((performance.now() - pressed) / 1000)} s`), 1000);
  try {
    by("progress").textContent = "unpacking the page";
    await begin();
    by("progress").textContent = "verifying";
    tell(await ask({ kind: "verify", ...laid() }));
    by("progress").textContent = `done in ${((performance.now() - pressed) / 1000).toFixed(1)} s`;
  } catch (error) {
    // After any error there is no verdict, and the next run gets a new worker.
    if (worker) worker.terminate();
    worker = started = undefined;
    tell({ exit_code: 70, stdout: "", stderr: `The page could not finish: ${error.message}` });
    by("progress").textContent = "";
  } finally {
    clearInterval(clock);
    busy = false;
    look();
  }
}

// Other parties wrote the files, so the page inserts their content as text and never as markup.
function tell({ exit_code: code, stdout, stderr, files = {} }) {
  const [report, page] = [files["report.json"], files["report.html"]];
  const [first] = (stdout || stderr).split("\n");
  by("result").hidden = false;
  by("result").dataset.exitCode = String(code);
  by("verdict").textContent = first;
  by("verdict").className = code === 0 ? "good" : "bad";
  by("code").textContent = `Exit code ${code}: ${MEANINGS[first.split(" ")[0]] || OUTCOMES[code] || "unknown"}.`;
  by("report").textContent = [stdout, stderr].filter(Boolean).join("\n");
  const value = report ? JSON.parse(report) : undefined;
  const rows = by("checks").tBodies[0];
  rows.replaceChildren();
  for (const check of (value && value.checks) || []) {
    const row = rows.insertRow();
    row.className = check.outcome === "pass" ? "" : "bad";
    for (const field of ["id", "outcome", "expected", "actual"]) cell(row, String(check[field] ?? ""));
  }
  by("checks").hidden = !rows.rows.length;
  by("save").replaceChildren();
  saves.clear();
  for (const [content, name, type] of [[page, "report.html", "text/html"], [report, "report.json", "application/json"]]) {
    if (!content) continue;
    const link = document.createElement("a");
    saves.set(link, content);
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.textContent = `Save ${name}`;
    by("save").append(link, " ");
  }
  by("verdict").scrollIntoView();
}

// Returns the content behind a link, because the page itself may not fetch a URL.
const saved = (link) => saves.get(link);

async function take(work) {
  try {
    await work();
  } catch (error) {
    by("readiness").textContent = `A file cannot be read: ${error.message}`;
    return;
  }
  show();
}

for (const area of AREAS) {
  for (const id of [`${area}-files`, `${area}-folder`]) {
    by(id).onchange = () => take(async () => {
      for (const file of by(id).files) await add(area, (file.webkitRelativePath || "").slice(0, -file.name.length), file);
      by(id).value = "";
    });
  }
}
// The area under the pointer. Outside of both areas the page accepts no file, so that the user sees the area of every file.
const areaOf = (event) => AREAS.find((area) => event.target instanceof Node && by(area).contains(event.target));
for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    const over = kind === "dragenter" || kind === "dragover" ? areaOf(event) : undefined;
    for (const area of AREAS) by(area).classList.toggle("over", area === over);
  });
}
document.addEventListener("drop", (event) => {
  const area = areaOf(event);
  if (!area) {
    by("readiness").textContent = "No file was added: drop files on area 1 or on area 2.";
    return;
  }
  const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry && item.webkitGetAsEntry()).filter(Boolean);
  take(async () => {
    for (const entry of entries) await walk(area, entry, "");
  });
});
by("clear").onclick = () => {
  dropped.length = 0;
  by("result").hidden = true;
  show();
};
by("verify").onclick = verify;
