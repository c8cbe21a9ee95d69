// Python in a worker: the page stays responsive, and an endless loop can be ended.
// Receives {base, files}, then {number, code} for each cell; posts progress, outputs and ends.
// Another {base, files} leaves Python running, but resets it to what it was before the first cell.

const fetched = new Map();
const fetchFromNetwork = self.fetch.bind(self);
self.fetch = async (resource, options) => {
  const url = new URL(resource.url ?? resource, self.location).href;
  return fetched.has(url) ? fetched.get(url).clone() : fetchFromNetwork(resource, options);
};

async function download(base, files) {
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  let done = 0;
  await Promise.all(
    files.map(async ({ path }) => {
      const url = new URL(path, base).href;
      const response = await fetchFromNetwork(url);
      if (!response.ok) throw new Error(`${path} could not be loaded (${response.status})`);
      const parts = [];
      for (const reader = response.body.getReader(); ; ) {
        const { value, done: finished } = await reader.read();
        if (finished) break;
        parts.push(value);
        done += value.length;
        postMessage({ kind: "progress", done, total });
      }
      const type = path.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
      fetched.set(url, new Response(new Blob(parts), { headers: { "Content-Type": type } }));
    }),
  );
}

async function start({ base, files, wheels, runner }) {
  await download(base, files);
  postMessage({ kind: "starting" });
  const home = new URL("pyodide/", base).href;
  importScripts(home + "pyodide.js");
  const pyodide = await loadPyodide({ indexURL: home });
  await pyodide.loadPackage(["numpy", "matplotlib"], { messageCallback: () => {} });
  for (const wheel of wheels) {
    const response = await self.fetch(new URL(wheel, base).href);
    pyodide.unpackArchive(await response.arrayBuffer(), "wheel");
  }
  const source = await self.fetch(new URL(runner, base).href);
  pyodide.runPython(await source.text());
  fetched.clear();
  return { runCell: pyodide.globals.get("run_cell"), reset: pyodide.globals.get("reset") };
}

let python;
self.onmessage = async ({ data }) => {
  if (data.code === undefined) {
    try {
      python ??= await start(data);
      python.reset();
      postMessage({ kind: "ready" });
    } catch (error) {
      postMessage({ kind: "failed", message: String(error.message ?? error) });
    }
  } else {
    python.runCell(data.number, data.code, (kind, text) => postMessage({ kind: "output", output: { kind, text } }));
    postMessage({ kind: "end" });
  }
};
