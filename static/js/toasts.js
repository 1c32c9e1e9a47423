/* Toasts: what just happened, for a while; with Undo for 30 seconds. */

import { $, $$, fromTemplate } from "./dom.js";

const SHOWN_FOR = 6_000;
const UNDO_FOR = 30_000;
const AT_MOST = 3;

const box = () => document.getElementById("notices");

/** Show a sentence; with `undo` (a function) it carries the button and stays for 30 s. */
export function toast(text, { undo = null, label = "Undo", bad = false } = {}) {
  const element = fromTemplate("template-toast");
  $(".toast-text", element).textContent = text;
  if (bad) element.setAttribute("role", "alert");
  const act = $(".toast-act", element);
  if (undo) {
    act.hidden = false;
    act.textContent = label;
    act.addEventListener("click", () => {
      element.remove();
      undo();
    });
  }
  show(element, undo ? UNDO_FOR : bad ? 2 * SHOWN_FOR : SHOWN_FOR);
  return element;
}

function show(element, time) {
  const place = box();
  place.append(element);
  while (place.children.length > AT_MOST) place.firstElementChild.remove();
  $('[aria-label="Close"]', element)?.addEventListener("click", () => element.remove());
  let left = time;
  let since = Date.now();
  let timer = setTimeout(() => element.remove(), left);
  const pause = () => {
    clearTimeout(timer);
    left -= Date.now() - since;
  };
  const go = () => {
    since = Date.now();
    timer = setTimeout(() => element.remove(), Math.max(left, 2_000));
  };
  element.addEventListener("pointerenter", pause);
  element.addEventListener("pointerleave", go);
  element.addEventListener("focusin", pause);
  element.addEventListener("focusout", go);
}

/** Those that the server wrote (messages, errors of htmx) get a close button and a time. */
export function beginToasts() {
  const place = box();
  if (!place) return;
  if (place.showPopover) {
    place.popover = "manual"; // Above an open dialog; without JavaScript it is just there.
    place.showPopover();
  }
  const adopt = (written) => {
    const text = written.textContent.trim();
    const bad = written.dataset.toast === "error";
    written.remove();
    if (text) toast(text, { bad });
  };
  $$("[data-toast]", place).forEach(adopt);
  new MutationObserver(() => {
    $$("[data-toast]", place).forEach(adopt);
  }).observe(place, { childList: true });
}
