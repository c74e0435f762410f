//! What a seed means: the store, the candidates, how much goes wrong, and which assumption is broken.

use std::fmt;
use std::str::FromStr;

use fastrand::Rng;
use tenure_core::Timing;

use crate::clock::{MS, Nanos, S};
use crate::planted::Bug;
use crate::store::StoreKind;
use crate::times::{Times, duration};

/// An assumption that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Break {
    /// A3: clocks run at rates up to 10 % from true time.
    Drift,
    /// A4: the store's clock steps forward by more than was allowed for.
    Step,
    /// A1: a failover loses what was acknowledged.
    Failover,
    /// A1: somebody removes the record by hand.
    Removal,
    /// A5: work goes on after it was cut off, and drivers are starved while their work runs.
    Work,
}

impl Break {
    /// All of them, with their names.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Drift, "drift"),
        (Self::Step, "step"),
        (Self::Failover, "failover"),
        (Self::Removal, "removal"),
        (Self::Work, "work"),
    ];
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(it, _)| it == self).map_or("", |(_, name)| name))
    }
}

impl FromStr for Break {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|(_, name)| *name == text);
        known.map(|(it, _)| *it).ok_or_else(|| {
            let names = Self::ALL.map(|(_, name)| name).join(", ");
            format!("no assumption to break is called {text:?}: one of {names}")
        })
    }
}

/// A candidate's part.
#[derive(Clone, Debug)]
pub struct Part {
    /// What its election was built with.
    pub timing: Timing,
    /// The same as numbers.
    pub times: Times,
    /// Its lease is left to run out when its work has finished.
    pub holds_on_finish: bool,
    /// How long its work takes, about; `None` when it never ends by itself.
    pub work_takes: Option<Nanos>,
    /// How long its work takes to obey the stop signal, about, in stop budgets of 16 parts.
    pub obeys_after: u64,
    /// Its work asks before each write whether it still leads.
    pub checks: bool,
}

/// How much goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two faults, about.
    pub fault_every: Nanos,
    /// How long a fault lasts, about.
    pub fault_lasts: Nanos,
    /// One way through the network, about.
    pub latency: Nanos,
    /// Of 65,536 messages so many are lost, so many are repeated, so many are much delayed.
    pub lost: u64,
    /// See `lost`.
    pub repeated: u64,
    /// See `lost`.
    pub delayed: u64,
}

/// What a seed means.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed.
    pub seed: u64,
    /// The technology.
    pub store: StoreKind,
    /// Pushes hints.
    pub pushes: bool,
    /// Says what the hint is about, where it can.
    pub typed_hints: bool,
    /// Grants no more than this share of what is asked, in 16 parts.
    pub ttl_cap: Option<u64>,
    /// The assumption that is broken.
    pub broken: Option<Break>,
    /// The bug that is planted.
    pub bug: Option<Bug>,
    /// The candidates.
    pub parts: Vec<Part>,
    /// How much goes wrong.
    pub pace: Pace,
    /// The longest ttl.
    pub ttl: Nanos,
    /// Until then things go wrong.
    pub calm_at: Nanos,
    /// The end of the world.
    pub ends_at: Nanos,
}

/// What to simulate besides the seed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Every seed breaks this assumption; without it, one in four breaks some.
    pub broken: Option<Break>,
    /// The bug that is planted.
    pub bug: Option<Bug>,
    /// No seed breaks an assumption, unless `broken` says so.
    pub sound: bool,
}

impl Scenario {
    /// What `seed` means under `settings`.
    pub fn of(seed: u64, settings: Settings) -> Self {
        let mut rng = Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5EED);
        let by_chance = rng.choice(Break::ALL).filter(|_| rng.u8(..) < 64).map(|(it, _)| it);
        let broken = settings.broken.or(by_chance.filter(|_| !settings.sound));
        let store = match broken {
            Some(Break::Step | Break::Failover) => StoreKind::Redis,
            _ => StoreKind::ALL[rng.usize(..5)],
        };
        let crowd = rng.u8(..) < 4;
        let n = if crowd { rng.usize(20..40) } else { [1, 2, 2, 3, 3, 3, 4, 5][rng.usize(..8)] };
        let ttl = base_ttl(&mut rng, store);
        let mixed = !crowd && rng.u8(..) < 64;
        let parts: Vec<Part> = (0..n).map(|_| part(&mut rng, store, ttl, mixed, crowd)).collect();
        let ttl = parts.iter().map(|part| part.times.ttl).max().unwrap_or(ttl);
        let calm_at = if crowd { rng.u64(0..ttl) } else { ttl * rng.u64(8..40) };
        Self {
            seed,
            store,
            pushes: store != StoreKind::Sql || rng.bool(),
            typed_hints: rng.bool(),
            ttl_cap: (rng.u8(..) < 8).then(|| rng.u64(12..16)),
            broken,
            bug: settings.bug,
            pace: pace(&mut rng, ttl, &parts),
            parts,
            ttl,
            calm_at,
            ends_at: calm_at + ttl * if crowd { 24 } else { 10 },
        }
    }

    /// Whether assumptions A1 to A5 hold.
    pub fn is_sound(&self) -> bool {
        self.broken.is_none()
    }

    /// Whether the store keeps what it has acknowledged.
    pub fn is_durable(&self) -> bool {
        self.broken != Some(Break::Failover)
    }
}

fn base_ttl(rng: &mut Rng, store: StoreKind) -> Nanos {
    let whole = [S, 2 * S, 5 * S, 10 * S, 15 * S, 30 * S];
    if store.whole_seconds() || rng.bool() { whole[rng.usize(..whole.len())] } else { rng.u64(250..20_000) * MS }
}

fn part(rng: &mut Rng, store: StoreKind, ttl: Nanos, mixed: bool, crowd: bool) -> Part {
    let ttl = match (mixed, store.whole_seconds()) {
        (false, _) => ttl,
        (true, true) => S * rng.u64(1..=2 * ttl / S),
        (true, false) => MS * rng.u64(250..=250 + 2 * ttl / MS),
    };
    let timing = timing(rng, store, ttl);
    let times = Times::of(&timing);
    let work_takes = match rng.u8(..8) {
        0..3 if !crowd => None,
        3 => Some(ttl * rng.u64(1..8)),
        4 => Some(ttl / 8 + 1),
        _ => Some(ttl / 2 + rng.u64(0..ttl * 3)),
    };
    Part {
        timing,
        times,
        holds_on_finish: !crowd && rng.u8(..) < 24,
        work_takes: if crowd { Some(ttl / 2) } else { work_takes },
        obeys_after: [0, 1, 4, 12, 17, 40][rng.usize(..6)],
        checks: rng.bool(),
    }
}

/// The defaults, mostly; otherwise any timing that the rule lets through.
fn timing(rng: &mut Rng, store: StoreKind, ttl: Nanos) -> Timing {
    let d = duration;
    let wall = matches!(store, StoreKind::Redis | StoreKind::Sql);
    let step = if wall && rng.u8(..) < 96 { ttl / 20 } else { 0 };
    let settle = if rng.u8(..) < 32 { rng.u64(1..ttl * 3 / 4) } else { 0 };
    for _ in 0..20 {
        let builder = Timing::builder(d(ttl)).settle_delay(d(settle)).clock_step(d(step));
        let builder = if step == 0 && rng.u8(..) < 150 {
            builder
        } else {
            builder
                .renew_every(d(rng.u64(ttl / 8..ttl / 2)))
                .attempt_timeout(d(rng.u64(ttl / 20..ttl / 4)))
                .stop_budget(d(rng.u64(ttl / 20..ttl / 3)))
                .retry_every(d(rng.u64(ttl / 40..ttl / 6)))
                .poll_every(d(rng.u64(ttl / 10..ttl)))
        };
        if let Ok(timing) = builder.build() {
            return timing;
        }
    }
    Timing::with_ttl(d(ttl)).unwrap_or_default()
}

fn pace(rng: &mut Rng, ttl: Nanos, parts: &[Part]) -> Pace {
    // A store that is always slower than the calls' bound is no use: a call may take two round trips.
    let bound = parts.iter().map(|part| part.times.attempt_timeout).min().unwrap_or(ttl);
    let bad = |rng: &mut Rng| [0, 0, 100, 1_000, 6_000][rng.usize(..5)];
    Pace {
        fault_every: ttl / 4 + rng.u64(0..ttl * 4),
        fault_lasts: ttl / 8 + rng.u64(0..ttl * 2),
        latency: [20_000, 100_000, MS, ttl / 400, ttl / 60][rng.usize(..5)].min(bound / 12),
        lost: bad(rng),
        repeated: bad(rng),
        delayed: bad(rng),
    }
}
