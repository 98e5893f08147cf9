#!/usr/bin/env bash
# Checks the models by exhaustive search: what must hold does, and each weakened variant breaks as it is expected to.
# With -t it prints the table of README.md. Needs spin and gcc; takes a few seconds. Exit code 1: an expectation fails.
# shellcheck disable=SC2016 # backquotes are Markdown
set -euo pipefail
cd "$(dirname "$0")"
table=
[ "${1:-}" != -t ] || table=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# check MODEL "SWITCHES" WANT "WHAT": WANT is pass, or the assertion that must be violated, without spaces.
check() {
	local model=$1 switches=$2 want=$3 what=$4 got states dir
	dir=$(mktemp -d -p "$work")
	local -a flags=()
	read -ra flags <<<"$switches"
	(
		cd "$dir"
		cp "$OLDPWD/$model.pml" .
		spin ${flags[@]+"${flags[@]}"} -a "$model.pml" >spin.out
		gcc -O0 -w -DSAFETY -DNOFAIR -o pan pan.c
		timeout 60 ./pan -E -m500000 >pan.out 2>&1 || true
	) || true
	if grep -q 'max search depth too small\|Search not completed\|out of memory' "$dir/pan.out" && ! grep -q 'assertion violated (\|assertion violated  ' "$dir/pan.out"; then
		got='search not completed'
	elif grep -q 'assertion violated [ (]' "$dir/pan.out"; then
		got=$(sed -n 's/^pan:1: assertion violated *//p' "$dir/pan.out" | sed 's/ (at depth.*//; s/^(\(.*\))$/\1/; s/^!(\(.*\))$/!\1/; s/ //g')
	elif grep -q 'errors: 0' "$dir/pan.out"; then
		got=pass
	else
		got='no answer'
	fi
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$dir/pan.out" | head -1)
	if [ "$got" != "$want" ]; then
		failed=1
		printf 'docs/model: %s %s: %s, want %s (%s)\n' "$model" "$switches" "$got" "$want" "$what" >&2
		tail -5 "$dir/spin.out" "$dir/pan.out" >&2 || true
	elif [ -n "$table" ]; then
		[ "$got" = pass ] && got="holds, ${states} states" || got="violated: \`$got\`"
		printf '| %s | `%s` | %s | %s |\n' "$model" "${switches//-D/}" "$what" "$got"
	fi
}

[ -z "$table" ] || printf '| model | switches | what it says | result |\n|---|---|---|---|\n'

check lease "-DNOREAD" 'tok>=highest' 'without a fence an old holder writes after its successor'
check lease "-DNOREAD -DASK" 'tok>=highest' 'asking "am I still the holder?" before a write is no fence'
check lease "-DNOREAD -DFENCE -DWORKERS=3" pass 'a mark keeps writes in the order of tokens'
check lease "-DFENCE" 'value==seen' 'a mark alone loses updates: the old holder writes between the new one'\''s read and write'
check lease "-DFENCE -DCLAIM -DWORKERS=3 -DTERMS=4 -DWRITES=4" pass 'mark and claim: ordered, and no update is lost'
check lease "-DFENCE -DCLAIM -DPROBE=3" 'applied<3' 'probe: it still lets three writes happen'
check lease "-DFENCE -DCLAIM -DSTRICT -DPROBE=1" pass '`<` together with a claim lets nobody write'
check lease "-DFENCE -DSTRICT -DPROBE=1" 'applied<1' 'probe: `<` without a claim lets one write happen'

check guard "" pass 'what commits, commits before the next grant; what has ended never lives again'
check guard "-DPROBE" 'tok<3' 'probe: transactions do commit'
check guard "-DNOGUARD" 'token==tok' 'without a guard an old transaction commits after the next grant'
check guard "-DNOSHARE" 'token==tok' 'looking twice, without keeping the row, is no guard'
check guard "-DNOSECOND" 'token==tok' 'a guard inside a savepoint goes with it: COMMIT needs its own'
check guard "-DNOSECOND -DNOSAVEPOINT" pass 'outside savepoints the first guard is enough'
check guard "-DHANDNOLOCK" 'token==tok' 'a hand-over that passes guards lets a leaked transaction commit under the next token'
check guard "-DPEEKRENEW" '!over[tok]' 'a renewal judged before it waits for the row revives an ended lease'
check guard "-DBLINDRENEW" '!over[tok]' 'so does one that doesn'\''t ask for the time'

check lanes "" pass 'the lane rule holds after every commit'
check lanes "-DPROBE" 'done<3' 'probe: all periods can be completed'
check lanes "-DNOLANE" 'i<9' 'without the lane a planner and an end miss each other: a period is stranded'
check lanes "-DPLANSNAP" 'i<9' 'so they do when the planner decides in one snapshot with taking the lane'
check lanes "-DENDSNAP" 'i<9' 'and when the end does'
check lanes "-DNOCLEAR" 'i<9' 'a delivery that has arrived and is still noted is taken for one that is to come'
check lanes "-DFAULTS=2" pass 'with two pauses, forced locks or deaths, every period is completed once'
check lanes "-DFAULTS=1 -DNOBACKSTOP" 'done==3' 'without the backstop a process that dies with a delivery strands a period'
check lanes "-DFAULTS=1 -DSWEEPLOCKS" 'done==3' 'a sweep that starts from locks misses the run of a forced one'
check lanes "-DFAULTS=1 -DENDANY" 'running==mine' 'an end that doesn'\''t ask ends the run of its successor'
check lanes "-DFAULTS=2 -DPAUSES -DNOBACKSTOP" pass 'pauses alone need no backstop'
check lanes "-DFAULTS=1 -DPAUSES -DNOBACKSTOP -DREVIVE" 'done==3' 'a revived River row is finished by the old worker: its successor'\''s delivery is gone'

[ "$failed" = 0 ] || exit 1
[ -n "$table" ] || echo "all expectations hold"
