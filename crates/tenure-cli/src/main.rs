//! The command `tenure`: runs a program only while this host leads, and shows who does.
//!
//! `main` parses, hands over to the subcommand's module, and exits with what that says. Everything on stdout is an
//! answer; everything else goes to stderr.

#[cfg(not(unix))]
compile_error!("the command tenure handles processes and signals, and needs a Unix system");

mod args;
mod ask;
mod check;
mod conformance;
mod exit;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(not(target_os = "linux"))]
#[path = "guard/elsewhere.rs"]
mod guard;
mod logging;
mod output;
mod run;
mod schema;
mod secrets;
mod serve;
mod shell;
mod status;
mod store;
mod usage;
mod watch;
mod witnessed;

use args::Command;

fn main() {
    if let Some(code) = guard::if_asked() {
        std::process::exit(code.into());
    }
    let code = match usage::parse() {
        Err(code) => code,
        Ok(args) => {
            logging::start(&args.global);
            match args.command {
                Command::Run(run) => run::run(&args.global, *run),
                Command::Serve(serve) => serve::serve(&args.global, serve),
                Command::Status(status) => status::status(&args.global, &status),
                Command::Watch(watch) => watch::watch(&args.global, watch),
                Command::Check(check) => check::check(&args.global, check),
                Command::Conformance(conformance) => conformance::conformance(&args.global, &conformance),
                Command::Schema => schema::schema(&args.global),
                Command::Completions(completions) => shell::completions(&completions),
                Command::Man => shell::man(),
            }
        }
    };
    logging::finish();
    // Ends helper threads of store clients where they stand: nothing of this process is worth waiting for any more.
    std::process::exit(code.into());
}
