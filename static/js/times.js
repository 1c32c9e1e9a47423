/* Times: the server writes them in the person's zone; the full moment stands in the title. */

const full = new Intl.DateTimeFormat(document.documentElement.lang || undefined, { dateStyle: "full", timeStyle: "short" });

export function nameTimes(root = document) {
  for (const time of root.querySelectorAll("time[datetime]:not([title])")) {
    const moment = new Date(time.dateTime);
    if (!Number.isNaN(moment.valueOf())) time.title = full.format(moment);
  }
}

export function beginTimes() {
  nameTimes();
  document.addEventListener("recollect:drawn", ({ detail }) => nameTimes(detail));
  document.addEventListener("htmx:afterSettle", () => nameTimes());
}
