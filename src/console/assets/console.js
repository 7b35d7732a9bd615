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
  // A box above a list ticks all rows of the page. Without scripts it is hidden.
  document.querySelectorAll("[data-tick-all]").forEach((label) => {
    const boxes = document.querySelectorAll("input[name=id][form=bulk]");
    label.hidden = boxes.length === 0;
    label.firstElementChild.addEventListener("change", (event) => boxes.forEach((box) => { box.checked = event.target.checked; }));
  });
  // A form that ends or replaces something asks once more. A form that was sent is quiet until the next page comes; its
  // buttons are disabled after the browser has read them.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const question = event.submitter?.dataset.confirm;
    if (form.dataset.sent || (question && !window.confirm(question))) return event.preventDefault();
    if (form.method !== "post") return;
    form.dataset.sent = "true";
    setTimeout(() => form.querySelectorAll("button").forEach((button) => { button.disabled = true; }));
  });
  // The tokens that make forms count once stay with the page's entry in the history: a page that Back loads anew gets
  // those that it had, so that sending its form again is no second wish.
  const tokens = () => [...document.querySelectorAll("form input[name=once]")];
  const nameOf = (token) => [token.form.getAttribute("action"), ...token.form.querySelectorAll("input[type=hidden]")]
    .map((part) => (part?.name === "once" || part?.name === "csrf" ? "" : part?.value ?? part)).join(" ");
  const isBack = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
  const kept = (isBack && history.state?.once) || {};
  tokens().forEach((token) => { token.value = kept[nameOf(token)] ?? token.value; });
  history.replaceState({ once: Object.fromEntries(tokens().map((token) => [nameOf(token), token.value])) }, "");
  // A page that comes back from the browser's memory has forms that can be sent again.
  window.addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach((form) => {
    delete form.dataset.sent;
    form.querySelectorAll("button").forEach((button) => { button.disabled = false; });
  }));
  reach();
  if (!document.hidden) start();
})();
