#!/usr/bin/env bash
# lock.sh NAME TTL command args…: runs the command while it holds the lock. PAWL_TOKEN is its fencing token.
# Exit: the command's; 64 wrong use, 69 no answer or refused, 75 somebody else holds the lock, 76 the lease was lost.
set -u
[[ $# -ge 3 && $2 =~ ^[1-9][0-9]*$ && $2 -ge 6 ]] || { echo "lock.sh: write: lock.sh NAME TTL command args…, with a TTL of 6 or more" >&2; exit 64; }
name=$1 ttl=$2; shift 2
encode() {
  local LC_ALL=C s=$1 i c
  for ((i = 0; i < ${#s}; i++)); do c=${s:i:1}; case $c in [a-zA-Z0-9_~-]) printf %s "$c" ;; *) printf %%%02X "'$c" ;; esac; done
}
now() { local up; read -r up _ </proc/uptime; echo "${up%.*}"; } # goes on while the machine sleeps
lock=$PAWL_URL/locks/$(encode "$name") owner=$(hostname)/$$/$(cat /proc/sys/kernel/random/uuid)
claim='{"owner":"'$owner'","ttl_seconds":'$ttl'}'
ask() { # METHOD PATH BODY UNTIL HEADER: prints status, token and TTL; asks until it is answered, with growing and jittered pauses
  local n=1 left answer
  while :; do
    left=$(($4 - $(now)))
    answer=$(curl -s -m "$((left > 5 ? 5 : left > 1 ? left : 1))" --path-as-is -X "$1" -d "$3" \
      -H 'Content-Type: application/json' -H "$5" -H @<(printf '%s' "${PAWL_KEY:+Authorization: Bearer $PAWL_KEY}") \
      -w '\n%{http_code} %header{fencing-token}' "$lock$2")
    case ${answer##*$'\n'} in 000* | 408* | 429* | 5*) ((left > 0)) || break ;; *) break ;; esac
    sleep "$((left > n ? RANDOM % n : 0)).$((RANDOM % 10))"; ((n < 5)) && ((n *= 2))
  done
  [[ $answer =~ \"ttl_seconds\":([0-9]+) ]]; echo "${answer##*$'\n'} ${BASH_REMATCH[1]-}"
}
sent=$(now)
read -r status token given <<<"$(ask POST '' "$claim" $((sent + ttl / 3)) "Idempotency-Key: $owner")"
[ "$status" = 200 ] || { echo "lock.sh: $name: the server answered $status (000: nothing)" >&2; exit 69; }
[ -n "$token" ] || { echo "lock.sh: $name is held" >&2; exit 75; }
PAWL_TOKEN=$token "$@" <&0 & child=$!
(while end=$((sent + given - ttl / 10 - 1)) left=$((sent + given - ttl / 10 - 1 - $(now))) # given: it may be less than was asked for
    ((left > 0)) && sleep $((left < ttl / 3 ? left : ttl / 3)) && kill -0 "$child" && sent=$(now) && ((sent < end)) &&
    read -r status _ given <<<"$(ask POST /renew "$claim" "$end" "If-Match: \"$token\"")" && [ "$status" = 200 ]; do :; done
  trap '' TERM; kill -KILL "$child") >/dev/null 2>&1 & beat=$!
trap 'kill "$child" 2>/dev/null' INT TERM
while wait "$child"; code=$?; kill -0 "$child" 2>/dev/null; do :; done
kill "$beat" 2>/dev/null; wait "$beat" 2>/dev/null && code=76 # it had ended the command
ask DELETE '' '{"owner":"'"$owner"'"}' $(($(now) + 5)) "If-Match: \"$token\"" >/dev/null
exit "$code"
