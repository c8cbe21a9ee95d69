// Run the code cells of notebooks in Pyodide under Node; print {notebook: {cell: [[kind, text]]}}.
// Arguments: the folder of the site's assets, then notebooks.
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

const [site, ...notebooks] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync(join(site, "live", "manifest.json")));
const { loadPyodide } = await import(pathToFileURL(join(site, "..", "..", "web", "node_modules", "pyodide", "pyodide.mjs")));
const pyodide = await loadPyodide({ indexURL: join(site, "pyodide") + "/" });
await pyodide.loadPackage(["numpy", "matplotlib"], { messageCallback: () => {} });
for (const wheel of manifest.wheels) pyodide.unpackArchive(new Uint8Array(readFileSync(join(site, wheel))), "wheel");
pyodide.runPython(readFileSync(join(site, manifest.runner), "utf8"));
const [runCell, reset] = ["run_cell", "reset"].map((name) => pyodide.globals.get(name));

const results = {};
for (const path of notebooks) {
  reset();
  const cells = (results[basename(path, ".ipynb")] = {});
  for (const cell of JSON.parse(readFileSync(path)).cells) {
    if (cell.cell_type !== "code") continue;
    const outputs = (cells[cell.id] = []);
    runCell(cell.id, cell.source.join(""), (kind, text) => outputs.push([kind, text]));
  }
}
process.stdout.write(JSON.stringify(results));
