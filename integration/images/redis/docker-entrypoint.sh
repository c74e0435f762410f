#!/bin/sh
# Options alone go to redis-server, which runs as `redis`; any other command runs as it is.
set -eu

case ${1:-} in
-* | *.conf) set -- redis-server "$@" ;;
esac
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
  chown -R redis:redis .
  exec setpriv --reuid=redis --regid=redis --init-groups "$@"
fi
exec "$@"
