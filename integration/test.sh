#!/usr/bin/env bash
# Runs every test of the workspace, those on real servers too, and does all set-up for them.
#
#   integration/test.sh [--servers auto|docker|local|none] [--only NAME]... [FILTER]
#
#   --servers  auto (default): containers if a Docker engine answers, else plain processes from Debian's packages, which
#              are installed when missing and this runs as root; none: only what needs no server
#   --only     this server and what is tested on it, and nothing else: etcd, etcd3, etcd-tls, redis, redis-sentinel,
#              redis-cluster, postgres, pgbouncer, mariadb, kubernetes; may be repeated
#   FILTER     only tests whose name contains it
#
# Ports are picked among free ones, so that two runs do not disturb each other; everything that was started is ended,
# also on Ctrl-C. Ends with a table of the stores and one line that says whether all passed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
servers=auto
only=()
filter=()

usage() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"
}

refuse() {
  echo "test.sh: $*" >&2
  exit 2
}

while (($#)); do
  case $1 in
  --servers) servers=${2:?--servers takes auto, docker, local or none} && shift 2 ;;
  --only) only+=("${2:?--only takes the name of a server}") && shift 2 ;;
  -h | --help) usage && exit 0 ;;
  -*) refuse "unknown option $1; see --help" ;;
  *) filter=("$1") && shift ;;
  esac
done

if [[ $servers != none ]]; then servers=$(integration/servers/mode.sh "$servers") || exit 2; fi

work=$(mktemp -d "${TMPDIR:-/tmp}/tenure-test.XXXXXX")
log=$work/log
export TENURE_CONFORMANCE_REPORTS=$work/reports
mkdir -p "$TENURE_CONFORMANCE_REPORTS"
started=false
left_out=

finish() {
  local code=$?
  trap - EXIT
  if $started; then integration/servers/servers.sh down "$work/servers" >/dev/null 2>&1 || true; fi
  rm -rf "$work"
  ((code == 0)) || echo "FAILED: see above (exit $code)"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Runs cargo with its output shown and kept. A run that executes no test at all is a failure, unless a filter was given.
cargo_test() {
  echo "== cargo test $*"
  cargo test "$@" 2>&1 | tee -a "$log"
}

tests_so_far() { # passed|failed|ignored
  awk -v what="$1" '/^test result:/ { for (i = 2; i <= NF; i++) if ($i == what ";") n += $(i - 1) } END { print n + 0 }' "$log"
}

# A name of --only stands for the tests that need this server.
needs() { # CRATE
  case $1 in
  tenure-etcd) echo etcd etcd3 etcd-tls ;;
  tenure-redis) echo redis redis-sentinel redis-cluster ;;
  tenure-sql) echo postgres pgbouncer mariadb ;;
  tenure-kubernetes) echo kubernetes ;;
  tenure) echo etcd-tls redis postgres mariadb ;;
  esac
}

wanted() { # CRATE
  local name
  ((${#only[@]})) || return 0
  [[ $1 != tenure ]] || return 1 # its tests need several servers at once
  for name in $(needs "$1"); do
    [[ " ${only[*]} " != *" $name "* ]] || return 0
  done
  return 1
}

touch "$log"
if [[ $servers == none ]]; then integration/packages.sh; else integration/packages.sh --servers; fi

# What this machine cannot build is left out, and named at the end.
features=(--all-features)
exclude=()
if ! pkg-config --exists openssl 2>/dev/null; then
  left_out+=" tls-native (OpenSSL's headers are missing)"
  stores=sqlite,postgres,mysql,redis,etcd,tls-rustls
  features=(--features "tenure/${stores//,/,tenure/},tenure-sql/sqlite,tenure-sql/postgres,tenure-sql/mysql")
fi
if ! command -v protoc >/dev/null; then
  left_out+=" etcd (protoc is missing)"
  exclude=(--exclude tenure-etcd)
  features=(--features tenure/sqlite,tenure/postgres,tenure/mysql,tenure/redis,tenure/tls-rustls)
fi

if ((${#only[@]} == 0)); then
  cargo_test --workspace "${exclude[@]}" "${features[@]}" --no-fail-fast "${filter[@]}"
fi

if [[ $servers != none ]]; then
  started=true
  integration/servers/servers.sh up "$servers" "$work/servers" "${only[@]}"
  # shellcheck source=/dev/null
  source "$work/servers/env"
  # These tests wait for servers more than they compute.
  export RUST_TEST_THREADS=${RUST_TEST_THREADS:-8}
  for crate in tenure-etcd tenure-redis tenure-sql tenure-kubernetes tenure; do
    [[ -e crates/$crate ]] && wanted "$crate" || continue
    cargo_test -p "$crate" --all-features --tests --no-fail-fast -- --ignored "${filter[@]}" || {
      for name in $(needs "$crate"); do
        echo "== the log of $name" && integration/servers/servers.sh logs "$work/servers" "$name" 2>&1 | tail -n 40 || true
      done
      exit 1
    }
  done
fi

passed=$(tests_so_far passed)
failed=$(tests_so_far failed)
if ((passed == 0 || failed > 0)); then
  echo "$passed tests passed, $failed failed"
  exit 1
fi
integration/table.sh "$TENURE_CONFORMANCE_REPORTS"
echo "PASSED: $passed tests, servers: $servers${only[*]:+ (${only[*]})}${left_out:+; left out:$left_out}"
