#!/usr/bin/env bash
# Makes the system tables the first time and runs the server as `mysql`, as the official image's entry point does. The local mode of
# servers.sh uses it too, with TENURE_DATADIR for the place of the data.
#
# MARIADB_ROOT_PASSWORD or MYSQL_ROOT_PASSWORD is required; MARIADB_DATABASE or MYSQL_DATABASE is created.
set -euo pipefail

if [[ ${1:-} == -* ]]; then
  set -- mariadbd "$@"
fi
if [[ ${1:-} != mariadbd && ${1:-} != mysqld ]]; then
  exec "$@"
fi

datadir=${TENURE_DATADIR:-/var/lib/mysql}
if [[ $(id -u) == 0 ]]; then
  install -d -o mysql -g mysql "$datadir"
  exec setpriv --reuid=mysql --regid=mysql --init-groups "${BASH_SOURCE[0]}" "$@"
fi

quoted() { # a string for SQL
  local text=${1//\\/\\\\}
  printf "'%s'" "${text//\'/\'\'}"
}

if [[ ! -e $datadir/complete ]]; then
  password=$(quoted "${MARIADB_ROOT_PASSWORD:-${MYSQL_ROOT_PASSWORD:?must be set}}")
  database=${MARIADB_DATABASE:-${MYSQL_DATABASE:-}}
  mariadb-install-db --no-defaults --datadir="$datadir" --skip-test-db --auth-root-authentication-method=normal
  {
    echo "ALTER USER root@localhost IDENTIFIED BY $password;"
    echo "CREATE USER IF NOT EXISTS root@'%' IDENTIFIED BY $password;"
    echo "GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;"
    [[ -z $database ]] || echo "CREATE DATABASE IF NOT EXISTS \`${database//\`/\`\`}\`;"
  } >"$datadir/first.sql"
  chmod 600 "$datadir/first.sql"
  touch "$datadir/complete"
fi
# Each statement of the file may run again, so every start runs it.
exec "$1" --no-defaults --datadir="$datadir" --socket=mysql.sock --init-file="$datadir/first.sql" "${@:2}"
