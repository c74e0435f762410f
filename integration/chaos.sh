#!/usr/bin/env bash
# Random faults on real servers and real processes, and the check that nobody led beside another.
#
#   integration/chaos.sh [--seconds N] [--seed N] [--only STORE]... [--servers auto|docker|local] [--svg FILE]
#
#   --seconds  how long harm is done to each store (60); 600 is the long run
#   --seed     what chance draws from; printed in any case
#   --only     this store and no other: sqlite, redis, postgres, mariadb, etcd, etcd3, kubernetes; may be repeated
#   --servers  auto (default): containers if a Docker engine answers, else plain processes from Debian's packages
#   --svg      draw who led when here; STORE- goes before the file's name when there are several
#
# Stores are harmed one after the other. Everything that was started is ended, also on Ctrl-C. A run that failed leaves its
# history and a drawing in the temporary folder and names them. Ends with one line that says whether all passed.
set -euo pipefail

invoked_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=60
seed=()
only=()
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
  --servers) servers=${2:?--servers takes auto, docker or local} && shift 2 ;;
  --svg) svg=$(cd "$invoked_from" && realpath -m "${2:?--svg takes a file}") && shift 2 ;;
  -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" && exit 0 ;;
  *) refuse "unknown option $1; see --help" ;;
  esac
done

((${#only[@]})) || only=(sqlite redis postgres mariadb etcd etcd3 kubernetes)
[[ $seconds =~ ^[1-9][0-9]*$ ]] || refuse "--seconds takes a number above 0, not $seconds"
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
child=

finish() {
  local code=$?
  trap - EXIT
  [[ -z $child ]] || kill "$child" 2>/dev/null || true
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

failed=()
for store in "${only[@]}"; do
  arguments=(run "$store" --lasts "${seconds}s" "${seed[@]}")
  if [[ -n $svg ]]; then
    file=$svg
    ((${#only[@]} == 1)) || file=$(dirname "$svg")/$store-$(basename "$svg")
    arguments+=(--svg "$file")
  fi
  # In the background, so that a signal is heard at once.
  "$chaos" "${arguments[@]}" &
  child=$!
  wait "$child" || failed+=("$store")
  child=
done

if ((${#failed[@]})); then
  echo "failed: ${failed[*]}"
  exit 1
fi
echo "PASSED: ${only[*]}, ${seconds} s of harm each${groups[*]:+, servers: $servers}"
