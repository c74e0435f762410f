#!/usr/bin/env bash
# Prints a table of the conformance tests' notes in DIR: store, version, bench, and how many clauses passed, were skipped
# (each test file lists the skips that it expects, and fails at any other), or failed.
#
#   table.sh DIR
set -euo pipefail

cat "${1:?usage: table.sh DIR}"/* 2>/dev/null | awk -F'\t' '
  { key = $1 FS $2 FS $3; seen[key] = 1; count[key, $5]++ }
  END {
    for (key in seen) {
      split(key, part, FS)
      printf "%-11s %-28.28s %-22s %6d %7d %6d\n", part[1], part[2], part[3], count[key, "passed"], count[key, "skipped"], count[key, "failed"]
    }
  }' | sort | { printf '%-11s %-28s %-22s %6s %7s %6s\n' store version bench passed skipped failed && cat; }
