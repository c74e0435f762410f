# Each recipe is one line that also runs without just.

# everything a change must pass before it lands, except the tests
verify: fmt clippy each-feature docs spelling licences

# what can be repaired by a program
fix:
    cargo fmt --all && cargo clippy --workspace --all-targets --all-features --fix --allow-dirty --allow-staged

# every test, against every server that can be had here
test *ARGS:
    ./integration/test.sh {{ ARGS }}

# a minute of fresh seeds under the assumptions that Tenure's promise rests on
sim:
    cargo run --release -p tenure-sim -- --sound --seconds 60

# the machine, exhaustively in small worlds; `just model --big` for the long run
model *ARGS:
    cargo run --release -p tenure-sim --bin tenure-model -- {{ ARGS }}

# finds every planted bug anew, and writes the table of them
planted:
    cargo run --release -p tenure-sim -- --table docs/planted-bugs.md

# random faults on real servers; `just chaos --seconds 600` for the long run
chaos *ARGS:
    ./integration/chaos.sh {{ ARGS }}

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
