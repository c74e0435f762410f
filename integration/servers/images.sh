#!/usr/bin/env bash
# Finds or builds the image of a server and prints its name: images.sh etcd|redis|postgres|mariadb|pgbouncer|kubernetes
# `images.sh base` only makes sure of debian:bookworm-slim.
#
# TENURE_<SERVER>_IMAGE wins. Else it is the compose file's default, when this machine has it or can pull it within
# TENURE_PULL_TIMEOUT seconds (120). Else it is a stand-in built from ../images/<server> with Debian's packages. A stand-in is tagged
# with the hash of the files it was built from, so that the next run finds it and a changed Dockerfile is built anew.
set -euo pipefail

server=${1:?usage: images.sh SERVER}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
base=debian:bookworm-slim
variable=TENURE_${server^^}_IMAGE

say() { echo "images: $*" >&2; }

has() { docker image inspect "$1" >/dev/null 2>&1; }

pulled() { # IMAGE
  has "$1" || timeout "${TENURE_PULL_TIMEOUT:-120}" docker pull --quiet "$1" >/dev/null 2>&1
}

# Debian's smallest system from Debian's own packages, under the name that the Dockerfiles build from.
ensure_base() {
  pulled "$base" && return
  if ! command -v debootstrap >/dev/null && [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    say 'installing debootstrap'
    { apt-get update && apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 debootstrap; } >/dev/null 2>&1 || true
  fi
  if ! command -v debootstrap >/dev/null || [[ $(id -u) != 0 ]]; then
    say "cannot pull $base; making it takes debootstrap, run as root"
    return 1
  fi
  say "making $base with debootstrap"
  local work
  work=$(mktemp -d)
  debootstrap --variant=minbase bookworm "$work/system" >"$work/log" 2>&1 || {
    tail -n 20 "$work/log" >&2
    rm -rf "$work"
    return 1
  }
  rm -rf "$work"/system/var/cache/apt/archives/*.deb "$work"/system/var/lib/apt/lists/*
  tar -C "$work/system" -c . | docker import --change 'CMD ["bash"]' - "$base" >/dev/null
  rm -rf "$work"
}

stand_in() {
  local context=$root/integration/images/$server hash tag built=''
  [[ $server != kubernetes ]] || built=$("$here/kube-apiserver.sh" docker)
  hash=$({ cd "$context" && find . -type f -print0 | sort -z | xargs -0 sha256sum && echo "$built"; } | sha256sum | cut -c1-12)
  tag=tenure-stand-in/$server:$hash
  if ! has "$tag"; then
    ensure_base
    say "building $tag"
    local work
    work=$(mktemp -d)
    cp -r "$context" "$work/context"
    [[ -z $built ]] || cp "$built/kube-apiserver" "$work/context/"
    docker build --tag "$tag" "$work/context" >"$work/log" 2>&1 || {
      tail -n 30 "$work/log" >&2
      rm -rf "$work"
      return 1
    }
    rm -rf "$work"
  fi
  echo "$tag"
}

if [[ -n ${!variable:-} ]]; then
  echo "${!variable}"
  exit
fi
default=$(sed -n "s/.*\${$variable:-\([^}]*\)}.*/\1/p" "$root/docker-compose.yml" | head -n 1)
if [[ -n $default ]] && has "$default"; then
  echo "$default"
  exit
fi
# One run at a time pulls and builds; the others find what it made.
exec 9>"${TMPDIR:-/tmp}/tenure-images-$(id -u).lock"
[[ -n ${TENURE_IMAGES_LOCKED:-} ]] || flock 9
export TENURE_IMAGES_LOCKED=yes
if [[ $server == base ]]; then
  ensure_base
  echo "$base"
elif pulled "$default"; then
  echo "$default"
else
  stand_in
fi
