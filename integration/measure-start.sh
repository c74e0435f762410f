#!/usr/bin/env bash
# Prints what `tenure run -- true` costs beside `flock -- true`, where each millisecond goes, how large the program is, and what a
# waiter and a leader take of memory.
#
#   measure-start.sh [ROUNDS]    40 by default; all commands take turns, so that a busy machine is busy for all of them
#
# The default build: memory, SQLite, Redis, PostgreSQL, MySQL.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=${1:-40}
cargo build --release -q -p tenure-cli
tenure=${CARGO_TARGET_DIR:-$PWD/target}/release/tenure
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
url=sqlite://$work/leases.db
"$tenure" run -q --store "$url" --name m -- true

names=(flock start election 'guard' 'disk' 'all')
run() { # NAME
  case $1 in
  flock) flock "$work/lock" true ;;
  start) "$tenure" --version >"$work/out" ;;
  election) "$tenure" run -q --store memory: --name m --guard off -- true ;;
  guard) "$tenure" run -q --store memory: --name m -- true ;;
  disk) "$tenure" run -q --store "$url" --name m --guard off -- true ;;
  all) "$tenure" run -q --store "$url" --name m -- true ;;
  esac
}

for ((n = 0; n < rounds; n++)); do
  for name in "${names[@]}"; do
    begun=${EPOCHREALTIME/./}
    run "$name"
    echo $((${EPOCHREALTIME/./} - begun)) >>"$work/$name.us"
  done
done

median() { sort -n "$work/$1.us" | awk '{ t[NR] = $1 } END { printf "%.2f", t[int((NR + 1) / 2)] / 1000 }'; }
ms() { awk "BEGIN { printf \"%.2f\", $1 }"; }
flock=$(median flock) start=$(median start) election=$(median election) guard=$(median guard) disk=$(median disk) all=$(median all)
echo "median of $rounds rounds, in ms"
echo "flock FILE true                                  $flock"
echo "tenure run --store sqlite.. -- true              $all ($(ms "$all / $flock") times that)"
echo "  the program starts (tenure --version)          $start"
echo "  election, true, release, without store or guard $(ms "$election - $start")"
echo "  guard: two starts of the program, control group $(ms "$guard - $election")"
echo "  SQLite: open, two commits that are on the disk $(ms "$disk - $election")"

family() { # PID: itself and what it started
  local child
  echo "$1"
  for child in $(pgrep -P "$1" || true); do family "$child"; done
}

memory() { # PID: kilobytes that it and its processes have of their own, and their share of what they have in common
  local pid total=0
  for pid in $(family "$1"); do
    [[ $(<"/proc/$pid/comm") == sleep ]] || total=$((total + $(awk '/^Pss:/ { print $2 }' "/proc/$pid/smaps_rollup")))
  done
  echo "$total kB"
}

"$tenure" run -q --store "$url" --name m -- sleep 600 &
leader=$!
until [[ $(family "$leader" | xargs -I{} cat /proc/{}/comm) == *sleep* ]]; do sleep 0.01; done
"$tenure" run -q --store "$url" --name m -- true &
waiter=$!
sleep 2
echo "release binary                                   $(($(stat -c %s "$tenure") / 1024)) kB"
echo "memory (PSS) of a waiter, its guard and stage     $(memory "$waiter")"
echo "memory (PSS) of a leader, its guard and warden    $(memory "$leader")"
