/* Keys on the memory page: j and k move, a accepts what waits, e edits, x forgets, u undoes, / searches. */

import { $, $$, composing } from "./dom.js";

export function beginMemory() {
  if (!$("#memory-list")) return;
  const rows = () => $$("[data-memory]");
  const chosen = () => document.activeElement?.closest?.("[data-memory]");
  const press = (act) => {
    const button = $(`[data-act="${act}"]`, chosen() ?? document.createElement("div"));
    button?.click();
    return Boolean(button);
  };
  const move = (step) => {
    const all = rows();
    if (!all.length) return;
    const at = all.indexOf(chosen());
    const next = all[Math.min(all.length - 1, Math.max(0, at + step))] ?? all[0];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("keydown", (event) => {
    if (composing(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches?.("input, textarea, select");
    if (event.key === "Escape" && typing) {
      const cancel = $('[data-act="cancel"]', event.target.closest("[data-memory]") ?? document.createElement("div"));
      if (cancel) cancel.click();
      return;
    }
    if (typing || $("dialog[open]")) return;
    const keys = {
      j: () => move(1),
      k: () => move(-1),
      a: () => press("accept"),
      e: () => press("edit"),
      x: () => press("delete"),
      u: () => press("undo") || $$('[data-act="undo"]').at(-1)?.click(),
      "/": () => $("#memory-q")?.focus(),
    };
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  /* The row that was drawn anew keeps the focus. */
  let id = "";
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.target?.matches?.("[data-memory]")) id = detail.target.id;
  });
  document.addEventListener("htmx:afterSettle", () => {
    const row = id && document.getElementById(id);
    id = "";
    if (row && !row.contains(document.activeElement)) row.focus();
  });
}
