/* The composer: nothing typed is lost, and nothing is sent twice. */

import { $, composing, plainEnter, post, uuid } from "./dom.js";
import { read, write } from "./store.js";

const LARGEST = 64 * 1024;
const RESEND_AFTER = 10_000;

export class Composer {
  #form = $("#composer");
  #text = $("#composer-text");
  #send = $("#send");
  #stop = $("#stop");
  #socket;
  #thread;
  #status;
  #session;
  #outbox = [];
  #timer = 0;
  #running = false;
  #stopAsked = "";
  #newClientId = "";
  #busy = false;

  constructor(socket, thread, status) {
    this.#socket = socket;
    this.#thread = thread;
    this.#status = status;
    this.#session = this.#form.dataset.session ?? "";
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#text.addEventListener("keydown", (event) => {
      if (composing(event)) return;
      if (plainEnter(event)) {
        event.preventDefault();
        this.#submit();
      }
    });
    this.#text.addEventListener("input", () => this.#changed());
    this.#stop?.addEventListener("click", () => this.#askStop());
    document.addEventListener("click", (event) => {
      const suggestion = event.target.closest("[data-suggest]");
      if (suggestion) this.fill(suggestion.dataset.suggest);
    });
    this.#restoreDraft();
    this.#growWithoutSupport();
    thread.addEventListener("running", ({ detail }) => {
      this.#running = detail;
      if (!detail) this.#stopAsked = "";
      this.#draw();
    });
    if (this.#session) this.#beginOutbox();
    this.#running = thread.running.length > 0;
    this.#draw();
  }

  /** Put this text into the composer, with the cursor behind it. */
  fill(text) {
    this.#text.value = text;
    this.#text.focus();
    this.#text.setSelectionRange(text.length, text.length);
    this.#changed();
  }

  // ---- typing

  get #draftKey() {
    return `draft:${this.#session || location.pathname}`;
  }

  #restoreDraft() {
    if (!this.#text.value) this.#text.value = read(this.#draftKey, "");
    if (matchMedia("(hover: hover)").matches && !location.hash) this.#text.focus();
  }

  #changed() {
    write(this.#draftKey, this.#text.value);
    this.#newClientId = "";
    this.#status.note("");
    this.#grow();
    this.#draw();
  }

  #growWithoutSupport() {
    if (CSS.supports("field-sizing", "content")) return;
    this.#grow = () => {
      this.#text.style.height = "auto";
      this.#text.style.height = `${this.#text.scrollHeight}px`;
    };
    this.#grow();
  }

  #grow = () => {};

  #draw() {
    const empty = !this.#text.value.trim();
    this.#send.setAttribute("aria-disabled", String(empty || this.#busy));
    if (!this.#stop) return;
    this.#stop.hidden = !this.#running;
    this.#stop.disabled = Boolean(this.#stopAsked);
    this.#send.hidden = this.#running && empty;
  }

  // ---- sending

  #submit() {
    const text = this.#text.value.trim();
    if (!text || this.#busy) return;
    const size = new TextEncoder().encode(text).length;
    if (size > LARGEST) {
      const kilobytes = Math.ceil(size / 1024);
      this.#status.note(`This message has ${kilobytes} KB; at most 64 KB can be sent at once. Shorten it, or send it in parts.`, { bad: true });
      return;
    }
    if (this.#session) this.#queue(text);
    else this.#begin(text);
  }

  /** The first message makes the session; the server gives its address. */
  async #begin(text) {
    this.#busy = true;
    this.#newClientId ||= uuid();
    this.#status.note("Sending …");
    this.#draw();
    try {
      const response = await post(this.#form.action, { text, client_id: this.#newClientId }, { json: true });
      const { url } = await response.json();
      write(this.#draftKey, null);
      location.assign(url);
    } catch (error) {
      this.#busy = false;
      this.#status.note(`${error.message} Your message is kept here.`, { bad: true });
      this.#draw();
    }
  }

  #queue(text) {
    const entry = { text, client_id: uuid() };
    this.#outbox.push(entry);
    this.#keep();
    this.#text.value = "";
    this.#changed();
    this.#thread.addSending(text, entry.client_id);
    this.#deliver(entry);
    if (this.#socket.state !== "open") this.#status.note("Your message is kept, and is sent when the connection is back.");
  }

  #deliver(entry) {
    this.#socket.send({ type: "message", text: entry.text, client_id: entry.client_id });
    this.#watch();
  }

  /** Ask again, with the same client_id, until the server says that it is stored. */
  #watch() {
    clearTimeout(this.#timer);
    if (!this.#outbox.length) return;
    this.#timer = setTimeout(() => {
      if (this.#socket.state === "open") this.#outbox.forEach((entry) => this.#deliver(entry));
      this.#watch();
    }, RESEND_AFTER);
  }

  #keep() {
    write(`outbox:${this.#session}`, this.#outbox);
  }

  #beginOutbox() {
    const shown = (entry) => entry?.client_id && entry.text;
    this.#outbox = read(`outbox:${this.#session}`, []).filter(shown);
    for (const entry of this.#outbox) this.#thread.addSending(entry.text, entry.client_id);
    this.#socket.addEventListener("frame", ({ detail }) => {
      if (detail.type !== "hello") return;
      this.#outbox.forEach((entry) => this.#deliver(entry));
      if (this.#stopAsked) this.#socket.send({ type: "stop", reply: this.#stopAsked });
    });
    this.#thread.addEventListener("stored", ({ detail }) => {
      this.#taken(detail.client_id);
      this.#status.note("");
    });
    this.#thread.addEventListener("refused", ({ detail }) => this.#refused(detail));
  }

  #taken(clientId) {
    const entry = this.#outbox.find((other) => other.client_id === clientId);
    this.#outbox = this.#outbox.filter((other) => other !== entry);
    this.#keep();
    this.#watch();
    return entry;
  }

  #refused({ client_id: clientId, message }) {
    const entry = clientId ? this.#taken(clientId) : null;
    if (!entry) return this.#status.note(message, { bad: true, seconds: 12 });
    this.#thread.refuse(clientId, message, () => this.fill(entry.text));
  }

  #askStop() {
    const reply = this.#thread.current?.dataset.reply;
    if (!reply) return;
    this.#stopAsked = reply;
    this.#draw();
    if (!this.#socket.send({ type: "stop", reply })) {
      this.#status.note("The reply is stopped as soon as the connection is back.");
    }
    setTimeout(() => {
      this.#stopAsked = "";
      this.#draw();
    }, 4_000);
  }
}
