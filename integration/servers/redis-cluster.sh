#!/bin/sh
# A Redis Cluster of three primaries and three replicas under one parent, in a container or on the host:
#
#   redis-cluster.sh run DIR              starts the nodes, makes the cluster the first time, stays until told to stop
#   redis-cluster.sh healthy DIR          succeeds when all slots are served and each primary has its replica
#   redis-cluster.sh signal DIR N SIGNAL  sends a signal to node N (1 to 6)
#   redis-cluster.sh node DIR N           starts node N again after it was killed, and stays
#
# TENURE_PORT is the first of six client ports, TENURE_BUS_PORT the first of six bus ports.
set -eu

verb=$1
dir=$2
bind=${TENURE_BIND:-0.0.0.0}
nodes='1 2 3 4 5 6'

node() { # N
  mkdir -p "$dir/$1"
  exec redis-server --port $((TENURE_PORT + $1 - 1)) --cluster-port $((TENURE_BUS_PORT + $1 - 1)) \
    --bind "$bind" --protected-mode no --dir "$dir/$1" --pidfile "$dir/$1/pid" \
    --appendonly yes --appendfsync always --save '' --repl-diskless-sync-delay 0 \
    --cluster-enabled yes --cluster-config-file nodes.conf --cluster-node-timeout 2000 --cluster-announce-ip 127.0.0.1
}

cli() { # N COMMAND..
  port=$((TENURE_PORT + $1 - 1))
  shift
  redis-cli -p "$port" "$@"
}

answering() {
  for n in $nodes; do
    [ "$(cli "$n" ping 2>/dev/null)" = PONG ] || return 1
  done
}

create() {
  addresses=
  for n in $nodes; do
    addresses="$addresses 127.0.0.1:$((TENURE_PORT + n - 1))"
  done
  # shellcheck disable=SC2086 # one word per address
  redis-cli --cluster create $addresses --cluster-replicas 1 --cluster-yes
  touch "$dir/created"
}

run() {
  started=
  # shellcheck disable=SC2086 # one word per process
  trap 'kill $started 2>/dev/null; wait; exit 0' TERM INT
  for n in $nodes; do
    (node "$n") &
    started="$started $!"
  done
  tries=0
  until answering; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || { echo 'the nodes do not answer within 30 s' >&2; exit 1; }
    sleep 0.1
  done
  [ -e "$dir/created" ] || create
  wait
}

healthy() {
  for n in $nodes; do
    cli "$n" cluster info | grep -q '^cluster_state:ok' || return 1
  done
  [ "$(cli 1 cluster nodes | grep -c ' connected')" = 6 ] || return 1
  [ "$(cli 1 cluster nodes | grep -c 'slave ')" = 3 ]
}

case $verb in
run) run ;;
healthy) healthy ;;
signal) kill -s "$4" "$(cat "$dir/$3/pid")" ;;
node) node "$3" ;;
*) echo "redis-cluster.sh: unknown verb $verb" >&2; exit 2 ;;
esac
