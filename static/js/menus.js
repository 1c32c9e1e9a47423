/* Menus, the drawer, dialogs and the sheet: keys, focus, and a way out of each. */

import { $, $$ } from "./dom.js";

const PHONE = matchMedia("(width < 700px)");

export function beginMenus() {
  document.addEventListener("click", (event) => {
    for (const menu of $$("details.menu[open]")) {
      const inside = menu.contains(event.target);
      if (!inside || event.target.closest(".menu-panel button.menu-item")) menu.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    const menu = event.target.closest?.("details.menu[open]");
    if (event.key === "Escape") {
      const open = menu ?? $("details.menu[open]");
      if (open) {
        open.open = false;
        $("summary", open).focus();
        event.preventDefault();
      }
      return;
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const panel = menu ? $(".menu-panel", menu) : event.target.closest?.("[popover].menu-panel");
    if (!panel || event.target.matches("input, textarea")) return;
    const items = $$("a, button", panel).filter((item) => item.checkVisibility?.() ?? true);
    if (!items.length) return;
    const at = items.indexOf(document.activeElement);
    const step = event.key === "ArrowDown" ? 1 : -1;
    items[(at + step + items.length) % items.length].focus();
    event.preventDefault();
  });
  beginDrawer();
  beginDialogs();
  showWhereOneIs();
  document.addEventListener("htmx:afterSettle", showWhereOneIs);
}

/** Where a row of segments is wider than a phone, the one that stands for this page is in sight. */
function showWhereOneIs() {
  for (const row of $$(".segments")) {
    const here = $("[aria-current]", row);
    const beyond = here ? here.getBoundingClientRect().right - row.getBoundingClientRect().right : 0;
    if (beyond > 0) row.scrollLeft += beyond + 16;
  }
}

function beginDrawer() {
  const side = $("#side");
  const main = $("#main");
  if (!side) return;
  let opener = null;
  const isOpen = () => document.body.classList.contains("drawer-shown");
  const set = (open) => {
    document.body.classList.toggle("drawer-shown", open);
    main.inert = open;
    if (open) $(".drawer-close", side).focus();
    else opener?.focus();
  };
  document.addEventListener("click", (event) => {
    const act = event.target.closest("[data-drawer]");
    if (!act) return;
    event.preventDefault();
    if (act.dataset.drawer === "open") opener = act;
    set(act.dataset.drawer === "open");
  });
  document.addEventListener("keydown", (event) => {
    const other = $("dialog:modal, [popover].menu-panel:popover-open"); // Escape closes that one.
    if (event.key === "Escape" && isOpen() && !event.defaultPrevented && !other) set(false);
  });
  PHONE.addEventListener("change", () => isOpen() && set(false));
}

function beginDialogs() {
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-close]")) event.target.closest("dialog")?.close();
    else if (event.target instanceof HTMLDialogElement && event.target.matches(":modal")) {
      const box = event.target.getBoundingClientRect();
      const inside =
        event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
      if (!inside) event.target.close();
    }
  });
  const sheet = $("#sheet");
  if (!sheet) return;
  let opener = null;
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-sheet]");
    if (!link) return;
    opener = link;
    $("#sheet-title").textContent = link.dataset.sheet;
    $("#sheet-body").replaceChildren();
    if (sheet.open) return;
    if (PHONE.matches) sheet.showModal();
    else sheet.show();
  });
  sheet.addEventListener("close", () => opener?.isConnected && opener.focus());
  sheet.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !sheet.matches(":modal")) sheet.close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && sheet.open && !event.defaultPrevented && !sheet.matches(":modal")) sheet.close();
  });
}

/** Ask before an act: gives true when the person agrees. */
export function ask(sentence, { act = "Yes", keep = "Cancel" } = {}) {
  const dialog = document.createElement("dialog");
  dialog.className = "dialog";
  const form = document.createElement("form");
  form.method = "dialog";
  const text = document.createElement("p");
  text.textContent = sentence;
  text.id = "asked";
  dialog.setAttribute("aria-labelledby", text.id);
  const buttons = document.createElement("div");
  buttons.className = "buttons";
  const no = document.createElement("button");
  no.className = "button";
  no.value = "no";
  no.autofocus = true;
  no.textContent = keep;
  const yes = document.createElement("button");
  yes.className = "button danger final";
  yes.value = "yes";
  yes.textContent = act;
  buttons.append(no, yes);
  form.append(text, buttons);
  dialog.append(form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((settle) => {
    dialog.addEventListener("close", () => {
      settle(dialog.returnValue === "yes");
      dialog.remove();
    });
  });
}
