/* Copy: code blocks, replies, links. */

import { $, $$, announce, icon } from "./dom.js";
import { toast } from "./toasts.js";

async function writeText(text) {
  if (navigator.clipboard?.writeText) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea"); // On plain http there is no clipboard of its own.
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("not copied");
}

async function writeRich(element) {
  const text = element.innerText.trim();
  if (!navigator.clipboard?.write || !window.ClipboardItem) return writeText(text);
  const clean = element.cloneNode(true);
  $$(".code-bar", clean).forEach((bar) => bar.remove());
  const item = new ClipboardItem({
    "text/plain": new Blob([text], { type: "text/plain" }),
    "text/html": new Blob([clean.innerHTML], { type: "text/html" }),
  });
  return navigator.clipboard.write([item]).catch(() => writeText(text));
}

async function copy(button, act) {
  try {
    await act();
    announce("Copied.");
    const use = $("use", button);
    if (use) {
      const before = use.getAttribute("href");
      use.setAttribute("href", before.replace(/#.*$/, "#check"));
      setTimeout(() => use.setAttribute("href", before), 1_500);
    } else {
      const before = button.textContent;
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = before), 1_500);
    }
  } catch {
    toast("It could not be copied. Select it and copy by hand.", { bad: true });
  }
}

/** A task list's boxes say what they mean. */
function nameBoxes(root) {
  for (const box of root.querySelectorAll('.prose input[type="checkbox"]:not([aria-label])')) {
    box.setAttribute("aria-label", box.checked ? "Done" : "Not done");
  }
}

/** Give each code block of a finished part its bar: the language, and copy. */
function dressCode(root) {
  const blocks = root.querySelectorAll(".closed pre:not(.code-block pre)");
  for (const pre of blocks) {
    const frame = document.createElement("div");
    frame.className = "code-block";
    const bar = document.createElement("div");
    bar.className = "code-bar";
    const language = [...($("code", pre)?.classList ?? [])].find((name) => name.startsWith("language-"));
    if (language) {
      const label = document.createElement("span");
      label.textContent = language.slice("language-".length);
      bar.append(label);
    }
    const button = document.createElement("button");
    button.type = "button";
    button.className = "icon-button small";
    button.setAttribute("aria-label", "Copy the code");
    button.title = "Copy";
    button.append(icon("copy"));
    bar.append(button);
    pre.tabIndex = 0;
    pre.replaceWith(frame);
    frame.append(pre, bar);
  }
}

export function beginCopy() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.closest(".code-bar")) {
      const pre = $("pre", button.closest(".code-block"));
      copy(button, () => writeText(pre.textContent.replace(/\n$/, "")));
    } else if (button.matches("[data-copy-reply]")) {
      copy(button, () => writeRich($(".closed", button.closest(".reply"))));
    } else if (button.dataset.copy) {
      copy(button, () => writeText($(button.dataset.copy).value));
    }
  });
  document.addEventListener("focusin", (event) => {
    if (event.target.matches?.("[data-select]")) event.target.select();
  });
  const dress = (root) => {
    dressCode(root);
    nameBoxes(root);
  };
  dress(document);
  document.addEventListener("recollect:drawn", ({ detail }) => dress(detail));
  document.addEventListener("htmx:load", ({ detail }) => dress(detail.elt));
}
