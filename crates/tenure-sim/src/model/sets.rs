//! The bounds that are checked.

use std::time::Duration;

use tenure_core::machine::OnFinish;
use tenure_core::{StoreErrorKind, Timing, WakeUp};

use super::bounds::{Bounds, Left, Network};
use super::sights::Sight;
use super::timing;
use crate::clock::{DRIFT, S};

const SECOND: Duration = Duration::from_secs(1);

/// What is checked on every change: all states of these, well within two minutes on two cores.
pub fn ci() -> Vec<Bounds> {
    vec![two(), slow(), three(), alone(), trouble(), hinted(), settling(), lingering(), deaf(), short(), odd()]
}

/// The same worlds, and one thing more that goes wrong: some ten times as many states.
pub fn big() -> Vec<Bounds> {
    let mut sets = ci();
    for bounds in &mut sets {
        bounds.left.all += 1;
        bounds.left.losses += 1;
        bounds.left.delays += 1;
    }
    sets
}

/// Much smaller worlds, in which every transition of the machine is still taken: for a run without optimisation.
pub fn quick() -> Vec<Bounds> {
    let one_host = |bounds: Bounds| Bounds { hosts: 1, campaigns: 1, shows: Vec::new(), ..bounds };
    let fewer = |bounds: Bounds, all: u8| Bounds { left: Left { all, ..bounds.left }, shows: Vec::new(), ..bounds };
    vec![
        Bounds { shows: vec![Sight::FirstLeads, Sight::SecondLeads, Sight::TakeOver], ..fewer(two(), 1) },
        Bounds { horizon: 9 * S, ..one_host(alone()) },
        Bounds { horizon: 9 * S, shows: Vec::new(), ..two() },
        Bounds { horizon: 12 * S, grid: 3 * S, ..fewer(hinted(), 1) },
        fewer(one_host(settling()), 2),
        fewer(one_host(lingering()), 2),
        fewer(short(), 0),
        Bounds { horizon: 9 * S, ..one_host(odd()) },
    ]
}

/// What planted bugs are looked for in, the quickest first.
pub fn for_bugs() -> Vec<Bounds> {
    vec![two(), trouble(), lingering()]
}

/// Few and long calls, so that a run has few events: a ttl of 20 s, calls of up to 5 s, a renewal every 6 s.
fn times() -> tenure_core::TimingBuilder {
    Timing::builder(20 * SECOND)
        .renew_every(6 * SECOND)
        .attempt_timeout(5 * SECOND)
        .stop_budget(3 * SECOND)
        .retry_every(4 * SECOND)
        .poll_every(18 * SECOND)
}

fn base(name: &'static str, about: &'static str) -> Bounds {
    Bounds {
        name,
        about,
        hosts: 2,
        campaigns: 2,
        horizon: 32 * S,
        grid: 1000 * S,
        drifts: vec![vec![0, 0, 0], vec![-DRIFT, DRIFT, DRIFT]],
        timing: timing(times().build()),
        jitter: 0x8000,
        on_finish: OnFinish::Release,
        tells: true,
        longest_ttl: None,
        lingers: false,
        failures: Vec::new(),
        hints: Vec::new(),
        odd: false,
        network: Network::Prompt,
        left: Left::default(),
        judged: u16::MAX,
        shows: shows(&[Sight::SecondLeads, Sight::HandOver, Sight::TakeOver, Sight::SecondCampaign]),
    }
}

/// What happens wherever messages are lost and late, and candidates are asked to stop; and `more`.
fn shows(more: &[Sight]) -> Vec<Sight> {
    let mut sights = vec![
        Sight::FirstLeads,
        Sight::Recognised,
        Sight::LossByDeadline,
        Sight::Obeyed,
        Sight::CutAtBudget,
        Sight::CutAtDeadline,
        Sight::RenewedWhileStopping,
        Sight::BidTakenBack,
        Sight::Orphaned,
        Sight::Repeated,
    ];
    sights.extend(more);
    sights
}

/// Each kind as often as all together.
fn faults(all: u8) -> Left {
    Left { all, losses: all, delays: all, cuts: all, crashes: all, stops: all, repeats: all, ..Left::default() }
}

fn two() -> Bounds {
    Bounds {
        left: faults(2),
        drifts: vec![vec![0, 0, 0], vec![-DRIFT, DRIFT, DRIFT], vec![DRIFT, -DRIFT, -DRIFT]],
        ..base("two", "two candidates; losses, delays, repetitions, cut links, crashes, stops")
    }
}

fn slow() -> Bounds {
    Bounds {
        horizon: 20 * S,
        network: Network::Slow,
        campaigns: 1,
        left: Left::default(),
        shows: vec![Sight::FirstLeads, Sight::SecondLeads, Sight::TakeOver, Sight::Recognised, Sight::LateExtension],
        ..base("slow", "two candidates, messages that take any time or are lost")
    }
}

fn three() -> Bounds {
    Bounds {
        hosts: 3,
        campaigns: 1,
        horizon: 26 * S,
        drifts: vec![vec![0, 0, 0, 0], vec![-DRIFT, DRIFT, 0, DRIFT]],
        left: faults(2),
        shows: shows(&[Sight::SecondLeads, Sight::ThirdLeads, Sight::HandOver, Sight::TakeOver]),
        ..base("three", "three candidates; losses, delays, repetitions, cut links, crashes, stops")
    }
}

fn trouble() -> Bounds {
    Bounds {
        horizon: 24 * S,
        failures: every_failure(),
        shows: shows(&[
            Sight::SecondLeads,
            Sight::LossByRemoval,
            Sight::Resigned,
            Sight::Finished,
            Sight::Refused,
            Sight::Overlap,
        ]),
        left: Left { failures: 2, resigns: 1, finishes: 1, removals: 1, ..faults(2) },
        ..base("trouble", "calls that fail in every way, resignations, work that ends by itself, records removed")
    }
}

fn alone() -> Bounds {
    Bounds {
        hosts: 1,
        failures: every_failure(),
        horizon: 24 * S,
        shows: shows(&[
            Sight::LossBySuperseded,
            Sight::LossUnawares,
            Sight::LossByRemoval,
            Sight::LossBySuspend,
            Sight::Resigned,
            Sight::Finished,
            Sight::LateExtension,
            Sight::Refused,
            Sight::SecondCampaign,
        ]),
        left: Left { failures: 3, resigns: 1, finishes: 1, removals: 1, suspends: 1, halts: 1, ..faults(3) },
        ..base("alone", "one candidate, and all trouble at once")
    }
}

fn every_failure() -> Vec<StoreErrorKind> {
    use StoreErrorKind::{Denied, Invalid, Malformed, Unavailable, Unknown, Unsupported};
    vec![Unavailable, Unknown, Denied, Malformed, Unsupported, Invalid]
}

fn hinted() -> Bounds {
    Bounds {
        hints: every_hint(),
        shows: shows(&[Sight::SecondLeads, Sight::HandOver, Sight::LossBySuperseded, Sight::LossByRemoval]),
        left: Left { hints: 2, removals: 1, ..faults(2) },
        ..base("hinted", "hints at any time, true or not")
    }
}

fn every_hint() -> Vec<WakeUp> {
    vec![WakeUp::Vacated, WakeUp::Taken, WakeUp::Changed, WakeUp::Resync]
}

fn short() -> Bounds {
    Bounds {
        longest_ttl: Some(10 * S),
        shows: vec![Sight::BidTakenBack, Sight::Orphaned],
        left: faults(2),
        ..base("short", "a store that grants less than the candidates' times need")
    }
}

fn settling() -> Bounds {
    Bounds {
        horizon: 24 * S,
        // Between C and D of a term that begins at once.
        grid: 18 * S,
        timing: timing(times().settle_delay(11 * SECOND).build()),
        shows: shows(&[Sight::SecondLeads, Sight::LossUnawares, Sight::Settled, Sight::SettleSkipped]),
        left: Left { halts: 1, removals: 1, ..faults(2) },
        ..base("settling", "a settle delay, processes that stand still")
    }
}

fn deaf() -> Bounds {
    Bounds {
        hosts: 1,
        campaigns: 1,
        horizon: 48 * S,
        // Longer than to the stop signal: the term lives by its renewals before it begins.
        timing: timing(times().settle_delay(17 * SECOND).build()),
        tells: false,
        shows: vec![Sight::FirstLeads, Sight::Settled, Sight::BidTakenBack],
        left: Left { deafs: 1, ..faults(2) },
        ..base("deaf", "one candidate, a long settle delay, a host that hears no replies")
    }
}

fn lingering() -> Bounds {
    Bounds {
        horizon: 28 * S,
        lingers: true,
        shows: shows(&[Sight::SecondLeads, Sight::LossUnawares, Sight::LossBySuspend, Sight::Overran, Sight::Overlap]),
        left: Left { suspends: 1, halts: 1, ..faults(2) },
        ..base("lingering", "work that goes on after it was cut off, suspended hosts, stopped processes")
    }
}

fn odd() -> Bounds {
    Bounds {
        hosts: 1,
        campaigns: 1,
        horizon: 26 * S,
        on_finish: OnFinish::Hold,
        odd: true,
        hints: every_hint(),
        shows: shows(&[Sight::LateExtension, Sight::LossBySuperseded]),
        left: Left { hints: 1, oddities: 2, finishes: 1, removals: 1, ..faults(3) },
        ..base("odd", "a shell that answers at cross purposes, and hints at any time")
    }
}
