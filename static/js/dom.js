/* Small things that every module needs. */

export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

const meta = (name) => $(`meta[name="${name}"]`)?.content ?? "";

/** A copy of the <template> with this id. */
export const fromTemplate = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);

/** The elements that this HTML from our own server makes. Scripts in it never run. */
export function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

/** Let htmx know what a frame brought. */
export function wake(element) {
  window.htmx?.process(element);
  document.dispatchEvent(new CustomEvent("recollect:drawn", { detail: element }));
}

/** An icon of the sprite. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `${meta("icons")}#${name}`);
  svg.append(use);
  return svg;
}

export const csrfToken = () => meta("csrf-token");

/** What the server said was wrong, in its own words; or ours. */
export class Refused extends Error {
  constructor(status, message) {
    super(message || (status === 0 ? "The server cannot be reached." : "That did not work. Try again."));
    this.status = status;
  }
}

/** POST a form's fields; gives the Response, or throws Refused with a sentence for the person. */
export async function post(url, fields = {}, { json = false, keepalive = false } = {}) {
  let response;
  try {
    response = await fetch(url, {
      method: "POST",
      body: fields instanceof FormData ? fields : new URLSearchParams(fields),
      headers: {
        "X-CSRFToken": csrfToken(),
        "HX-Request": "true",
        ...(json ? { Accept: "application/json" } : {}),
      },
      credentials: "same-origin",
      keepalive, // The request outlives the page; such a body may have 64 KiB at most.
    });
  } catch {
    throw new Refused(0);
  }
  if (response.ok) return response;
  let message = "";
  if (response.headers.get("Content-Type")?.includes("json")) {
    const body = await response.json().catch(() => ({}));
    message = body.error?.message ?? body.message ?? "";
  } else if (response.headers.get("HX-Retarget")) {
    message = parse(await response.text()).textContent.trim();
  }
  throw new Refused(response.status, message);
}

/** Let the sidebar read anew how much is remembered. */
export const memoryChanged = () => document.dispatchEvent(new Event("recollect:memory"));

/** Say something to a screen reader. */
export function announce(text) {
  const announcer = document.getElementById("announcer");
  if (announcer) announcer.textContent = text;
}

/** 128 random bits as a UUID; crypto.randomUUID is missing on plain http away from localhost. */
export function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** Whether this key belongs to an input method, and is not for us. */
export const composing = (event) => event.isComposing || event.keyCode === 229;

/** Enter alone, and not to choose a word of an input method. */
export const plainEnter = (event) =>
  event.key === "Enter" &&
  !event.shiftKey &&
  !event.ctrlKey &&
  !event.altKey &&
  !event.metaKey &&
  !composing(event);
