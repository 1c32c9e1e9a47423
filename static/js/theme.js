/* Light, dark or as the system: shown at once, kept by the server. */

import { $$, post } from "./dom.js";
import { toast } from "./toasts.js";

export function beginTheme() {
  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("[data-theme-switch]");
    if (!form) return;
    event.preventDefault();
    const theme = event.submitter?.value ?? "system";
    document.documentElement.dataset.theme = theme;
    try {
      sessionStorage.setItem("recollect:theme", JSON.stringify({ theme, at: Date.now() }));
    } catch {
      /* Storage is off: the server keeps it all the same. */
    }
    for (const button of $$("[data-theme-switch] button")) {
      button.setAttribute("aria-pressed", String(button.value === theme));
    }
    try {
      await post(form.getAttribute("action"), { theme }, { keepalive: true });
    } catch (error) {
      toast(error.message, { bad: true });
    }
  });
}
