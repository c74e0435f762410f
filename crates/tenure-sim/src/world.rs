//! The simulated world: candidates on hosts of their own, a network, a store, a resource, and an observer.
//!
//! Everything happens in true time, one event after the other, and everything that is left to chance is drawn from the
//! seed: two runs of one seed are the same, byte for byte.

use fastrand::Rng;
use tenure_core::machine::{Action, Attempt, Call, Cause, Herd};
use tenure_core::{Fence, WakeUp};

use crate::clock::{DRIFT, HostClock, MS, Nanos, S};
use crate::event::{Event, Fault, Seen};
use crate::invariants::ledger::Ledger;
use crate::observer::Observer;
use crate::planted::{Bug, Subject};
use crate::queue::Queue;
use crate::scenario::{Break, Scenario};
use crate::store::{Observation, Outcome, Request, Store, StoreKind, Who};

mod caller;
mod calls;
mod driver;
mod faults;
mod host;
mod work;

use work::Work;

/// The world of one seed.
#[derive(Debug)]
pub struct World {
    scenario: Scenario,
    now: Nanos,
    rng: Rng,
    queue: Queue<Due>,
    /// When each candidate's driver is to be woken, in true time.
    timers: Vec<Nanos>,
    hosts: Vec<Host>,
    store: Store,
    /// The store's next look at what has run out is planned.
    expiry_planned: bool,
    last_step: Nanos,
    resource: Fence<()>,
    observer: Observer,
    next_who: Who,
    next_call: u32,
}

/// A candidate's host and its one process.
#[derive(Debug)]
struct Host {
    clock: HostClock,
    suspended: Nanos,
    link: Link,
    up: bool,
    /// The process, or its driver alone, does not run.
    pause: Option<Pause>,
    inbox: Vec<Due>,
    herd: Herd,
    observation: Observation,
    /// The first token that this process was granted: only a planted bug looks at it.
    first_token: Option<u64>,
    /// Its owner has asked the run to stop.
    shutdown: bool,
    campaign: Option<Campaign>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pause {
    kind: Fault,
    since_local: Nanos,
    number: u32,
}

/// One driver, and the caller's task that follows it.
#[derive(Debug)]
struct Campaign {
    who: Who,
    subject: Subject,
    /// Calls that are still listened to, oldest first.
    under_way: Vec<UnderWay>,
    watching: bool,
    /// The caller's part of the work has ended, and the driver knows.
    caller_ended: bool,
    suspended_seen: Nanos,
    published: Published,
    /// The caller has withdrawn: there will be no work.
    withdrawn: bool,
    work: Option<Work>,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    id: u32,
    attempt: Attempt,
    token: u64,
    request: Request,
    sent: Nanos,
    /// Kubernetes: the call's outcome once its write is done.
    then: Option<Outcome>,
}

/// What the driver has published: what the work's readings go by.
#[derive(Clone, Copy, Debug, Default)]
struct Published {
    token: Option<u64>,
    deadline: Nanos,
    stopping: bool,
    lost: bool,
    cut_off: bool,
}

/// A candidate's way to the store and back.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    requests_cut_until: Nanos,
    replies_cut_until: Nanos,
    refused_until: Nanos,
    lossy_until: Nanos,
    slow_until: Nanos,
    slow_by: Nanos,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
struct Message {
    c: usize,
    who: Who,
    id: u32,
    request: Request,
    /// A copy whose reply nobody waits for.
    copy: bool,
}

/// What is planned.
#[derive(Clone, Copy, Debug)]
enum Due {
    Request(Message),
    Reply(Message, Outcome, Nanos),
    Hint(usize, Who, WakeUp),
    Command(usize, Who, Command),
    Work(usize, Who, Step),
    WriteLands(usize, Who, u64),
    /// The application runs its election, again.
    Run(usize),
    Restart(usize),
    Resume(usize, u32),
    Expiry,
    Fault,
    Shutdown(usize, Who),
    CrashLeader,
    Calm,
}

/// What the caller's task sends to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Stop,
    Withdraw,
    Resign,
    WorkEnded,
}

/// What the work, or the caller's task on its behalf, does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    Write,
    Finish,
    Obey,
    Drop,
}

impl World {
    /// The world of `scenario` at its beginning.
    pub fn new(scenario: Scenario, traced: bool) -> Self {
        let mut rng = Rng::with_seed(scenario.seed);
        let broken = scenario.broken;
        let hosts: Vec<Host> = scenario.parts.iter().map(|_| Host::new(&mut rng, broken)).collect();
        let ledger = Ledger::new(scenario.parts.iter().map(|part| (part.times, part.holds_on_finish)), scenario.store);
        let mut store = Store::new(scenario.store, any_clock(&mut rng, broken), scenario.bug);
        if broken == Some(Break::Failover) {
            store.keep_history();
        }
        if let Some(cap) = scenario.ttl_cap {
            store.limit_ttl(scenario.ttl * cap / 16);
        }
        Self {
            now: 0,
            queue: Queue::default(),
            timers: vec![Nanos::MAX; hosts.len()],
            hosts,
            store,
            expiry_planned: false,
            last_step: 0,
            resource: Fence::new(()),
            observer: Observer::new(ledger, scenario.is_sound(), scenario.is_durable(), traced),
            next_who: 0,
            next_call: 0,
            scenario,
            rng,
        }
    }

    /// Lets the world run to its end, or to the first breach.
    pub fn run(&mut self) {
        self.plan_beginning();
        while self.observer.breach().is_none() && self.advance() {}
    }

    /// The observer, with everything it saw.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    /// What the world was made for.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    fn plan_beginning(&mut self) {
        for c in 0..self.hosts.len() {
            let at = if self.rng.bool() { 0 } else { self.rng.u64(0..self.scenario.ttl) };
            self.queue.push(at, Due::Run(c));
        }
        let first = self.around(self.scenario.pace.fault_every);
        self.queue.push(first, Due::Fault);
        self.queue.push(self.scenario.calm_at, Due::Calm);
    }

    /// Goes to whatever comes next, and lets it happen. False at the end of the world.
    fn advance(&mut self) -> bool {
        let (mut c, mut at) = (0, Nanos::MAX);
        for (other, timer) in self.timers.iter().enumerate() {
            if *timer < at {
                (c, at) = (other, *timer);
            }
        }
        let planned = self.queue.next_at().unwrap_or(Nanos::MAX);
        if at.min(planned) > self.scenario.ends_at {
            return false;
        }
        if at <= planned {
            self.now = self.now.max(at);
            self.timers[c] = Nanos::MAX;
            self.tick(c);
        } else if let Some((at, due)) = self.queue.pop() {
            self.now = self.now.max(at);
            self.happen(due);
        }
        true
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Request(message) => self.request_arrives(message),
            Due::Reply(message, ..) => self.deliver(message.c, due),
            Due::Hint(c, ..) | Due::Command(c, ..) => self.deliver(c, due),
            Due::Work(c, who, step) => self.work_due(c, who, step),
            Due::WriteLands(c, who, token) => self.write_lands(c, who, token),
            Due::Run(c) => self.run_election(c),
            Due::Restart(c) => self.restart(c),
            Due::Resume(c, number) => self.resume(c, number),
            Due::Expiry => self.look_for_expiry(),
            Due::Fault => self.fault(),
            Due::Shutdown(c, who) => self.shut_down(c, who),
            Due::CrashLeader => self.crash_leader(),
            Due::Calm => self.calm(),
        }
    }

    /// To the driver of `c`, or into its inbox while it does not run.
    fn deliver(&mut self, c: usize, due: Due) {
        let host = &mut self.hosts[c];
        if !host.up {
            return;
        }
        if host.pause.is_some() {
            host.inbox.push(due);
            return;
        }
        match due {
            Due::Reply(message, outcome, decided_at) => self.reply_arrives(message, outcome, decided_at),
            Due::Hint(c, who, wake_up) => self.hint_arrives(c, who, wake_up),
            Due::Command(c, who, command) => self.command_arrives(c, who, command),
            _ => {}
        }
    }

    fn see(&mut self, c: usize, event: Event) {
        let host = &self.hosts[c];
        let who = host.campaign.as_ref().map_or(0, |campaign| campaign.who);
        self.see_of(c, who, event);
    }

    fn see_of(&mut self, c: usize, who: Who, event: Event) {
        let local = self.hosts[c].clock.local(self.now);
        self.observer.see(Seen { at: self.now, c, who, local, event });
    }

    fn see_fault(&mut self, c: usize, fault: Fault) {
        self.see(c, Event::Fault(fault));
    }

    fn is_calm(&self) -> bool {
        self.now >= self.scenario.calm_at
    }

    /// Half of `d` to one and a half.
    fn around(&mut self, d: Nanos) -> Nanos {
        d / 2 + self.rng.u64(0..=d)
    }

    /// One chance in `n`.
    fn one_in(&mut self, n: u64) -> bool {
        self.rng.u64(0..n) == 0
    }

    fn times(&self, c: usize) -> &crate::times::Times {
        &self.scenario.parts[c].times
    }

    fn has(&self, bug: Bug) -> bool {
        self.scenario.bug == Some(bug)
    }
}

impl Host {
    fn new(rng: &mut Rng, broken: Option<Break>) -> Self {
        Self {
            clock: any_clock(rng, broken),
            suspended: 0,
            link: Link::default(),
            up: true,
            pause: None,
            inbox: Vec::new(),
            herd: Herd::default(),
            observation: Observation::default(),
            first_token: None,
            shutdown: false,
            campaign: None,
        }
    }
}

/// A clock that shows any time, at any rate that the assumptions allow for, or at one that they do not.
fn any_clock(rng: &mut Rng, broken: Option<Break>) -> HostClock {
    let mut clock = HostClock::new(rng.u64(S..1_000_000 * S));
    clock.set_rate(0, any_rate(rng, broken));
    clock
}

fn any_rate(rng: &mut Rng, broken: Option<Break>) -> i32 {
    let most = if broken == Some(Break::Drift) { 10 * DRIFT } else { DRIFT };
    match rng.u8(..4) {
        0 => most,
        1 => -most,
        2 => 0,
        _ => rng.i32(-most..=most),
    }
}

/// A little later: how long a woken task waits for its turn.
fn turn(rng: &mut Rng) -> Nanos {
    match rng.u8(..16) {
        0 => rng.u64(0..MS),
        1..4 => rng.u64(0..50_000),
        _ => 0,
    }
}

fn is_observed(kind: StoreKind) -> bool {
    kind == StoreKind::Kubernetes
}

/// The kind of call that an action sends.
fn attempt_of(action: &Action) -> Option<(Attempt, u64)> {
    match action {
        Action::Bid(attempt) | Action::Read(attempt) => Some((*attempt, 0)),
        Action::Renew(attempt, grant) | Action::Release(attempt, grant) => Some((*attempt, grant.token.value())),
        _ => None,
    }
}

fn is_loss(cause: &Cause) -> bool {
    matches!(cause, Cause::Lost(_))
}

fn is_bid(attempt: &Attempt) -> bool {
    attempt.call == Call::Bid
}
