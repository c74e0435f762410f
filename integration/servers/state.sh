# shellcheck shell=bash disable=SC2154
# What both modes share: the servers' names, a run's settings and ports in DIR, and the addresses that tests read. Sourced by
# servers.sh, which sets `dir` and `mode`.

groups=(etcd etcd3 etcd-tls redis redis-sentinel redis-cluster postgres pgbouncer mariadb kubernetes)

is_group() { [[ " ${groups[*]} " == *" $1 "* ]]; }

members() { # GROUP or MEMBER
  case $1 in
  etcd3) echo etcd3-1 etcd3-2 etcd3-3 ;;
  redis-sentinel) echo redis-sentinel-primary redis-sentinel-replica redis-sentinel-1 redis-sentinel-2 redis-sentinel-3 ;;
  kubernetes) echo kubernetes-etcd kubernetes ;;
  *) echo "$1" ;;
  esac
}

is_member() { # MEMBER
  local group
  for group in "${groups[@]}"; do
    [[ " $(members "$group") " != *" $1 "* ]] || return 0
  done
  return 1
}

# The names and what they stand on, each once, what is needed first.
with_needed() { # NAME..
  local name
  for name in "$@"; do
    [[ $name != pgbouncer ]] || echo postgres
    echo "$name"
  done | awk '!seen[$0]++'
}

# Settings of a run outlive the command: DIR/settings holds KEY=VALUE lines, which are variables of docker-compose.yml as well.

setting() { # KEY VALUE, unless it is set
  [[ -z ${!1:-} ]] || set -- "$1" "${!1}"
  export "$1=$2"
  grep -q "^$1=" "$dir/settings" 2>/dev/null || echo "$1=$2" >>"$dir/settings"
}

load_settings() {
  local key value
  [[ -e $dir/settings ]] || return 0
  while IFS='=' read -r key value; do
    export "$key=$value"
  done <"$dir/settings"
}

# Ports are picked below the range from which the kernel gives ports to outgoing connections, and reserved by a file that names the
# run: two runs that pick at the same moment do not get the same one, nor does a later run get one whose server is just stopped.

first_port=20000
last_port=32000
reservations=${TMPDIR:-/tmp}/tenure-ports-$(id -u)

reserve() { # PORT
  local file=$reservations/$1
  mkdir -p "$reservations"
  if [[ -e $file && ! -e $(<"$file")/mode ]]; then
    rm -f "$file"
  fi
  (set -o noclobber && echo "$dir" >"$file") 2>/dev/null || return 1
  if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then
    rm -f "$file"
    return 1
  fi
}

# The first of COUNT free ports in a row.
free_ports() { # COUNT
  local tries first port taken
  for ((tries = 0; tries < 200; tries++)); do
    first=$((first_port + (RANDOM * 32768 + RANDOM) % (last_port - first_port - $1)))
    taken=()
    for ((port = first; port < first + $1; port++)); do
      reserve "$port" || break
      taken+=("$port")
    done
    if [[ ${#taken[@]} -eq $1 ]]; then
      echo "$first"
      return
    fi
    for port in "${taken[@]}"; do
      rm -f "$reservations/$port"
    done
  done
  echo "servers: no $1 free ports in a row between $first_port and $last_port" >&2
  return 1
}

release_ports() {
  [[ -d $reservations ]] || return 0
  { grep -rlxF -- "$dir" "$reservations" || true; } | xargs -r rm -f
  rmdir --ignore-fail-on-non-empty "$reservations"
}

port() { # VARIABLE [COUNT]
  local first
  [[ -n ${!1:-} ]] || first=$(free_ports "${2:-1}")
  setting "$1" "${first:-}"
}

pick_ports() { # GROUP
  local n
  case $1 in
  etcd) port TENURE_ETCD_PORT ;;
  etcd3) for n in 1 2 3; do port "TENURE_ETCD3_${n}_PORT"; done ;;
  etcd-tls) port TENURE_ETCD_TLS_PORT ;;
  redis) port TENURE_REDIS_PORT && port TENURE_REDIS_TLS_PORT ;;
  redis-sentinel) for n in PRIMARY REPLICA 1 2 3; do port "TENURE_SENTINEL_${n}_PORT"; done ;;
  redis-cluster)
    port TENURE_REDIS_CLUSTER_PORT 6
    port TENURE_REDIS_CLUSTER_BUS_PORT 6
    setting TENURE_REDIS_CLUSTER_LAST_PORT $((TENURE_REDIS_CLUSTER_PORT + 5))
    setting TENURE_REDIS_CLUSTER_BUS_LAST_PORT $((TENURE_REDIS_CLUSTER_BUS_PORT + 5))
    ;;
  postgres) port TENURE_POSTGRES_PORT ;;
  pgbouncer) port TENURE_PGBOUNCER_PORT ;;
  mariadb) port TENURE_MARIADB_PORT ;;
  kubernetes) port TENURE_KUBERNETES_PORT ;;
  esac
  backend_ports "$1"
}

# The variables that tests read. A server that is not up has none, so a test can tell.

at() { echo "127.0.0.1:${!1}"; } # VARIABLE

addresses() { # GROUP
  local n list=''
  case $1 in
  etcd) echo "TENURE_TEST_ETCD=$(at TENURE_ETCD_PORT)" ;;
  etcd3) echo "TENURE_TEST_ETCD3=$(at TENURE_ETCD3_1_PORT),$(at TENURE_ETCD3_2_PORT),$(at TENURE_ETCD3_3_PORT)" ;;
  etcd-tls) echo "TENURE_TEST_ETCD_TLS=$(at TENURE_ETCD_TLS_PORT)" ;;
  redis)
    echo "TENURE_TEST_REDIS=redis://$(at TENURE_REDIS_PORT)"
    echo "TENURE_TEST_REDIS_TLS=rediss://tenure:tenure@$(at TENURE_REDIS_TLS_PORT)"
    ;;
  redis-sentinel)
    echo "TENURE_TEST_REDIS_SENTINEL=$(at TENURE_SENTINEL_1_PORT),$(at TENURE_SENTINEL_2_PORT),$(at TENURE_SENTINEL_3_PORT)"
    echo "TENURE_TEST_REDIS_SENTINEL_MASTER=tenure"
    ;;
  redis-cluster)
    for n in 0 1 2 3 4 5; do
      list+=${list:+,}127.0.0.1:$((TENURE_REDIS_CLUSTER_PORT + n))
    done
    echo "TENURE_TEST_REDIS_CLUSTER=$list"
    ;;
  postgres) echo "TENURE_TEST_POSTGRES=postgres://postgres:tenure@$(at TENURE_POSTGRES_PORT)/tenure" ;;
  pgbouncer) echo "TENURE_TEST_PGBOUNCER=postgres://postgres:tenure@$(at TENURE_PGBOUNCER_PORT)/tenure" ;;
  mariadb) echo "TENURE_TEST_MYSQL=mysql://root:tenure@$(at TENURE_MARIADB_PORT)/tenure" ;;
  kubernetes) kubernetes_addresses ;;
  esac
}

write_env() {
  local line name
  {
    echo "TENURE_TEST_SERVERS=$mode"
    echo "TENURE_TEST_SERVERS_DIR=$dir"
    echo "TENURE_TEST_CA=$TENURE_TLS_DIR/ca.crt"
    echo "TENURE_TEST_OTHER_CA=$TENURE_TLS_DIR/other-ca.crt"
    echo "TENURE_TEST_CLIENT_CERT=$TENURE_TLS_DIR/client.crt"
    echo "TENURE_TEST_CLIENT_KEY=$TENURE_TLS_DIR/client.key"
    echo "TENURE_TEST_ROOT_CERT=$TENURE_TLS_DIR/root.crt"
    echo "TENURE_TEST_ROOT_KEY=$TENURE_TLS_DIR/root.key"
    while read -r name; do
      addresses "$name"
    done <"$dir/names"
  } | while IFS= read -r line; do
    printf "export %s='%s'\n" "${line%%=*}" "${line#*=}"
  done >"$dir/env"
}
