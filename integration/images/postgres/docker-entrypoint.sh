#!/usr/bin/env bash
# Makes a cluster in PGDATA the first time and runs the server as `postgres`, as the official image's entry point does. The local
# mode of servers.sh uses it too, as it is.
#
# POSTGRES_PASSWORD is required; POSTGRES_USER (postgres) is the superuser; POSTGRES_DB (the user's name) is created.
set -euo pipefail

if [[ ${1:-} == -* ]]; then
  set -- postgres "$@"
fi
if [[ ${1:-} != postgres ]]; then
  exec "$@"
fi

if [[ $(id -u) == 0 ]]; then
  install -d -o postgres -g postgres -m 700 "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --init-groups "${BASH_SOURCE[0]}" "$@"
fi

if [[ ! -s $PGDATA/PG_VERSION ]]; then
  user=${POSTGRES_USER:-postgres}
  database=${POSTGRES_DB:-$user}
  initdb --no-sync --username="$user" --encoding=UTF8 --locale=C.UTF-8 --auth-local=trust --auth-host=scram-sha-256 \
    --pwfile=<(printf '%s\n' "${POSTGRES_PASSWORD:?must be set}") --pgdata="$PGDATA"
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
  if [[ $database != postgres ]]; then
    postgres --single -D "$PGDATA" postgres <<<"CREATE DATABASE \"${database//\"/\"\"}\"" >/dev/null
  fi
fi
exec "$@"
