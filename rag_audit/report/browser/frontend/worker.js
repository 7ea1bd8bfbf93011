// Runs the command in a thread of its own, so that the page stays alive. It gets every part of the page by message.
// It is a classic worker: of a module Chromium asks for an origin, which a page opened as a file has not.
let python, native;

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

const script = (bytes) => URL.createObjectURL(new Blob([bytes], { type: "text/javascript" }));

async function start(parts) {
  const content = {};
  for (const [name, text] of Object.entries(parts)) content[name] = await unpack(text);
  say("starting Python");
  // The interpreter asks for its files by fetch. It gets them from here; everything else the page's policy refuses.
  const fetched = self.fetch;
  self.fetch = async (address, ...rest) => {
    const name = String(address).split("/").pop();
    if (!(name in content)) return fetched(address, ...rest);
    const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return new Response(content[name], { headers: { "content-type": type } });
  };
  const [{ loadPyodide }, { default: createPyodideModule }] = await Promise.all(
    ["pyodide.mjs", "pyodide.asm.mjs"].map((name) => import(script(content[name]))),
  );
  python = await loadPyodide({
    createPyodideModule,
    indexURL: "https://page.invalid/",
    lockFileContents: new TextDecoder().decode(content["lock.json"]),
    stdout: () => {},
    stderr: () => {},
  });
  self.fetch = fetched;
  native = await WebAssembly.instantiate(content["native.wasm"], {});
  // Points that the module would else hash from their names, which takes it longer than a proof. It knows their digest.
  const refused = call(request("generators", content["generators.bin"]));
  if (refused[0]) throw new Error(new TextDecoder().decode(refused.subarray(1)));
  python.registerJsModule("ragaudit_host", { call });
  say("unpacking the verifier");
  python.FS.writeFile("/site.zip", content["site.zip"]);
  python.runPython(`
import sys, zipfile
zipfile.ZipFile("/site.zip").extractall("/site")
sys.path.insert(0, "/site")
from rag_audit.report.browser.inside.stands import stand_in
stand_in()
`);
  python.FS.unlink("/site.zip");
}

// Encodes a request: its name and one argument of bytes, each after its length in four bytes (native/wasm/src/wire.rs).
function request(name, bytes) {
  const words = new TextEncoder().encode(name);
  const whole = new Uint8Array(8 + words.length + bytes.length), view = new DataView(whole.buffer);
  view.setUint32(0, words.length, true);
  whole.set(words, 4);
  view.setUint32(4 + words.length, bytes.length, true);
  whole.set(bytes, 8 + words.length);
  return whole;
}

// Sends one request to the WebAssembly module. A module that failed accepts no further request.
function call(request) {
  const { exports } = native.instance;
  if (native.failed) throw new Error(native.failed);
  const at = exports.room(request.length);
  new Uint8Array(exports.memory.buffer).set(request, at);
  let length;
  try {
    length = exports.call();
  } catch (error) {
    const words = new Uint8Array(exports.memory.buffer, exports.panic_words(), exports.panic_length());
    native.failed = `internal error in the native core: ${new TextDecoder().decode(words) || error}`;
    throw new Error(native.failed);
  }
  return new Uint8Array(exports.memory.buffer, exports.answer(), length).slice();
}

function write(path, bytes) {
  python.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
  python.FS.writeFile(path, bytes);
}

// Removes the files of an earlier run, so that no file of another window is in the folder of this window.
function clear(path) {
  if (!python.FS.analyzePath(path).exists) return;
  for (const name of python.FS.readdir(path)) {
    if (name === "." || name === "..") continue;
    const inside = `${path}/${name}`;
    if (python.FS.isDir(python.FS.stat(inside).mode)) clear(inside);
    else python.FS.unlink(inside);
  }
  python.FS.rmdir(path);
}

function verify({ files, options }) {
  python.FS.chdir("/");
  clear("/files");
  for (const { path, bytes } of files) write(`/files/${path}`, bytes);
  python.FS.chdir("/files");
  const names = python.toPy(options);
  const run = python.pyimport("rag_audit.cli.in_page").run;
  const count = (done) => self.postMessage({ kind: "progress", done });
  return JSON.parse(run(names, count));
}

const say = (text) => self.postMessage({ kind: "stage", text });

self.onmessage = async ({ data }) => {
  try {
    if (data.kind === "start") {
      await start(data.parts);
      self.postMessage({ kind: "ready" });
    } else {
      self.postMessage({ kind: "verdict", verdict: verify(data) });
    }
  } catch (error) {
    self.postMessage({ kind: "failed", reason: String(error && error.stack ? error.stack : error) });
  }
};
