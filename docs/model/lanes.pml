/* Lanes: the periods of one lock. Planner, start, end, hand-over, sweep and backstop are transactions: what one writes
 * is seen by others at its COMMIT, and a statement decides by the snapshot that it took when it began. The lane rule:
 * when no run is running and a period is open, a live delivery exists. Switches weaken the protocol, or bound the search:
 *   NOLANE      nobody takes the lane
 *   PLANSNAP    the planner decides in one snapshot with taking the lane, instead of in a later statement
 *   ENDSNAP     so does the end
 *   NOCLEAR     a start doesn't clear its own delivery from the lane
 *   ENDANY      an end doesn't ask whether the run is still its own
 *   REVIVE      the sweep makes the same River row available again, instead of inserting a fresh one
 *   SWEEPLOCKS  the sweep starts from expired locks, instead of from runs
 *   FAULTS=n    leases expire, locks are forced, and processes die, n times in total
 *   PAUSES      (a bound) leases expire and locks are forced, but no process dies
 *   NOBACKSTOP  with FAULTS: nobody mends a lane whose delivery died with its process
 *   PROBE       "violated" when all periods can be completed
 */
#ifndef PERIODS
#define PERIODS 3
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifdef PAUSES
#define DEATHS 0
#else
#define DEATHS FAULTS
#endif
#define ROWS 9            /* River rows; running out of them is an error */
#define NONE 15

mtype = { absent, available, fetched, arrived, finished, orphaned }

bool lane = false;        /* the mutex */
byte delivery = NONE;     /* the River row that it knows of */

byte planned = 0, open = 0, done = 0;
byte running = 0;         /* the run that is running, 0: none */
byte runs = 0;

byte grant = 0;           /* the lock row: which run's lease it is, 0: nobody's */
bool live = false;

mtype row[ROWS] = absent;
byte rows = 0;

byte faults = 0;
bool stop = false;

#ifdef NOLANE
#define ENTER skip
#else
#define ENTER atomic { !lane -> lane = true }
#endif

/* River calls a row running until its worker returns. */
#define KNOWN (delivery != NONE && (row[delivery] == available || row[delivery] == fetched || row[delivery] == arrived))

inline insert() {
  atomic { assert(rows < ROWS); delivery = rows; row[rows] = available; rows++ }
}

inline commit() {
  d_step {
    lane = false;
    assert(done + open + (running > 0) == planned);      /* no period is lost or doubled */
    if
    :: FAULTS == 0 && open > 0 && running == 0 ->         /* the lane rule */
       i = 0;
       do
       :: i < ROWS && row[i] != available && row[i] != fetched -> i++
       :: else -> break
       od;
       assert(i < ROWS)
    :: else
    fi;
    i = 0
  }
}

proctype planner() {
  byte i = 0;
  bool need = false, early;
  do
  :: planned < PERIODS ->
     early = (running == 0);
     ENTER;
#ifdef PLANSNAP
     need = early && !KNOWN;
#else
     need = running == 0 && !KNOWN;
#endif
     atomic { planned++; open++; if :: need -> insert() :: else fi; commit() };
     need = false
  :: else -> break
  od
}

proctype worker() {
  byte i = 0, mine = 0, at = NONE, early = 0;
  bool need = false;
idle:
  atomic {
    do
    :: i < ROWS && row[i] != available -> i++
    :: i < ROWS && row[i] == available -> row[i] = fetched; at = i; break
    :: i == ROWS -> i = 0; if :: done == PERIODS -> goto over :: else -> goto wait fi
    od;
    i = 0
  };
  if :: atomic { faults < DEATHS -> faults++; row[at] = orphaned; at = NONE }; goto idle :: true fi;   /* it dies, another takes its place */
  ENTER;
  atomic {                                     /* start */
    if
    :: open > 0 && running == 0 -> open--; runs++; mine = runs; running = mine; grant = mine; live = true
    :: else
    fi;
#ifndef NOCLEAR
    if :: delivery == at -> delivery = NONE :: else fi;
#endif
    row[at] = arrived;
    commit()
  };
  do
  :: mine == 0 -> break                        /* nothing to do */
  :: mine != 0 ->
     if
     :: ENTER;                                 /* hand over */
        atomic {
          if
          :: grant == mine && live && running == mine && open > 0 ->
             done++; open--; runs++; mine = runs; running = mine; grant = mine
          :: else
          fi;
          commit()
        }
     :: early = open;                          /* end */
        ENTER;
#ifdef ENDANY
        if :: running == 0 -> atomic { commit() }; break :: else fi;
#else
        if :: !(grant == mine && live && running == mine) -> atomic { commit() }; break :: else fi;
#endif
#ifdef ENDSNAP
        need = early > 0 && !KNOWN;
#else
        need = open > 0 && !KNOWN;
#endif
        atomic {
          assert(running == mine);             /* nobody ends the run of another */
          running = 0; grant = 0; live = false; done++;
          if :: need -> insert() :: else fi;
          commit()
        };
        break
     :: atomic { faults < DEATHS -> faults++; row[at] = orphaned; live = false; mine = 0; at = NONE }; goto idle   /* it dies */
     fi
  od;
  atomic { row[at] = finished; at = NONE; mine = 0; need = false; early = 0 };   /* River's completer, by the row's id */
  goto idle;
wait:
  atomic { (done == PERIODS || row[0] == available || row[1] == available || row[2] == available || row[3] == available
    || row[4] == available || row[5] == available || row[6] == available || row[7] == available || row[8] == available) };
  goto idle;
over:
  skip
}

#if FAULTS > 0
active proctype fault() {
  do
  :: atomic { live && faults < FAULTS -> faults++; live = false }              /* a pause: the lease expires */
  :: atomic { live && faults < FAULTS -> faults++; live = false; grant = 0 }   /* forced */
  :: done == PERIODS -> break
  od
}

#ifdef SWEEPLOCKS
#define DEAD (running != 0 && grant == running && !live)
#else
#define DEAD (running != 0 && !(grant == running && live))
#endif

active proctype sweeper() {
  byte i = 0, was = NONE;
  do
  :: DEAD ->
     ENTER;
     atomic {
       if
       :: DEAD ->
          running = 0; open++;
          if :: grant != 0 && !live -> grant = 0 :: else fi;
#ifdef REVIVE
          do                                   /* the row that its run came from */
          :: i < ROWS && row[i] != arrived && row[i] != orphaned -> i++
          :: i < ROWS && (row[i] == arrived || row[i] == orphaned) -> row[i] = available; delivery = i; break
          :: i == ROWS -> insert(); break
          od;
#else
          if :: !KNOWN -> insert() :: else fi;
#endif
       :: else
       fi;
       commit()
     }
  :: done == PERIODS -> break
  od
}

#ifndef NOBACKSTOP
active proctype backstop() {
  byte i = 0;
  do
  :: open > 0 && running == 0 && !KNOWN ->
     ENTER;
     atomic {
       if :: open > 0 && running == 0 && !KNOWN -> insert() :: else fi;
       commit()
     }
  :: done == PERIODS -> break
  od
}
#endif
#endif

/* When nothing more can happen, everything is done. */
active proctype finally() {
  if
  :: done == PERIODS -> skip
  :: timeout -> assert(done == PERIODS)
  fi
#ifdef PROBE
  ; assert(done < PERIODS)
#endif
}

init { atomic { run planner(); run worker(); run worker() } }
