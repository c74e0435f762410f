#!/usr/bin/env bash
# Prints the line coverage of the state machine and of the timing rule, measured on tenure-core's unit tests. Needs
# cargo-tarpaulin; its ptrace engine, since the other needs the LLVM tools of the very compiler.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo tarpaulin --engine ptrace -p tenure-core --lib --skip-clean --out Stdout --timeout 200 2>/dev/null |
  awk -F': ' '/src\/(machine|timing)/ && /\/tests/ == 0 && $2 ~ /^[0-9]+\/[0-9]+/ {
    sub(/^\|\| /, "", $1); split($2, n, "[/ ]"); covered += n[1]; lines += n[2]; print $1 ": " n[1] "/" n[2]
  } END { if (!lines) exit 1; printf "machine and timing: %d of %d lines, %.1f %%\n", covered, lines, 100 * covered / lines }'
