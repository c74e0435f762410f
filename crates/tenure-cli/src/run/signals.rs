//! The signals that tenure receives while it runs a program.

use std::fs;
use std::io;

use futures::StreamExt;
use rustix::process::Signal;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;
use signal_hook_tokio::SignalsInfo;

/// A signal, and where it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) signal: Signal,
    /// The kernel sent it, as it does for keys and for the end of a terminal: to the whole foreground process group.
    pub(crate) by_terminal: bool,
}

pub(crate) struct Signals(SignalsInfo<WithOrigin>);

impl Signals {
    /// Takes the signals that are passed on, and word of processes that end.
    ///
    /// HUP is left alone if it is being ignored: the user said `nohup`, and the program is to inherit that.
    ///
    /// # Errors
    ///
    /// When the system has no descriptor left.
    pub(crate) fn listen() -> io::Result<Self> {
        let wanted = [
            Signal::CHILD,
            Signal::TERM,
            Signal::INT,
            Signal::QUIT,
            Signal::USR1,
            Signal::USR2,
            Signal::WINCH,
            Signal::TSTP,
            Signal::CONT,
        ];
        let hup = Some(Signal::HUP).filter(|hup| !is_ignored(*hup));
        SignalsInfo::new(wanted.into_iter().chain(hup).map(Signal::as_raw)).map(Self)
    }

    /// The next signal.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub(crate) async fn next(&mut self) -> Received {
        loop {
            match self.0.next().await {
                Some(origin) => {
                    if let Some(signal) = Signal::from_named_raw(origin.signal) {
                        return Received { signal, by_terminal: matches!(origin.cause, Cause::Kernel) };
                    }
                }
                // Nobody closes it.
                None => std::future::pending().await,
            }
        }
    }
}

/// Whether this process was started with `signal` ignored. Where the system does not say, it was not.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal.as_raw() - 1)) != 0
}
