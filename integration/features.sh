#!/usr/bin/env bash
# Checks that every crate builds, without a warning, with no features and with each of its features alone.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

features() { # CARGO.TOML
  sed -n '/^\[features\]/,/^\[[^f]/s/^\([a-z][a-z0-9-]*\) *= *\[.*/\1/p' "$1" | grep -vx default || true
}

# What the program that uses tenure-kubernetes chooses by a feature; the same as its feature `latest`, since two would conflict.
export K8S_OPENAPI_ENABLED_VERSION=${K8S_OPENAPI_ENABLED_VERSION:-1.37}
checked=0
for manifest in crates/*/Cargo.toml; do
  crate=$(basename "$(dirname "$manifest")")
  for feature in '' $(features "$manifest"); do
    echo "== $crate: ${feature:-no features}"
    cargo clippy --quiet -p "$crate" --no-default-features --features "$feature" -- -D warnings
    checked=$((checked + 1))
  done
done
((checked > 0))
echo "features: $checked builds are clean"
