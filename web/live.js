// "Run this page": turns the code cells of a page into editors that run Python in the browser.
// Nothing is loaded before the button is pressed, and nothing from outside this site ever.
(() => {
  const base = new URL("../", document.currentScript.src).href;
  const title = document.querySelector(".bd-article h1");
  const sources = [...document.querySelectorAll(".bd-article div.cell")]
    .filter((cell) => cell.querySelector(".cell_input pre"))
    .sort((one, other) => one.dataset.order - other.dataset.order); // a set-up may lie in a later fold
  if (!title || !sources.length) return;

  const bar = element("div", { className: "live-bar" });
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Run this page");
  const status = element("span", { className: "live-status" });
  status.setAttribute("role", "status");
  const start = button("Run this page", begin);
  bar.append(start, ...notebookLink(), status);
  title.after(bar);

  let worker, manifest, editor, cells;
  let waiting = []; // cells to run; the first one is running
  let ready = false;
  const hint = "Change a cell and press Ctrl+Enter or Shift+Enter.";
  let advice = hint;

  async function begin() {
    if (location.protocol === "file:")
      return say("A page opened from a file cannot start Python. Serve the book instead: make serve.");
    if (!window.WebAssembly || !window.Worker)
      return say("This browser cannot run WebAssembly, which Python in the page needs.");
    start.disabled = true;
    bar.classList.add("live-started");
    say("Loading ...");
    try {
      const response = await fetch(base + "live/manifest.json");
      if (!response.ok) throw new Error("this copy of the book was built without Python in the page");
      manifest = await response.json();
      editor = await import(base + "live/editor.js");
    } catch (error) {
      start.disabled = false;
      return say(`Not available: ${error.message}. The stored outputs below are complete.`);
    }
    cells = sources.map(makeCell);
    start.remove();
    bar.prepend(
      button("Run all", () => cells.forEach(enqueue)),
      button("Stop", () => restart("Stopped.")),
      button("Restart", () => restart("Restarted.")),
    );
    startWorker();
  }

  function startWorker() {
    ready = false;
    worker = new Worker(base + "live/worker.js");
    worker.onmessage = ({ data }) => receive[data.kind](data);
    worker.onerror = (event) => receive.failed({ message: event.message });
    worker.postMessage({ base, ...manifest });
    // The imports and the parameters, which most cells need.
    waiting = cells.filter((cell) => cell === cells[0] || cell.code().includes("# @param"));
  }

  // A message that is already on its way, such as another file's progress, must not be shown.
  function endWorker() {
    worker.onmessage = null;
    worker.terminate();
  }

  function restart(message) {
    endWorker();
    waiting.forEach((cell) => cell.cancel(ready && cell === waiting[0]));
    advice = "Variables of earlier runs are gone; the imports and the parameters have run again.";
    startWorker();
    say(message);
  }

  const receive = {
    progress: ({ done, total }) => say(`Loading Python: ${megabytes(done)} of ${megabytes(total)} MB`),
    starting: () => say("Starting Python ..."),
    ready() {
      ready = true;
      runNext();
    },
    failed({ message }) {
      endWorker();
      say(`Python could not be started: ${message}. Restart tries again; the stored outputs are complete.`);
    },
    output: ({ output }) => waiting[0].add(output),
    end() {
      waiting.shift().finish();
      runNext();
    },
  };

  function enqueue(cell) {
    if (waiting.includes(cell)) return;
    advice = hint;
    waiting.push(cell);
    cell.root.classList.add("live-busy");
    const fold = cell.root.closest("details.evidence");
    if (fold) fold.open = true;
    if (ready && waiting.length === 1) runNext();
  }

  function runNext() {
    if (!waiting.length) return say(`Ready. ${advice}`);
    say(`Running cell ${waiting[0].number} ...`);
    waiting[0].begin();
    worker.postMessage({ number: waiting[0].number, code: waiting[0].code() });
  }

  function makeCell(root, index) {
    const input = root.querySelector(".cell_input");
    const printed = root.querySelector(".cell_output");
    const shown = document.getElementById(root.id.replace("cell-", "shown-")); // above the fold
    const original = input.querySelector("pre").textContent.trimEnd();
    const alt = (shown ?? root).querySelector("img")?.alt ?? "Figure";
    const places = { printed: place(printed ?? root.lastElementChild, printed) };
    places.shown = shown ? place(shown, shown) : places.printed;
    const all = [...new Set(Object.values(places))];
    const cell = { root, number: index + 1, code: () => view.state.doc.toString() };
    let dropped = false; // the outputs of a run that was reset meanwhile
    let given = 0; // outputs of this run

    const holder = element("div", { className: "live-editor" });
    const tools = element("div", { className: "live-tools" });
    tools.append(
      button("Run", () => enqueue(cell), `Run cell ${index + 1}`),
      button("Reset", reset, `Reset cell ${index + 1}`),
    );
    input.hidden = true;
    input.after(holder, tools);
    const view = editor.createEditor(holder, original, `Code of cell ${index + 1}`, () => enqueue(cell));

    // Returns where outputs of the reader's own run go: in the place of stored ones, if there are any.
    function place(after, stored) {
      const own = element("div", { className: "cell_output live-output", hidden: true });
      own.dataset.cell = root.id;
      after.after(own);
      return { own, stored };
    }

    function reset() {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: original } });
      for (const { own, stored } of all) {
        own.hidden = true;
        if (stored) stored.hidden = false;
      }
      dropped = true;
      window.bookNumbers?.refresh(root, original);
    }
    cell.begin = () => {
      dropped = false;
      given = 0;
      for (const { own, stored } of all) {
        own.replaceChildren(element("p", { className: "live-note", textContent: "Your own run" }));
        own.hidden = true;
        if (stored) stored.hidden = true;
      }
      root.classList.add("live-busy");
    };
    cell.add = (output) => {
      if (dropped) return;
      const { own } = places[["svg", "markdown", "html"].includes(output.kind) ? "shown" : "printed"];
      own.hidden = false;
      const shown = rendered(output, own, alt);
      shown.dataset.index ??= given++;
      own.append(shown);
    };
    cell.finish = () => {
      root.classList.remove("live-busy");
      window.bookNumbers?.refresh(root, cell.code());
      window.MathJax?.typesetPromise?.(all.map(({ own }) => own));
    };
    cell.cancel = (begun) => {
      if (begun) cell.add({ kind: "stopped", text: "Stopped before its end. Reset shows the stored output." });
      root.classList.remove("live-busy");
      window.bookNumbers?.refresh(root, cell.code());
    };
    return cell;
  }

  // Returns the element that shows an output; text of one stream goes on where it stopped.
  function rendered({ kind, text }, own, alt) {
    const last = own.lastElementChild;
    if (last?.dataset.kind === kind && kind.startsWith("std")) {
      last.append(text);
      return last;
    }
    let shown;
    if (kind === "svg") {
      shown = element("img", { src: URL.createObjectURL(new Blob([text], { type: "image/svg+xml" })), alt });
    } else if (kind === "markdown" || kind === "html") {
      shown = element("div", { innerHTML: kind === "html" ? text : editor.renderMarkdown(text) });
      shown.querySelectorAll("table").forEach((table) => table.classList.add("table"));
      shown.querySelectorAll('a[href*=".ipynb"]').forEach((link) => {
        link.setAttribute("href", link.getAttribute("href").replace(".ipynb", ".html"));
      });
    } else {
      shown = element("pre", { textContent: text, tabIndex: 0 });
    }
    shown.dataset.kind = kind;
    return shown;
  }

  // Returns the theme's link to the notebook once more, as one that saves it.
  function notebookLink() {
    const link = document.querySelector("a.btn-download-source-button");
    const properties = { className: "live-download", textContent: "Download the notebook", download: "" };
    return link ? [element("a", { ...properties, href: link.href })] : [];
  }

  function say(message) {
    status.textContent = message;
  }

  function megabytes(bytes) {
    return (bytes / 1e6).toFixed(1);
  }

  function element(tag, properties) {
    return Object.assign(document.createElement(tag), properties);
  }

  function button(text, action, label = text) {
    const made = element("button", { type: "button", className: "live-button", textContent: text, onclick: action });
    made.setAttribute("aria-label", label);
    return made;
  }
})();
