#!/usr/bin/env bash
# The servers of Tenure's integration tests, in containers or as plain processes: the same set, the same addresses, the same faults.
#
#   servers.sh up docker|local DIR [NAME..]   starts the named servers (all of them without a name), waits until they are ready,
#                                             writes their addresses to DIR/env; may be repeated with further names
#   servers.sh down DIR                       ends them and removes all they left, DIR too; right after a half-failed `up` as well
#   servers.sh env DIR                        prints DIR/env
#   servers.sh logs DIR NAME                  prints what a server wrote
#   servers.sh wait DIR NAME                  waits until a server is ready
#   servers.sh pause|resume DIR NAME          freezes and thaws: the connection stays, nothing answers
#   servers.sh stop|kill|start DIR NAME       ends politely, ends at once, starts again with the same ports and data
#
# NAME is one of: etcd, etcd3, etcd-tls, redis, redis-sentinel, redis-cluster, postgres, pgbouncer, mariadb, kubernetes. Faults also take
# one member: etcd3-1 to -3; redis-sentinel-primary, -replica, -1 to -3; redis-cluster-1 to -6; kubernetes-etcd.
#
# DIR is the run's own: two runs with two DIRs do not meet. A port is taken from its variable of docker-compose.yml where that is set,
# else a free one is picked. `local` uses Debian's packages and, as root, installs those that are missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034 # the sourced files use it
root=$(cd "$here/../.." && pwd)
# shellcheck source=SCRIPTDIR/state.sh
source "$here/state.sh"
# shellcheck source=SCRIPTDIR/kubernetes.sh
source "$here/kubernetes.sh"

usage() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
  exit 2
}

fail() {
  echo "servers: $*" >&2
  exit 1
}

use_mode() { # the folder's mode decides which half is loaded
  [[ -e $dir/mode ]] || fail "$dir holds no servers: run \`servers.sh up docker|local $dir\` first"
  mode=$(<"$dir/mode")
  load_settings
  # shellcheck source=/dev/null
  source "$here/$mode.sh"
}

# Waits until a member is ready, at most TENURE_READY_TIMEOUT seconds (90); a member that has ended is not waited for.
await() { # MEMBER
  local deadline=$((SECONDS + ${TENURE_READY_TIMEOUT:-90}))
  until member_ready "$1"; do
    if ! member_runs "$1" || ((SECONDS >= deadline)); then
      member_logs "$1" 2>&1 | tail -n 30 >&2
      fail "$1 is not ready; its last lines are above, \`servers.sh logs $dir $1\` shows all"
    fi
    sleep 0.2
  done
}

up() {
  local names=("$@") name member
  [[ ${#names[@]} -gt 0 ]] || names=("${groups[@]}")
  for name in "${names[@]}"; do
    is_group "$name" || fail "no server is called $name; there are: ${groups[*]}"
  done
  mkdir -p "$dir"
  if [[ -e $dir/mode && $(<"$dir/mode") != "$mode" ]]; then
    fail "$dir holds servers started with $(<"$dir/mode"): end them first with \`servers.sh down $dir\`"
  fi
  [[ -e $dir/mode || -z $(ls -A "$dir") ]] || fail "$dir is neither empty nor a folder of this script"
  chmod a+x "$dir"
  echo "$mode" >"$dir/mode"
  use_mode

  mapfile -t names < <(with_needed "${names[@]}")
  backend_prepare "${names[@]}"
  setting TENURE_TLS_DIR "$dir/tls"
  bash "$here/certs.sh" "$TENURE_TLS_DIR"
  for name in "${names[@]}"; do
    pick_ports "$name"
  done
  backend_start "${names[@]}"
  for name in "${names[@]}"; do
    for member in $(members "$name"); do
      await "$member"
    done
    after_start "$name"
    grep -qx "$name" "$dir/names" 2>/dev/null || echo "$name" >>"$dir/names"
  done
  write_env
  echo "servers: ready (${names[*]}); addresses are in $dir/env" >&2
}

# What a fresh server still needs: etcd's users, which exist only once it runs.
after_start() { # NAME
  [[ $1 == etcd-tls && ! -e $dir/etcd-tls.done ]] || return 0
  local step
  for step in 'user add root:tenure' 'role add root' 'user grant-role root root' 'user add tenure:tenure' 'user add guest:tenure' \
    'role add tenure' 'role grant-permission tenure --prefix=true readwrite tenure' \
    'role grant-permission tenure --prefix=true readwrite /tenure' 'user grant-role tenure tenure' 'auth enable'; do
    # shellcheck disable=SC2086 # one word per argument
    etcdctl_tls $step >>"$dir/etcd-tls.setup" 2>&1 || fail "etcdctl $step: $(tail -n 1 "$dir/etcd-tls.setup")"
  done
  touch "$dir/etcd-tls.done"
}

down() {
  [[ -e $dir ]] || return 0
  [[ -e $dir/mode || -z $(ls -A "$dir") ]] || fail "$dir is not a folder of this script, so it is left alone"
  if [[ -e $dir/mode ]]; then
    use_mode
    backend_down
  fi
  release_ports
  rm -rf "$dir"
}

fault() { # VERB NAME
  local member
  [[ -n $2 ]] || usage
  if [[ $2 =~ ^redis-cluster-([1-6])$ ]]; then
    cluster_node "$1" "${BASH_REMATCH[1]}"
    return
  fi
  for member in $(members "$2"); do
    is_member "$member" || fail "no server is called $2; there are: ${groups[*]}"
    "member_$1" "$member"
  done
}

# A node inside the cluster's one container or process group.
cluster_node() { # VERB N
  case $1 in
  pause) in_cluster signal /data "$2" STOP ;;
  resume) in_cluster signal /data "$2" CONT ;;
  stop) in_cluster signal /data "$2" TERM ;;
  kill) in_cluster signal /data "$2" KILL ;;
  start) start_cluster_node "$2" ;;
  *) fail "$1 takes the whole redis-cluster" ;;
  esac
}

verb=${1:-}
case $verb in
up)
  mode=${2:-}
  [[ $mode == docker || $mode == local ]] || usage
  dir=$(realpath -m "${3:?usage: servers.sh up docker|local DIR [NAME..]}")
  up "${@:4}"
  ;;
down | env | logs | wait | pause | resume | stop | start | kill)
  dir=$(realpath -m "${2:?usage: servers.sh $verb DIR ..}")
  case $verb in
  down) down ;;
  env) cat "$dir/env" ;;
  wait) use_mode && for member in $(members "${3:?usage: servers.sh wait DIR NAME}"); do await "$member"; done ;;
  *) use_mode && fault "$verb" "${3:-}" ;;
  esac
  ;;
*) usage ;;
esac
