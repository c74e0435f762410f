#!/usr/bin/env bash
# Checks docs/cases.md: every test and invariant that it names exists and carries the number of its kind, and no kind is without
# a test.
# shellcheck disable=SC2016 # the backticks are those of the table
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
table=docs/cases.md
kinds=21
wrong=0
tests=0
invariants=0

complain() {
  echo "cases: $*" >&2
  wrong=$((wrong + 1))
}

# The lines right above a test, attributes and documentation, and the line that names it.
head_of() { # FILE NAME
  if [[ $2 == *-* ]]; then grep -B 2 -F "\"$2\"" "$1"; else grep -B 6 -E "fn $2\b" "$1"; fi
}

for ((n = 1; n <= kinds; n++)); do
  kind=$(printf 'K%02d' "$n")
  row=$(grep "^| $kind " "$table") || { complain "$kind has no row in $table" && continue; }
  found=0
  while IFS=' ' read -r file name; do
    found=$((found + 1))
    if [[ ! -e $file ]] || ! head=$(head_of "$file" "$name"); then
      complain "$kind names $name in $file, which is not there"
    elif ! grep -q "//.*\b$kind\b" <<<"$head"; then
      complain "$name in $file does not carry $kind"
    fi
  done < <(grep -oE '`[a-z][^`]*\.rs` `[a-z0-9_-]+`' <<<"$row" | tr -d '`')
  while read -r file; do
    grep -q "^//! Kinds .*\b$kind\b" "$file" 2>/dev/null || complain "$file is not there or does not carry $kind"
    invariants=$((invariants + 1))
  done < <(grep -oE '`crates/tenure-sim/src/invariants/[a-z]+\.rs`' <<<"$row" | tr -d '`')
  ((found)) || complain "$kind has no test"
  tests=$((tests + found))
done

((wrong == 0)) || exit 1
echo "cases: $kinds kinds, guarded in $tests places, and by $invariants mentions of the simulator's invariants"
