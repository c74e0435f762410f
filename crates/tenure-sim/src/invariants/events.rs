//! What a candidate does reads (elected, stopped)*: in pairs, in order, nothing before a grant or after the end.
//!
//! Kinds of `docs/cases.md`: K16.

use super::ledger::Ledger;
use super::{Holds, Invariant, Verdict, require};
use crate::event::{Event, Seen};

/// Events come in pairs and in order.
#[derive(Debug, Default)]
pub struct Events {
    last: Vec<Stage>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    Ended,
    Campaigning,
    Elected,
    Signalled,
    Cut,
    Overrun,
    Reported,
}

impl Invariant for Events {
    const SAYS: &'static str = "events are (elected, stopped)*";
    const HOLDS: Holds = Holds::Always;

    fn see(&mut self, seen: &Seen, ledger: &Ledger) -> Verdict {
        self.last.resize(ledger.accounts.len(), Stage::Ended);
        let stage = &mut self.last[seen.c];
        let (after, next) = match seen.event {
            Event::Campaign => (Stage::Ended..=Stage::Ended, Stage::Campaigning),
            Event::Elected { .. } => (Stage::Campaigning..=Stage::Campaigning, Stage::Elected),
            Event::Signalled { .. } => (Stage::Elected..=Stage::Elected, Stage::Signalled),
            Event::Cut => (Stage::Signalled..=Stage::Signalled, Stage::Cut),
            Event::Overrun => (Stage::Cut..=Stage::Cut, Stage::Overrun),
            Event::Reported if *stage < Stage::Elected => return Ok(()),
            Event::Reported => (Stage::Elected..=Stage::Overrun, Stage::Reported),
            Event::Ended { .. } if *stage == Stage::Campaigning => (*stage..=*stage, Stage::Ended),
            Event::Ended { .. } => (Stage::Reported..=Stage::Reported, Stage::Ended),
            Event::Crashed => (Stage::Ended..=Stage::Reported, Stage::Ended),
            _ => return Ok(()),
        };
        require!(after.contains(stage), "c{}: {next:?} after {stage:?}", seen.c);
        *stage = next;
        Ok(())
    }
}
