// Keeps the parts of a page that are marked with data-live up to date, as long as somebody looks at the page.
(() => {
  "use strict";
  let streams = [];
  // Lets people scroll a table or a text that is larger than its box with the keyboard.
  const makeScrollable = () => document.querySelectorAll(".wide, pre").forEach((box) => {
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
  });
  // Updates a part in place: elements stay, and only their differences change, so that what the reader opened stays open.
  // A node with the focus or in the selection is in use: it is not moved, removed or changed. If the server no longer has
  // it, it is shown faint until it can be removed. Rows with the same data-key are the same row.
  const isInUse = (node) => {
    const selection = getSelection();
    return node.contains(document.activeElement)
      || (!selection.isCollapsed && selection.rangeCount > 0 && selection.getRangeAt(0).intersectsNode(node));
  };
  // The attributes that the reader or this script may have set. An update does not remove them.
  const KEPT_ATTRIBUTES = ["open", "tabindex"];
  const updateAttributes = (from, to) => {
    [...from.attributes].forEach(({ name }) => {
      if (!to.hasAttribute(name) && !KEPT_ATTRIBUTES.includes(name)) from.removeAttribute(name);
    });
    [...to.attributes].forEach(({ name, value }) => {
      if (from.getAttribute(name) !== value) from.setAttribute(name, value);
    });
  };
  const keyOf = (node) => `${node.nodeName} ${node.dataset?.key ?? ""}`;
  // Returns false if something could not be updated, because it is in use.
  const update = (from, to) => {
    if (from.isEqualNode(to)) return true;
    if (from.nodeType !== Node.ELEMENT_NODE) {
      if (isInUse(from)) return false;
      from.data = to.data;
      return true;
    }
    updateAttributes(from, to);
    return updateChildren(from, to);
  };
  const updateChildren = (from, to) => {
    const old = new Map();
    from.childNodes.forEach((node) => old.set(keyOf(node), [...(old.get(keyOf(node)) ?? []), node]));
    let isDone = true;
    const wanted = [...to.childNodes].map((node) => {
      const same = old.get(keyOf(node))?.shift();
      if (!same) return document.importNode(node, true);
      isDone = update(same, node) && isDone;
      return same;
    });
    [...old.values()].flat().forEach((gone) => {
      if (!isInUse(gone)) return gone.remove();
      gone.classList?.add("gone");
      isDone = false;
    });
    // Goes from the last node to the first, so that a node in use can stay at its place: the others move around it.
    wanted.reduceRight((next, node) => {
      const isInPlace = node.parentNode === from && node.nextSibling === next;
      if (!isInPlace && !(node.parentNode === from && isInUse(node))) from.insertBefore(node, next);
      return node;
    }, null);
    return isDone;
  };
  const RETRY_MS = 500;
  const show = (part, html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    clearTimeout(part.retry);
    if (!updateChildren(part, template.content)) part.retry = setTimeout(() => show(part, html), RETRY_MS);
    makeScrollable();
  };
  const stop = () => { streams.forEach((stream) => stream.close()); streams = []; };
  const start = () => {
    stop();
    document.querySelectorAll("[data-live]").forEach((part) => {
      const stream = new EventSource(part.dataset.live);
      stream.onmessage = (message) => show(part, message.data);
      streams.push(stream);
    });
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  window.addEventListener("pagehide", stop);
  document.addEventListener("toggle", makeScrollable, true);
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const text = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = button.dataset.copied;
    } catch {
      // The browser does not allow the copy. The text is selected instead, so that the reader can copy it.
      getSelection().selectAllChildren(text);
    }
  });
  // The key / leads to the search, except where somebody types.
  document.addEventListener("keydown", (event) => {
    const search = document.querySelector("[data-search], .search input");
    const isTyping = event.target.closest("input, select, textarea, [contenteditable]");
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping || !search) return;
    event.preventDefault();
    search.focus();
    search.select();
  });
  // A link that leads to a folded form opens it.
  document.addEventListener("click", (event) => {
    const { opens } = event.target.closest("[data-opens]")?.dataset ?? {};
    const form = opens && document.getElementById(opens);
    if (!form) return;
    event.preventDefault();
    const folded = form.closest("details");
    if (folded) folded.open = true;
    form.scrollIntoView();
    form.querySelector("input:not([type=hidden]), select")?.focus();
  });
  // Sends a chosen file as a field of the form, in base64.
  document.addEventListener("change", (event) => {
    const { into } = event.target.dataset;
    if (!into) return;
    const [file] = event.target.files;
    const field = document.getElementById(into);
    const button = event.target.form.querySelector("button");
    const isTooLarge = file && file.size > 512 * 1024;
    field.value = "";
    event.target.setCustomValidity(isTooLarge ? "The file has more than 512 KiB." : "");
    if (!file || isTooLarge) return;
    button.disabled = true;
    const reader = new FileReader();
    reader.onload = () => { field.value = reader.result; };
    reader.onloadend = () => { button.disabled = false; };
    reader.readAsDataURL(file);
  });
  // A box above a list ticks all rows of the page. Without scripts it is hidden.
  document.querySelectorAll("[data-tick-all]").forEach((label) => {
    const boxes = document.querySelectorAll("input[name=id][form=bulk]");
    label.hidden = boxes.length === 0;
    label.firstElementChild.addEventListener("change", (event) => boxes.forEach((box) => { box.checked = event.target.checked; }));
  });
  // A file is sent as it is, first for a preview and then, when the reader agrees, for the import. The answer is a part of
  // the page.
  const FILE_TYPES = {
    xml: "application/xml", csv: "text/csv", ndjson: "application/x-ndjson", jsonl: "application/x-ndjson", json: "application/json",
    xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  };
  // Reloads an import or a correction in progress until it is done. The header says that the script sent the request, so
  // that a page that is merely open does not keep the session alive.
  const FOLLOW_MS = 2000;
  const follow = (result) => {
    const shown = () => result.querySelector("[data-follow]")?.dataset.follow;
    const address = shown();
    if (!address) return;
    setTimeout(async () => {
      try {
        const answer = await fetch(address, { headers: { "x-follows": "true" } });
        // The session has ended. The page of a correction stays open, because somebody may be writing in its forms.
        if (answer.redirected) return result.id === "correction" ? undefined : location.assign(answer.url);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const next = page.getElementById(result.id);
        if (answer.ok && next && shown() === address) updateChildren(result, next);
      } catch {
        // The next try may reach the service again.
      }
      makeScrollable();
      // If the page shows another import by now, that one is followed already.
      if (shown() === address) follow(result);
    }, FOLLOW_MS);
  };
  document.querySelectorAll("#import-result, #correction").forEach(follow);
  document.querySelectorAll("[data-upload]").forEach((form) => {
    const result = document.getElementById(form.dataset.upload);
    const buttons = () => [...form.querySelectorAll("button"), ...result.querySelectorAll("button")];
    const send = async (isPreview) => {
      const [file] = form.elements.file.files;
      const type = FILE_TYPES[file.name.split(".").pop().toLowerCase()] ?? "application/octet-stream";
      const kind = form.elements.form.value;
      const isReplacing = form.elements.replace_cancelled.checked;
      const query = new URLSearchParams({ form: kind, preview: isPreview, replace_cancelled: isReplacing });
      // A preview of a file that is not the chosen one any more is not shown: its button would import the other file.
      const isOutdated = () => isPreview && (form.elements.file.files[0] !== file || form.elements.form.value !== kind
        || form.elements.replace_cancelled.checked !== isReplacing);
      buttons().forEach((button) => { button.disabled = true; });
      try {
        const answer = await fetch(`${form.getAttribute("action")}?${query}`, {
          method: "POST", body: file, headers: { "content-type": type, "x-csrf-token": form.dataset.token },
        });
        // The session has ended: the answer is the sign-in page, which is not a part of this page.
        if (answer.redirected) return location.assign(answer.url);
        const isPart = answer.ok || answer.status === 422;
        const part = isPart ? await answer.text() : "";
        if (!isOutdated()) {
          result.innerHTML = part;
          if (!isPart) result.textContent = `The file was not read (${answer.status}). Reload the page and try again.`;
        }
      } catch {
        result.textContent = "The file could not be sent. Try again.";
      }
      buttons().forEach((button) => { button.disabled = false; });
      makeScrollable();
      // An import in progress has a page of its own, where it can also be cancelled.
      const importPage = !isPreview && result.querySelector("[data-follow]")?.dataset.follow;
      if (importPage) location.assign(importPage);
      else follow(result);
    };
    buttons().forEach((button) => { button.disabled = false; });
    form.addEventListener("change", () => { result.textContent = ""; });
    form.addEventListener("submit", (event) => { event.preventDefault(); send(true); });
    result.addEventListener("click", (event) => { if (event.target.closest("[data-import]")) send(false); });
    // The answers that a file lacks are stored, and then the file is previewed again.
    result.addEventListener("submit", async (event) => {
      const answers = event.target;
      event.preventDefault();
      event.stopPropagation();
      const body = new URLSearchParams(new FormData(answers));
      buttons().forEach((button) => { button.disabled = true; });
      try {
        const answer = await fetch(answers.getAttribute("action"), { method: "POST", body });
        if (answer.redirected) return location.assign(answer.url);
        if (answer.ok) {
          result.innerHTML = await answer.text();
          return send(true);
        }
        if (answer.status === 422) answers.outerHTML = await answer.text();
        else result.textContent = `The answers were not stored (${answer.status}). Reload the page and try again.`;
      } catch {
        result.textContent = "The answers could not be sent. Try again.";
      }
      buttons().forEach((button) => { button.disabled = false; });
    });
  });
  // The browser asks before somebody leaves a page with a long form that was changed and not sent.
  let hasUnsaved = document.querySelector("[data-guard=typed]") !== null;
  document.addEventListener("input", (event) => { hasUnsaved ||= Boolean(event.target.form?.matches("[data-guard]")); });
  // Only pages with such a form get the listener, because some browsers keep no page with it in their memory.
  if (document.querySelector("[data-guard]")) {
    window.addEventListener("beforeunload", (event) => { if (hasUnsaved) event.preventDefault(); });
  }
  // A form that ends or replaces something asks for confirmation. A form that was sent cannot be sent again until the next
  // page comes; its buttons are disabled only after the browser has read their values.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const question = event.submitter?.dataset.confirm;
    if (form.dataset.sent || (question && !window.confirm(question))) return event.preventDefault();
    if (form.method !== "post") return;
    if (form.matches("[data-guard]")) hasUnsaved = false;
    if (form.getAttribute("action") !== "/sign-out") keepTyped(form);
    form.dataset.sent = "true";
    const { busy } = event.submitter?.dataset ?? {};
    setTimeout(() => {
      form.querySelectorAll("button").forEach((button) => { button.disabled = true; });
      if (busy) event.submitter.textContent = busy;
    });
  });
  // The tokens that make a form take effect only once are stored in the page's history entry. A page that Back reloads
  // gets its old tokens again, so that sending its form again has no second effect.
  const tokens = () => [...document.querySelectorAll("form input[name=once]")];
  // The fields with an id hold a chosen file.
  const nameOf = (form, besides) => [form.getAttribute("action"), ...form.querySelectorAll("input[type=hidden]:not([id])")]
    .map((part) => (besides.includes(part?.name) ? "" : part?.value ?? part)).join(" ");
  const TOKENS = ["once", "csrf"];
  const nameOfToken = (token) => nameOf(token.form, TOKENS);
  const isBack = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
  const kept = (isBack && history.state?.once) || {};
  tokens().forEach((token) => { token.value = kept[nameOfToken(token)] ?? token.value; });
  history.replaceState({ once: Object.fromEntries(tokens().map((token) => [nameOfToken(token), token.value])) }, "");
  // Keeps the typed values of a form while the person signs in again or confirms the password, and fills them in again
  // afterwards: only in this tab, for at most an hour, and without passwords and codes.
  const TYPED_FOR_MS = 3600 * 1000;
  // Hidden fields that say which stored values the page showed. They are kept with the typed values, so that the server
  // still notices what was changed meanwhile.
  const SHOWN_VALUES = ["seen", "before", "payable", "shown_customer"];
  const fieldsOf = (form) => [...form.elements].filter(({ name, type }) => name && name !== "code"
    && (SHOWN_VALUES.includes(name) || !["hidden", "password", "file", "submit"].includes(type)));
  const isBox = ({ type }) => type === "checkbox" || type === "radio";
  const nameOfTyped = (form) => nameOf(form, [...TOKENS, ...SHOWN_VALUES]);
  // A form that is too large to be kept is sent all the same.
  const keep = (typed) => { try { sessionStorage.setItem("typed", JSON.stringify(typed)); } catch { sessionStorage.removeItem("typed"); } };
  // The pages between the form and its return. Their own values are not kept, and do not replace the kept ones.
  const DETOUR = /^\/(sign-in|account\/confirm)/;
  const keepTyped = (form) => {
    if (!form.elements.csrf || DETOUR.test(location.pathname)) return;
    const fields = fieldsOf(form).map((field) => [field.name, field.value, field.checked ?? null]);
    const lines = form.elements.line_count?.value;
    keep({ form: nameOfTyped(form), action: form.getAttribute("action"), fields, lines, until: Date.now() + TYPED_FOR_MS });
  };
  // Lets the server show as many lines of an invoice as were typed. `missingFields` are typed fields that the page lacks.
  const showLines = (form, lines, missingFields) => {
    missingFields.filter(([name]) => name.startsWith("lines.") && !name.endsWith(".remove")).forEach(([name, value]) => {
      form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
    });
    form.elements.line_count.value = lines;
    const button = form.elements.find_customer.cloneNode();
    button.name = "";
    form.append(button);
    form.requestSubmit(button);
  };
  const fillInTyped = () => {
    const typed = JSON.parse(sessionStorage.getItem("typed"));
    if (!typed) return;
    if (DETOUR.test(location.pathname)) {
      const isLost = typed.isLost || location.search.includes("ended=true") || location.pathname === "/account/confirm";
      return keep({ ...typed, isLost });
    }
    // The form was refused before it was processed, such as after a sign-in in another tab. Its page fills in the values.
    if (document.querySelector("[data-unsent]")) return keep({ ...typed, isLost: true });
    sessionStorage.removeItem("typed");
    // Forms with the same address differ in their hidden fields.
    const alike = [...document.forms].filter((one) => one.getAttribute("action") === typed.action);
    const form = alike.find((one) => nameOfTyped(one) === typed.form) ?? (alike.length === 1 ? alike[0] : null);
    if (!form || !typed.isLost || typed.until < Date.now()) return;
    const openFields = fieldsOf(form);
    const missingFields = [];
    typed.fields.forEach(([name, value, isChecked]) => {
      // Rows may have been added or removed, so a box is recognised by its value, not by its position.
      const position = openFields.findIndex((field) => field.name === name && (!isBox(field) || field.value === value));
      if (position < 0) return missingFields.push([name, value]);
      const [field] = openFields.splice(position, 1);
      if (isBox(field)) field.checked = isChecked;
      else field.value = value;
    });
    if (typed.lines && form.elements.line_count?.value !== typed.lines) return showLines(form, typed.lines, missingFields);
    const notice = document.createElement("p");
    notice.className = "notice";
    notice.role = "status";
    notice.textContent = "What you typed is here again. It was not sent yet.";
    hasUnsaved ||= form.matches("[data-guard]");
    form.prepend(notice);
    for (let folded = form.closest("details"); folded; folded = folded.parentElement.closest("details")) folded.open = true;
    fieldsOf(form).find(({ type }) => type !== "hidden")?.focus();
  };
  fillInTyped();
  // When the browser shows a page from its memory again, the forms of the page can be sent again.
  window.addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach((form) => {
    delete form.dataset.sent;
    form.querySelectorAll("button").forEach((button) => { button.disabled = false; });
  }));
  // The acts of a list need a ticked row.
  const enableActs = () => document.querySelectorAll("form.bulk").forEach((bar) => {
    const boxes = [...bar.elements].filter(({ type, name }) => type === "checkbox" && ["id", "all"].includes(name));
    const isIdle = !boxes.some((box) => box.checked);
    bar.querySelectorAll("button").forEach((button) => { button.disabled = isIdle || bar.dataset.sent === "true"; });
  });
  document.addEventListener("change", enableActs);
  window.addEventListener("pageshow", enableActs);
  enableActs();
  document.querySelector("[data-focus]")?.focus();
  // On a phone the navigation is a strip: it is moved so that the current page is in view.
  document.querySelector(".side [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  makeScrollable();
  if (!document.hidden) start();
})();
