/* What is kept in this browser: drafts, and messages on their way. Cleared on logout. */

const owner = () => document.body.dataset.user ?? "";
const key = (name) => `recollect:${owner()}:${name}`;

export function read(name, otherwise = null) {
  try {
    const value = localStorage.getItem(key(name));
    return value === null ? otherwise : JSON.parse(value);
  } catch {
    return otherwise; // Storage is off, full, or holds something foreign.
  }
}

export function write(name, value) {
  try {
    if (value === null || value === "" || (Array.isArray(value) && !value.length)) {
      localStorage.removeItem(key(name));
    } else {
      localStorage.setItem(key(name), JSON.stringify(value));
    }
  } catch {
    /* The page works without it. */
  }
}

export function forgetAll() {
  try {
    for (const name of Object.keys(localStorage)) {
      if (name.startsWith("recollect:")) localStorage.removeItem(name);
    }
  } catch {
    /* Nothing was kept. */
  }
}
