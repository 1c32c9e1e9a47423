/* Runs while the page is read, before it is painted: a session opens at its end. */
(function () {
  const scroll = document.getElementById("thread-scroll");
  if (scroll && !location.hash) scroll.scrollTop = scroll.scrollHeight;
})();
