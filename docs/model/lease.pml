/* Lease, pause, mark and claim: data that is elsewhere, protected by the highest token that it has seen.
 *
 * A pause of any length is the scheduler not choosing a process; an expiry may happen at any step. No rate of any
 * clock is assumed. Switches weaken the protocol, or bound the search:
 *   FENCE    a write is refused when its token is below the mark (last_token <= $1)
 *   STRICT   the same with <, which is for once per token
 *   CLAIM    a new holder raises the mark before it reads
 *   ASK      the holder asks whether it is still the holder before it writes
 *   NOREAD   check the order of writes only, not what they were computed from
 *   PROBE=n  "violated" when n writes are possible: shows that a model which passes still does something
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef TERMS
#define TERMS 3          /* grants in total */
#endif
#ifndef WRITES
#define WRITES 3         /* writes in total */
#endif

byte holder = 255;       /* the lock row */
byte token = 0;
bool live = false;       /* expires_at > clock_timestamp() */

byte value = 0;          /* the protected row */
byte mark = 0;           /* its last_token */

byte applied = 0;        /* only for the assertions */
byte highest = 0;

inline write() {
  atomic {               /* one statement: update … where last_token <= $1 */
    if
#ifdef FENCE
#ifdef STRICT
    :: tok <= mark -> goto lost
#else
    :: tok < mark -> goto lost
#endif
    :: else ->
#else
    :: true ->
#endif
       assert(tok >= highest);     /* no lower token after a higher one */
#ifndef NOREAD
       assert(value == seen);      /* nobody wrote since the holder read: no update is lost */
#endif
       value = seen + 1;
       applied++;
       highest = tok;
       mark = (tok > mark -> tok : mark);
#ifdef PROBE
       assert(applied < PROBE);
#endif
    fi
  }
}

proctype worker(byte me) {
  byte tok = 0, seen = 0;
idle:
  do
  :: atomic { !live && token < TERMS -> holder = me; token++; live = true; tok = token } -> break
  :: token == TERMS && !live -> goto done
  od;
#ifdef CLAIM
  atomic { if :: tok < mark -> goto lost :: else -> mark = tok fi };
#endif
tenure:
  seen = value;
#ifdef ASK
  if :: live && holder == me && token == tok :: else -> goto lost fi;
#endif
  write();
  if
  :: applied < WRITES -> goto tenure
  :: atomic { holder == me && token == tok -> live = false; holder = 255 }   /* release */
  :: true                                                                    /* crash */
  fi;
lost:
  atomic { tok = 0; seen = 0 };
  if :: goto idle :: true fi;
done:
  skip
}

active proctype clock() {
  do
  :: atomic { live -> live = false }
  :: token == TERMS && !live -> break
  od
}

init { atomic { byte i = 0; do :: i < WORKERS -> run worker(i); i++ :: else -> break od } }
