//! The machine's tests: a table of every transition, the rules one by one, and random inputs against all rules at once.

use super::*;
use crate::{Bid, Label, LeaseName, Released};

mod properties;
mod rules;
mod transitions;

const S: Duration = Duration::from_secs(1);

/// A machine under test, the time, and what it asked for last.
#[derive(Clone, Debug)]
struct Play {
    machine: Machine,
    now: Moment,
    jitter: Jitter,
    /// Every action so far, with its time.
    log: Vec<(Moment, Action)>,
}

impl Play {
    /// A candidate that is about to bid for the first time, with the default timing of 15 s.
    fn new() -> Self {
        Self::with(Timing::default(), OnFinish::Release)
    }

    fn with(timing: Timing, on_finish: OnFinish) -> Self {
        let now = Moment::new(1000 * S);
        let machine = Machine::new(candidate(1), timing, on_finish, now, Herd::default());
        Self { machine, now, jitter: Jitter::default(), log: Vec::new() }
    }

    fn input(&mut self, input: Input) -> Vec<Action> {
        let actions = self.machine.step(self.now, self.jitter, input);
        self.log.extend(actions.iter().map(|action| (self.now, action.clone())));
        actions
    }

    fn after(&mut self, d: Duration, input: Input) -> Vec<Action> {
        self.now = self.now + d;
        self.input(input)
    }

    fn tick(&mut self) -> Vec<Action> {
        self.input(Input::Tick)
    }

    /// Goes to the machine's next timer.
    fn next(&mut self) -> Vec<Action> {
        self.now = self.machine.wake_at().expect("the campaign goes on").max(self.now);
        self.tick()
    }

    fn answer(&mut self, attempt: Attempt, answer: Answer) -> Vec<Action> {
        self.input(Input::Answer(attempt, answer))
    }

    /// The last call of a kind.
    fn last(&self, call: Call) -> Attempt {
        let attempt_of = |action: &Action| match action {
            Action::Bid(a) | Action::Renew(a, _) | Action::Release(a, _) | Action::Read(a) => Some(*a),
            _ => None,
        };
        let mut attempts = self.log.iter().rev().filter_map(|(_, action)| attempt_of(action));
        attempts.find(|attempt| attempt.call == call).expect("such a call was made")
    }

    fn state(&self) -> &'static str {
        self.machine.state_name()
    }

    fn cause(&self) -> &Cause {
        &self.machine.end().expect("the campaign is over").cause
    }

    fn release(&self) -> Release {
        self.machine.end().expect("the campaign is over").release
    }

    // The way into each state, by ordinary inputs.

    fn bidding() -> Self {
        let mut play = Self::new();
        play.tick();
        play
    }

    fn following() -> Self {
        let mut play = Self::bidding();
        let bid = play.last(Call::Bid);
        play.answer(bid, held(10 * S));
        play
    }

    /// Following, with a bid of unknown fate behind.
    fn doubting() -> Self {
        let mut play = Self::bidding();
        let bid = play.last(Call::Bid);
        play.answer(bid, failed(StoreErrorKind::Unknown));
        play
    }

    fn settling() -> Self {
        let timing = Timing::builder(15 * S).settle_delay(2 * S).build().unwrap();
        let mut play = Self::with(timing, OnFinish::Release);
        play.tick();
        let bid = play.last(Call::Bid);
        play.answer(bid, granted(7));
        play
    }

    fn leading() -> Self {
        let mut play = Self::bidding();
        let bid = play.last(Call::Bid);
        play.answer(bid, granted(7));
        play
    }

    /// Leading, with a renewal in flight.
    fn renewing() -> Self {
        let mut play = Self::leading();
        play.next();
        play
    }

    /// Told to stop because renewing did not work.
    fn expiring() -> Self {
        let mut play = Self::leading();
        while play.state() == "leading" {
            play.next();
        }
        play
    }

    /// Told to stop by its owner.
    fn draining() -> Self {
        let mut play = Self::leading();
        play.input(Input::Stop);
        play
    }

    fn releasing() -> Self {
        let mut play = Self::leading();
        play.input(Input::WorkEnded);
        play
    }

    fn ended() -> Self {
        let mut play = Self::releasing();
        let release = play.last(Call::Release);
        play.answer(release, Answer::Released(Released::Freed));
        play
    }

    fn deadline(&self) -> Moment {
        self.machine.deadline().expect("a term runs")
    }
}

fn candidate(nonce: u128) -> CandidateId {
    CandidateId::with_nonce(&Label::new("worker").unwrap(), nonce)
}

fn name() -> LeaseName {
    LeaseName::new("nightly").unwrap()
}

fn grant(token: u64) -> Grant {
    Grant::of(&Bid::new(name(), candidate(1), 15 * S), FencingToken(token))
}

fn granted(token: u64) -> Answer {
    Answer::Acquired(Acquired::Granted(grant(token)))
}

fn extended() -> Answer {
    Answer::Renewed(Renewed::Extended(grant(7)))
}

fn lost(reason: LossReason) -> Answer {
    Answer::Renewed(Renewed::Lost(reason))
}

fn record(of: u128) -> LeaseRecord {
    LeaseRecord::new(name(), candidate(of), FencingToken(6), 15 * S)
}

/// Held by another candidate for so long still.
fn held(remaining: Duration) -> Answer {
    Answer::Acquired(Acquired::Held(record(2).with_remaining(remaining)))
}

fn failed(kind: StoreErrorKind) -> Answer {
    Answer::Failed(kind)
}

fn words(actions: &[Action]) -> Vec<&'static str> {
    let word = |action: &Action| match action {
        Action::Bid(_) => "bid",
        Action::Renew(..) => "renew",
        Action::Release(..) => "release",
        Action::Read(_) => "read",
        Action::StartWork(_) => "start",
        Action::SignalStop => "signal",
        Action::CutOff => "cut",
        Action::ReportOverrun => "overrun",
    };
    actions.iter().map(word).collect()
}
