/* The line above the composer: connection, what waits, what went wrong. */

import { $ } from "./dom.js";

const SHOW_AFTER = 1_200;

/** Show how the connection stands; `quiet` pages, which do not need it, hear only of a login that ended. `note(text)` puts a line of its own there; "" takes it away. */
export class StatusLine {
  #element = $("#status");
  #socket;
  #quiet;
  #timer = 0;
  #lostAt = 0;
  #note = { text: "", bad: false, until: 0 };

  constructor(socket, { quiet = false } = {}) {
    this.#socket = socket;
    this.#quiet = quiet;
    if (!this.#element) return;
    const kept = this.#element.textContent.trim();
    if (kept) this.#note = { text: kept, bad: true, until: 0 };
    socket.addEventListener("state", () => this.#draw());
  }

  note(text, { bad = false, seconds = 0 } = {}) {
    this.#note = { text, bad, until: seconds ? Date.now() + seconds * 1_000 : 0 };
    this.#draw();
  }

  #draw() {
    clearTimeout(this.#timer);
    if (!this.#element) return;
    const { state, retryAt } = this.#socket;
    if (this.#quiet && state !== "logged-out") return;
    const now = Date.now();
    if (state === "open") {
      if (this.#lostAt && now - this.#lostAt > SHOW_AFTER && !this.#note.text) {
        this.#note = { text: "Connected again.", bad: false, until: now + 2_500 };
      }
      this.#lostAt = 0;
    } else if (state !== "logged-out" && state !== "gone") {
      this.#lostAt ||= now;
      if (now - this.#lostAt < SHOW_AFTER) {
        this.#timer = setTimeout(() => this.#draw(), SHOW_AFTER);
        return;
      }
    }
    if (this.#note.until && now >= this.#note.until) this.#note = { text: "", bad: false, until: 0 };

    if (state === "logged-out") {
      this.#write("You are logged out. What you wrote is kept here.", true, this.#login());
    } else if (state === "gone") {
      this.#write("This session does not exist any more.", true);
    } else if (state === "waiting") {
      const seconds = Math.max(1, Math.ceil((retryAt - now) / 1_000));
      this.#write(`Connection lost. Trying again in ${seconds} s.`, true, this.#tryNow());
      this.#timer = setTimeout(() => this.#draw(), 1_000);
    } else if (state === "connecting") {
      this.#write("Connecting …", false);
      this.#timer = setTimeout(() => this.#draw(), 1_000);
    } else {
      this.#write(this.#note.text, this.#note.bad);
      if (this.#note.until) this.#timer = setTimeout(() => this.#draw(), this.#note.until - now + 20);
    }
  }

  #write(text, bad, act = null) {
    const element = this.#element;
    element.classList.toggle("is-bad", bad);
    let span = element.querySelector(":scope > span");
    if (!span) {
      span = document.createElement("span");
      element.replaceChildren(span);
    }
    span.className = "";
    if (span.textContent !== text) span.textContent = text;
    const shown = element.querySelector(":scope > .text-button");
    if (act && shown?.textContent === act.textContent) return;
    shown?.remove();
    if (act) element.append(act);
  }

  #tryNow() {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "text-button";
    button.textContent = "Try now";
    button.addEventListener("click", () => this.#socket.wake());
    return button;
  }

  #login() {
    const link = document.createElement("a");
    link.className = "text-button";
    link.href = `/login/?next=${encodeURIComponent(location.pathname)}`;
    link.textContent = "Log in";
    return link;
  }
}
