//! Random inputs in random order, and all rules checked at once.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::*;

/// One thing that happens to the machine.
#[derive(Clone, Debug)]
enum Event {
    /// So many milliseconds pass, in which the machine's timers are served.
    Pass(u16),
    /// So many milliseconds pass, and nobody serves a timer: the executor is starved.
    Stall(u16),
    Suspend(u16),
    /// The n-th oldest unanswered call is answered.
    Answer(u8, Reply),
    Woken(WakeUp),
    Stop,
    Resign,
    WorkEnds,
}

#[derive(Clone, Debug)]
enum Reply {
    Good,
    Shorter,
    HigherToken,
    Refused(LossReason),
    Failed(StoreErrorKind),
}

fn reply() -> impl Strategy<Value = Reply> {
    let kind = prop::sample::select(vec![
        StoreErrorKind::Unavailable,
        StoreErrorKind::Unavailable,
        StoreErrorKind::Unknown,
        StoreErrorKind::Unknown,
        StoreErrorKind::Denied,
        StoreErrorKind::Malformed,
        StoreErrorKind::Unsupported,
    ]);
    let reason = prop::sample::select(vec![
        LossReason::EXPIRED,
        LossReason::Removed,
        LossReason::Superseded { by: None },
        LossReason::Malformed,
    ]);
    prop_oneof![
        12 => Just(Reply::Good),
        1 => Just(Reply::Shorter),
        1 => Just(Reply::HigherToken),
        3 => reason.prop_map(Reply::Refused),
        5 => kind.prop_map(Reply::Failed),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (1..6000_u16).prop_map(Event::Pass),
        2 => (1..20000_u16).prop_map(Event::Stall),
        1 => (100..30000_u16).prop_map(Event::Suspend),
        14 => (any::<u8>(), reply()).prop_map(|(n, reply)| Event::Answer(n, reply)),
        3 => prop::sample::select(vec![WakeUp::Vacated, WakeUp::Taken, WakeUp::Changed, WakeUp::Resync]).prop_map(Event::Woken),
        1 => Just(Event::Stop),
        1 => Just(Event::Resign),
        2 => Just(Event::WorkEnds),
    ]
}

/// Plays events, and judges every action by the rules, from what went in and came out alone.
struct Judge {
    play: Play,
    unanswered: Vec<Attempt>,
    /// Sent and neither answered nor abandoned, by kind.
    in_flight: BTreeMap<Call, (Attempt, Moment)>,
    /// The end of authority, counted by the judge from confirmed answers.
    deadline: Option<Moment>,
    /// The last granted bid: renewals of the term that it won have larger numbers.
    won_by: u64,
    started: u32,
    signalled: Option<Moment>,
    cut: Option<Moment>,
    work_runs: bool,
    lost: bool,
    stop_asked: Option<Moment>,
    work_ended_at: Option<Moment>,
}

impl Judge {
    fn new(timing: Timing) -> Self {
        Self {
            play: Play::with(timing, OnFinish::Release),
            unanswered: Vec::new(),
            in_flight: BTreeMap::new(),
            deadline: None,
            won_by: 0,
            started: 0,
            signalled: None,
            cut: None,
            work_runs: false,
            lost: false,
            stop_asked: None,
            work_ended_at: None,
        }
    }

    fn timing(&self) -> Timing {
        self.play.machine.timing
    }

    fn step(&mut self, input: Input) {
        let late_wake = self.play.machine.wake_at().is_some_and(|at| at < self.play.now);
        let before = self.play.machine.deadline();
        self.hear(&input);
        let actions = self.play.input(input);
        for action in actions {
            self.judge(action, late_wake);
        }
        if let (Some(before), Some(after)) = (before, self.play.machine.deadline())
            && self.signalled.is_none()
        {
            assert!(after >= before, "a deadline moved back");
        }
        if let Some(deadline) = self.play.machine.deadline() {
            assert!(!self.lost, "authority after a loss");
            assert!(Some(deadline) <= self.deadline, "authority beyond what was confirmed");
        }
        if let Standing::Leading { deadline, .. } = self.play.machine.standing() {
            assert!(self.play.now < deadline, "leading past the deadline");
        }
        if let Some(at) = self.play.machine.wake_at() {
            assert!(at > self.play.now, "a timer that is due was not served: {:?}", self.play);
        }
    }

    /// What the input itself confirms or denies.
    fn hear(&mut self, input: &Input) {
        let now = self.play.now;
        match input {
            Input::Answer(attempt, answer) => {
                self.in_flight.retain(|_, (other, _)| other != attempt);
                if matches!(answer, Answer::Acquired(Acquired::Granted(_))) && self.started == 0 {
                    self.won_by = self.won_by.max(attempt.number);
                }
                let ttl = match answer {
                    Answer::Acquired(Acquired::Granted(grant)) if self.started == 0 => Some(grant.ttl),
                    Answer::Renewed(Renewed::Extended(grant)) if !self.lost && grant.token == FencingToken(7) => {
                        Some(grant.ttl)
                    }
                    _ => None,
                };
                if let Some(ttl) = ttl {
                    let deadline = attempt.sent + self.timing().validity(ttl);
                    if self.deadline.is_none_or(|old| now < old || self.started == 0) {
                        self.deadline = self.deadline.max(Some(deadline));
                    }
                }
            }
            Input::Stop => self.stop_asked = self.stop_asked.or(Some(now)),
            Input::WorkEnded if self.work_runs => {
                self.work_runs = false;
                self.work_ended_at = Some(now);
            }
            _ => {}
        }
        if let Input::Answer(attempt, Answer::Renewed(Renewed::Lost(_))) = input
            && self.started > 0
            && attempt.number > self.won_by
            // While the lease is being given back, a late loss is no news: the release is conditional in the store.
            && self.work_ended_at.is_none()
        {
            self.lost = true;
        }
    }

    fn judge(&mut self, action: Action, late_wake: bool) {
        let now = self.play.now;
        match action {
            Action::Bid(attempt) | Action::Read(attempt) => self.sent(attempt),
            Action::Renew(attempt, grant) => {
                assert!(!self.lost, "a renewal after a loss");
                assert!(self.work_ended_at.is_none(), "a renewal after the end of the work");
                assert_eq!(grant.token, FencingToken(7));
                assert!(self.deadline.is_some_and(|deadline| now < deadline), "a renewal after the deadline");
                self.sent(attempt);
            }
            Action::Release(attempt, _) => {
                assert!(!self.work_runs, "a release while the work runs");
                assert!(!self.lost, "a release of what was lost");
                if let (Some(deadline), 1.., true) = (self.deadline, self.started, self.work_ended_at == Some(now)) {
                    assert!(now < deadline, "a release by work that overran");
                }
                self.sent(attempt);
            }
            Action::StartWork(_) => {
                self.started += 1;
                self.work_runs = true;
                assert_eq!(self.started, 1, "a second start");
                assert!(self.deadline.is_some_and(|deadline| now < deadline), "a start without authority");
                assert!(self.stop_asked.is_none(), "a start after a stop");
            }
            Action::SignalStop => {
                assert!(self.signalled.is_none() && self.cut.is_none(), "a second signal, or one after the cut");
                self.signalled = Some(now);
                if let (Some(deadline), false) = (self.deadline, late_wake) {
                    assert!(
                        now <= deadline.saturating_sub(self.timing().stop_budget())
                            || self.lost
                            || now >= deadline
                            || self.stop_asked.is_some()
                    );
                }
            }
            Action::CutOff => {
                assert!(self.signalled.is_some() && self.cut.is_none(), "a cut without a signal, or a second one");
                self.cut = Some(now);
                if let (Some(deadline), false) = (self.deadline, late_wake) {
                    assert!(now <= deadline, "a cut after the deadline");
                }
            }
            Action::ReportOverrun => assert!(self.cut.is_some_and(|cut| now > cut) && self.work_runs),
        }
    }

    fn sent(&mut self, attempt: Attempt) {
        let now = self.play.now;
        assert_eq!(attempt.sent, now);
        assert!(!self.unanswered.iter().any(|other| other.number == attempt.number), "an attempt number used twice");
        if attempt.call == Call::Bid {
            // One per term and kind: a new bid is the end of a term that nobody heard of.
            self.in_flight.remove(&Call::Renew);
        }
        let until = self.play.machine.wake_at().unwrap_or(now);
        if let Some((_, until)) = self.in_flight.get(&attempt.call) {
            assert!(now >= *until, "two calls of a kind in flight");
        }
        self.in_flight.insert(attempt.call, (attempt, until));
        self.unanswered.push(attempt);
    }

    fn pass(&mut self, d: Duration) {
        let until = self.play.now + d;
        let mut steps = 0;
        while let Some(at) = self.play.machine.wake_at().filter(|at| *at <= until) {
            self.play.now = at.max(self.play.now);
            self.step(Input::Tick);
            self.drop_cut_work();
            steps += 1;
            assert!(steps < 2000, "a hot loop: {:?}", self.play.machine);
        }
        self.play.now = until;
        self.step(Input::Tick);
    }

    /// Work that is cut off ends, mostly.
    fn drop_cut_work(&mut self) {
        if self.cut.is_some() && self.work_runs && !self.play.now.since_origin().subsec_nanos().is_multiple_of(3) {
            self.step(Input::WorkEnded);
        }
    }

    fn play(&mut self, event: Event) {
        match event {
            Event::Pass(ms) => self.pass(Duration::from_millis(ms.into())),
            Event::Stall(ms) => {
                self.play.now = self.play.now + Duration::from_millis(ms.into());
                self.step(Input::Tick);
            }
            Event::Suspend(ms) => {
                let slept = Duration::from_millis(ms.into());
                self.play.now = self.play.now + slept;
                self.step(Input::Suspended(slept));
            }
            Event::Answer(n, reply) if !self.unanswered.is_empty() => {
                let attempt = self.unanswered.remove(usize::from(n) % self.unanswered.len());
                self.step(Input::Answer(attempt, reply.to(attempt.call)));
            }
            Event::Answer(..) => {}
            Event::Woken(wake_up) => self.step(Input::Woken(wake_up)),
            Event::Stop => self.step(Input::Stop),
            Event::Resign => self.step(Input::Resign),
            Event::WorkEnds => self.step(Input::WorkEnded),
        }
        self.drop_cut_work();
    }

    /// Asked to stop, with a store that never answers again, the campaign ends in time.
    fn wind_up(&mut self) {
        let limit = self.play.now + self.timing().stop_budget() + self.timing().attempt_timeout();
        // Work that overran its budget before is another matter.
        if self.cut.is_some() && self.work_runs {
            self.step(Input::WorkEnded);
        }
        self.step(Input::Stop);
        while let Some(at) = self.play.machine.wake_at() {
            self.play.now = at;
            self.step(Input::Tick);
            if self.cut.is_some() && self.work_runs {
                self.step(Input::WorkEnded);
            }
        }
        if self.cut.is_some() && self.work_runs {
            self.step(Input::WorkEnded);
        }
        assert!(self.play.machine.end().is_some(), "no end: {:?}", self.play.machine);
        assert!(self.play.now <= limit, "stopping took {:?} too long", self.play.now - limit);
        assert!(!self.work_runs);
    }
}

impl Reply {
    fn to(self, call: Call) -> Answer {
        let short = Duration::from_millis(14_900);
        match (call, self) {
            (_, Self::Failed(kind)) => Answer::Failed(kind),
            (Call::Bid, Self::Refused(_)) => held(3 * S),
            (Call::Bid, Self::Shorter) => Answer::Acquired(Acquired::Granted(grant(7).with_ttl(short))),
            (Call::Bid, Self::Good | Self::HigherToken) => granted(7),
            (Call::Renew, Self::Refused(reason)) => lost(reason),
            (Call::Renew, Self::Shorter) => Answer::Renewed(Renewed::Extended(grant(7).with_ttl(short))),
            (Call::Renew, Self::Good | Self::HigherToken) => extended(),
            (Call::Release, Self::Refused(_)) => Answer::Released(Released::NotHeld),
            (Call::Release, _) => Answer::Released(Released::Freed),
            (Call::Read, Self::Good) => Answer::Read(Some(LeaseRecord { token: FencingToken(7), ..record(1) })),
            (Call::Read, _) => Answer::Read(None),
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 10_000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn all_rules_hold_under_random_inputs(
        events in vec(event(), 1..60),
        jitter in any::<u16>(),
        settle in prop::sample::select(vec![0_u64, 0, 2, 9]),
    ) {
        let timing = Timing::builder(15 * S).settle_delay(Duration::from_secs(settle)).build().unwrap();
        let mut judge = Judge::new(timing);
        judge.play.jitter = Jitter::new(jitter);
        judge.step(Input::Tick);
        for event in events {
            judge.play(event);
        }
        judge.wind_up();
    }
}
