/* The thread: frames of one session become what is seen, each number of a reply exactly once. */

import { $, $$, announce, fromTemplate, parse, wake } from "./dom.js";

const RUNNING = new Set(["streaming", "waiting"]);
const ATTACH_AGAIN_AFTER = 5_000;
// A notice that waits is read again after this long, and then ever more seldom.
const LEARNT_AGAIN_AFTER = 5_000;
const LEARNT_AGAIN_AT_MOST = 60_000;
const NEAR_END = 64;
const ENDINGS = {
  complete: "The reply is complete.",
  stopped: "The reply was stopped.",
  length: "The reply reached the length that the model allows.",
  filtered: "The reply was ended by the provider's filter.",
  interrupted: "The reply was cut off.",
  failed: "The reply failed.",
};
/* Where text that arrives goes on: into the last of these, however deep. */
const HOLDS_TEXT = "p, li, pre, code, blockquote, ul, ol, td, th, tr, tbody, thead, table, h1, h2, h3, h4, h5, h6, div";

/**
 * Events: "running" (detail: whether a reply runs or waits), "stored" (detail: the frame),
 * "refused" (detail: the error frame).
 */
export class Thread extends EventTarget {
  #element = $("#thread");
  #scroll = $("#thread-scroll");
  #socket;
  #replies = new Map(); // id -> {n, attaching, timer}
  #ended = new Set(); // An answer to `attach` may come behind the end; it would wake the dead.
  #following = true;
  #lastTop = 0;
  #hellos = 0;
  #learning = new Map(); // id -> {at, pause}: when its notice is read again.
  #refreshing = null;

  constructor(socket) {
    super();
    this.#socket = socket;
    this.session = this.#element.dataset.session ?? "";
    this.#watchScroll();
    this.#element.addEventListener("click", (event) => this.#clicked(event));
    if (this.session) socket.addEventListener("frame", ({ detail }) => this.#take(detail));
    socket.addEventListener("state", () => socket.state === "gone" && this.#gone());
    if (this.session) setInterval(() => this.#rereadLearnt(), LEARNT_AGAIN_AFTER / 2);
  }

  get running() {
    return $$(".reply", this.#element).filter((reply) => RUNNING.has(reply.dataset.status));
  }

  /** The reply that is being written now, or the first that waits. */
  get current() {
    const running = this.running;
    return running.find((reply) => reply.dataset.status === "streaming") ?? running[0] ?? null;
  }

  /** Show a message that is on its way. */
  addSending(text, clientId) {
    if (this.#byClient(clientId)) return;
    $("#empty")?.remove();
    const exchange = fromTemplate("template-exchange");
    exchange.dataset.clientId = clientId;
    $(".bubble", exchange).textContent = text;
    this.#element.append(exchange);
    this.toEnd();
  }

  /** Say why a message was not taken; `again` puts its text back. */
  refuse(clientId, sentence, again) {
    const exchange = this.#byClient(clientId);
    if (!exchange) return;
    const note = $(".message-note", exchange);
    if (!note) return;
    note.classList.add("problem");
    note.textContent = `${sentence} `;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "text-button";
    button.textContent = "Edit it";
    button.addEventListener("click", () => {
      exchange.remove();
      again();
    });
    note.append(button);
  }

  toEnd() {
    this.#following = true;
    this.#scroll.scrollTop = this.#scroll.scrollHeight;
  }

  #byClient(clientId) {
    return clientId ? $(`.exchange[data-client-id="${CSS.escape(clientId)}"]`, this.#element) : null;
  }

  #reply(id) {
    return this.#element.querySelector(`#reply-${CSS.escape(id)}`);
  }

  #state(id) {
    if (!this.#replies.has(id)) this.#replies.set(id, { n: 0, attaching: false, timer: 0 });
    return this.#replies.get(id);
  }

  // ---- frames

  #take(frame) {
    switch (frame.type) {
      case "hello":
        return this.#hello(frame);
      case "resync":
        return this.refresh();
      case "stored":
        return this.#stored(frame);
      case "started":
        return this.#started(frame);
      case "recalled":
        return this.#recalled(frame);
      case "acted":
        return this.#acted(frame);
      case "delta":
        return this.#delta(frame);
      case "snapshot":
        return this.#snapshot(frame);
      case "finished":
        return this.#finished(frame);
      case "learnt":
        return this.#learnt(frame);
      case "error":
        return this.dispatchEvent(new CustomEvent("refused", { detail: frame }));
    }
  }

  #hello(frame) {
    this.#hellos += 1;
    const running = new Map((frame.running ?? []).map((item) => [item.reply, item.status]));
    const shown = this.running.map((reply) => reply.dataset.reply);
    const missed = shown.some((id) => !running.has(id)) || [...running.keys()].some((id) => !this.#reply(id));
    for (const state of this.#replies.values()) {
      state.attaching = false;
      clearTimeout(state.timer);
    }
    const grown = "messages" in frame && frame.messages !== Number(this.#element.dataset.messages);
    if (this.#hellos > 1 || missed || grown) this.refresh();
    for (const [id, status] of running) {
      this.#ended.delete(id);
      if (this.#reply(id) && status !== "waiting") this.#attach(id);
    }
    const pending = new Set(frame.learnt_pending ?? []);
    for (const [id, learnt] of this.#waitingLearnt()) {
      if (!pending.has(id)) this.#reloadLearnt(learnt);
    }
    this.#tellRunning();
  }

  #stored(frame) {
    const known = document.getElementById(`exchange-${frame.message}`);
    const sending = this.#byClient(frame.client_id);
    const state = this.#replies.get(frame.reply);
    if (known && (state?.n || !RUNNING.has($(".reply", known)?.dataset.status))) {
      if (sending && sending !== known) sending.remove(); // A resend: it stands already, and may run.
    } else {
      const drawn = parse(frame.html).querySelector(".exchange");
      if (drawn) {
        if (sending && sending !== known) known?.remove();
        const place = sending ?? known;
        if (place) place.replaceWith(drawn);
        this.#insert(drawn);
        wake(drawn);
      }
    }
    $("#empty")?.remove();
    this.dispatchEvent(new CustomEvent("stored", { detail: frame }));
    this.#tellRunning();
  }

  /** Put an exchange where its position says; what is on its way stays last. */
  #insert(exchange) {
    const position = Number(exchange.dataset.position);
    const others = $$(".exchange", this.#element).filter((other) => other !== exchange);
    const next = others.find((other) =>
      other.dataset.position ? Number(other.dataset.position) > position : true,
    );
    const before = next ?? null;
    if (exchange.isConnected && exchange.nextElementSibling === before) return;
    this.#element.insertBefore(exchange, before);
  }

  #started(frame) {
    const reply = this.#reply(frame.reply);
    if (!reply) return this.refresh();
    this.#ended.delete(frame.reply);
    const ended = !RUNNING.has(reply.dataset.status);
    this.#replies.set(frame.reply, { n: 0, attaching: false, timer: 0 });
    this.#makeLive(reply);
    if (ended) {
      // Tried again: what is kept of it comes as a snapshot, what it recalls and teaches comes anew.
      $(".recalled", reply)?.replaceChildren();
      $(".learnt", reply)?.replaceChildren();
      this.#attach(frame.reply, 0);
    }
    this.#tellRunning();
  }

  #makeLive(reply) {
    reply.dataset.status = "streaming";
    reply.setAttribute("aria-busy", "true");
    $$(".reply-end", reply).forEach((end) => end.remove());
    const body = $(".reply-body", reply);
    const thinking = $(".thinking", body);
    if (thinking) thinking.replaceWith(fromTemplate("template-thinking"));
    else body.append(fromTemplate("template-thinking"));
  }

  /** Whether this frame is the next one; a repeat is dropped, a gap asks for what is missing. */
  #isNext(frame) {
    const reply = this.#reply(frame.reply);
    if (!reply || this.#ended.has(frame.reply)) return false;
    const state = this.#state(frame.reply);
    if (frame.n <= state.n) return false;
    if (frame.n > state.n + 1) {
      if (!state.attaching) this.#attach(frame.reply);
      return false;
    }
    state.n = frame.n;
    this.#settle(state);
    if (reply.dataset.status !== "streaming") {
      this.#makeLive(reply);
      this.#tellRunning();
    }
    return true;
  }

  #recalled(frame) {
    if (!this.#isNext(frame)) return;
    this.#drawRecalled(frame.reply, frame.html);
  }

  #drawRecalled(id, html) {
    const place = document.getElementById(`recalled-${id}`);
    if (!place) return;
    place.replaceChildren(parse(html));
    wake(place);
  }

  /** What the model did by itself: all of it, each time. */
  #acted(frame) {
    const place = document.getElementById(`acts-${frame.reply}`);
    const drawn = parse(frame.html).querySelector(".acted");
    if (!place || !drawn || this.#ended.has(frame.reply)) return;
    place.replaceWith(drawn);
    wake(drawn);
  }

  #delta(frame) {
    if (!this.#isNext(frame)) return;
    const reply = this.#reply(frame.reply);
    const open = $(".open", reply);
    if (frame.closed) {
      $(".closed", reply).append(parse(frame.closed));
      if (frame.open === null) open.replaceChildren();
    }
    if (frame.open !== null && frame.open !== undefined) open.replaceChildren(parse(frame.open));
    else if (frame.text && !frame.closed) appendText(open, frame.text);
    if (frame.closed) wake(reply);
  }

  #snapshot(frame) {
    const reply = this.#reply(frame.reply);
    if (!reply || this.#ended.has(frame.reply)) return;
    const state = this.#state(frame.reply);
    if (frame.n < state.n) return;
    state.n = frame.n;
    this.#settle(state);
    if (reply.dataset.status !== "streaming") this.#makeLive(reply);
    $(".closed", reply).replaceChildren(parse(frame.closed ?? ""));
    $(".open", reply).replaceChildren(parse(frame.open ?? ""));
    if (frame.recalled) this.#drawRecalled(frame.reply, frame.recalled);
    wake(reply);
    this.#tellRunning();
  }

  #finished(frame) {
    const reply = this.#reply(frame.reply);
    this.#forgetState(frame.reply);
    if (!RUNNING.has(frame.status)) this.#ended.add(frame.reply);
    if (!reply) return this.refresh();
    const drawn = parse(frame.html).querySelector(".reply");
    if (drawn) {
      reply.replaceWith(drawn);
      wake(drawn);
    }
    announce(ENDINGS[frame.status] ?? "");
    this.#tellRunning();
  }

  #learnt(frame) {
    const place = document.getElementById(`learnt-${frame.reply}`);
    const drawn = parse(frame.html).querySelector(".learnt");
    if (!place || !drawn) return;
    place.replaceWith(drawn);
    wake(drawn);
  }

  #attach(id, after = this.#state(id).n) {
    const state = this.#state(id);
    clearTimeout(state.timer);
    state.attaching = true;
    state.timer = setTimeout(() => {
      if (state.attaching && this.#replies.get(id) === state) this.#attach(id);
    }, ATTACH_AGAIN_AFTER);
    this.#socket.send({ type: "attach", reply: id, after });
  }

  #settle(state) {
    clearTimeout(state.timer);
    state.attaching = false;
  }

  #forgetState(id) {
    const state = this.#replies.get(id);
    if (state) this.#settle(state);
    this.#replies.delete(id);
  }

  /** The notices of what is still being remembered, by the reply's id. */
  #waitingLearnt() {
    const waiting = $$('.learnt[data-state="waiting"], .learnt[data-state="running"]', this.#element);
    return new Map(waiting.map((learnt) => [learnt.id.slice("learnt-".length), learnt]));
  }

  /** Its frame may be lost, or come while the page is read anew and drawn as it was before. */
  #rereadLearnt() {
    const waiting = this.#waitingLearnt();
    for (const id of this.#learning.keys()) if (!waiting.has(id)) this.#learning.delete(id);
    for (const [id, learnt] of waiting) {
      const known = this.#learning.get(id);
      const pause = known ? Math.min(2 * known.pause, LEARNT_AGAIN_AT_MOST) : LEARNT_AGAIN_AFTER;
      if (known && Date.now() < known.at) continue;
      this.#learning.set(id, { at: Date.now() + pause, pause });
      if (known) this.#reloadLearnt(learnt);
    }
  }

  #reloadLearnt(learnt) {
    const id = learnt.id.slice("learnt-".length);
    const base = location.pathname.replace(/sessions\/.*$/, "");
    const asked = window.htmx?.ajax("GET", `${base}replies/${id}/learnt/`, { target: learnt, swap: "outerHTML" });
    asked?.catch(() => {}); // The server is away: htmx:sendError has said so, and the next hello asks again.
  }

  // ---- catching up after a lost connection

  /** Read the page anew and merge it: what is missing comes in, what ended is replaced. */
  refresh() {
    this.#refreshing ??= this.#merge().finally(() => (this.#refreshing = null));
    return this.#refreshing;
  }

  async #merge() {
    let response;
    try {
      response = await fetch(location.pathname, { headers: { Accept: "text/html" }, credentials: "same-origin" });
    } catch {
      return;
    }
    if (!response.ok || response.redirected) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (page.getElementById("thread")?.dataset.session !== this.session) return;
    for (const fresh of page.querySelectorAll("#thread > .exchange")) {
      const shown = document.getElementById(fresh.id);
      if (!shown) {
        const exchange = document.importNode(fresh, true);
        const sending = this.#byClient(exchange.dataset.clientId);
        if (sending) sending.replaceWith(exchange);
        this.#insert(exchange);
        wake(exchange);
        this.#attachWithin(exchange);
        continue;
      }
      const now = $(".reply", fresh);
      const before = $(".reply", shown);
      if (!now) continue;
      if (!before) shown.append(document.importNode(now, true));
      else if (RUNNING.has(now.dataset.status) && before.dataset.status === now.dataset.status) continue;
      else if (before.dataset.status === now.dataset.status && before.dataset.reply === now.dataset.reply) continue;
      else before.replaceWith(document.importNode(now, true));
      if (!RUNNING.has(now.dataset.status)) this.#forgetState(now.dataset.reply);
      else {
        this.#replies.delete(now.dataset.reply);
        this.#ended.delete(now.dataset.reply);
      }
      wake(shown);
      this.#attachWithin(shown);
    }
    document.dispatchEvent(new CustomEvent("recollect:fresh-page", { detail: page }));
    this.#tellRunning();
  }

  #attachWithin(exchange) {
    for (const reply of $$('.reply[data-status="streaming"]', exchange)) this.#attach(reply.dataset.reply);
  }

  /** The session was erased while this page shows it: nothing of it runs any more. */
  #gone() {
    for (const reply of this.running) {
      this.#forgetState(reply.dataset.reply);
      this.#ended.add(reply.dataset.reply);
      reply.dataset.status = "interrupted";
      reply.removeAttribute("aria-busy");
      $(".thinking", reply)?.remove();
    }
    this.#tellRunning();
  }

  #tellRunning() {
    this.dispatchEvent(new CustomEvent("running", { detail: this.running.length > 0 }));
  }

  // ---- acts

  #clicked(event) {
    const button = event.target.closest("[data-retry]");
    if (!button) return;
    const sent = this.#socket.send({
      type: "retry",
      reply: button.dataset.retry,
      keep: button.dataset.keep === "true",
    });
    if (!sent) {
      const error = { code: "offline", message: "There is no connection. Try again when it is back." };
      return this.dispatchEvent(new CustomEvent("refused", { detail: error }));
    }
    const buttons = $$("[data-retry]", button.closest(".reply"));
    buttons.forEach((other) => (other.disabled = true));
    setTimeout(() => buttons.forEach((other) => (other.disabled = false)), 8_000);
    this.toEnd();
  }

  // ---- scrolling: follow the end while the reader is there, and never pull a reader away

  #watchScroll() {
    const scroll = this.#scroll;
    const button = $("#to-end");
    const atEnd = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR_END;
    const show = () => {
      if (button) button.hidden = atEnd();
    };
    if (location.hash && $(location.hash.replace(/[^#\w-]/g, ""), this.#element)) this.#following = false;
    else this.toEnd();
    this.#lastTop = scroll.scrollTop;
    scroll.addEventListener(
      "scroll",
      () => {
        const top = scroll.scrollTop;
        if (top < this.#lastTop - 1) this.#following = atEnd();
        else if (atEnd()) this.#following = true;
        this.#lastTop = top;
        show();
      },
      { passive: true },
    );
    const observer = new ResizeObserver(() => {
      if (this.#following) scroll.scrollTop = scroll.scrollHeight;
      show();
    });
    observer.observe(this.#element);
    observer.observe(scroll);
    button?.addEventListener("click", () => {
      this.toEnd();
      $("#composer-text")?.focus();
    });
    document.body.addEventListener("htmx:beforeSwap", (event) => {
      if (event.detail.target?.classList.contains("thread-older")) this.#keepPlace();
    });
  }

  /** Earlier messages come in above: the reader stays where the reader is, in every browser. */
  #keepPlace() {
    const scroll = this.#scroll;
    const fromEnd = scroll.scrollHeight - scroll.scrollTop;
    this.#following = false;
    document.body.addEventListener(
      "htmx:afterSwap",
      () => (scroll.scrollTop = scroll.scrollHeight - fromEnd),
      { once: true },
    );
  }
}

/** Add text at the very end of the open block. */
export function appendText(open, text) {
  let place = open;
  for (let last = place.lastElementChild; last?.matches(HOLDS_TEXT); last = place.lastElementChild) place = last;
  if (place === open) {
    place = document.createElement("p");
    open.append(place);
  }
  const end = place.lastChild;
  if (end?.nodeType === Node.TEXT_NODE) end.appendData(text);
  else place.append(text);
}
