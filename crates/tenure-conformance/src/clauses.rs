//! The clauses, a file per group.

use crate::Clause;

mod acquire;
mod batch;
mod cancel;
mod doubt;
mod expiry;
mod name;
mod payload;
mod read;
mod release;
mod renew;
mod setup;
mod time;
mod token;
mod torture;
mod watch;

/// Every clause, in the order of reports.
pub fn clauses() -> Vec<Clause> {
    let groups: [&[Clause]; 15] = [
        acquire::CLAUSES,
        token::CLAUSES,
        renew::CLAUSES,
        release::CLAUSES,
        expiry::CLAUSES,
        read::CLAUSES,
        watch::CLAUSES,
        name::CLAUSES,
        payload::CLAUSES,
        doubt::CLAUSES,
        cancel::CLAUSES,
        time::CLAUSES,
        setup::CLAUSES,
        batch::CLAUSES,
        torture::CLAUSES,
    ];
    groups.concat()
}
