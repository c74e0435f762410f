//! A password in a URL shows up nowhere.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use bench::{Bench, Running, text, until};

const CANARY: &str = "c4n4ry-s3cret";
/// The same, with a letter percent-encoded.
const ENCODED: &str = "c4n4ry%2Ds3cret";

fn clean(what: &str, shown: &str) {
    for secret in [CANARY, ENCODED] {
        assert!(!shown.contains(secret), "{what} shows the password: {shown}");
    }
}

#[test]
fn neither_errors_nor_help_nor_logs_show_it() {
    let bench = Bench::new();
    for password in [CANARY, ENCODED] {
        for url in [
            format!("mongodb://user:{password}@localhost/db"),
            format!("redis://user:{password}@localhost:notaport"),
            format!("sqlite://user:{password}@/x.db"),
            format!("postgres://localhost/db?password={password}"),
        ] {
            for arguments in [
                &["status", "nightly", "-vvv"][..],
                &["run", "--name", "n", "-vvv", "--", "true"],
                &["status", "--no-such-flag"],
                &["conformance"],
                &["schema"],
                &["--help"],
                &["run", "--help"],
            ] {
                let by_flag = bench.tenure(&[arguments, &["--store", &url]].concat()).output().unwrap();
                let by_environment = bench.tenure(arguments).env("TENURE_STORE", &url).output().unwrap();
                for output in [by_flag, by_environment] {
                    clean(&format!("{arguments:?}"), &(text(&output.stdout) + &text(&output.stderr)));
                }
            }
            let misspelt = bench.tenure(&["status", &format!("--stor={url}")]).output().unwrap();
            clean("a misspelt flag", &text(&misspelt.stderr));
        }
    }
}

#[test]
fn a_store_file_keeps_it_out_of_the_process_list_and_out_of_the_program() {
    let bench = Bench::new();
    let url = format!("{}?timeout=5s", bench.url());
    std::fs::write(bench.path("store"), format!("{url}\n# {CANARY}\n")).unwrap();
    let store = bench.path("store").display().to_string();
    let mut command =
        bench.tenure(&["run", "--name", "n", "--store-file", &store, "--", "sh", "-c", "echo $$ > pid; sleep 60"]);
    command.env("TENURE_STORE", format!("redis://user:{CANARY}@nowhere"));
    let run = Running::start(command);
    until("the program runs", || !bench::pids(&bench.read("pid")).is_empty());
    let program = bench::pids(&bench.read("pid"))[0];
    clean("the command line", &std::fs::read_to_string(format!("/proc/{}/cmdline", run.0.id())).unwrap());
    clean("the program's environment", &text(&std::fs::read(format!("/proc/{program}/environ")).unwrap()));
}
