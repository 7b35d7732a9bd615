// Keeps the parts of a page that are marked with data-live up to date, as long as somebody looks at the page.
(() => {
  "use strict";
  let streams = [];
  // A table or a text that is larger than its box can be scrolled with the keyboard.
  const reach = () => document.querySelectorAll(".wide, pre").forEach((box) => {
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
  });
  const stop = () => { streams.forEach((stream) => stream.close()); streams = []; };
  const start = () => {
    stop();
    document.querySelectorAll("[data-live]").forEach((part) => {
      const stream = new EventSource(part.dataset.live);
      stream.onmessage = (message) => {
        if (part.contains(document.activeElement) && document.activeElement !== document.body) return;
        part.innerHTML = message.data;
        reach();
      };
      streams.push(stream);
    });
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  window.addEventListener("pagehide", stop);
  document.addEventListener("toggle", reach, true);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = button.dataset.copied;
  });
  // A form that ends or replaces something asks once more.
  document.addEventListener("submit", (event) => {
    const question = event.submitter?.dataset.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
  });
  reach();
  if (!document.hidden) start();
})();
