import contextlib, json, os, random, socket, threading, time, urllib.error, urllib.parse, urllib.request, uuid

URL, KEY = os.environ["PAWL_URL"], os.environ.get("PAWL_KEY")
clock = lambda: time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))  # goes on while the machine sleeps
NoRedirect = type("NoRedirect", (urllib.request.HTTPRedirectHandler,), {"redirect_request": lambda *_: None})

def call(method, path, body, until, **headers):
    """Asks until it is answered, with growing and jittered pauses."""
    headers |= {"Content-Type": "application/json"} | ({"Authorization": "Bearer " + KEY} if KEY else {})
    request = urllib.request.Request(f"{URL}/locks/{path}", json.dumps(body).encode(), headers, method=method)
    for n in range(10**6):
        try:
            with urllib.request.build_opener(NoRedirect).open(request, timeout=5) as answer:
                return json.loads(answer.read() or "{}")
        except (OSError, ValueError) as e:
            passing = not isinstance(e, urllib.error.HTTPError) or e.code in (408, 429) or e.code >= 500
            if not passing: e.msg = f"{e.msg}: {e.read().decode(errors='replace').strip()}"  # it says what to do
            if not passing or clock() > until: raise
            time.sleep(random.uniform(0, min(5, 0.1 * 2 ** min(n, 9))))

@contextlib.contextmanager
def hold(name, ttl=30):
    """Yields (token, trusted): write only with the token, and start nothing when trusted() says no."""
    path, sent = urllib.parse.quote(name, safe=""), clock()
    claim = {"owner": f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4()}", "ttl_seconds": ttl}
    got = call("POST", path, claim, sent + ttl / 3, **{"Idempotency-Key": str(uuid.uuid4())})
    if not got["acquired"]: raise BlockingIOError(f"{name} is held until {got['expires_at']}")
    until = lambda sent, got: sent + min(ttl, got["lock"]["ttl_seconds"]) - ttl / 10  # sent: before it asked; it may be given less
    token, end, done = got["lock"]["fencing_token"], [until(sent, got)], threading.Event()
    def beat():
        while not done.wait(ttl / 3):
            try: end[0] = until(clock(), call("POST", path + "/renew", claim, end[0], **{"If-Match": f'"{token}"'}))
            except Exception: end[0] = 0; return
    threading.Thread(target=beat, daemon=True).start()
    try: yield token, lambda: clock() < end[0]
    finally:
        done.set()
        try: call("DELETE", path, {"owner": claim["owner"]}, clock() + 5, **{"If-Match": f'"{token}"'})
        except OSError: pass  # 404: it has ended already
