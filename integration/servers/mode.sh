#!/usr/bin/env bash
# Prints how servers are to be started: mode.sh auto|docker|local. `auto` is docker if an engine answers, else local.
set -euo pipefail

case ${1:-} in
docker | local) echo "$1" ;;
auto) if command -v docker-compose docker >/dev/null && docker info >/dev/null 2>&1; then echo docker; else echo local; fi ;;
*)
  echo "servers are started with auto, docker or local, not ${1:-nothing}" >&2
  exit 2
  ;;
esac
