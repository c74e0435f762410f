//! The command line, as it is parsed and as `--help` shows it.

mod values;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use rustix::process::Signal;
use tenure::{CandidateId, LeaseName};

/// Runs a program only while this host leads, and shows who does.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, max_term_width = 100, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every subcommand takes. A flag wins over the environment, and that over the default.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// The lease, and so the election
    #[arg(long, global = true, value_name = "N")]
    pub(crate) name: Option<LeaseName>,

    /// What stdout is written for
    #[arg(short, long, global = true, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Format,

    /// What the log on stderr is written for
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: Format,

    /// Log more: once for elections, twice for debugging, three times for everything
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Log errors only
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// Where the leases are.
#[derive(clap::Args)]
pub(crate) struct StoreArgs {
    /// URL of the store, which others can see in `ps`: with a password better use the environment or a file
    /// [env: TENURE_STORE] [default: a SQLite file in the user's state directory]
    // The environment is read in `store`: clap would show a value from it in its own messages.
    #[arg(long = "store", global = true, value_name = "URL", conflicts_with = "file")]
    pub(crate) url: Option<String>,

    /// File whose first line is the URL of the store [env: TENURE_STORE_FILE]
    #[arg(long = "store-file", global = true, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
}

/// Text for people or JSON for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program only while this candidate leads
    Run(Box<RunArgs>),
    /// Be a candidate without a program, for what runs beside it and asks over HTTP whether it leads
    Serve(ServeArgs),
    /// Show who leads: exit 0 somebody, 1 nobody, 3 cannot tell
    Status(StatusArgs),
    /// Show changes of leadership, one a line
    Watch(WatchArgs),
    /// Check a fencing token: exit 0 current, 1 stale, 3 cannot tell
    Check(CheckArgs),
    /// Hold a store to the conformance suite: exit 0 it passes, 1 it does not, 3 cannot tell
    Conformance(ConformanceArgs),
    /// Print what creates what a store needs: statements for SQL, a Role for Kubernetes
    Schema,
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

/// Exit status: that of CMD; 120 leadership lost and CMD stopped; 124 never led; 125 tenure itself failed before CMD
/// started; 126 CMD cannot be executed; 127 CMD not found; 128+n CMD died of signal n, or tenure was stopped by it
/// while it waited.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "CMD gets TENURE_NAME, TENURE_CANDIDATE, TENURE_TOKEN, TENURE_TTL_MS and TENURE_STORE_KIND in its \
                        environment. Everything it starts belongs to it and is stopped with it."
)]
pub(crate) struct RunArgs {
    /// How long the store keeps the lease when nobody renews it
    #[arg(long, value_name = "D", value_parser = values::duration, default_value = "15s")]
    pub(crate) ttl: Duration,

    /// Make one bid, and give up if somebody else leads
    #[arg(long = "try", conflicts_with = "wait")]
    pub(crate) once: bool,

    /// Give up after D without having led [default: wait for ever]
    #[arg(long, value_name = "D", value_parser = values::duration)]
    pub(crate) wait: Option<Duration>,

    /// Exit code for giving up
    #[arg(short = 'E', value_name = "N", default_value_t = crate::exit::TIMED_OUT)]
    pub(crate) never_led: u8,

    /// What people know this candidate as [default: the host's name]
    #[arg(long, value_name = "LABEL")]
    pub(crate) id: Option<String>,

    /// Time between the stop signal and KILL; the signal comes so long before the lease could be another's
    /// [default: a fifth of the ttl]
    #[arg(long, value_name = "D", value_parser = values::duration)]
    pub(crate) kill_grace: Option<Duration>,

    /// Signal that asks CMD to stop: a name or a number
    #[arg(long, value_name = "SIG", value_parser = values::signal, default_value = "TERM")]
    pub(crate) stop_signal: Signal,

    /// After a loss: exit, or contend again and start CMD anew
    #[arg(long, value_name = "WHAT", default_value = "exit")]
    pub(crate) on_lost: OnLost,

    /// When CMD has ended: free the lease at once, or let it run out
    #[arg(long, value_name = "WHAT", default_value = "resign")]
    pub(crate) on_exit: OnExit,

    /// Keep the lease for D since the grant at least, even if CMD ends sooner
    #[arg(long, value_name = "D", value_parser = values::duration, default_value = "0")]
    pub(crate) min_hold: Duration,

    /// What others see of this leader, such as an address; no secrets
    #[arg(long, value_name = "TEXT")]
    pub(crate) payload: Option<String>,

    /// Tell over HTTP how things stand, as `tenure serve` does; may be repeated
    #[arg(long, value_name = "ADDR|unix:PATH")]
    pub(crate) listen: Vec<crate::serve::Listen>,

    /// Write one JSON line about the outcome to the open file descriptor N
    #[arg(long, value_name = "N")]
    pub(crate) status_fd: Option<u32>,

    /// A small process between tenure and CMD that kills CMD, and all that it started, when tenure is killed or frozen
    #[arg(long, value_name = "on|off", default_value = "on", hide_possible_values = true)]
    pub(crate) guard: Switch,

    /// The program and its arguments; no shell takes part
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLost {
    Exit,
    Rejoin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnExit {
    Resign,
    Hold,
}

/// Exit status: 0 asked to stop; 125 tenure failed, as when an address is taken.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "GET / {\"name\":..}, or a page for browsers; /leader 200 or 503 by the deadline at that moment; \
                  /v1/status and /v1/events JSON; /metrics for Prometheus; /livez, /readyz; POST /v1/resign over a unix socket only. No password \
                  is asked for: listen on loopback or on a socket."
)]
pub(crate) struct ServeArgs {
    /// Where to serve HTTP; may be repeated
    #[arg(long, value_name = "ADDR|unix:PATH", required = true)]
    pub(crate) listen: Vec<crate::serve::Listen>,

    /// How long the store keeps the lease when nobody renews it
    #[arg(long, value_name = "D", value_parser = values::duration, default_value = "15s")]
    pub(crate) ttl: Duration,

    /// What people know this candidate as [default: the host's name]
    #[arg(long, value_name = "LABEL")]
    pub(crate) id: Option<String>,

    /// What others see of this leader, such as an address; no secrets
    #[arg(long, value_name = "TEXT")]
    pub(crate) payload: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// The lease; without it all leases that somebody holds
    #[arg(value_name = "N")]
    pub(crate) lease: Option<LeaseName>,

    /// Show it again every second
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// The leases; without one all that somebody holds
    #[arg(value_name = "N")]
    pub(crate) leases: Vec<LeaseName>,

    /// End when every lease named has a leader, has none, or has this leader: leader, vacant, id=X
    #[arg(long, value_name = "WHAT", value_parser = values::until)]
    pub(crate) until: Option<Until>,

    /// Exit 124 when that has not come to be within D
    #[arg(long, value_name = "D", value_parser = values::duration, requires = "until")]
    pub(crate) timeout: Option<Duration>,
}

/// What `watch` waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    Leader,
    Vacant,
    Candidate(CandidateId),
}

#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct CheckArgs {
    /// The lease
    #[arg(value_name = "N")]
    pub(crate) lease: Option<LeaseName>,

    /// The fencing token in question
    #[arg(value_name = "TOKEN", required = true)]
    pub(crate) token: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ConformanceArgs {
    /// Only these clauses or groups of clauses, such as acquire-free or release
    #[arg(long, value_name = "ID")]
    pub(crate) only: Vec<String>,

    /// Write the report as JUnit XML too
    #[arg(long, value_name = "PATH")]
    pub(crate) junit: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

impl std::fmt::Debug for StoreArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreArgs").field("file", &self.file).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn run_args(line: &[&str]) -> Result<Box<RunArgs>, clap::Error> {
        Args::try_parse_from([&["tenure", "run"], line].concat()).map(|args| match args.command {
            Command::Run(run) => run,
            other => panic!("parsed as {other:?}"),
        })
    }

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn everything_after_the_program_is_the_programs() {
        for line in [["--name", "n", "--", "sh", "-c", "--ttl=1"], ["--name", "n", "sh", "-c", "--ttl=1", "-v"]] {
            let args = run_args(&line).unwrap();
            assert_eq!(args.ttl, Duration::from_secs(15));
            assert_eq!(args.command[..2], ["sh", "-c"]);
        }
    }

    #[test]
    fn a_misspelt_flag_is_not_taken_for_a_program() {
        assert_eq!(run_args(&["--trie", "sh"]).unwrap_err().kind(), clap::error::ErrorKind::UnknownArgument);
    }

    #[test]
    fn an_exit_code_over_255_is_refused() {
        assert!(run_args(&["-E", "256", "sh"]).is_err());
        assert!(run_args(&["-E", "-1", "sh"]).is_err());
        assert_eq!(run_args(&["-E", "0", "sh"]).unwrap().never_led, 0);
    }

    #[test]
    fn a_token_may_stand_alone() {
        let check = |line: &[&str]| match Args::try_parse_from([&["tenure", "check"], line].concat()).unwrap().command {
            Command::Check(check) => (check.lease.map(|name| name.to_string()), check.token),
            other => panic!("parsed as {other:?}"),
        };
        assert_eq!(check(&["7"]), (None, 7));
        assert_eq!(check(&["nightly", "7"]), (Some("nightly".to_owned()), 7));
    }
}
