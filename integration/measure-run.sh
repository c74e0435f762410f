#!/usr/bin/env bash
# Prints how soon the next program runs on SQLite, ttl 10 s, when the leading one ends by itself, and when its tenure is killed.
#
#   measure-run.sh [ROUNDS]    20 by default
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=${1:-20}
cargo build --release -q -p tenure-cli --no-default-features --features sqlite
tenure=${CARGO_TARGET_DIR:-$PWD/target}/release/tenure
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
export TENURE_STORE=sqlite://$work/leases.db

until_there() { until [[ -s $1 ]]; do sleep 0.002; done; }

measure() { # HOW
  local n leader begun
  for ((n = 0; n < rounds; n++)); do
    rm -f "$work"/*.t "$work/go"
    "$tenure" run -q --name m --ttl 10s -- sh -c "date +%s%N > $work/lead.t; until [ -e $work/go ]; do sleep 0.002; done; date +%s%N > $work/end.t" &
    leader=$!
    until_there "$work/lead.t"
    "$tenure" run -q --name m --ttl 10s -- sh -c "date +%s%N > $work/next.t" &
    sleep 0.3
    if [[ $1 == killed ]]; then
      begun=$(date +%s%N)
      kill -KILL "$leader"
    else
      touch "$work/go"
      until_there "$work/end.t"
      begun=$(<"$work/end.t")
    fi
    until_there "$work/next.t"
    echo $((($(<"$work/next.t") - begun) / 10000))
    wait 2>/dev/null || true
  done | sort -n | awk -v how="$1" '{ t[NR] = $1 / 100 } END { printf "%-8s rounds: %d, median: %.2f ms, max: %.2f ms\n", how, NR, t[int((NR + 1) / 2)], t[NR] }'
}

measure ended
measure killed
