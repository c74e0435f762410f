# shellcheck shell=bash disable=SC2154
# The servers as plain processes of Debian's packages, bound to 127.0.0.1. Sourced by servers.sh. A member is a process and its children;
# all that it owns is in DIR/MEMBER, and its output in DIR/logs/MEMBER.log. Options are those of docker-compose.yml.

# Where the servers' folders are: DIR, unless this is root and the databases' own users cannot get there.
home=${TENURE_HOME:-$dir}

reachable() { [[ $(id -u) != 0 ]] || setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$1"; }

choose_home() {
  if [[ -z ${TENURE_HOME:-} ]]; then
    reachable "$dir" || home=$(mktemp -d /tmp/tenure-servers.XXXXXX)
    chmod a+x "$home"
    setting TENURE_HOME "$home"
  fi
  setting TENURE_TLS_DIR "$home/tls"
  mkdir -p "$home/logs"
}

postgres_bin() {
  local bin
  bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
  [[ -x $bin/initdb ]] && echo "$bin"
}

packages_of() { # GROUP
  case $1 in
  etcd*) echo etcd-server etcd-client ;;
  redis*) echo redis-server ;;
  postgres) echo postgresql ;;
  pgbouncer) echo pgbouncer ;;
  mariadb) echo mariadb-server mariadb-client ;;
  kubernetes) echo etcd-server etcd-client curl ;;
  esac
}

is_installed() { [[ $(dpkg-query --show --showformat '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

backend_prepare() { # GROUP..
  local name package missing=()
  choose_home
  command -v dpkg-query >/dev/null || fail 'local mode takes the servers from Debian packages, and this is no Debian: use up docker'
  for name in "$@"; do
    for package in $(packages_of "$name"); do
      is_installed "$package" || missing+=("$package")
    done
  done
  if [[ ${#missing[@]} -gt 0 ]]; then
    [[ $(id -u) == 0 ]] || fail "packages are missing; as root: apt-get install ${missing[*]}"
    install_quietly "${missing[@]}"
  fi
  for name in "$@"; do
    [[ $name != kubernetes ]] || kubernetes_prepare local
  done
}

# Installs packages without the services they bring: none is started now, none at the next boot, no cluster is made.
install_quietly() { # PACKAGE..
  local policy=/usr/sbin/policy-rc.d ours='' unit
  echo "servers: installing $*" >&2
  exec 8>"${TMPDIR:-/tmp}/tenure-install.lock"
  flock 8
  if [[ ! -e $policy ]]; then
    ours=yes
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  local log=$home/install.log status=0
  {
    [[ -e /var/lib/apt/lists/lock && -n $(find /var/lib/apt/lists -name '*Packages*' -mtime -1 -print -quit) ]] || apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
  } >"$log" 2>&1 8>&- || status=$?
  for unit in etcd redis-server postgresql pgbouncer mariadb; do
    [[ " $* " != *" ${unit}"* ]] || systemctl disable "$unit" >>"$log" 2>&1 || true
  done
  [[ -z $ours ]] || rm -f "$policy"
  exec 8>&-
  if [[ $status != 0 ]]; then
    tail -n 20 "$log" >&2
    fail "apt-get could not install $*"
  fi
}

backend_ports() { # GROUP: inside one host the ports between servers are picked too
  local n
  case $1 in
  etcd) port TENURE_ETCD_PEER_PORT ;;
  etcd3) for n in 1 2 3; do port "TENURE_ETCD3_${n}_PEER_PORT"; done ;;
  etcd-tls) port TENURE_ETCD_TLS_PEER_PORT ;;
  kubernetes) port TENURE_KUBERNETES_ETCD_PORT && port TENURE_KUBERNETES_ETCD_PEER_PORT ;;
  esac
}

backend_start() { # GROUP..
  local name member
  for name in "$@"; do
    for member in $(members "$name"); do
      member_start "$member"
    done
  done
}

# Each way to start a server is a function of its own: the first start and a start after a fault are the same.
member_start() { # MEMBER
  ! member_runs "$1" || return 0
  mkdir -p "$home/$1"
  case $1 in
  etcd | etcd3-[123] | etcd-tls | kubernetes-etcd) start_etcd "$1" ;;
  redis) start_redis ;;
  redis-sentinel-*) start_sentinel "${1#redis-sentinel-}" ;;
  redis-cluster)
    launch "$1" env TENURE_BIND=127.0.0.1 TENURE_PORT="$TENURE_REDIS_CLUSTER_PORT" TENURE_BUS_PORT="$TENURE_REDIS_CLUSTER_BUS_PORT" \
      sh "$here/redis-cluster.sh" run "$home/$1"
    ;;
  postgres) start_postgres ;;
  pgbouncer) start_pgbouncer ;;
  mariadb) start_mariadb ;;
  kubernetes) start_kubernetes ;;
  esac
}

launch() { # MEMBER COMMAND..
  (
    cd "$home/$1" || exit
    exec setsid "${@:2}" </dev/null >>"$home/logs/$1.log" 2>&1
  ) &
  echo $! >"$home/$1.pid"
}

start_etcd() { # MEMBER
  local name=$1 prefix scheme=http cluster='' n options=()
  prefix=TENURE_${name^^}
  prefix=${prefix//-/_}
  local client=${prefix}_PORT peer=${prefix}_PEER_PORT
  case $name in
  etcd3-*)
    for n in 1 2 3; do
      peer=TENURE_ETCD3_${n}_PEER_PORT
      cluster+=${cluster:+,}etcd3-$n=http://$(at "$peer")
    done
    peer=${prefix}_PEER_PORT
    ;;
  etcd-tls)
    scheme=https
    options=(--client-cert-auth "--trusted-ca-file=$TENURE_TLS_DIR/ca.crt" "--cert-file=$TENURE_TLS_DIR/server.crt"
      "--key-file=$TENURE_TLS_DIR/server.key")
    ;;
  esac
  launch "$name" etcd "--name=$name" "--data-dir=$home/$name/data" --logger=zap \
    "--listen-client-urls=$scheme://$(at "$client")" "--advertise-client-urls=$scheme://$(at "$client")" \
    "--listen-peer-urls=http://$(at "$peer")" "--initial-advertise-peer-urls=http://$(at "$peer")" \
    "--initial-cluster=${cluster:-$name=http://$(at "$peer")}" "${options[@]}"
}

start_redis() {
  launch redis redis-server --port "$TENURE_REDIS_PORT" --bind 127.0.0.1 --protected-mode no --dir "$home/redis" \
    --appendonly yes --appendfsync always --maxmemory-policy noeviction --save '' \
    --tls-port "$TENURE_REDIS_TLS_PORT" --tls-cert-file "$TENURE_TLS_DIR/server.crt" --tls-key-file "$TENURE_TLS_DIR/server.key" \
    --tls-ca-cert-file "$TENURE_TLS_DIR/ca.crt" --tls-auth-clients optional \
    --user tenure on '>tenure' '~tenure:*' '&tenure:*' +@all -@admin -@dangerous
}

start_sentinel() { # primary|replica|1|2|3
  local own=TENURE_SENTINEL_${1^^}_PORT role=sentinel primary=$TENURE_SENTINEL_PRIMARY_PORT
  case $1 in
  primary) role=server primary='' ;;
  replica) role=server ;;
  esac
  launch "redis-sentinel-$1" env TENURE_BIND=127.0.0.1 TENURE_PORT="${!own}" TENURE_PRIMARY_PORT="$primary" \
    sh "$here/redis-sentinel.sh" "$role" "$home/redis-sentinel-$1"
}

# PostgreSQL, MariaDB and PgBouncer start by the entry points of the stand-in images, which leave root as they do there. They are copied
# to where the unprivileged users can read them.
entry_point() { install -m 755 "$root/integration/images/$1/docker-entrypoint.sh" "$home/$1/"; }

start_postgres() {
  local bin key=$home/postgres/server.key tries
  bin=$(postgres_bin) || fail 'no initdb below /usr/lib/postgresql: is the package postgresql whole?'
  # A killed server is a zombie until init takes notice, and until then its pid file counts as a running server's.
  for ((tries = 0; tries < 200; tries++)); do
    [[ -e $home/postgres.pid && -e /proc/$(<"$home/postgres.pid") ]] || break
    sleep 0.05
  done
  install -m 600 "$TENURE_TLS_DIR/server.key" "$key"
  [[ $(id -u) != 0 ]] || chown postgres:postgres "$home/postgres" "$key"
  entry_point postgres
  launch postgres env PATH="$bin:$PATH" PGDATA="$home/postgres/data" POSTGRES_PASSWORD=tenure POSTGRES_DB=tenure \
    "$home/postgres/docker-entrypoint.sh" postgres -c port="$TENURE_POSTGRES_PORT" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories= -c max_connections=300 -c ssl=on -c ssl_cert_file="$TENURE_TLS_DIR/server.crt" \
    -c ssl_key_file="$key" -c ssl_ca_file="$TENURE_TLS_DIR/ca.crt"
}

start_mariadb() {
  entry_point mariadb
  launch mariadb env TENURE_DATADIR="$home/mariadb/data" MYSQL_ROOT_PASSWORD=tenure MYSQL_DATABASE=tenure \
    "$home/mariadb/docker-entrypoint.sh" --port="$TENURE_MARIADB_PORT" --bind-address=127.0.0.1 \
    --ssl-ca="$TENURE_TLS_DIR/ca.crt" --ssl-cert="$TENURE_TLS_DIR/server.crt" --ssl-key="$TENURE_TLS_DIR/server.key" --max-connections=300 \
    --max-connect-errors=1000000
}

start_pgbouncer() {
  local as=()
  if [[ $(id -u) == 0 ]]; then
    chown postgres:postgres "$home/pgbouncer"
    as=(setpriv --reuid=postgres --regid=postgres --init-groups)
  fi
  entry_point pgbouncer
  launch pgbouncer "${as[@]}" env TENURE_CONFIG_DIR="$home/pgbouncer" DB_HOST=127.0.0.1 DB_PORT="$TENURE_POSTGRES_PORT" DB_USER=postgres \
    DB_PASSWORD=tenure AUTH_TYPE=scram-sha-256 POOL_MODE=transaction MAX_CLIENT_CONN=300 DEFAULT_POOL_SIZE=10 \
    IGNORE_STARTUP_PARAMETERS=none LISTEN_ADDR=127.0.0.1 LISTEN_PORT="$TENURE_PGBOUNCER_PORT" \
    "$home/pgbouncer/docker-entrypoint.sh" /usr/sbin/pgbouncer "$home/pgbouncer/pgbouncer.ini"
}

# A server's processes: its first one, and those servers that work in its folder. PostgreSQL gives each child a session of its own and
# a killed parent leaves children behind, so neither a group nor a parent holds them together; the folder does.
processes() { # MEMBER, or nothing for the whole run
  local first='' pid place below=$home${1:+/$1}
  [[ -z ${1:-} || ! -e $home/$1.pid ]] || first=$(<"$home/$1.pid")
  find /proc -maxdepth 2 -path '/proc/[0-9]*/cwd' -printf '%h %l\n' 2>/dev/null | while read -r pid place; do
    [[ $place == "$below" || $place == "$below/"* ]] || continue
    if [[ ${pid#/proc/} == "$first" ]] || is_server "$(cat "$pid/comm" 2>/dev/null)"; then
      echo "${pid#/proc/}"
    fi
  done
}

is_server() { [[ $1 =~ ^(etcd|redis-.*|postgres|initdb|pgbouncer|maria.*|mysqld|kube-apiserver|docker-entrypoi.*)$ ]]; }

signal() { # MEMBER SIGNAL
  local pids
  mapfile -t pids < <(processes "$1")
  [[ ${#pids[@]} -gt 0 ]] || fail "$1 does not run"
  kill -s "$2" "${pids[@]}" 2>/dev/null || true
}

ended() { # MEMBER SECONDS
  local deadline=$((SECONDS + $2))
  while member_runs "$1"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

member_runs() { [[ -n $(processes "$1") ]]; }
member_logs() { cat "$home/logs/$1.log"; }
member_pause() { signal "$1" STOP; }
member_resume() { signal "$1" CONT; }
member_kill() {
  signal "$1" KILL
  ended "$1" 10 || fail "$1 does not end"
}

# The first process alone is told: it ends its children in its own way. PostgreSQL is asked for its fast shutdown.
member_stop() { # MEMBER
  local how=TERM
  member_runs "$1" || return 0
  [[ $1 != postgres ]] || how=INT
  kill -s "$how" "$(<"$home/$1.pid")" 2>/dev/null || true
  ended "$1" 10 || member_kill "$1"
}

backend_down() {
  local pids tries
  end_postgres
  for ((tries = 0; tries < 100; tries++)); do
    mapfile -t pids < <(processes; first_processes)
    if [[ ${#pids[@]} -eq 0 ]]; then
      [[ $home == "$dir" ]] || rm -rf "$home"
      return 0
    fi
    kill -s KILL "${pids[@]}" 2>/dev/null || true
    sleep 0.05
  done
  fail "these processes do not end: ${pids[*]}"
}

# First processes that are no servers by name: the parent of the cluster's nodes.
first_processes() {
  local file pid
  for file in "$home"/*.pid; do
    [[ -e $file ]] || continue
    pid=$(<"$file")
    [[ $(readlink "/proc/$pid/cwd") != "$home"/* ]] || echo "$pid"
  done
}

# PostgreSQL keeps a shared memory segment that outlives a killed server. An immediate shutdown removes it; for a server that a test
# killed, its number is in the pid file.
end_postgres() {
  local pid_file=$home/postgres/data/postmaster.pid segment
  if member_runs postgres; then
    member_resume postgres
    kill -s QUIT "$(<"$home/postgres.pid")" 2>/dev/null || true
    ended postgres 5 || member_kill postgres
  fi
  if [[ -s $pid_file ]]; then
    segment=$(awk 'NR == 7 { print $2 }' "$pid_file")
    [[ -z $segment ]] || ipcrm --shmem-id "$segment" 2>/dev/null || true
  fi
}

member_ready() { # MEMBER
  local port=TENURE_${1^^}_PORT
  port=${port//-/_}
  case $1 in
  etcd-tls) etcdctl_tls endpoint health ;;
  etcd* | kubernetes-etcd) timeout 10 env ETCDCTL_API=3 etcdctl --endpoints="http://$(at "$port")" endpoint health ;;
  redis | redis-sentinel-primary | redis-sentinel-replica)
    port=${port/REDIS_SENTINEL/SENTINEL}
    redis-cli -p "${!port}" ping | grep -qx PONG
    ;;
  redis-sentinel-?)
    port=${port/REDIS_SENTINEL/SENTINEL}
    redis-cli -p "${!port}" sentinel ckquorum tenure | grep -q '^OK 3 ' &&
      redis-cli -p "${!port}" sentinel replicas tenure | grep -qx "127.0.0.1:$TENURE_SENTINEL_REPLICA_PORT" &&
      redis-cli -p "${!port}" sentinel replicas tenure | grep -qx ok
    ;;
  redis-cluster) in_cluster healthy /data ;;
  postgres | pgbouncer) "$(postgres_bin)/pg_isready" -q -h 127.0.0.1 -p "${!port}" -U postgres -d tenure ;;
  mariadb) MYSQL_PWD=tenure mariadb --no-defaults -h127.0.0.1 -P"${!port}" -uroot -e 'SELECT 1' tenure ;;
  kubernetes) kubernetes_ready ;;
  esac >/dev/null 2>&1
}

in_cluster() { # VERB /data ARGUMENT..
  TENURE_PORT=$TENURE_REDIS_CLUSTER_PORT TENURE_BUS_PORT=$TENURE_REDIS_CLUSTER_BUS_PORT \
    sh "$here/redis-cluster.sh" "$1" "$home/redis-cluster" "${@:3}"
}

start_cluster_node() { # N
  (
    cd "$home/redis-cluster" || exit
    exec setsid env TENURE_BIND=127.0.0.1 TENURE_PORT="$TENURE_REDIS_CLUSTER_PORT" TENURE_BUS_PORT="$TENURE_REDIS_CLUSTER_BUS_PORT" \
      sh "$here/redis-cluster.sh" node "$home/redis-cluster" "$1" </dev/null >>"$home/logs/redis-cluster.log" 2>&1
  ) &
}

etcdctl_tls() {
  timeout 10 env ETCDCTL_API=3 etcdctl --endpoints="https://$(at TENURE_ETCD_TLS_PORT)" --cacert="$TENURE_TLS_DIR/ca.crt" \
    --cert="$TENURE_TLS_DIR/root.crt" --key="$TENURE_TLS_DIR/root.key" "$@"
}
