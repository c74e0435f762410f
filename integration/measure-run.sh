#!/usr/bin/env bash
# Prints how soon the next program runs, ttl 10 s, when the leading one ends by itself, when its tenure is killed, and when its lease
# is removed by hand; for the last one also when the old program was dead, and how long both ran.
#
#   measure-run.sh [--rounds N] [STORE]..    10 rounds, sqlite; stores: sqlite, etcd, redis, postgres (servers from Debian's packages)
#
# A median and the largest for each, in ms. A removal wakes who waits on stores that push; the old leader too, if its store tells it.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=10
stores=()
while (($#)); do
  case $1 in
  --rounds) rounds=${2:?--rounds takes a number} && shift 2 ;;
  sqlite | etcd | redis | postgres) stores+=("$1") && shift ;;
  *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2 && exit 2 ;;
  esac
done
((${#stores[@]})) || stores=(sqlite)

features=()
[[ " ${stores[*]} " != *" etcd "* ]] || features=(--features etcd)
cargo build --release -q -p tenure-cli "${features[@]}"
tenure=${CARGO_TARGET_DIR:-$PWD/target}/release/tenure
work=$(mktemp -d)
finish() {
  local jobs
  jobs=$(jobs -p)
  [[ -z $jobs ]] || kill $jobs 2>/dev/null || true
  wait 2>/dev/null || true
  [[ ! -e $work/servers ]] || integration/servers/servers.sh down "$work/servers" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap finish EXIT
servers=()
for store in "${stores[@]}"; do
  [[ $store == sqlite ]] || servers+=("$store")
done
if ((${#servers[@]})); then
  integration/servers/servers.sh up local "$work/servers" "${servers[@]}" >&2
  # shellcheck source=/dev/null
  source "$work/servers/env"
fi

url_of() { # STORE
  case $1 in
  sqlite) echo "sqlite://$work/leases.db" ;;
  etcd) echo "$TENURE_TEST_ETCD" ;;
  redis) echo "$TENURE_TEST_REDIS" ;;
  postgres) echo "$TENURE_TEST_POSTGRES" ;;
  esac
}

host_of() { sed -E 's#^[a-z]+://([^@/]*@)?([^/,?]+).*#\2#' <<<"$1"; }

remove() { # STORE: the lease `m`, as an operator would; prints when that began, as near as can be told
  local host
  host=$(host_of "$TENURE_STORE")
  [[ $1 == sqlite ]] || echo "${EPOCHREALTIME/./}"
  case $1 in
  sqlite)
    python3 - "$work/leases.db" <<<'if True:
      import sqlite3, sys, time
      leases = sqlite3.connect(sys.argv[1])
      print(time.time_ns() // 1000)
      leases.execute("UPDATE tenure_leases SET candidate = NULL")
      leases.commit()'
    return
    ;;
  etcd) curl -sf "http://$host/v3/kv/deleterange" -d "{\"key\": \"$(printf '/tenure/m/lease' | base64)\"}" >/dev/null ;;
  redis) redis-cli -h "${host%:*}" -p "${host##*:}" del 'tenure:{m}:lease' >/dev/null ;;
  postgres) psql -q "$TENURE_STORE" -c "UPDATE tenure_leases SET candidate = NULL WHERE name = 'm'" ;;
  esac
}

until_there() { until [[ -s $1 ]]; do sleep 0.002; done; }

one_round() { # STORE HOW: prints when the next one ran, and when the old one was last alive, in 10 µs from the event
  local leader waiter begun next alive
  rm -f "$work"/*.t "$work/go"
  "$tenure" run -q --name m --ttl 10s -- bash -c "until [[ -e $work/go ]]; do echo \${EPOCHREALTIME/./} > $work/.t; mv $work/.t $work/alive.t; done" &
  leader=$!
  until_there "$work/alive.t"
  "$tenure" run -q --name m --ttl 10s -- bash -c "echo \${EPOCHREALTIME/./} > $work/next.t" &
  waiter=$!
  sleep 0.5
  begun=${EPOCHREALTIME/./}
  case $2 in
  ended) touch "$work/go" ;;
  killed) kill -KILL "$leader" ;;
  removed) begun=$(remove "$1") ;;
  esac
  wait "$waiter" 2>/dev/null || true
  wait "$leader" 2>/dev/null || true
  next=$(<"$work/next.t") alive=$(<"$work/alive.t")
  echo "$((next - begun)) $((alive > begun ? alive - begun : 0)) $((alive > next ? alive - next : 0))"
}

column() { # N: median and largest
  sort -n -k"$1" "$work/figures" | awk -v n="$1" '{ t[NR] = $n } END { printf "%8.1f %8.1f", t[int((NR + 1) / 2)] / 1000, t[NR] / 1000 }'
}

echo "store    event     next one runs       old one is dead     both ran            (median and largest of $rounds, ms)"
for store in "${stores[@]}"; do
  TENURE_STORE=$(url_of "$store")
  export TENURE_STORE
  for how in ended killed removed; do
    for ((n = 0; n < rounds; n++)); do one_round "$store" "$how"; done >"$work/figures" 2>/dev/null
    printf '%-8s %-9s %s   %s   %s\n' "$store" "$how" "$(column 1)" "$(column 2)" "$(column 3)"
  done
done
