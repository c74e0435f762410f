#!/usr/bin/env bash
# Installs, as root on Debian and its relatives, what building and testing needs and is missing; does nothing elsewhere.
#
#   packages.sh [--servers]   with what the tests on real servers need besides the servers themselves
set -euo pipefail

missing=()
want() { # PACKAGE CHECK..
  "${@:2}" >/dev/null 2>&1 || missing+=("$1")
}
has_file() { # GLOB
  compgen -G "$1"
}

want gcc command -v cc
want libc6-dev has_file '/usr/include/stdio.h'
want pkg-config command -v pkg-config
want libssl-dev pkg-config --exists openssl
want protobuf-compiler command -v protoc
# What protoc's own files import; only a recommendation of the package above.
want libprotobuf-dev has_file '/usr/include/google/protobuf/descriptor.proto'
want libfaketime has_file '/usr/lib/*/faketime/libfaketime.so.1'
if [[ ${1:-} == --servers ]]; then
  # The tests start servers of their own besides the shared ones.
  want redis-server command -v redis-server
  want openssl command -v openssl
fi
((${#missing[@]})) || exit 0
if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
  echo "packages: not installed, since this is not root on Debian: ${missing[*]}" >&2
  exit 0
fi

echo "packages: installing ${missing[*]}" >&2
# A package's own service must not start.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
