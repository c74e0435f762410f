#!/usr/bin/env bash
# Checks what a user of one crate or feature builds: the core names no store client, the facade without features is the
# core, and one backend brings no other backend's client.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

tree() { # CARGO ARGUMENTS
  cargo tree --edges normal --prefix none --format '{p}' "$@" | sed 's/ .*//' | sort -u
}

refuse() {
  echo "trees: $*" >&2
  exit 1
}

clients=(etcd-client redis sqlx-postgres sqlx-mysql sqlx-sqlite kube)

lacks() { # WHAT TREE CLIENT..
  local what=$1 tree=$2 client
  for client in "${@:3}"; do
    ! grep -qx "$client" <<<"$tree" || refuse "$what builds $client"
  done
}

core=$(tree -p tenure-core)
lacks "tenure-core" "$core" "${clients[@]}"
facade=$(tree -p tenure | grep -vx tenure)
[[ $facade == "$core" ]] || refuse "tenure without features differs from tenure-core: $(diff <(echo "$core") <(echo "$facade") || true)"

checked=0
while IFS=: read -r feature client; do
  grep -q "^$feature = " crates/tenure/Cargo.toml || continue
  with=$(tree -p tenure --features "$feature")
  grep -qx "$client" <<<"$with" || refuse "feature $feature does not build $client"
  for other in "${clients[@]}"; do
    [[ $other == "$client" ]] || lacks "feature $feature" "$with" "$other"
  done
  checked=$((checked + 1))
done <<<"sqlite:sqlx-sqlite
postgres:sqlx-postgres
mysql:sqlx-mysql
etcd:etcd-client
redis:redis
kubernetes:kube"
((checked > 0)) || refuse "no feature was checked"
echo "trees: the core and $checked features build what they should and no more"
