/* Forms: typed confirmation, questions before an act, Enter in a text area, Undo that runs out. */

import { $, $$, memoryChanged, parse, plainEnter, post } from "./dom.js";
import { ask } from "./menus.js";
import { forgetAll } from "./store.js";
import { toast } from "./toasts.js";

const same = (typed, phrase) => typed.trim().toLowerCase() === phrase.trim().toLowerCase();

export function beginForms() {
  for (const form of $$("form[data-confirm]")) {
    const input = $("[data-phrase]", form);
    const button = $(".final", form);
    const check = () => (button.disabled = !same(input.value, input.dataset.phrase));
    input.addEventListener("input", check);
    check();
  }
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.matches("[data-logout], [data-forget-drafts]")) forgetAll();
    if (form.matches("[data-ask]") && !form.dataset.agreed) {
      event.preventDefault();
      const act = event.submitter?.textContent.replace(/\(.*|…/g, "").trim();
      if (!(await ask(form.dataset.ask, { act }))) return;
      form.dataset.agreed = "yes";
      form.requestSubmit(event.submitter);
    }
    if (form.matches("[data-forget]")) {
      event.preventDefault();
      forget(form);
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.matches?.("[data-enter-sends]") && plainEnter(event)) {
      event.preventDefault();
      if (event.target.value.trim()) event.target.form.requestSubmit();
    }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-fill]");
    if (!button) return;
    const input = $(button.dataset.fill);
    input.value = button.dataset.value;
    input.focus();
  });
  for (const input of $$('input[name="time_zone"]')) {
    if (!input.value || (input.type === "hidden" && input.value === "UTC")) {
      input.value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";
    }
  }
  $$('main input[type="password"]').forEach(letSee);
  toWhatIsWrong();
  letUndoRunOut(document);
  document.addEventListener("recollect:drawn", ({ detail }) => letUndoRunOut(detail));
  document.addEventListener("htmx:afterSettle", ({ detail }) => letUndoRunOut(detail.elt?.parentNode ?? document));
}

/** What is typed unseen can be looked at. */
function letSee(input) {
  const frame = document.createElement("div");
  const button = document.createElement("button");
  frame.className = "secret";
  button.type = "button";
  button.textContent = "Show";
  button.setAttribute("aria-controls", input.id);
  const focused = document.activeElement === input;
  input.replaceWith(frame);
  frame.append(input, button);
  if (focused) input.focus();
  button.addEventListener("click", () => {
    const seen = input.type === "text";
    input.type = seen ? "password" : "text";
    button.textContent = seen ? "Show" : "Hide";
  });
  input.form?.addEventListener("submit", () => (input.type = "password")); // No browser keeps it as a text.
}

/** A form that came back begins at what is wrong; without a field that is, at the first empty one. */
function toWhatIsWrong() {
  const wrong = $('main [aria-invalid="true"]:not([type="hidden"])');
  const form = $('main form:has([role="alert"])');
  const empty = form && $$("input:not([type=hidden])", form).find((input) => !input.value);
  (wrong ?? empty)?.focus();
}

/** Forget a memory away from its list: it goes at once, and Undo stands for 30 seconds. */
async function forget(form) {
  const element = $(form.dataset.forget);
  const place = document.createComment("");
  let version = "";
  try {
    const gone = parse(await (await post(form.getAttribute("action"))).text());
    version = $('[name="version"]', gone)?.value ?? "";
  } catch (error) {
    return toast(error.message, { bad: true });
  }
  element.replaceWith(place);
  memoryChanged();
  toast("Forgotten.", {
    undo: async () => {
      try {
        await post(form.dataset.undo, { version });
        place.replaceWith(element);
        memoryChanged();
      } catch (error) {
        toast(error.message, { bad: true });
      }
    },
  });
}

/** "Undo" is what it is called for 30 seconds; after that the same act is "Forget". */
function letUndoRunOut(root) {
  for (const button of root.querySelectorAll?.("[data-undo-for]") ?? []) {
    const seconds = Number(button.dataset.undoFor);
    button.removeAttribute("data-undo-for");
    setTimeout(() => (button.textContent = "Forget"), seconds * 1_000);
  }
}
