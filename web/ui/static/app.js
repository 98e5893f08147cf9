// pawl's pages work without this script. It adds the ticking figures and the pause button; the pages renew themselves by
// htmx's attributes, and this says which version it has, so that an unchanged page is a 304.
(() => {
  "use strict";
  const nb = "\u00a0";
  const live = document.querySelector("[data-live]");
  let offset = 0; // the database's clock minus the browser's
  let paused = false;
  let tag = "";

  const main = () => document.getElementById("main");
  const sync = () => { if (main().dataset.now) offset = Number(main().dataset.now) - Date.now(); };
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
    for (const e of document.querySelectorAll("[data-down]")) e.textContent = dur(Number(e.dataset.down) - now);
    for (const e of document.querySelectorAll("[data-left]")) {
      const left = Number(e.dataset.exp) - now;
      const percent = Math.max(0, Math.min(100, (100 * left) / Number(e.dataset.ttl)));
      e.querySelector("[data-num]").textContent = left > 0 ? dur(left) : "expired";
      e.querySelector("[data-fill]").setAttribute("width", percent.toFixed(1) + "%");
    }
  };

  const say = (text, gone) => {
    live.querySelector("[data-live-text]").textContent = text;
    live.classList.toggle("gone", gone);
  };
  // What a reader is about to use isn't changed under their hands: a form that is being filled in, a list that is open.
  const busy = () => document.activeElement?.closest("select, form.filter input");
  const ours = (e) => e.detail.ctx?.sourceElement === main();
  document.addEventListener("htmx:config:request", (e) => {
    if (!ours(e)) return;
    if (paused || document.hidden || busy()) { e.preventDefault(); return; }
    if (tag) e.detail.ctx.request.headers["If-None-Match"] = tag;
    e.detail.ctx.request.cache = "no-store";
  });
  document.addEventListener("htmx:before:response", (e) => {
    if (!ours(e)) return;
    const { status, headers } = e.detail.ctx.response;
    if (paused) { e.preventDefault(); return; } // it was on its way
    if (status === 200) tag = headers.get("ETag") || "";
    say(status === 200 || status === 304 ? "Live" : "No answer", status !== 200 && status !== 304);
  });
  document.addEventListener("htmx:error", () => { if (live && !paused) say("Offline", true); });
  document.addEventListener("htmx:after:swap", () => { sync(); tick(); });

  if (live) {
    live.hidden = false;
    live.addEventListener("click", () => {
      paused = !paused;
      live.setAttribute("aria-pressed", String(!paused));
      say(paused ? "Paused" : "Live", false);
    });
  }
  sync();
  tick();
  setInterval(tick, 500);
})();
