#!/usr/bin/env bash
# Writes pgbouncer.ini from variables named as edoburu/pgbouncer's and runs the command. The local mode of servers.sh uses it too,
# with TENURE_CONFIG_DIR for the place of the two files.
#
# DB_HOST is required. DB_PORT, DB_USER, DB_PASSWORD, AUTH_TYPE, POOL_MODE, LISTEN_ADDR, LISTEN_PORT, MAX_CLIENT_CONN,
# DEFAULT_POOL_SIZE, ADMIN_USERS and IGNORE_STARTUP_PARAMETERS have defaults; MAX_PREPARED_STATEMENTS is for later versions only:
# Debian's 1.18 tracks none.
set -euo pipefail

config=${TENURE_CONFIG_DIR:-/etc/pgbouncer}
user=${DB_USER:-postgres}
password=${DB_PASSWORD:-}
printf '"%s" "%s"\n' "${user//\"/\"\"}" "${password//\"/\"\"}" >"$config/userlist.txt"
chmod 600 "$config/userlist.txt"
cat >"$config/pgbouncer.ini" <<INI
[databases]
* = host=${DB_HOST:?must be set} port=${DB_PORT:-5432} auth_user=$user
[pgbouncer]
listen_addr = ${LISTEN_ADDR:-0.0.0.0}
listen_port = ${LISTEN_PORT:-5432}
unix_socket_dir =
auth_type = ${AUTH_TYPE:-md5}
auth_file = $config/userlist.txt
pool_mode = ${POOL_MODE:-session}
max_client_conn = ${MAX_CLIENT_CONN:-100}
default_pool_size = ${DEFAULT_POOL_SIZE:-20}
admin_users = ${ADMIN_USERS:-postgres}
ignore_startup_parameters = ${IGNORE_STARTUP_PARAMETERS:-extra_float_digits}
INI
exec "$@"
