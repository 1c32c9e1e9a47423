/* The websocket: it comes back by itself, and says how it stands. */

const PING_EVERY = 20_000;
const PONG_WITHIN = 10_000;
const CONNECT_WITHIN = 10_000;
const STABLE_AFTER = 5_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 30_000;

const LOGIN_ENDED = new Set([4001, 4401]);
const LOGIN_RENEWED = 4002;
const NEW_COOKIE_WITHIN = 10_000;
const GONE = 4404;

/**
 * Events: "frame" (detail: the frame), "state" (detail: {state, retryAt}).
 * States: connecting, open, waiting (for the next try), logged-out, gone.
 */
export class Socket extends EventTarget {
  #path;
  #socket = null;
  #tries = 0;
  #renewedAt = -Infinity;
  #timers = { retry: 0, ping: 0, pong: 0, connect: 0, stable: 0 };

  constructor(path) {
    super();
    this.#path = path;
    this.state = "connecting";
    this.retryAt = 0;
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.wake();
    });
    window.addEventListener("online", () => this.wake());
    window.addEventListener("pageshow", (event) => {
      if (event.persisted) this.wake();
    });
  }

  /** Send now; false when there is no connection. */
  send(frame) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  connect() {
    this.#clear();
    this.#drop();
    this.#say("connecting");
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}${this.#path}`);
    this.#socket = socket;
    this.#timers.connect = setTimeout(() => this.#lost(socket), CONNECT_WITHIN);
    socket.addEventListener("open", () => {
      if (socket !== this.#socket) return;
      clearTimeout(this.#timers.connect);
      this.#timers.stable = setTimeout(() => (this.#tries = 0), STABLE_AFTER);
      this.#timers.ping = setInterval(() => this.#ping(), PING_EVERY);
      this.#say("open");
    });
    socket.addEventListener("message", (event) => {
      if (socket !== this.#socket) return;
      clearTimeout(this.#timers.pong);
      this.#timers.pong = 0;
      let frame;
      try {
        frame = JSON.parse(event.data);
      } catch {
        return;
      }
      if (frame.type !== "pong") this.dispatchEvent(new CustomEvent("frame", { detail: frame }));
    });
    socket.addEventListener("close", (event) => this.#lost(socket, event.code));
  }

  /** After sleep or a lost network: try at once, and see whether an open socket still lives. */
  wake() {
    if (this.state === "logged-out" || this.state === "gone") return;
    if (this.state === "open") this.#ping(4_000);
    else if (this.state === "waiting") this.connect();
  }

  #ping(within = PONG_WITHIN) {
    const socket = this.#socket;
    if (!this.send({ type: "ping" })) return this.#lost(socket);
    if (this.#timers.pong) return;
    this.#timers.pong = setTimeout(() => this.#lost(socket), within);
  }

  #lost(socket, code = 1006) {
    if (socket !== this.#socket) return;
    this.#clear();
    this.#drop();
    /* The password was changed in another tab: this login goes on, with the cookie which that tab gets. */
    if (code === LOGIN_RENEWED) this.#renewedAt = performance.now();
    const renewing = performance.now() - this.#renewedAt < NEW_COOKIE_WITHIN;
    if (LOGIN_ENDED.has(code) && !renewing) return this.#say("logged-out");
    if (code === GONE) return this.#say("gone");
    const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.#tries);
    const jittered = pause * (0.5 + Math.random());
    this.#tries += 1;
    this.retryAt = Date.now() + jittered;
    this.#timers.retry = setTimeout(() => this.connect(), jittered);
    this.#say("waiting");
  }

  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #clear() {
    const { retry, ping, pong, connect, stable } = this.#timers;
    [retry, pong, connect, stable].forEach(clearTimeout);
    clearInterval(ping);
    this.#timers = { retry: 0, ping: 0, pong: 0, connect: 0, stable: 0 };
  }

  #say(state) {
    this.state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: { state, retryAt: this.retryAt } }));
  }
}
