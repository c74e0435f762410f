//! Finding the processes that descend from this one.
//!
//! As a subreaper this process inherits every descendant that loses its parent, so whatever a program starts stays below
//! it, in whichever session or group it hides. One walk can miss a process that is being started or inherited at that
//! very moment; whoever must reach all of them walks again until none is left.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal};

/// A process below this one. Its number means this very process for as long as this value lives.
pub(crate) struct Descendant {
    pid: Pid,
    /// `None` where the kernel has no such descriptors.
    fd: Option<OwnedFd>,
    /// Its process group.
    pub(crate) group: Option<Pid>,
}

impl Descendant {
    /// Sends `signal`.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        match &self.fd {
            Some(fd) => pidfd_send_signal(fd, signal)?,
            None => kill_process(self.pid, signal)?,
        }
        Ok(())
    }
}

/// Shows every living descendant to `visit`, parents before their children, but those in `except` and theirs, and but
/// `guard`, whose children are shown.
///
/// The children of a process are looked up before it is shown, so that ending it hides none.
pub(crate) fn visit(except: &HashSet<Pid>, guard: Option<Pid>, mut visit: impl FnMut(&Descendant)) {
    let family = Family::look();
    let mut ours = HashSet::from([getpid()]);
    let mut queue: VecDeque<Pid> = family.children(getpid()).into();
    while let Some(pid) = queue.pop_front() {
        if except.contains(&pid) || ours.contains(&pid) {
            continue;
        }
        let Some(found) = open(pid, &ours) else { continue };
        ours.insert(pid);
        queue.extend(family.children(pid));
        if guard != Some(pid) {
            visit(&found);
        }
    }
}

/// The children that this process has now.
pub(crate) fn children_of_this_process() -> HashSet<Pid> {
    Family::look().children(getpid()).into_iter().collect()
}

/// Who is whose child.
enum Family {
    /// The kernel tells for each process.
    Kernel,
    /// Children by their parent, collected from all processes.
    Scanned(HashMap<Pid, Vec<Pid>>),
}

impl Family {
    fn look() -> Self {
        let own = getpid();
        if fs::exists(format!("/proc/{own}/task/{own}/children")).unwrap_or(false) {
            Self::Kernel
        } else {
            Self::scan()
        }
    }

    fn scan() -> Self {
        let mut children = HashMap::<Pid, Vec<Pid>>::new();
        for pid in numbers_in("/proc") {
            if let Some(parent) = Stat::read(pid).and_then(|stat| stat.parent) {
                children.entry(parent).or_default().push(pid);
            }
        }
        Self::Scanned(children)
    }

    /// A process that ends meanwhile has none.
    fn children(&self, parent: Pid) -> Vec<Pid> {
        match self {
            Self::Scanned(children) => children.get(&parent).cloned().unwrap_or_default(),
            Self::Kernel => {
                let threads = numbers_in(&format!("/proc/{parent}/task"));
                let of_thread = |thread| fs::read_to_string(format!("/proc/{parent}/task/{thread}/children"));
                let texts: Vec<_> = threads.into_iter().filter_map(|thread| of_thread(thread).ok()).collect();
                texts.iter().flat_map(|text| text.split_whitespace()).filter_map(pid_from).collect()
            }
        }
    }
}

/// Takes hold of `pid` if it still lives and is a child of one of `parents`: its number may have gone to another process
/// since it was looked up.
fn open(pid: Pid, parents: &HashSet<Pid>) -> Option<Descendant> {
    let fd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => Some(fd),
        Err(Errno::SRCH) => return None,
        // An old kernel, a sandbox, or no descriptor left: the number has to do.
        Err(_) => None,
    };
    // Read after the descriptor was opened: what it says is about the process that the descriptor means.
    let stat = Stat::read(pid)?;
    let ours = stat.parent.is_some_and(|parent| parents.contains(&parent));
    (ours && !stat.dead).then_some(Descendant { pid, fd, group: stat.group })
}

/// What `/proc/PID/stat` says of a process.
struct Stat {
    parent: Option<Pid>,
    group: Option<Pid>,
    /// Only its parent has not taken note yet.
    dead: bool,
}

impl Stat {
    fn read(pid: Pid) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the program's name in parentheses, and may hold anything.
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let (parent, group) = (pid_from(fields.next()?), pid_from(fields.next()?));
        Some(Self { parent, group, dead: matches!(state, "Z" | "X") })
    }
}

fn numbers_in(directory: &str) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    entries.flatten().filter_map(|entry| pid_from(entry.file_name().to_str()?)).collect()
}

fn pid_from(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn both_ways_of_looking_find_the_same_children() {
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let pid = pid_from(&child.id().to_string()).unwrap();
        for family in [Family::Kernel, Family::scan()] {
            assert!(family.children(getpid()).contains(&pid));
        }
        assert!(open(pid, &HashSet::new()).is_none(), "nobody's child is no descendant");
        let found = open(pid, &HashSet::from([getpid()])).unwrap();
        assert_eq!(found.group, Some(rustix::process::getpgrp()));
        found.signal(Signal::KILL).unwrap();
        child.wait().unwrap();
        assert!(open(pid, &HashSet::from([getpid()])).is_none());
    }

    #[test]
    fn a_process_that_has_ended_is_not_found_before_its_parent_takes_note_either() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = pid_from(&child.id().to_string()).unwrap();
        let start = std::time::Instant::now();
        while open(pid, &HashSet::from([getpid()])).is_some() {
            assert!(start.elapsed().as_secs() < 10);
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}
