//! Work runs only between a confirmed grant and its deadline; one run per term; the stop signal comes a stop budget
//! before the work is cut off.
//!
//! Kinds of `docs/cases.md`: K01, K02.

use super::ledger::{Account, Ledger};
use super::{Holds, Invariant, Verdict, require};
use crate::clock::Nanos;
use crate::event::{Event, Seen};

/// Work runs only between a confirmed grant and its deadline.
#[derive(Debug, Default)]
pub struct Authority;

impl Invariant for Authority {
    const SAYS: &'static str = "work runs only between a confirmed grant and its deadline, and has its stop budget";
    const HOLDS: Holds = Holds::Always;

    fn see(&mut self, seen: &Seen, ledger: &Ledger) -> Verdict {
        let local = seen.local;
        match seen.event {
            Event::Elected { .. } => {
                let ahead = ledger.accounts[seen.c].deadline.is_some_and(|deadline| local < deadline);
                require!(ahead, "c{} starts its work without a grant whose deadline lies ahead", seen.c);
            }
            Event::WorkBegan { .. } => {
                let account = &ledger.accounts[seen.c];
                require!(account.elected && account.cut.is_none(), "the work of c{} began out of its term", seen.c);
            }
            Event::Checked { ok: true } => {
                let account = &ledger.accounts[seen.c];
                let leads = account.deadline.is_some_and(|deadline| local < deadline) && !account.definite;
                require!(leads, "the work of c{} is told that it leads", seen.c);
            }
            Event::Cut => has_had_its_budget(&ledger.accounts[seen.c], local)?,
            Event::Stepped { wake_at, .. } if ledger.accounts[seen.c].leads() => {
                is_ended_in_time(&ledger.accounts[seen.c], local, wake_at)?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// From the stop signal to the cut there is a stop budget, unless the lease was lost for sure, or nobody stepped the
/// machine when the signal was due.
fn has_had_its_budget(account: &Account, local: Nanos) -> Verdict {
    let Some((signalled, due)) = account.signalled else {
        return Err("work is cut off without a stop signal".into());
    };
    let late_by = signalled.saturating_sub(due);
    let budget = account.times.stop_budget.saturating_sub(late_by);
    require!(
        account.definite || local >= signalled + budget,
        "work is cut off {} ns after the stop signal, it has a budget of {budget} ns",
        local - signalled
    );
    Ok(())
}

/// Whenever the machine is stepped, what is due is done, and it asks to be stepped when the next thing is due.
fn is_ended_in_time(account: &Account, local: Nanos, wake_at: Option<Nanos>) -> Verdict {
    if account.cut.is_some() {
        return Ok(());
    }
    require!(!account.definite, "work goes on after the lease was lost for sure");
    let Some(deadline) = account.deadline else {
        return Err("work goes on without a grant".into());
    };
    require!(local < deadline, "work goes on {} ns after its deadline", local - deadline);
    let stop_at = deadline.saturating_sub(account.times.stop_budget);
    let next = match account.signalled {
        None => {
            require!(local < stop_at, "no stop signal {} ns after it was due", local - stop_at);
            stop_at
        }
        Some((signalled, _)) => deadline.min(signalled + account.times.stop_budget),
    };
    require!(wake_at.is_some_and(|at| at <= next), "the machine sleeps until {wake_at:?}, past {next}");
    Ok(())
}
