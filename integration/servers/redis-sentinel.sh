#!/bin/sh
# One process of the Sentinel setup, in a container or on the host: redis-sentinel.sh server|sentinel DIR
#
# TENURE_PORT is its own port; TENURE_PRIMARY_PORT the first primary's (a server without it starts as primary). All tell each other
# 127.0.0.1. The configuration is written once: from then on it is Redis that rewrites it when roles change, and a restart keeps that.
set -eu

role=$1
dir=$2
bind=${TENURE_BIND:-0.0.0.0}
config=$dir/$role.conf

server_config() {
  cat <<CONFIG
port $TENURE_PORT
bind $bind
protected-mode no
dir $dir
appendonly yes
appendfsync always
maxmemory-policy noeviction
save ""
replica-announce-ip 127.0.0.1
replica-announce-port $TENURE_PORT
repl-diskless-sync-delay 0
CONFIG
  [ -z "${TENURE_PRIMARY_PORT:-}" ] || echo "replicaof 127.0.0.1 $TENURE_PRIMARY_PORT"
}

# Two seconds without an answer make a primary down: short for a test, long enough for a busy machine.
sentinel_config() {
  cat <<CONFIG
port $TENURE_PORT
bind $bind
protected-mode no
dir $dir
sentinel announce-ip 127.0.0.1
sentinel announce-port $TENURE_PORT
sentinel monitor tenure 127.0.0.1 $TENURE_PRIMARY_PORT 2
sentinel down-after-milliseconds tenure 2000
sentinel failover-timeout tenure 6000
CONFIG
}

if [ ! -s "$config" ]; then
  "${role}_config" >"$config.new"
  mv "$config.new" "$config"
fi

case $role in
server) exec redis-server "$config" ;;
sentinel) exec redis-server "$config" --sentinel ;;
esac
