//! Runs in words, for a person to read.

use std::fmt;

use tenure_core::WakeUp;
use tenure_core::machine::Action;

use super::moves::Move;
use super::state::{CAMPAIGNS, Leg, Message, host_of};
use crate::store::{Loss, Outcome, Who};

/// A host's name.
pub(super) fn host_name(h: usize) -> String {
    format!("c{}", h + 1)
}

/// A candidate's name: its host, and which campaign of it.
pub(super) fn candidate_name(who: Who) -> String {
    format!("{}.{}", host_name(host_of(who)), who % CAMPAIGNS + 1)
}

/// What a machine asks for.
pub(super) fn action_words(action: &Action) -> String {
    match action {
        Action::Bid(attempt) => format!("bid #{}", attempt.number),
        Action::Renew(attempt, grant) => format!("renew #{}, term {}", attempt.number, grant.token),
        Action::Release(attempt, grant) => format!("release #{}, term {}", attempt.number, grant.token),
        Action::Read(attempt) => format!("read #{}", attempt.number),
        Action::StartWork(grant) => format!("start the work of term {}", grant.token),
        Action::SignalStop => "signal the work to stop".into(),
        Action::CutOff => "cut the work off".into(),
        Action::ReportOverrun => "report that the work goes on".into(),
    }
}

/// What the store says.
pub(super) fn outcome_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Granted { token, after_release, .. } => {
            format!("granted, term {token}{}", if *after_release { " (the one before was given back)" } else { "" })
        }
        Outcome::Held(seen) => format!("held by {}, term {}", candidate_name(seen.who), seen.token),
        Outcome::Extended { .. } => "extended".into(),
        Outcome::Lost(Loss::Superseded(by)) => format!("lost to {}", candidate_name(*by)),
        Outcome::Lost(Loss::Expired) => "lost, it ran out".into(),
        Outcome::Lost(Loss::Removed) => "lost, there is no record".into(),
        Outcome::Freed => "freed".into(),
        Outcome::NotHeld => "not held".into(),
        Outcome::Found(None) => "nobody holds it".into(),
        Outcome::Found(Some(seen)) => format!("{} holds it, term {}", candidate_name(seen.who), seen.token),
        other => format!("{other:?}"),
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (h, what) = match *self {
            Self::Pass(_) => return f.write_str("time passes"),
            Self::Remove => return f.write_str("somebody removes the record"),
            Self::Deliver(i) | Self::Repeat(i) | Self::Fail(i, _) | Self::Confuse(i) | Self::Mistake(i) => {
                return write!(f, "message {i}");
            }
            Self::Crash(h) => (h, "dies"),
            Self::Stop(h) => (h, "is asked to stop"),
            Self::Resign(h) => (h, "resigns"),
            Self::Finish(h) => (h, "ends its work"),
            Self::Suspend(h) => (h, "is suspended with its host"),
            Self::Halt(h) => (h, "stands still"),
            Self::Thaw(h) => (h, "runs again"),
            Self::Cut(h) => (h, "is cut off from the network"),
            Self::Deafen(h) => (h, "hears no replies"),
            Self::Heal(h) => (h, "has its network back"),
            Self::Hint(h, WakeUp::Vacated) => (h, "gets a hint: vacated"),
            Self::Hint(h, WakeUp::Taken) => (h, "gets a hint: taken"),
            Self::Hint(h, WakeUp::Resync) => (h, "gets a hint: resync"),
            Self::Hint(h, _) => (h, "gets a hint: changed"),
            Self::Tick(h) => (h, "is stepped for no reason"),
            Self::EndNothing(h) => (h, "is told of the end of work that did not run"),
            Self::ResignNothing(h) => (h, "is told to resign what it has not got"),
        };
        write!(f, "{} {what}", host_name(h))
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = format!("{:?} #{} of {}", self.call, self.number, candidate_name(self.who)).to_lowercase();
        let late = if self.late { "late " } else { "" };
        match self.leg {
            Leg::Request(_) => write!(f, "the {late}request {call}"),
            Leg::Reply { outcome, .. } => write!(f, "the {late}reply to {call}: {}", outcome_words(&outcome)),
        }
    }
}
