//! What a run is to do, checked before anything happens.

use std::ffi::OsString;
use std::io::{IsTerminal, stdin};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use rustix::process::Signal;
use tenure::{LeaseName, OnFinish, StoreUrl, Timing};

use crate::args::{Global, OnExit, OnLost, RunArgs, Switch};
use crate::serve::{Listen, Site};
use crate::store;

/// A command line that makes sense.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) store: StoreUrl,
    pub(crate) name: LeaseName,
    pub(crate) label: Option<String>,
    pub(crate) payload: Option<String>,
    pub(crate) timing: Timing,
    pub(crate) on_finish: OnFinish,
    pub(crate) patience: Patience,
    pub(crate) never_led: u8,
    pub(crate) stop_signal: Signal,
    /// From the stop signal to KILL.
    pub(crate) kill_grace: Duration,
    /// From KILL to the deadline.
    pub(crate) kill_room: Duration,
    pub(crate) rejoin: bool,
    pub(crate) min_hold: Duration,
    /// Where HTTP is served; nowhere by default.
    pub(crate) listen: Vec<Listen>,
    /// The program and its arguments; never empty.
    pub(crate) command: Vec<OsString>,
    /// Whether a guard stands between this process and the program.
    pub(crate) guard: bool,
    /// Whether the program gets a process group of its own. At a terminal it shares ours, so that the shell's job
    /// control reaches it.
    pub(crate) own_group: bool,
}

/// How long to wait for leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    Endless,
    OneBid,
    For(Duration),
}

impl Plan {
    /// Checks what was asked for.
    ///
    /// # Errors
    ///
    /// Says which flag is wrong and what is allowed.
    pub(crate) fn new(global: &Global, args: RunArgs) -> anyhow::Result<Self> {
        let name = global.name.clone().context("no lease is named: tenure run --name N -- CMD")?;
        let kill_grace = args.kill_grace.unwrap_or(args.ttl / 5);
        let kill_room = kill_room(args.ttl);
        let timing = Timing::builder(args.ttl)
            .stop_budget(kill_grace.saturating_add(kill_room))
            .build()
            .with_context(|| format!("--ttl {:?} with --kill-grace {kill_grace:?} is not possible", args.ttl))?;
        Ok(Self {
            store: store::choose(&global.store)?,
            name,
            label: args.id,
            payload: args.payload,
            timing,
            on_finish: match args.on_exit {
                OnExit::Resign => OnFinish::Release,
                OnExit::Hold => OnFinish::Hold,
            },
            patience: match (args.once, args.wait) {
                (true, _) => Patience::OneBid,
                (false, Some(longest)) => Patience::For(longest),
                (false, None) => Patience::Endless,
            },
            never_led: args.never_led,
            stop_signal: args.stop_signal,
            kill_grace,
            kill_room,
            rejoin: args.on_lost == OnLost::Rejoin,
            min_hold: args.min_hold,
            listen: args.listen,
            command: args.command,
            // It rests on what only Linux has: a parent-death signal, and inheriting orphans.
            guard: args.guard == Switch::On && cfg!(target_os = "linux"),
            own_group: !stdin().is_terminal(),
        })
    }

    /// The program, with nothing of how to reach the store in its environment.
    pub(crate) fn program(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"TENURE_")) {
            command.env_remove(name);
        }
        command
    }

    /// Serves HTTP where that was asked for.
    ///
    /// # Errors
    ///
    /// Says which place cannot be had.
    pub(crate) fn site(&self) -> anyhow::Result<Option<Site>> {
        if self.listen.is_empty() {
            return Ok(None);
        }
        Site::open(&self.name, self.listen.clone()).map(Some)
    }
}

/// Time for the kernel to carry out a KILL before the deadline: 20 ms are plenty for most programs, and a fiftieth of
/// the ttl still leaves the timing's rule intact for a short one.
fn kill_room(ttl: Duration) -> Duration {
    const LONGEST: Duration = Duration::from_millis(20);
    LONGEST.min(ttl / 50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_grace_fits_every_ttl_that_a_person_would_choose() {
        for ttl in [250, 600, 1_000, 15_000, 3_600_000].map(Duration::from_millis) {
            let budget = ttl / 5 + kill_room(ttl);
            assert!(Timing::builder(ttl).stop_budget(budget).build().is_ok(), "{ttl:?}");
        }
    }
}
