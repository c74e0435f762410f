use std::io;

use redis::make_extension_error;

use super::*;

fn server(line: &str) -> RedisError {
    redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap().extract_error().unwrap_err()
}

fn call(operation: Operation) -> Call<'static> {
    Call { operation, lease: None, repeats: false }
}

fn kind_of_answer(operation: Operation, error: RedisError) -> StoreErrorKind {
    call(operation).failed(Failure::Answered(error)).kind()
}

#[test]
fn a_server_that_refuses_writes_for_now_is_unavailable() {
    for line in [
        "READONLY You can't write against a read only replica.",
        "LOADING Redis is loading the dataset in memory",
        "MASTERDOWN Link with MASTER is down",
        "CLUSTERDOWN The cluster is down",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "BUSY Redis is busy running a script.",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "MISCONF Redis is configured to save RDB snapshots",
        "NOREPLICAS Not enough good replicas to write.",
        "ERR max number of clients reached",
        "ERR Error running script (call to f_1): @user_script:33: @user_script: 33: -READONLY You can't write against a read only replica.",
        "ERR Error running script (call to f_1): @user_script:33: @user_script: 33: -OOM command not allowed",
    ] {
        assert_eq!(kind_of_answer(Operation::Renew, server(line)), Unavailable, "{line}");
    }
}

#[test]
fn credentials_and_rights_are_denied() {
    for line in [
        "NOAUTH Authentication required.",
        "NOAUTH HELLO must be called with the client already authenticated",
        "WRONGPASS invalid username-password pair or user is disabled.",
        "NOPERM this user has no permissions to run the 'evalsha' command",
        "DENIED Redis is running in protected mode",
        "ERR The user executing the script can't run this command or subcommand script: 1, on @user_script:1.",
        "ERR AUTH <password> called without any password configured for the default user.",
    ] {
        assert_eq!(kind_of_answer(Operation::Acquire, server(line)), Denied, "{line}");
        assert_eq!(call(Operation::Connect).failed(Failure::Connecting(server(line))).kind(), Denied, "{line}");
    }
}

#[test]
fn what_the_server_cannot_do_is_unsupported_and_what_is_foreign_is_malformed() {
    for line in ["MOVED 42 127.0.0.1:7001", "ERR unknown command 'EVALSHA'", "NOPROTO unsupported protocol version"] {
        assert_eq!(kind_of_answer(Operation::Acquire, server(line)), Unsupported, "{line}");
    }
    for line in [
        "WRONGTYPE Operation against a key holding the wrong kind of value script: 1, on @user_script:6.",
        "ERR Error running script (call to f_1): @user_script:6: WRONGTYPE Operation against a key",
    ] {
        assert_eq!(kind_of_answer(Operation::Acquire, server(line)), Malformed, "{line}");
    }
}

#[test]
fn a_broken_connection_leaves_a_write_unknown_and_a_read_unavailable() {
    for kind in [io::ErrorKind::TimedOut, io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset] {
        let error = RedisError::from(io::Error::from(kind));
        assert_eq!(kind_of_answer(Operation::Acquire, error.clone()), Unknown, "{kind:?}");
        assert_eq!(kind_of_answer(Operation::Release, error.clone()), Unknown, "{kind:?}");
        assert_eq!(kind_of_answer(Operation::Read, error), Unavailable, "{kind:?}");
    }
    let silent = Failure::Unanswered(Duration::from_secs(3));
    assert_eq!(call(Operation::Renew).failed(silent.clone()).kind(), Unknown);
    assert_eq!(call(Operation::Read).failed(silent).kind(), Unavailable);
}

#[test]
fn what_was_never_sent_is_unavailable() {
    let refused = RedisError::from(io::Error::from(io::ErrorKind::ConnectionRefused));
    assert_eq!(kind_of_answer(Operation::Renew, refused.clone()), Unavailable);
    assert_eq!(call(Operation::Renew).failed(Failure::Connecting(refused)).kind(), Unavailable);
    assert_eq!(call(Operation::Renew).failed(Failure::NotConnected(Duration::from_secs(1))).kind(), Unavailable);
}

#[test]
fn a_client_that_repeats_commands_never_makes_a_write_surely_not_applied() {
    let call = Call { repeats: true, ..call(Operation::Renew) };
    assert_eq!(call.failed(Failure::Answered(server("CLUSTERDOWN The cluster is down"))).kind(), Unknown);
    assert_eq!(call.failed(Failure::NotConnected(Duration::from_secs(1))).kind(), Unavailable);
}

#[test]
fn an_error_without_a_known_code_tells_nothing_about_a_write() {
    assert_eq!(kind_of_answer(Operation::Acquire, server("ERR something new")), Unknown);
    assert_eq!(kind_of_answer(Operation::Acquire, make_extension_error("NEW".into(), None)), Unknown);
}

#[test]
fn a_password_that_the_server_repeats_is_cut_off() {
    let line = "ERR unknown command 'AUTH', with args beginning with: 'user' 'canary'";
    let error = call(Operation::Connect).failed(Failure::Connecting(server(line)));
    let source = error.source().unwrap();
    assert!(!format!("{error} {error:?} {source} {source:?}").contains("canary"));
    assert!(source.to_string().contains("unknown command 'AUTH'"), "{source}");
}
