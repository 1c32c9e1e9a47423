/* htmx: our token with each request, and errors as sentences. */

import { csrfToken, memoryChanged } from "./dom.js";
import { toast } from "./toasts.js";

let unfolded = [];

export function beginHtmx() {
  document.addEventListener("htmx:configRequest", ({ detail }) => {
    if (detail.verb !== "get") detail.headers["X-CSRFToken"] = csrfToken();
  });
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    /* An error that says where it belongs (HX-Retarget) is drawn there; a whole page is not. */
    if (detail.xhr.status >= 400 && detail.xhr.getResponseHeader("HX-Retarget")) detail.shouldSwap = true;
    unfolded = [...detail.target.querySelectorAll("details.fold[open]")].map(({ id }) => id);
  });
  document.addEventListener("htmx:afterSwap", () => {
    /* What somebody has unfolded does not fold up under their hands. */
    for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
    unfolded = [];
  });
  document.addEventListener("htmx:responseError", ({ detail }) => {
    const { xhr } = detail;
    if (xhr.getResponseHeader("HX-Retarget")) return;
    if (xhr.status === 401 || xhr.status === 403) toast("You are logged out, or may not do this. Load the page again.", { bad: true });
    else if (xhr.status === 404) toast("It is not there any more.", { bad: true });
    else toast("That did not work. Try again in a moment.", { bad: true });
  });
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    const { verb, path } = detail.requestConfig;
    if (detail.successful && verb === "post" && path.includes("/memory/")) memoryChanged();
  });
  document.addEventListener("htmx:sendError", () => toast("The server cannot be reached. Try again in a moment.", { bad: true }));
  document.addEventListener("htmx:timeout", () => toast("The server did not answer in time. Try again.", { bad: true }));
}
