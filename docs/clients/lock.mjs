import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

const { PAWL_URL, PAWL_KEY } = process.env;
const now = () => performance.now() / 1000;

// Asks until it is answered, with growing and jittered pauses.
async function call(method, path, body, until, extra) {
  const headers = { "Content-Type": "application/json", ...(PAWL_KEY && { Authorization: `Bearer ${PAWL_KEY}` }), ...extra };
  for (let n = 0; ; n++) {
    const limit = { redirect: "manual", signal: AbortSignal.timeout(5000) };
    const answer = await fetch(`${PAWL_URL}/locks/${path}`, { method, headers, body: JSON.stringify(body), ...limit })
      .then(async (r) => ({ status: r.status, body: await r.text() })).catch((e) => ({ status: 0, body: String(e) }));
    if (answer.status === 200) return JSON.parse(answer.body);
    if (answer.status === 204) return {};
    const passing = answer.status === 0 || answer.status === 408 || answer.status === 429 || answer.status >= 500;
    if (!passing || now() > until) throw new Error(`lock: ${answer.status} ${answer.body}`);
    await sleep(Math.random() * Math.min(5000, 100 * 2 ** n));
  }
}

// Runs work(token, signal); the signal is aborted when the lease can't be trusted any more. Write only with the token.
export async function hold(name, work, ttl = 30) {
  const path = encodeURIComponent(name), owner = `${hostname()}/${process.pid}/${randomUUID()}`, lost = new AbortController();
  const claim = { owner, ttl_seconds: ttl }, over = () => lost.abort(new Error(`lock: ${name} is lost`));
  let sent = now(), end = sent + ttl * 0.9;
  const got = await call("POST", path, claim, sent + ttl / 3, { "Idempotency-Key": randomUUID() });
  if (!got.acquired) throw Object.assign(new Error(`lock: ${name} is held until ${got.expires_at}`), { code: "HELD" });
  end = sent + Math.min(ttl, got.lock.ttl_seconds) - ttl / 10; // the server may give less than was asked for
  const match = { "If-Match": `"${got.lock.fencing_token}"` };
  const watch = setInterval(() => now() > end && over(), 200);
  const beat = setInterval(() => { // a renewal counts from before it was asked for
    const sent = now();
    call("POST", `${path}/renew`, claim, end, match).then((r) => { end = sent + Math.min(ttl, r.lock.ttl_seconds) - ttl / 10; }).catch(over);
  }, (ttl * 1000) / 3);
  try { return await work(got.lock.fencing_token, lost.signal); }
  finally { clearInterval(watch); clearInterval(beat); await call("DELETE", path, { owner }, now() + 5, match).catch(() => {}); }
}
