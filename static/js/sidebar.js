/* The sidebar: rows come, move and go with the frames; rename in place, delete after a question. */

import { $, $$, composing, parse, post, wake } from "./dom.js";
import { toast } from "./toasts.js";

const rowOf = (id) => document.getElementById(`session-${id}`);

export function beginSidebar(socket) {
  const list = $("#session-list");
  if (!list) return;
  const current = () => $("#thread")?.dataset.session ?? "";
  socket?.addEventListener("frame", ({ detail }) => {
    if (detail.type === "session") placeRow(detail.session, parse(detail.html).querySelector(".session"), current());
    if (detail.type === "memory") $("#memory-count")?.replaceWith(parse(detail.html));
    if (detail.type === "session_gone") removeRow(detail.session, current());
  });
  socket?.addEventListener("state", () => {
    if (socket.state !== "gone") return;
    rowOf(current())?.remove();
    tidy(list);
  });
  document.addEventListener("recollect:fresh-page", ({ detail: page }) => {
    const count = page.getElementById("memory-count");
    if (count) $("#memory-count")?.replaceWith(document.importNode(count, true));
    const shown = page.getElementById("session-list");
    for (const row of [...(shown?.querySelectorAll(".session") ?? [])].reverse()) {
      placeRow(row.id.slice("session-".length), document.importNode(row, true), current());
    }
  });
  beginMenu(current);
}

/** Put a row where its last activity says; a row whose activity is unchanged stays in place. */
export function placeRow(id, row, current) {
  const list = $("#session-list");
  if (!list || !row) return;
  $("#session-none")?.remove();
  const shown = rowOf(id);
  if (id === current) {
    $("a", row).setAttribute("aria-current", "page");
    retitle($(".session-title", row).textContent.trim());
  }
  if (shown?.querySelector(".rename")) return; // It is being renamed just now.
  const activity = Number(row.dataset.activity);
  if (shown && Number(shown.dataset.activity) === activity) {
    shown.replaceWith(row);
    return wake(row);
  }
  const focused = shown?.contains(document.activeElement) ?? false;
  shown?.remove();
  const rows = $$(".session", list);
  const next = rows.find((other) => Number(other.dataset.activity) <= activity);
  const more = $(".more", list);
  if (!next && more) return tidy(list); // It lies behind what is loaded.
  if (next && next !== rows[0]) {
    next.before(row);
  } else if (next) {
    const heading = $(".group", list);
    if (heading?.dataset.group === row.dataset.group) {
      heading.after(row);
    } else {
      list.prepend(makeHeading(row.dataset.group), row);
    }
  } else {
    const last = rows.at(-1);
    if (!last || last.dataset.group !== row.dataset.group) list.append(makeHeading(row.dataset.group));
    list.append(row);
  }
  tidy(list);
  wake(row);
  if (focused) $("a", row).focus();
}

function makeHeading(group) {
  const heading = document.createElement("li");
  heading.className = "group";
  heading.dataset.group = group;
  heading.textContent = group;
  return heading;
}

/** A heading without rows goes. */
function tidy(list) {
  for (const heading of $$(".group", list)) {
    if (!heading.nextElementSibling?.classList.contains("session")) heading.remove();
  }
}

function removeRow(id, current) {
  rowOf(id)?.remove();
  tidy($("#session-list"));
  if (id !== current) return;
  const text = $("#composer-text");
  if (text) text.disabled = true;
  toast("This session was deleted.", { bad: true });
}

function retitle(title) {
  const heading = $("#session-title");
  // While it is being renamed the field stands there, with what was typed.
  if (heading && !$(".rename", heading) && heading.textContent !== title) heading.textContent = title;
  document.title = `${title} · Recollect`;
}

function beginMenu(current) {
  const menu = $("#session-menu");
  let chosen = null;
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".session-menu");
    if (button) return open(button);
    const act = event.target.closest("[data-session-act]")?.dataset.sessionAct;
    if (act && chosen) {
      menu.hidePopover();
      if (act === "rename") rename(chosen);
      else askDelete(chosen);
    }
    const renameId = event.target.closest("[data-rename-open]")?.dataset.renameOpen;
    if (renameId) rename(rowOf(renameId) ?? null, $("#session-title"));
    const deleteId = event.target.closest("[data-delete-open]")?.dataset.deleteOpen;
    if (deleteId) askDelete(rowOf(deleteId), deleteId);
  });

  function open(button) {
    const wasFor = chosen;
    chosen = button.closest(".session");
    if (menu.matches(":popover-open") && wasFor === chosen) return menu.hidePopover();
    menu.showPopover();
    const place = button.getBoundingClientRect();
    const height = menu.offsetHeight;
    const below = place.bottom + 4 + height < innerHeight;
    menu.style.top = `${below ? place.bottom + 4 : Math.max(4, place.top - height - 4)}px`;
    menu.style.left = `${Math.max(4, Math.min(place.right - menu.offsetWidth, innerWidth - menu.offsetWidth - 4))}px`;
    chosen.classList.add("menu-open");
    $("button", menu).focus();
  }
  menu.addEventListener("toggle", (event) => {
    if (event.newState !== "closed") return;
    $$(".session.menu-open").forEach((row) => row.classList.remove("menu-open"));
    if (menu.contains(document.activeElement) || document.activeElement === document.body) {
      $(".session-menu", chosen ?? document)?.focus();
    }
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape") $(".session-menu", chosen ?? document)?.focus();
  });

  const dialog = $("#session-delete");
  $("[data-session-delete]", dialog).addEventListener("submit", async (event) => {
    event.preventDefault();
    const { url, id } = dialog.dataset;
    try {
      await post(url);
    } catch (error) {
      if (error.status !== 404) return toast(error.message, { bad: true });
    }
    dialog.close();
    if (id === current()) return location.assign($(".side-new a").href);
    rowOf(id)?.remove();
    tidy($("#session-list"));
    toast("The session is deleted.");
  });

  function askDelete(row, id = row?.id.slice("session-".length)) {
    dialog.dataset.id = id;
    dialog.dataset.url = new URL("delete/", row ? $("a", row).href : location.href).pathname;
    const opener = document.activeElement;
    dialog.addEventListener("close", () => opener.checkVisibility?.() || toMenu(row, id === current()), { once: true });
    $("[data-session-name]", dialog).textContent = (row ? $(".session-title", row) : $("#session-title")).textContent.trim();
    dialog.showModal();
  }
}

/** Back to where the act was chosen: the open session's menu, or the row's. */
function toMenu(row, isOpen) {
  const opener = (isOpen && $(".bar .menu > summary")) || (row && $(".session-menu", row));
  opener?.focus();
}

/** Rename in place. Enter keeps, Escape leaves it; Enter of an input method does neither. */
function rename(row, heading = null) {
  const host = heading ?? row;
  const title = heading ?? $(".session-title", row);
  const address = row ? $("a", row).href : location.href;
  const before = title.textContent.trim();
  const form = document.createElement("form");
  form.className = "rename";
  const input = document.createElement("input");
  input.className = "rename-input";
  input.value = before;
  input.maxLength = 100;
  input.required = true;
  input.setAttribute("aria-label", "Title of the session");
  form.append(input);
  const kept = [...host.childNodes];
  host.replaceChildren(form);
  input.focus();
  input.select();
  let over = false;
  const back = () => (host === row ? $("a", row).focus() : toMenu(row, true));
  const restore = () => {
    over = true;
    host.replaceChildren(...kept);
  };
  const keep = async () => {
    if (over) return;
    const wanted = input.value.trim();
    const here = form.contains(document.activeElement);
    restore();
    if (here) back();
    if (!wanted || wanted === before) return;
    title.textContent = wanted;
    try {
      const response = await post(new URL("rename/", address).pathname, { title: wanted });
      const drawn = parse(await response.text()).querySelector(".session");
      if (drawn) placeRow(drawn.id.slice("session-".length), drawn, $("#thread")?.dataset.session ?? "");
      if (here && host === row && drawn) $("a", drawn).focus();
    } catch (error) {
      title.textContent = before;
      toast(error.message, { bad: true });
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
  });
  input.addEventListener("keydown", (event) => {
    if (composing(event)) return;
    if (event.key === "Enter") {
      event.preventDefault();
      keep();
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      restore();
      back();
    }
  });
  input.addEventListener("blur", keep);
}
