# Each recipe is one line that also runs without just.

# everything a change must pass before it lands, except the tests
verify: fmt clippy each-feature docs spelling licences

# what can be repaired by a program
fix:
    cargo fmt --all && cargo clippy --workspace --all-targets --all-features --fix --allow-dirty --allow-staged

# every test, against every server that can be had here
test *ARGS:
    ./integration/test.sh {{ ARGS }}

fmt:
    cargo fmt --all -- --check

clippy:
    cargo clippy --workspace --all-targets --all-features -- -D warnings

each-feature:
    ./integration/features.sh

docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps

# needs typos
spelling:
    typos

# needs cargo-deny
licences:
    cargo deny check licenses bans sources

# needs cargo-tarpaulin: line coverage of the machine and of the timing rule
coverage:
    ./integration/coverage.sh
