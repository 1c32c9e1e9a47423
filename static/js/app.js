/* The entry of every page. */

import { $ } from "./dom.js";
import { Composer } from "./composer.js";
import { beginCopy } from "./copy.js";
import { beginForms } from "./forms.js";
import { beginHtmx } from "./htmx-setup.js";
import { beginMemory } from "./memory.js";
import { beginMenus } from "./menus.js";
import { beginSidebar } from "./sidebar.js";
import { Socket } from "./socket.js";
import { StatusLine } from "./status.js";
import { beginTheme } from "./theme.js";
import { Thread } from "./thread.js";
import { beginTimes } from "./times.js";
import { beginToasts } from "./toasts.js";

beginToasts();
beginHtmx();
beginMenus();
beginTheme();
beginForms();
beginCopy();
beginTimes();
beginMemory();

const path = document.body.dataset.socket;
if (path) {
  const socket = new Socket(path);
  const status = new StatusLine(socket, { quiet: !$("#thread") });
  beginSidebar(socket);
  if ($("#thread")) {
    const thread = new Thread(socket);
    new Composer(socket, thread, status);
  }
  socket.connect();
}
