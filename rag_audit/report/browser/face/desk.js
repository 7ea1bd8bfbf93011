// The reader's side: the two areas, what each file is taken for (roles.js), and what the worker answers. The words of a verdict
// are the command's; nothing here judges.
const MAX_CAPACITY = /*MAX_CAPACITY*/ 0;
const MAX_BYTES = /*MAX_BYTES*/ 0;
const OUTCOMES = { 0: "every check passed, and the limits of your trust file are kept; what that is worth stands under privacy", 1: "a check is proven false", 2: "malformed or missing input: no decision", 3: "what the trust file asks for is not met", 70: "a fault of this program, which says nothing about the window" };
// Two verdicts share exit code 3, so the verdict's first word decides what is said of it.
const MEANINGS = { UNMET: "the window is sound, and it is less than the trust file asks for", UNPROVEN: "nothing is proven false, and what the window's figures rest on is not established: it has no privacy figure" };
const by = (id) => document.getElementById(id);
const AREAS = Object.keys(ROLES);
const dropped = []; // {area, folder, name, bytes, kind, chosen, role, why, choice}
const kept = new Map(); // what a link saves
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
  const made = row.insertCell();
  if (content instanceof Node) made.append(content);
  else made.textContent = content;
}

function show() {
  assignRoles(dropped);
  for (const area of AREAS) {
    const table = by(`${area}-list`), rows = table.tBodies[0], files = dropped.filter((file) => file.area === area);
    rows.replaceChildren();
    for (const file of files) {
      const choice = document.createElement("select");
      choice.setAttribute("aria-label", `what ${file.name} is`);
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

// Says before it starts what is missing, and what is too large for a page.
function look() {
  const [window] = withRole(dropped, "window"), count = (role) => withRole(dropped, role).length;
  const complaint = missing(dropped) || tooLarge(window);
  by("ahead").textContent = complaint || `Ready: ${count("receipt")} receipts, ${count("previous")} earlier windows, ${count("challenge")} challenges of your own.${size(window)}`;
  by("verify").disabled = busy || Boolean(complaint);
}

function tenants(file) {
  const value = json(file.bytes);
  const found = value && value.policy && value.policy.tenants;
  return Array.isArray(found) ? found.filter((tenant) => tenant && typeof tenant === "object") : [];
}

function size(file) {
  const value = json(file.bytes);
  const tiled = tiles(file).flatMap((tile) => tile.seqs || []).length;
  const proofs = tiled || (value && value.proofs && typeof value.proofs === "object" ? Object.keys(value.proofs).length : 0);
  const largest = Math.max(0, ...tenants(file).map((tenant) => Number(tenant.capacity) || 0));
  return ` The largest index has ${largest.toLocaleString("en")} positions; ${proofs.toLocaleString("en")} records carry proofs.`;
}

function tooLarge(file) {
  if (!file) return "";
  const bytes = dropped.filter((other) => other.role !== "none").reduce((sum, other) => sum + other.bytes.length, 0);
  const than = "Verify it with the command instead: rag-audit verify.";
  if (bytes > MAX_BYTES) return `The files have ${bytes.toLocaleString("en")} bytes, and a page takes on ${MAX_BYTES.toLocaleString("en")}. ${than}`;
  const largest = Math.max(0, ...tenants(file).map((tenant) => Number(tenant.capacity) || 0));
  if (largest > MAX_CAPACITY) return `An index of ${largest.toLocaleString("en")} positions is too large for a page, which takes on ${MAX_CAPACITY.toLocaleString("en")}. ${than}`;
  return "";
}

// The files and the words of the command.
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

// Python starts while the reader is still choosing files. What goes wrong with it is said once it is needed.
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
    // Whatever stopped it, there is no verdict, and a new worker for the next try.
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

// Every word comes from files that others wrote: it is set as text, never as markup.
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
    for (const field of ["id", "outcome", "expected", "found"]) cell(row, String(check[field] ?? ""));
  }
  by("checks").hidden = !rows.rows.length;
  by("save").replaceChildren();
  kept.clear();
  for (const [content, name, type] of [[page, "report.html", "text/html"], [report, "report.json", "application/json"]]) {
    if (!content) continue;
    const link = document.createElement("a");
    kept.set(link, content);
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.textContent = `Save ${name}`;
    by("save").append(link, " ");
  }
  by("verdict").scrollIntoView();
}

// The content behind a link, which the page itself may not fetch.
const saved = (link) => kept.get(link);

async function take(work) {
  try {
    await work();
  } catch (error) {
    by("ahead").textContent = `A file cannot be read: ${error.message}`;
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
// The area under the pointer. Beside both areas nothing is taken, so that no file gets into an area unseen.
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
    by("ahead").textContent = "Nothing was taken: drop files on area 1 or on area 2.";
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
