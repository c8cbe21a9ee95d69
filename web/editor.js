// The editor of a live cell, and Markdown for its outputs. Bundled into one file by esbuild.
import { python } from "@codemirror/lang-python";
import { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { Prec } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { minimalSetup } from "codemirror";
import { marked } from "marked";

// The colours are set in live.css, for light and for dark pages.
const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: "var(--live-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--live-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--live-number)" },
  { tag: tags.comment, color: "var(--live-comment)", fontStyle: "italic" },
]);

// Tab is left to the browser, so that the keyboard can leave the editor.
export function createEditor(parent, code, label, run) {
  const runKey = { run: () => (run(), true) };
  return new EditorView({
    parent,
    doc: code,
    extensions: [
      Prec.highest(keymap.of([{ key: "Ctrl-Enter", ...runKey }, { key: "Mod-Enter", ...runKey }, { key: "Shift-Enter", ...runKey }])),
      syntaxHighlighting(colours),
      minimalSetup,
      python(),
      indentUnit.of("    "),
      EditorView.contentAttributes.of({ "aria-label": label }),
    ],
  });
}

// $x$ becomes what MathJax looks for on these pages.
const mathematics = {
  name: "mathematics",
  level: "inline",
  start: (text) => text.indexOf("$"),
  tokenizer(text) {
    const match = /^\$([^$\n]+)\$/.exec(text);
    return match ? { type: "mathematics", raw: match[0], text: match[1] } : undefined;
  },
  renderer: ({ text }) => `<span class="math">\\(${text.replaceAll("<", "&lt;")}\\)</span>`,
};
marked.use({ extensions: [mathematics] });

export function renderMarkdown(text) {
  return marked.parse(text);
}
