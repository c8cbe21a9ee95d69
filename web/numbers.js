// Each number of the prose opens a card: the line it stands in, the code behind it, the way there.
// tools/number_links.py writes the links (their data-at says where each number stands) and what
// the cards show. Without this script, or without popovers, a link leads to its cell.
(() => {
  const data = document.getElementById("number-cards");
  const links = [...document.querySelectorAll("a.number")];
  if (!data || !HTMLElement.prototype.showPopover) return;
  const { commit, cards } = JSON.parse(data.textContent);
  const stale = "No longer from this page's values.";

  // As in tools/prose_rules.py.
  const value = String.raw`[+-]?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?`;
  const letter = String.raw`[\p{L}\p{N}_`;
  const number = new RegExp(
    String.raw`(?<!${letter}.])(?<!\d[,/])${value}(?:\/\d+)?[%×]?(?!${letter}])`,
    "gu",
  );

  const card = element("div", { id: "number-card", className: "number-card", popover: "auto" });
  card.setAttribute("role", "group");
  let shown; // the link whose card is open
  let waiting; // until a card that the pointer has left or has not yet rested on
  let quiet = false; // focus that returns to a link opens no card

  for (const link of links) {
    link.setAttribute("aria-haspopup", "dialog");
    link.setAttribute("aria-expanded", "false");
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      open(link);
    });
    link.addEventListener("focus", () => {
      if (!quiet && link.matches(":focus-visible")) open(link);
    });
    link.addEventListener("blur", ({ relatedTarget }) => leave(relatedTarget));
    link.addEventListener("pointerenter", ({ pointerType }) => {
      if (pointerType === "mouse") later(() => open(link), 250);
    });
    link.addEventListener("pointerleave", ({ pointerType }) => {
      if (pointerType === "mouse") later(leaveWithPointer, 300);
    });
  }
  card.addEventListener("pointerenter", () => clearTimeout(waiting));
  card.addEventListener("pointerleave", ({ pointerType }) => {
    if (pointerType === "mouse") later(leaveWithPointer, 300);
  });
  card.addEventListener("focusout", ({ relatedTarget }) => leave(relatedTarget));
  card.addEventListener("beforetoggle", ({ newState }) => {
    if (newState !== "closed") return;
    shown.setAttribute("aria-expanded", "false");
    shown.removeAttribute("aria-describedby");
    shown.style.anchorName = "";
    if (card.contains(document.activeElement)) focusQuietly(shown);
    shown = undefined;
  });

  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") close();
  });

  function later(action, milliseconds) {
    clearTimeout(waiting);
    waiting = setTimeout(action, milliseconds);
  }

  function leave(next) {
    if (next && next !== shown && !card.contains(next)) close();
  }

  function leaveWithPointer() {
    if (shown && shown !== document.activeElement && !card.contains(document.activeElement)) close();
  }

  function close() {
    if (shown) card.hidePopover();
  }

  function focusQuietly(target) {
    quiet = true;
    target.focus({ preventScroll: true });
    quiet = false;
  }

  function open(link) {
    clearTimeout(waiting);
    if (shown === link) return;
    close();
    shown = link;
    link.after(card); // Tab leads from the number into its card
    card.setAttribute("aria-label", `Where ${nameOf(link)} comes from`);
    fill(link);
    link.style.anchorName = "--number";
    card.showPopover();
    if (!CSS.supports("position-area: bottom")) place(link);
    link.setAttribute("aria-expanded", "true");
    link.setAttribute("aria-describedby", "number-card-line");
  }

  // For browsers that cannot anchor: below the number, or above it where there is no room.
  function place(link) {
    const at = link.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = card;
    const below = at.bottom + 6 + height <= innerHeight;
    Object.assign(card.style, {
      left: `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`,
      top: `${below ? at.bottom + 6 : Math.max(8, at.top - height - 6)}px`,
    });
  }

  function fill(link) {
    const line = element("div", { id: "number-card-line" });
    card.replaceChildren(line);
    if (link.dataset.stale !== undefined) line.append(element("p", { className: "number-then", textContent: link.dataset.stale }));
    for (const at of addresses(link)) line.append(evidence(at));
    const code = new Set(addresses(link).flatMap((at) => cards[at].code ?? []));
    if (code.size) card.append(element("pre", { className: "number-code", textContent: [...code].join("\n") }));
    const from = element("p", { className: "number-from" });
    const functions = new Set(addresses(link).flatMap((at) => cards[at].by));
    for (const name of functions) {
      const api = element("a", { href: `api.html#grpo.${name}` });
      api.append(element("code", { textContent: name }));
      from.append(from.hasChildNodes() ? " and " : "from ", api);
    }
    from.append(`${functions.size ? " · c" : "C"}hecked by `, element("code", { textContent: "make test" }));
    if (commit) from.append(`, ${commit}`);
    const there = element("a", { href: link.hash, textContent: "go to the cell", className: "number-go" });
    there.addEventListener("click", (event) => {
      event.preventDefault();
      close();
      history.pushState(null, "", link.hash);
      go(link);
    });
    card.append(from, element("p", {}));
    card.lastChild.append(there);
  }

  function evidence(at) {
    const { line, row, column, number: text } = cards[at];
    if (line !== undefined) {
      const shownLine = element("pre", {});
      const [, start, end] = tokens(line)[at.split("/")[3]];
      shownLine.append(line.slice(0, start), element("mark", { textContent: line.slice(start, end) }), line.slice(end));
      return shownLine;
    }
    const table = outputOf(at)?.closest("table") ?? outputOf(at)?.querySelector("table");
    if (!table) return element("pre", { textContent: text });
    const copy = element("table", {});
    const rows = [table.rows[0], ...(row ? [table.rows[row]] : [])].map((one) => one.cloneNode(true));
    copy.createTHead().append(rows[0]);
    copy.createTBody().append(...rows.slice(1));
    markIn(rows.at(-1).cells[column], text);
    const holder = element("div", { className: "number-row", tabIndex: 0 });
    holder.append(copy);
    return holder;
  }

  // Marks a number in a cell of a table, or the whole cell if mathematics hides its characters.
  function markIn(cell, text) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const at = walker.currentNode.data.indexOf(text);
      if (at < 0) continue;
      const found = walker.currentNode.splitText(at);
      found.splitText(text.length);
      const mark = element("mark", {});
      found.replaceWith(mark);
      return mark.append(found);
    }
    cell.classList.add("number-marked");
  }

  function go(link) {
    const [at] = addresses(link);
    const cell = document.getElementById(link.hash.slice(1));
    const stored = at.split("/")[1] === "code" ? cell.querySelector(".cell_input") : outputOf(at);
    const target = stored && cell.contains(stored) && !stored.closest("[hidden]") ? stored : cell;
    reveal(target);
    document.querySelector(".number-back")?.remove();
    const back = element("p", { className: "number-back" });
    const number = element("a", { href: "#", textContent: `back to ${nameOf(link)}` });
    number.addEventListener("click", (event) => {
      event.preventDefault();
      back.remove();
      reveal(link);
      focusQuietly(link);
      scrollTo(link);
    });
    back.append(number);
    (target.closest(".pst-scrollable-table-container") ?? target).before(back);
    target.tabIndex = -1;
    target.focus({ preventScroll: true });
    scrollTo(back);
  }

  function reveal(target) {
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  }

  function scrollTo(target) {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    target.scrollIntoView({ block: "center", behavior: still ? "instant" : "smooth" });
  }

  function nameOf(link) {
    return link.ariaLabel ?? link.textContent.trim();
  }

  function addresses(link) {
    return link.dataset.at.split(" ");
  }

  function outputOf(at) {
    const [cell, output] = at.split("/");
    return document.getElementById(`out-${cell}-${output}`);
  }

  function tokens(line) {
    return [...line.matchAll(number)].flatMap(({ 0: text, index }) => {
      const whole = [text, index, index + text.length];
      const slash = text.indexOf("/");
      if (slash < 0) return [whole];
      const end = text.replace(/[%×]+$/, "").length;
      return [
        whole,
        [text.slice(0, slash), index, index + slash],
        [text.slice(slash + 1, end), index + slash + 1, index + end],
      ];
    });
  }

  // After a reader's run of a cell, or its reset: says of each number whether it still stands there.
  function refresh(root, code) {
    const cell = root.closest("[id^='cell-']") ?? root;
    for (const link of links) {
      const own = addresses(link).filter((at) => `cell-${at.split("/")[0]}` === cell.id);
      if (!own.length) continue;
      const changes = own.map((at) => change(at, cell, code)).filter(Boolean);
      link.classList.toggle("number-stale", changes.length > 0);
      if (changes.length) {
        link.dataset.stale = [stale, ...changes].join(" ");
        link.setAttribute("aria-description", stale);
      } else {
        delete link.dataset.stale;
        link.removeAttribute("aria-description");
      }
    }
  }

  // Returns what became of the number at a position, in words, or nothing if it is as it was.
  function change(at, cell, code) {
    const [, output, line, token] = at.split("/");
    const { line: old, row, column, number: text } = cards[at];
    if (output === "code") {
      const lines = code.split("\n").map((one) => one.trim());
      if (lines.includes(old)) return "";
      return inWords(tokens(old)[token][0], tokens(lines[line] ?? "")[token]?.[0]);
    }
    if (!storedParts(cell).some((one) => one.hidden)) return "";
    const outputs = [...document.querySelectorAll(`.live-output[data-cell="${cell.id}"] > [data-kind]`)];
    outputs.sort((a, b) => a.dataset.index - b.dataset.index);
    if (row === undefined) {
      const printed = outputs.flatMap((one) => plain(one).split("\n"));
      if (printed.includes(old)) return "";
      const now = tokens(plain(outputs[output]).split("\n")[line] ?? "")[token]?.[0];
      return inWords(tokens(old)[token][0], now);
    }
    const before = outputOf(at)?.closest("table")?.rows[row];
    const rows = outputs.flatMap((one) => [...one.querySelectorAll("tr")]);
    if (rows.some((one) => cells(one) === cells(before))) return "";
    const own = outputs[output]?.querySelectorAll("tr")[row]?.cells[column];
    const [now] = own ? tokens(own.textContent).map(([found]) => found) : [];
    return now === text ? "" : inWords(text, now);
  }

  // The stored outputs of a cell: those above its fold, and those that stay with its code.
  function storedParts(cell) {
    const parts = [...cell.querySelectorAll(".cell_output:not(.live-output)")];
    const above = document.getElementById(cell.id.replace("cell-", "shown-"));
    return above ? [above, ...parts] : parts;
  }

  function inWords(before, now) {
    return `In the book: ${before}. ${now === undefined ? "Your run has no number there." : `In your run: ${now}.`}`;
  }

  function plain(output) {
    if (!output) return "";
    const caption = output.querySelector("strong"); // of a table
    return output.tagName === "PRE" ? output.textContent : (caption?.textContent ?? output.textContent);
  }

  // The text of a row without its mathematics, which is drawn in the stored one.
  function cells(row) {
    return [...row.cells].map((one) => (one.querySelector(".math, mjx-container") ? "" : one.textContent.trim())).join("|");
  }

  function element(tag, properties) {
    return Object.assign(document.createElement(tag), properties);
  }

  function revealAddress() {
    const target = location.hash.startsWith("#cell-") && document.getElementById(location.hash.slice(1));
    if (target) reveal(target);
  }
  addEventListener("hashchange", revealAddress);
  revealAddress();

  window.bookNumbers = { refresh };
})();
