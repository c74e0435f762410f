use std::error::Error as StdError;
use std::time::Duration;

use StoreErrorKind::{Denied, Invalid as Refused, Unavailable, Unknown, Unsupported};

use super::*;

fn status(code: Code, message: &str) -> Error {
    Error::GRpcStatus(Status::new(code, message))
}

fn kinds(error: impl Fn() -> Error) -> (StoreErrorKind, StoreErrorKind) {
    (translate(error(), Effect::None).kind, translate(error(), Effect::Write).kind)
}

/// The client's error for a request that died of `cause`.
fn broken(cause: impl StdError + Send + Sync + 'static) -> Error {
    let mut status = Status::unknown("transport error");
    status.set_source(Arc::new(cause));
    Error::GRpcStatus(status)
}

#[test]
fn what_the_server_says_was_not_applied_is_no_doubt() {
    let told = [
        (Code::Unauthenticated, "etcdserver: invalid auth token", Denied),
        (Code::PermissionDenied, "etcdserver: permission denied", Denied),
        (Code::InvalidArgument, "etcdserver: authentication failed, invalid user ID or password", Denied),
        (Code::InvalidArgument, "etcdserver: user name is empty", Denied),
        (Code::InvalidArgument, "etcdserver: revision of auth store is old", Unavailable),
        (Code::InvalidArgument, "etcdserver: request is too large", Refused),
        (Code::FailedPrecondition, "etcdserver: authentication is not enabled", Denied),
        (Code::Unimplemented, "unknown service etcdserverpb.Lease", Unsupported),
        (Code::ResourceExhausted, "etcdserver: too many requests", Unavailable),
        (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded", Unavailable),
        (Code::Unavailable, "etcdserver: no leader", Unavailable),
        (Code::Unavailable, "etcdserver: rpc not supported for learner", Unavailable),
    ];
    for (code, message, kind) in told {
        assert_eq!(kinds(|| status(code, message)), (kind, kind), "{message}");
    }
}

#[test]
fn a_write_is_unknown_wherever_it_may_have_been_applied() {
    let doubtful = [
        (Code::Unavailable, "etcdserver: request timed out"),
        (Code::Unavailable, "etcdserver: request timed out, possibly due to previous leader failure"),
        (Code::Unavailable, "etcdserver: request timed out, possibly due to connection lost"),
        (Code::Unavailable, "etcdserver: leader changed"),
        (Code::Unavailable, "etcdserver: server stopped"),
        (Code::Cancelled, "Timeout expired"),
        (Code::DeadlineExceeded, "context deadline exceeded"),
        (Code::Unknown, "raft proposal dropped"),
        (Code::Internal, "something else"),
    ];
    for (code, message) in doubtful {
        assert_eq!(kinds(|| status(code, message)), (Unavailable, Unknown), "{message}");
    }
    for other in ["channel closed", "failed to create lease keeper"] {
        assert_eq!(kinds(|| Error::LeaseKeepAliveError(other.into())), (Unavailable, Unknown));
        assert_eq!(kinds(|| Error::WatchError(other.into())), (Unavailable, Unknown));
    }
}

#[test]
fn only_a_request_that_never_left_is_surely_not_applied() {
    for kind in [io::ErrorKind::ConnectionRefused, io::ErrorKind::HostUnreachable] {
        assert_eq!(kinds(|| broken(io::Error::from(kind))), (Unavailable, Unavailable), "{kind}");
    }
    let connecting = || broken(ConnectError(Box::new(io::Error::from(io::ErrorKind::TimedOut))));
    assert_eq!(kinds(connecting), (Unavailable, Unavailable), "no connection within the bound");
    for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe, io::ErrorKind::TimedOut] {
        assert_eq!(kinds(|| broken(io::Error::from(kind))), (Unavailable, Unknown), "{kind}");
    }
}

#[test]
fn a_certificate_that_is_refused_is_no_outage() {
    for words in ["invalid peer certificate: UnknownIssuer", "received fatal alert: BadCertificate"] {
        let refused = || broken(ConnectError(Box::new(io::Error::other(words))));
        assert_eq!(kinds(refused), (Denied, Denied), "{words}");
    }
}

#[test]
fn an_etcd_lease_that_is_gone_is_told_from_a_request_that_failed() {
    assert!(is_lease_gone(&Error::LeaseKeepAliveError("lease not found".into())));
    assert!(is_lease_gone(&status(Code::NotFound, "etcdserver: requested lease not found")));
    assert!(!is_lease_gone(&Error::LeaseKeepAliveError("channel closed".into())));
    assert!(!is_lease_gone(&status(Code::NotFound, "etcdserver: user name not found")));
}

#[test]
fn a_server_that_refuses_has_answered_and_a_client_that_gives_up_has_not() {
    assert!(translate(status(Code::Unavailable, "etcdserver: no leader"), Effect::Write).from_server);
    assert!(!translate(status(Code::Cancelled, "Timeout expired"), Effect::Write).from_server);
    assert!(!translate(broken(io::Error::from(io::ErrorKind::ConnectionReset)), Effect::Write).from_server);
}

#[test]
fn of_two_failures_of_one_request_the_doubt_stays() {
    let sure = || Failure::new(Unavailable, "refused");
    let doubt = || Failure::no_answer(Effect::Write, Duration::from_secs(5));
    assert_eq!(sure().or_vaguer(doubt()).kind, Unknown);
    assert_eq!(doubt().or_vaguer(sure()).kind, Unknown);
    assert_eq!(sure().or_vaguer(sure()).kind, Unavailable);
    let denied = || Failure::new(Denied, "a certificate was refused");
    assert_eq!(denied().or_vaguer(sure()).kind, Unavailable, "the other member may come back");
    assert_eq!(denied().or_vaguer(denied()).kind, Denied);
}

#[test]
fn an_error_names_store_operation_and_lease_in_one_line() {
    let lease = LeaseName::new("nightly").unwrap();
    let failure = translate(status(Code::Unavailable, "etcdserver: no leader"), Effect::Write);
    let error = failure.into_error(Operation::Renew, Some(&lease));
    assert_eq!(error.to_string(), "etcd renew of lease \"nightly\": store unavailable: the cluster has no leader");
    assert!(error.source().unwrap().to_string().contains("etcdserver: no leader"));
}
