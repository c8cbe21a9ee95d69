// The search: Pagefind finds the sections, this shows them. The theme opens and closes the dialog
// (its buttons, Ctrl+K, Escape); nothing of Pagefind is loaded before.
(() => {
  const here = document.currentScript.src;
  const site = new URL("../../", here);
  const dialog = document.getElementById("pst-search-dialog");
  if (!dialog) return;
  const field = dialog.querySelector("input");
  const status = document.getElementById("search-status");
  const hits = document.getElementById("search-hits");
  const shown = 8;
  // Words of every question, which tell no section from another.
  const common = new Set(
    "a an and are as at be but by can do does for from has have how i if in is it its me my of on or so than that the then there this to was we what when where which why with you your".split(" "),
  );

  let pagefind, asked;

  field.addEventListener("focus", () => {
    field.select();
    load().catch(() => {}); // what went wrong is said when something is asked
  });
  field.addEventListener("input", show);
  field.form.addEventListener("submit", (event) => {
    event.preventDefault();
    hits.querySelector("a")?.click();
  });
  hits.addEventListener("click", (event) => event.target.closest("a") && dialog.close());
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const stops = [field, ...hits.querySelectorAll("a")];
    stops[stops.indexOf(document.activeElement) + step]?.focus();
  });

  function load() {
    if (location.protocol === "file:")
      return Promise.reject(new Error("A page opened from a file cannot search. Serve the book instead: make serve."));
    pagefind ??= import(new URL("pagefind/pagefind.js", here)).then(async (module) => {
      // What people ask weighs more than a heading, and a heading more than the text.
      await module.options({ noWorker: true, ranking: { metaWeights: { words: 10, title: 5, page: 1 } } });
      return module;
    });
    return pagefind;
  }

  async function show() {
    const query = (asked = field.value);
    let found;
    try {
      found = await find(query);
      await Promise.all(found.map(async (hit) => (hit.section = await hit.data())));
    } catch (error) {
      status.textContent = error.message;
      return;
    }
    if (query !== asked) return; // typed on in the meantime
    hits.replaceChildren(...found.map(listed));
    hits.dataset.query = query;
    status.textContent = !query.trim() ? "" : found.length ? `${found.length} sections, best first` : "Nothing found";
  }

  // Pagefind wants every word in a section; a report has words that no section has. So each word
  // is looked up by itself, and a section that has more of them comes first.
  async function find(query) {
    const { search } = await load();
    const all = query.toLowerCase().split(/[\s,;:?!"'()]+/).filter(Boolean);
    const telling = all.filter((word) => !common.has(word));
    const words = telling.length ? telling : all;
    const sections = new Map();
    for (const word of words) {
      for (const { id, score, words: places, data } of (await search(word)).results) {
        const section = sections.get(id) ?? { score: 0, words: 0, places: new Set(), data };
        section.score += score;
        section.words += 1;
        places.forEach((place) => section.places.add(place));
        sections.set(id, section);
      }
    }
    const weight = ({ score, words: matched }) => score * matched;
    return [...sections.values()].sort((a, b) => weight(b) - weight(a)).slice(0, shown);
  }

  function listed({ section, places }) {
    const link = element("a", { href: new URL(section.raw_url, site).href });
    const title = element("span", { className: "search-title", textContent: section.meta.title });
    link.append(title);
    if (section.meta.page !== section.meta.title)
      link.append(element("span", { className: "search-page", textContent: section.meta.page }));
    link.append(sentence(section.content.split(/\s+/), places));
    const item = element("li");
    item.append(link);
    return item;
  }

  // The sentence in which most of the words stand, or the first one; the words marked.
  function sentence(words, places) {
    let best, start = 0;
    words.forEach((word, end) => {
      if (!/[.?!]$/.test(word) && end < words.length - 1) return;
      const matches = [...places].filter((place) => start <= place && place <= end).length;
      if (!best || matches > best.matches) best = { start, end, matches };
      start = end + 1;
    });
    const line = element("span", { className: "search-sentence" });
    for (let i = best.start; i <= best.end; i++)
      line.append(places.has(i) ? element("mark", { textContent: words[i] }) : words[i], " ");
    return line;
  }

  function element(name, properties = {}) {
    return Object.assign(document.createElement(name), properties);
  }
})();
