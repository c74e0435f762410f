//! The model: the machine that ships, a few candidates, and every order in which things can happen to them.
//!
//! Where the simulator draws one run after another at random, the model checker (stateright) goes through *all* runs
//! within some [`Bounds`], and judges every state by the [`Rule`]s. The machine is not described anew for it: the
//! states hold `tenure_core`'s `Machine` itself, stepped by a shell that does what the driver does.
//!
//! **Time** is part of the state. It stops at each multiple of the bounds' grid and at each instant at which anything
//! is due by any clock: a timer of a machine, or the end of the lease. Each clock runs at a rate of its own, and the
//! rates are a choice of the first state. Timers are served a little late, within the margin that deadlines leave.
//! A run ends at the horizon, so that there are finitely many states, and all of them are visited.
//!
//! **The network** is a multiset of requests and replies, and any of them may arrive next. Where it is
//! [`Prompt`](bounds::Network::Prompt), each message arrives before time passes, in any order, or is lost, or delayed
//! for as long as you like; where it is [`Slow`](bounds::Network::Slow), each takes any time up to the bound of its call,
//! and any number are lost. Requests may arrive twice, and links may be cut, both ways or one.
//!
//! **Trouble** (losses, delays, failing calls, crashes, suspends, stops, ...) may come at any instant, in any combination,
//! so many times a run as the bounds say.
//!
//! What the model leaves out, and why nothing is lost by that within the bounds:
//!
//! - A machine whose timer is due is stepped when time gets there, before anything else is delivered to it. The machine
//!   looks at the clock before it looks at an input, so that the order of the two at one instant makes no difference,
//!   and steps of different machines at one instant do not see each other.
//! - What can have no effect any more is forgotten: a reply that nobody listens to, a renewal or a release of a term
//!   that has left the store and that nobody listens to (tokens rise, so that it never comes back).
//!
//! Whether anybody leads *in the end* is not asked here: that is the simulator's part.

use stateright::{Model, Property};
use tenure_core::machine::{Answer, Input};
use tenure_core::{Acquired, Timing};

use crate::clock::{HostClock, Nanos, S};
use crate::planted::Bug;
use crate::times::{Times, nanos};

pub mod account;
pub mod bounds;
pub mod check;
pub mod lease;
pub mod moves;
pub mod rules;
pub mod sets;
mod shell;
pub mod sights;
pub mod state;
pub mod transitions;
mod turn;
mod words;

#[cfg(test)]
mod tests;

pub use bounds::Bounds;
pub use check::{Finding, Report, check, finds};
pub use rules::Rule;

use moves::Move;
use rules::LATE;
use sights::{Seen, Sight};
use state::{Broken, Host, Link, State};
use turn::Turn;

/// One bounded world, with or without a planted bug.
#[derive(Debug)]
pub struct Election {
    bounds: Bounds,
    bug: Option<Bug>,
    times: Times,
    /// For each drift, the hosts' clocks, and the store's.
    clocks: Vec<(Vec<HostClock>, HostClock)>,
    counts: transitions::Counts,
    sights: Seen,
}

/// What clocks show at first: any number, but not the same on all of them.
const ORIGIN: Nanos = 1_000 * S;

impl Election {
    /// The world within `bounds`.
    pub fn new(bounds: Bounds, bug: Option<Bug>) -> Self {
        let clock = |origin: Nanos, ppm: i32| {
            let mut clock = HostClock::new(origin);
            clock.set_rate(0, ppm);
            clock
        };
        let clocks = bounds.drifts.iter().map(|drift| {
            let hosts = drift.iter().take(bounds.hosts).enumerate();
            let hosts = hosts.map(|(h, ppm)| clock(ORIGIN * (h as Nanos + 1), *ppm)).collect();
            (hosts, clock(7 * ORIGIN, drift.last().copied().unwrap_or(0)))
        });
        Self {
            times: Times::of(&bounds.timing),
            clocks: clocks.collect(),
            counts: transitions::Counts::default(),
            sights: Seen::default(),
            bounds,
            bug,
        }
    }

    /// How far it goes.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// The transitions that the machines have taken so far.
    pub fn counts(&self) -> &transitions::Counts {
        &self.counts
    }

    /// What was seen so far.
    pub fn sights(&self) -> &Seen {
        &self.sights
    }

    /// Plays a move, and tells what happens in it.
    pub fn explain(&self, state: &State, next: Move) -> (State, Vec<String>) {
        Turn::new(self, state.clone(), true).play(next)
    }

    fn host_clock(&self, state: &State, h: usize) -> &HostClock {
        &self.clocks[usize::from(state.drift)].0[h]
    }

    fn store_clock(&self, state: &State) -> &HostClock {
        &self.clocks[usize::from(state.drift)].1
    }

    /// When the timer of `h` is served, in true time.
    fn served_at(&self, state: &State, h: usize) -> Option<Nanos> {
        let wake_at = state.hosts[h].campaign.as_ref()?.subject.wake_at()?;
        Some(self.host_clock(state, h).when(wake_at) + LATE)
    }

    /// The next instant at which something is due, or time stops anyway; `None` when the run is over.
    fn next_instant(&self, state: &State) -> Option<Nanos> {
        let running = (0..state.hosts.len()).filter(|h| state.hosts[*h].frozen.is_none());
        let timers = running.filter_map(|h| self.served_at(state, h)).map(|at| at.max(state.now + 1));
        let expiry = state.lease.record.map(|record| self.store_clock(state).when(record.expires));
        let grid = (state.now / self.bounds.grid + 1) * self.bounds.grid;
        let next = timers.chain(expiry.filter(|at| *at > state.now)).fold(grid, Nanos::min);
        (next <= self.bounds.horizon).then_some(next)
    }

    /// Whether a grant is shorter than the candidate's times need.
    fn is_short(&self, input: &Input) -> bool {
        let Input::Answer(_, Answer::Acquired(Acquired::Granted(grant))) = input else { return false };
        let times = &self.times;
        times.validity(nanos(grant.ttl)) < times.renew_every + 2 * times.attempt_timeout + times.stop_budget
    }
}

impl Model for Election {
    type State = State;
    type Action = Move;

    fn init_states(&self) -> Vec<State> {
        let host =
            Host { campaign: None, begun: 0, stopped: false, frozen: None, link: Link::Whole, first_token: None };
        let state = |drift: usize| State {
            now: 0,
            drift: drift as u8,
            hosts: vec![host.clone(); self.bounds.hosts],
            wire: Vec::new(),
            lease: lease::Lease::default(),
            left: self.bounds.left,
            highest: 0,
            broken: Broken::default(),
            breaches: 0,
        };
        (0..self.clocks.len()).map(|drift| Turn::new(self, state(drift), false).begin()).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Move>) {
        self.moves(state, actions);
    }

    fn next_state(&self, state: &State, next: Move) -> Option<State> {
        Some(Turn::new(self, state.clone(), false).play(next).0)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        const fn holds<const BIT: u16>(_: &Election, state: &State) -> bool {
            state.breaches & BIT == 0
        }
        fn shows<const SIGHT: usize>(election: &Election, _: &State) -> bool {
            election.sights.show(SIGHT)
        }
        macro_rules! always {
            ($($rule:ident)*) => {
                [$(Property::always(Rule::$rule.name(), holds::<{ Rule::$rule.bit() }>),)*]
            };
        }
        macro_rules! sometimes {
            ($($sight:ident)*) => {
                [$((Sight::$sight, shows::<{ Sight::$sight as usize }> as fn(&Election, &State) -> bool),)*]
            };
        }
        let always = always! {
            NoOverlap OneLeader Held TokensRise Confirmed Starts Ends Renews OneCall LostIsFinal Trouble Stops Pairs
        };
        let sometimes = sometimes! {
            FirstLeads SecondLeads ThirdLeads HandOver TakeOver Recognised LossByDeadline LossBySuperseded LossUnawares
            LossByRemoval LossBySuspend Resigned Finished Obeyed CutAtBudget CutAtDeadline Overran RenewedWhileStopping
            LateExtension BidTakenBack Orphaned Refused Settled SettleSkipped Repeated Overlap SecondCampaign
        };
        let sometimes = sometimes.into_iter().filter(|(sight, _)| self.bounds.shows.contains(sight));
        always.into_iter().chain(sometimes.map(|(sight, shows)| Property::sometimes(sight.name(), shows))).collect()
    }
}

/// The times of the candidates, as a [`Timing`] that is known to be valid.
pub(crate) fn timing(built: Result<Timing, tenure_core::Invalid>) -> Timing {
    #[allow(clippy::expect_used)]
    built.expect("the times of the model keep the rule of Timing")
}
