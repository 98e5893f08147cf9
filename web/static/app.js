// pawl's page works without this script. It keeps the figures current: it fetches the page's own address, which
// answers 304 while nothing has changed, and changes only what differs, so that focus, selection and scroll stay.
(() => {
  "use strict";
  const every = 2000;
  const nb = "\u00a0";
  const live = document.querySelector("[data-live]");
  let offset = 0; // the database's clock minus the browser's
  let paused = false;
  let tag = "";

  const main = () => document.getElementById("main");
  const sync = () => { offset = Number(main().dataset.now) - Date.now(); };
  const two = (n) => String(Math.floor(n)).padStart(2, "0");
  const dur = (ms) => {
    const s = Math.max(0, ms / 1000);
    if (s < 0.05) return Math.floor(s * 1000) + "ms";
    if (s < 9.95) return s.toFixed(1) + "s";
    if (s < 60) return Math.max(10, Math.floor(s)) + "s";
    if (s < 3600) return Math.floor(s / 60) + "m" + nb + two(s % 60) + "s";
    if (s < 86400) return Math.floor(s / 3600) + "h" + nb + two((s % 3600) / 60) + "m";
    return Math.floor(s / 86400) + "d" + nb + Math.floor((s % 86400) / 3600) + "h";
  };

  const tick = () => {
    if (paused) return;
    const now = Date.now() + offset;
    for (const e of document.querySelectorAll("[data-up]")) e.textContent = dur(now - Number(e.dataset.up));
    for (const e of document.querySelectorAll("[data-left]")) {
      const left = Number(e.dataset.exp) - now;
      const percent = Math.max(0, Math.min(100, (100 * left) / Number(e.dataset.ttl)));
      e.querySelector("[data-num]").textContent = left > 0 ? dur(left) : "expired";
      e.querySelector("[data-fill]").setAttribute("width", percent.toFixed(1) + "%");
    }
  };

  // same tells whether two nodes are one thing at two times.
  const same = (a, b) => a && a.nodeType === b.nodeType && a.nodeName === b.nodeName && a.id === b.id;

  // morph turns a into b without replacing what stays.
  const morph = (a, b) => {
    if (b.nodeType !== Node.ELEMENT_NODE) {
      if (a.nodeValue !== b.nodeValue) a.nodeValue = b.nodeValue;
      return;
    }
    for (const { name } of [...a.attributes]) {
      const reader = name === "open" && a.nodeName === "DETAILS"; // the reader has opened it
      if (!reader && !b.hasAttribute(name)) a.removeAttribute(name);
    }
    for (const { name, value } of b.attributes) if (a.getAttribute(name) !== value) a.setAttribute(name, value);
    let at = a.firstChild;
    for (const want of [...b.childNodes]) {
      // A row that moved down is found by its id, so that new rows above it don't rebuild it.
      const moved = want.id && !same(at, want) && document.getElementById(want.id);
      if (moved && moved.parentNode === a && same(moved, want)) a.insertBefore(moved, at), (at = moved);
      if (same(at, want)) {
        morph(at, want);
        at = at.nextSibling;
      } else {
        a.insertBefore(want, at);
      }
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  };

  const refresh = async () => {
    if (paused || document.hidden) return "";
    const answer = await fetch(location.href, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
    if (answer.status === 304 || paused) return "Live";
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
    if (!next) throw new Error("no page");
    tag = answer.headers.get("ETag") || "";
    morph(main(), next);
    sync();
    tick();
    return answer.ok ? "Live" : "No answer";
  };

  const say = (text) => { live.querySelector("[data-live-text]").textContent = text; };
  const loop = async () => {
    try {
      const state = await refresh();
      if (state && !paused) say(state);
      live.classList.toggle("gone", state === "No answer");
    } catch {
      say("Offline");
      live.classList.add("gone");
    }
    setTimeout(loop, every);
  };

  live.hidden = false;
  live.addEventListener("click", () => {
    paused = !paused;
    live.setAttribute("aria-pressed", String(!paused));
    say(paused ? "Paused" : "Live");
  });
  sync();
  tick();
  setInterval(tick, 500);
  setTimeout(loop, every);
})();
