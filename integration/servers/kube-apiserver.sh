#!/usr/bin/env bash
# Builds a Kubernetes API server and client-go's leader election example from Debian's source package, prints their folder:
#
#   kube-apiserver.sh host      on this machine (Debian 12 and root, for the packages it installs)
#   kube-apiserver.sh docker    the same there; elsewhere in a container of debian:bookworm-slim
#
# It takes some five minutes on two cores, once: the result stays in TENURE_CACHE (default: ~/.cache/tenure) in a folder named after
# the source's version and this recipe.
set -euo pipefail

script=$(realpath "${BASH_SOURCE[0]}")
cache=${TENURE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tenure}
recipe=$(sha256sum "$script" | cut -c1-8)
packages=(golang-go rsync make jq dpkg-dev golang-github-modern-go-reflect2-dev)
work=

say() { echo "kube-apiserver: $*" >&2; }

finished() { # prints the newest folder that this recipe has filled
  local folder
  folder=$(printf '%s\n' "$cache"/kubernetes-*-"$recipe" | sort -V | tail -n 1)
  [[ -x $folder/kube-apiserver && -x $folder/leader-election ]] && echo "$folder"
}

# What was started with output into a log shows the log's end if it fails.
quietly() { # LOG COMMAND..
  "${@:2}" >"$1" 2>&1 || {
    tail -n 30 "$1" >&2
    say "failed: ${*:2}"
    return 1
  }
}

# The machine's own list of sources, turned to source packages in a folder apart: the machine's configuration stays as it is.
source_package() {
  local file name options
  mkdir -p "$work/sources" "$work/lists/partial"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [[ -e $file ]] || continue
    name=$work/sources/$(basename "${file/sources.list.d/}")
    case $file in
    *.sources) sed 's/^Types:.*/Types: deb-src/' "$file" >"$name" ;;
    *) sed -n 's/^deb /deb-src /p' "$file" >"${name%.list}.list" ;;
    esac
  done
  options=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/sources" -o "Dir::State::lists=$work/lists"
    -o APT::Sandbox::User=root)
  quietly "$work/update.log" apt-get "${options[@]}" update
  (cd "$work" && quietly "$work/source.log" apt-get "${options[@]}" source --download-only kubernetes)
  dpkg-source --extract "$work"/kubernetes_*.dsc "$work/kubernetes" >"$work/extract.log" 2>&1
}

install_packages() {
  local installed
  installed=$(dpkg-query --show --showformat '${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null | grep -c ' installed$' || true)
  [[ $installed != "${#packages[@]}" ]] || return 0
  [[ $(id -u) == 0 ]] || {
    say "packages are missing; as root: apt-get install ${packages[*]}"
    return 1
  }
  quietly "$work/apt-update.log" apt-get update
  DEBIAN_FRONTEND=noninteractive quietly "$work/apt-install.log" \
    apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 "${packages[@]}"
}

build() {
  local tree=$work/kubernetes version upstream
  install_packages
  say 'fetching the source package'
  source_package
  version=$(dpkg-parsechangelog --file "$tree/debian/changelog" --show-field Version)

  # The reflect2 that Kubernetes carries reads maps wrongly when built by Go 1.18 or later: the server dies on the first object with
  # labels. Debian has a later one.
  rm -rf "$tree/vendor/github.com/modern-go/reflect2"
  cp -rL /usr/share/gocode/src/github.com/modern-go/reflect2 "$tree/vendor/github.com/modern-go/"
  upstream=${version##*really}
  upstream=${upstream%%[+-]*}
  # Times with which a test can wait for a takeover.
  sed -i -E 's/(LeaseDuration: +)60 /\16 /; s/(RenewDeadline: +)15 /\14 /; s/(RetryPeriod: +)5 /\11 /' \
    "$tree/staging/src/k8s.io/client-go/examples/leader-election/main.go"

  export GOCACHE=$work/go-cache GOPROXY=off CGO_ENABLED=0
  export KUBE_GIT_TREE_STATE=archive KUBE_GIT_VERSION=v$upstream KUBE_GIT_COMMIT=debian KUBE_GIT_MAJOR=1 KUBE_GIT_MINOR=20
  say "generating sources of Kubernetes $version"
  (cd "$tree" && GO111MODULE=on GOFLAGS=-mod=vendor quietly "$work/generate.log" make generated_files)

  say 'building'
  export GO111MODULE=off GOFLAGS='' GOPATH=$tree/_output/local/go
  cd "$GOPATH/src/k8s.io/kubernetes"
  quietly "$work/build.log" go build -ldflags '-s -w' -o "$work/out/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
  quietly "$work/build.log" go build -ldflags '-s -w' -o "$work/out/leader-election" \
    k8s.io/kubernetes/vendor/k8s.io/client-go/examples/leader-election
  cd /
  rm -rf "$cache/kubernetes-$version-$recipe" "$cache/kubernetes.new"
  mv "$work/out" "$cache/kubernetes.new"
  mv "$cache/kubernetes.new" "$cache/kubernetes-$version-$recipe"
}

# Whether the packages are here as they are in the container.
is_bookworm() {
  [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null && grep -qx 'VERSION_CODENAME=bookworm' /etc/os-release
}

in_docker() {
  "$(dirname "$script")/images.sh" base >/dev/null
  # Everything is done in the container's own file system but the last move. The lock is this process's.
  docker run --rm --volume "$script:/kube-apiserver.sh:ro" --volume "$cache:/cache" --env TENURE_CACHE=/cache \
    --env TENURE_BUILD_USER="$(id -u):$(id -g)" debian:bookworm-slim bash /kube-apiserver.sh host >/dev/null
}

mkdir -p "$cache"
if ! finished; then
  exec 9>"$cache/kubernetes.lock"
  [[ -n ${TENURE_BUILD_USER:-} ]] || flock 9
  if ! finished; then
    where=${1:-}
    [[ $where != docker ]] || ! is_bookworm || where=host
    case $where in
    docker) in_docker ;;
    host)
      work=$(mktemp -d)
      trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
      mkdir "$work/out"
      build
      [[ -z ${TENURE_BUILD_USER:-} ]] || chown -R "$TENURE_BUILD_USER" "$cache"/kubernetes-*-"$recipe"
      ;;
    *)
      say 'usage: kube-apiserver.sh host|docker'
      exit 2
      ;;
    esac
    finished
  fi
fi
