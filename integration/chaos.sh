#!/usr/bin/env bash
# Random faults on real servers and real processes, and the check that nobody led beside another.
#
#   integration/chaos.sh [--seconds N] [--seed N] [--only STORE]... [--jobs N] [--servers auto|docker|local] [--svg FILE]
#
#   --seconds  how long harm is done to each store (60); 600 is the long run
#   --seed     what chance draws from; printed in any case
#   --only     this store and no other: sqlite, redis, postgres, mariadb, etcd, etcd3, kubernetes; may be repeated
#   --jobs     so many stores at the same time (1): their servers are apart; what each says comes when it is done
#   --servers  auto (default): containers if a Docker engine answers, else plain processes from Debian's packages
#   --svg      draw who led when here; STORE- goes before the file's name when there are several
#
# Everything that was started is ended, also on Ctrl-C. A run that failed leaves its
# history and a drawing in the temporary folder and names them. Ends with one line that says whether all passed.
set -euo pipefail

invoked_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=60
seed=()
only=()
jobs=1
servers=auto
svg=

refuse() {
  echo "chaos.sh: $*" >&2
  exit 2
}

while (($#)); do
  case $1 in
  --seconds) seconds=${2:?--seconds takes a number} && shift 2 ;;
  --seed) seed=(--seed "${2:?--seed takes a number}") && shift 2 ;;
  --only) only+=("${2:?--only takes the name of a store}") && shift 2 ;;
  --jobs) jobs=${2:?--jobs takes a number} && shift 2 ;;
  --servers) servers=${2:?--servers takes auto, docker or local} && shift 2 ;;
  --svg) svg=$(cd "$invoked_from" && realpath -m "${2:?--svg takes a file}") && shift 2 ;;
  -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" && exit 0 ;;
  *) refuse "unknown option $1; see --help" ;;
  esac
done

((${#only[@]})) || only=(sqlite redis postgres mariadb etcd etcd3 kubernetes)
for number in "$seconds" "$jobs"; do
  [[ $number =~ ^[1-9][0-9]*$ ]] || refuse "--seconds and --jobs take a number above 0, not $number"
done
groups=()
for store in "${only[@]}"; do
  case $store in
  sqlite) ;;
  redis | postgres | mariadb | etcd | etcd3 | kubernetes) groups+=("$store") ;;
  *) refuse "no store is called $store; see --help" ;;
  esac
done
servers=$(integration/servers/mode.sh "$servers") || exit 2

work=$(mktemp -d "${TMPDIR:-/tmp}/tenure-chaos.XXXXXX")
children=()

finish() {
  local code=$?
  trap - EXIT
  ((${#children[@]} == 0)) || kill "${children[@]}" 2>/dev/null || true
  [[ ! -e $work/servers ]] || integration/servers/servers.sh down "$work/servers" >/dev/null 2>&1 || true
  rm -rf "$work"
  ((code == 0)) || echo "FAILED: see above (exit $code)"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

cargo build -q -p tenure-integration
chaos=${CARGO_TARGET_DIR:-target}/debug/tenure-chaos
if ((${#groups[@]})); then
  integration/servers/servers.sh up "$servers" "$work/servers" "${groups[@]}"
  # shellcheck source=/dev/null
  source "$work/servers/env"
fi

harm() { # STORE: its output is kept together
  local store=$1 file=$svg arguments
  arguments=(run "$store" --lasts "${seconds}s" "${seed[@]}")
  if [[ -n $svg ]]; then
    ((${#only[@]} == 1)) || file=$(dirname "$svg")/$store-$(basename "$svg")
    arguments+=(--svg "$file")
  fi
  exec "$chaos" "${arguments[@]}" >"$work/$store.log" 2>&1
}

settle() { # N: waits for the end of a run, and shows it
  wait "${children[$1]}" || failed+=("${only[$1]}")
  cat "$work/${only[$1]}.log"
}

failed=()
settled=0
for store in "${only[@]}"; do
  if ((${#children[@]} - settled >= jobs)); then
    settle $((settled++))
  fi
  # In the background, so that a signal is heard at once.
  harm "$store" &
  children+=($!)
done
while ((settled < ${#only[@]})); do
  settle $((settled++))
done
children=()

if ((${#failed[@]})); then
  echo "failed: ${failed[*]}"
  exit 1
fi
echo "PASSED: ${only[*]}, ${seconds} s of harm each${groups[*]:+, servers: $servers}"
