/* Runs before the page is painted: a choice of a moment ago, which the server may not have known yet. */
(function () {
  try {
    const chosen = JSON.parse(sessionStorage.getItem("recollect:theme"));
    if (chosen && Date.now() - chosen.at < 10000) document.documentElement.dataset.theme = chosen.theme;
  } catch {
    /* Storage is off: the server's word stands. */
  }
})();
