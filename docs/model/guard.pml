/* Guard: data in the lock's own database. A guarded transaction keeps the lock row KEY SHARE, which a grant (FOR
 * UPDATE SKIP LOCKED) doesn't pass; a renewal, a release and a force do. Transactions run beside their worker, which
 * may have given the lock up, been forced or handed it over meanwhile: a leak. Switches weaken the protocol:
 *   NOGUARD      begin without a guard, commit without one
 *   NOSHARE      the guards look, but keep no row lock
 *   NOSECOND     no guard before COMMIT
 *   NOSAVEPOINT  (a bound) no guard is ever inside a savepoint that is rolled back
 *   HANDNOLOCK   a hand-over without FOR UPDATE
 *   PEEKRENEW    a renewal is judged before it waits for the row, not after
 *   BLINDRENEW   a renewal without the time
 *   PROBE        "violated" when a transaction can commit under the last token
 */
#ifndef TERMS
#define TERMS 3           /* grants in total */
#endif

#ifdef HANDNOLOCK
#define FREE true
#else
#define FREE share == 0
#endif

byte token = 0;           /* the lock row */
bool held = false;        /* grant_id is not null */
bool live = false;        /* expires_at > clock_timestamp() */
byte share = 0;           /* transactions that have the row KEY SHARE */

bool over[TERMS + 1];     /* only for the assertions: the lease has ended */

inline keep() { if :: !mine -> share++; mine = true :: else fi }
inline drop() { if :: mine -> share--; mine = false :: else fi }

proctype transaction(byte tok) {
  bool mine = false;
#ifndef NOGUARD
  atomic {
    if
    :: token == tok && held && live ->
#ifndef NOSHARE
       keep()
#endif
    :: else -> goto done
    fi
  }
#endif
#ifndef NOSAVEPOINT
  if :: atomic { drop() } :: true fi;    /* ROLLBACK TO SAVEPOINT frees the row */
#endif
  if :: true :: goto abort fi;           /* it pauses here for as long as it likes, or the server ends it */
#ifndef NOGUARD
#ifndef NOSECOND
  atomic {                               /* without the time */
    if
    :: token == tok && held ->
#ifndef NOSHARE
       keep()
#endif
    :: else -> goto abort
    fi
  };
#endif
#endif
  atomic {                               /* COMMIT */
    assert(token == tok);                /* nobody has been granted the lock since */
#ifdef PROBE
    assert(tok < TERMS);
#endif
    drop()
  };
  goto done;
abort:
  atomic { drop() };
done:
  skip
}

proctype worker() {
  byte tok;
  bool seemed;
idle:
  do
  :: atomic { token < TERMS && (!held || !live) && share == 0 ->
       if :: held -> over[token] = true :: else fi;
       token++; held = true; live = true; tok = token } -> break
  :: token == TERMS -> goto done
  od;
tenure:
  run transaction(tok);
  do
  :: seemed = (token == tok && held && live);   /* a renewal: look, wait for the row, judge */
     atomic {
       if
#ifdef PEEKRENEW
       :: seemed && token == tok && held ->
#else
#ifdef BLINDRENEW
       :: token == tok && held ->
#else
       :: token == tok && held && live ->
#endif
#endif
          assert(!over[tok]);                   /* a lease that has ended never lives again */
          live = true
       :: else -> goto idle
       fi
     }; break
  :: break
  od;
  if
  :: atomic { token == tok && held -> held = false; live = false; over[tok] = true }; goto idle   /* release */
  :: atomic { token == tok && held && live && token < TERMS && FREE ->
       over[tok] = true; token++; tok = token }; goto tenure                                      /* hand over */
  :: goto idle                                                                                    /* crash, or lost */
  fi;
done:
  skip
}

active proctype clock() {
  do
  :: atomic { live -> live = false; over[token] = true }
  :: atomic { held -> held = false; live = false; over[token] = true }   /* forced */
  :: token == TERMS && !live -> break
  od
}

init { atomic { run worker(); run worker() } }
