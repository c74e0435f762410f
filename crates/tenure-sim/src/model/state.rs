//! One state of the model: the hosts with the machines that ship, what is under way between them and the store, and
//! the store.

use tenure_core::machine::{Attempt, Call};

use super::account::Account;
use super::bounds::Left;
use super::lease::Lease;
use crate::clock::Nanos;
use crate::planted::Subject;
use crate::store::{Outcome, Request, Who};
use crate::times::duration;

/// Everything that is the case at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// True time.
    pub now: Nanos,
    /// Which of the bounds' drifts the clocks run by.
    pub drift: u8,
    /// Each runs at most one campaign at a time.
    pub hosts: Vec<Host>,
    /// Requests and replies under way, a sorted multiset: nothing is said about who overtakes whom.
    pub wire: Vec<Message>,
    /// The lease in the store.
    pub lease: Lease,
    /// What may still go wrong, or be asked for.
    pub left: Left,
    /// The highest token that work was started with.
    pub highest: u64,
    /// The assumptions that were broken on the way here.
    pub broken: Broken,
    /// The rules that were broken on the way here, a bit for each: see [`Rule`](super::rules::Rule).
    pub breaches: u16,
}

/// Assumptions of `2-protocol` that do not hold any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Broken {
    /// A1: somebody removed the record by hand, or the store answered something that is not so.
    pub store: bool,
    /// A5: work went on after its deadline.
    pub work: bool,
}

/// A process and the host that it runs on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    /// What contends now.
    pub campaign: Option<Box<Campaign>>,
    /// Campaigns begun.
    pub begun: u8,
    /// The process was asked to stop: no other campaign follows.
    pub stopped: bool,
    /// Since when the process does not run, by its clock.
    pub frozen: Option<Frozen>,
    /// What gets through to and from it.
    pub link: Link,
    /// The token of this process's first term.
    pub first_token: Option<u64>,
}

/// A host's link to the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Link {
    /// Everything gets through.
    #[default]
    Whole,
    /// Requests get through, replies do not.
    Deaf,
    /// Nothing gets through.
    Cut,
}

/// Why a process does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frozen {
    /// The host is suspended, since then by its clock.
    Suspended(Nanos),
    /// The process is stopped, or starved.
    Halted,
}

/// One campaign of one candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Campaign {
    /// Which.
    pub who: Who,
    /// The machine that ships.
    pub subject: Subject,
    /// The calls that the shell listens to still, oldest first.
    pub calls: Vec<Listening>,
    /// The guarded work.
    pub work: Work,
    /// What an onlooker has noted.
    pub account: Account,
}

/// A call that is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Listening {
    /// Its number.
    pub number: u64,
    /// Its kind.
    pub call: Call,
    /// The term that it is about.
    pub token: u64,
    /// When the machine woke first after it was sent: a second call of the kind may follow then.
    pub until: Nanos,
}

/// The guarded work of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Work {
    /// Not begun.
    #[default]
    None,
    /// Acts.
    Running,
    /// Was told to stop, and acts still.
    Stopping,
    /// Was cut off, and acts still.
    Lingering,
    /// Acts no more.
    Over,
}

impl Work {
    /// Whether it acts.
    pub fn acts(self) -> bool {
        matches!(self, Self::Running | Self::Stopping | Self::Lingering)
    }
}

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Message {
    /// Who sent the request.
    pub who: Who,
    /// The attempt's number.
    pub number: u64,
    /// The attempt's kind.
    pub call: Call,
    /// When it was sent, by its sender's clock.
    pub sent: Nanos,
    /// A copy of it has reached the store already.
    pub repeated: bool,
    /// Outlived the bound of its call.
    pub late: bool,
    /// On which way.
    pub leg: Leg,
}

/// To the store, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Leg {
    /// To the store.
    Request(Request),
    /// Back.
    Reply {
        /// What the store answered.
        outcome: Outcome,
        /// The token that the request was about.
        token: u64,
    },
}

impl Message {
    /// The attempt, as the machine knows it.
    pub fn attempt(&self) -> Attempt {
        Attempt { number: self.number, call: self.call, sent: tenure_core::clock::Moment::new(duration(self.sent)) }
    }

    /// The token that it is about.
    pub fn token(&self) -> u64 {
        match self.leg {
            Leg::Request(Request::Renew { token, .. } | Request::Release { token, .. }) | Leg::Reply { token, .. } => {
                token
            }
            Leg::Request(_) => 0,
        }
    }
}

/// So many campaigns a host may begin at the most: a campaign's number tells its host.
pub const CAMPAIGNS: Who = 8;

/// The host that a campaign ran on.
pub fn host_of(who: Who) -> usize {
    (who / CAMPAIGNS) as usize
}

impl State {
    /// The campaign `who`, if it goes on.
    pub fn campaign(&self, who: Who) -> Option<&Campaign> {
        self.hosts[host_of(who)].campaign.as_deref().filter(|campaign| campaign.who == who)
    }

    /// Whether somebody still listens for the answer to `message`.
    pub fn is_listened_to(&self, message: &Message) -> bool {
        let listens = |campaign: &Campaign| campaign.calls.iter().any(|call| call.number == message.number);
        self.campaign(message.who).is_some_and(listens)
    }
}
