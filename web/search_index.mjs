// Builds the search index of the sections on stdin: { records, folder }.
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import * as pagefind from "pagefind";

const NEEDED = /^(pagefind\.js|pagefind-entry\.json|wasm\.en\.pagefind|.*\.pf_(meta|index|fragment))$/;
const { records, folder } = JSON.parse(await text(process.stdin));
const { index } = await pagefind.createIndex({ includeCharacters: "_", maxFragments: 12 });
for (const record of records) {
  const { errors } = await index.addCustomRecord({ language: "en", ...record });
  if (errors.length) throw new Error(`${record.url}: ${errors}`);
}
for (const { path, content } of (await index.getFiles()).files.filter(({ path }) => NEEDED.test(path))) {
  await mkdir(dirname(join(folder, path)), { recursive: true });
  await writeFile(join(folder, path), content);
}
await pagefind.close();
