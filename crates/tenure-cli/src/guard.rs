//! The guard: a small process of the same program between tenure and what tenure runs.
//!
//! tenure → guard → program. The guard inherits every orphan below it, knows the deadline, and hears at once when tenure is
//! gone, for then the pipe from it ends. On either it kills all that is below it, so that a tenure which was killed, stopped or
//! swapped out leaves nothing running past the lease. When tenure is gone and the tree is proved dead, the guard frees the
//! lease over a connection of its own. When the guard itself is killed, the program dies with it (its parent-death signal),
//! and what the program had started falls to tenure, which kills it. For the case that both are killed there is a [`warden`]
//! where the kernel lets us have a control group.
//!
//! It is there before its term: what takes time is done while tenure waits. It does nothing else: no runtime, no store, no
//! thread, until there is a lease to free.

mod cgroup;
mod orders;
mod stage;
mod tree;
mod warden;

use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, getppid};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use cgroup::Cgroup;
pub(crate) use orders::{Environment, Lines, Order, Report, Start};
use orders::{Orders, Reports};
use tenure::clock::{Clock, SystemClock};
use tree::Waiting;
pub(crate) use warden::Ward;

use crate::exit;
use crate::run::descriptors;

/// The first argument of a guard.
const GUARD: &str = "__guard";

/// The first argument of the stage that becomes the program.
const STAGE: &str = "__exec";

/// The first argument of a warden.
const WARDEN: &str = "__warden";

/// What stands before the program's own arguments.
const PROGRAM: &str = "--";

/// Longest time to free the lease in: whoever waits for it waits for a ttl at most.
const LONGEST_RELEASE: Duration = Duration::from_secs(5);

/// The exit code, if this process is one of the two; otherwise it is an ordinary tenure.
pub(crate) fn if_asked() -> Option<u8> {
    let mut arguments = std::env::args_os().skip(1);
    let what = arguments.next()?;
    match what.to_str()? {
        STAGE => Some(stage::become_program(arguments)),
        WARDEN => Some(warden::watch(arguments)),
        GUARD => {
            be_known_as(c"tenure-guard");
            Some(guard(arguments).map_or_else(
                |error| {
                    eprintln!("tenure: the guard failed: {error}");
                    exit::FAILED
                },
                |()| exit::YES,
            ))
        }
        _ => None,
    }
}

/// What `ps` and `top` show: of a program that was started by way of /proc they would show `exe`.
fn be_known_as(name: &CStr) {
    let _ = rustix::thread::set_name(name);
}

/// The arguments with which the guard of a program is started: descriptors of its two pipes, and the process group that the
/// program shall be in, or none for one of its own; and its control group, if there is one.
pub(crate) fn arguments(orders: i32, reports: i32, group: Option<Pid>, cgroup: Option<&Cgroup>) -> [OsString; 6] {
    let numbers = [orders, reports, group.map_or(0, Pid::as_raw_pid)].map(|number| number.to_string().into());
    let [orders, reports, group] = numbers;
    let cgroup = cgroup.map(|cgroup| cgroup.path().into()).unwrap_or_default();
    [GUARD.into(), orders, reports, group, cgroup, PROGRAM.into()]
}

fn guard(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    let mut number = || {
        let text = arguments.next().and_then(|text| text.into_string().ok());
        text.and_then(|text| text.parse::<i32>().ok()).ok_or_else(|| io::Error::other("it is not for use by hand"))
    };
    let (orders, reports, group) = (number()?, number()?, number()?);
    let cgroup = arguments.next().filter(|path| !path.is_empty()).map(Cgroup::at);
    let mut orders = Orders::open(orders)?;
    let mut reports = Reports::to(reports)?;
    descriptors::keep_to_ourselves();
    rustix::process::set_child_subreaper(Some(getpid()))?;
    let parent = getppid();
    let ended = tree::word_of_children()?;
    outlive_stop_signals()?;
    let program: Vec<OsString> = arguments.skip_while(|argument| argument == PROGRAM).collect();
    // Before there is a term, so that the term need not wait for it.
    let waiting = Waiting::start(&program, group, cgroup);
    let Some(start) = orders.start()? else {
        if let Ok(waiting) = waiting {
            waiting.give_up();
        }
        return Ok(());
    };
    let mut tree = match waiting.and_then(|waiting| waiting.begin(&start.environment)) {
        Ok(tree) => tree,
        Err(error) => {
            return reports.send(&Report::NotStarted(error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())));
        }
    };
    reports.send(&Report::Started(tree.program().as_raw_pid()))?;

    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
    set(&timer, start.deadline)?;
    let mut deadline = start.deadline;
    let mut told = false;
    let mut orphaned = false;
    while tree.is_alive() {
        let over = {
            let mut ready = [
                PollFd::new(&ended, PollFlags::IN),
                PollFd::new(&timer, PollFlags::IN),
                PollFd::from_borrowed_fd(orders.as_fd(), PollFlags::IN),
            ];
            match poll(&mut ready, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            ready.map(|ready| !ready.revents().is_empty())
        };
        if over[0] {
            tree::drain(&ended);
            tree.reap();
        }
        if let (Some(end), false) = (tree.end(), told) {
            told = true;
            let _ = reports.send(&Report::Ended(end));
            // A guard that lives on says nothing to its parent by itself.
            if let Some(parent) = parent {
                let _ = rustix::process::kill_process(parent, Signal::CHILD);
            }
        }
        // All that came: a guard that was frozen has a newer deadline waiting behind older ones.
        while over[2] && !orphaned {
            match orders.next()? {
                Some(Some(Order::Deadline(at))) => {
                    deadline = at;
                    set(&timer, at)?;
                }
                Some(None) => {}
                None => orphaned = true,
            }
            if !orders.has_more()? {
                break;
            }
        }
        let overdue = over[1] && SystemClock.now().since_origin() >= deadline;
        if overdue {
            let _ = reports.send(&Report::Overdue);
        }
        if orphaned || overdue {
            tree.kill_all();
        }
    }
    if let (Some(end), false) = (tree.end(), told) {
        let _ = reports.send(&Report::Ended(end));
    }
    if orphaned && start.free {
        free(&start);
    }
    Ok(())
}

/// A stop that is sent to a whole unit or container reaches the guard too, and is not for it: the program has its grace.
/// Handlers, for the program must not inherit that they are ignored.
fn outlive_stop_signals() -> io::Result<()> {
    let heard = Arc::new(AtomicBool::new(false));
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2] {
        signal_hook::flag::register(signal.as_raw(), heard.clone())?;
    }
    Ok(())
}

/// Sets the timer to an instant of the clock that counts suspends too.
fn set(timer: &impl AsFd, at: Duration) -> io::Result<()> {
    // A time of zero would turn the timer off.
    let at = at.max(Duration::from_nanos(1));
    let seconds = i64::try_from(at.as_secs()).unwrap_or(i64::MAX);
    let it_value = Timespec { tv_sec: seconds, tv_nsec: at.subsec_nanos().into() };
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once)?;
    Ok(())
}

/// Gives the lease back: its leader is gone and nothing runs under it any more.
fn free(start: &Start) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let release = async {
        let store = crate::store::open(&start.store).await?;
        store.release(&start.grant).await
    };
    // Where it fails, the lease runs out.
    let _ = runtime.block_on(async { tokio::time::timeout(LONGEST_RELEASE, release).await });
}
