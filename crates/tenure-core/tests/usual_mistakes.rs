//! What a renewal loop gets wrong when it is written by hand; a test each.

mod bench;

use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use bench::{Bench, S, TTL, name};
use tenure_core::clock::Moment;
use tenure_core::{CancellationToken, Ended, Fault, LeaseStore, LossReason, Operation, StoreErrorKind};

/// K10.
#[tokio::test(start_paused = true)]
async fn an_error_of_a_bid_does_not_end_the_campaign() {
    let bench = Bench::new();
    let bids = AtomicU32::new(0);
    bench.faults(move |_| match bids.fetch_add(1, SeqCst) {
        0..5 => Fault::Fail(StoreErrorKind::Unavailable),
        5..9 => Fault::FailAfter(StoreErrorKind::Unknown),
        9 => Fault::LoseRequest,
        _ => Fault::None,
    });
    let lead = bench.election("a").campaign().await.unwrap();
    assert_eq!(bench.calls(Operation::Acquire, "a").len(), 11);
    assert!(lead.check().is_ok());
}

/// K03.
#[tokio::test(start_paused = true)]
async fn nothing_is_renewed_after_a_loss() {
    let bench = Bench::new();
    let election = bench.builder("a").once().build().unwrap();
    let work = tokio::spawn(async move { election.run_as_leader(CancellationToken::new(), |_| pending::<()>()).await });
    bench.until(|| bench.calls(Operation::Renew, "a").len() == 2).await;
    bench.store.remove(&name());
    let ended = work.await.unwrap().unwrap();
    assert_eq!(ended, Ended::Lost(LossReason::Removed));
    let renewals = bench.calls(Operation::Renew, "a").len();
    bench.pass(4 * TTL).await;
    assert_eq!(bench.calls(Operation::Renew, "a").len(), renewals);
    assert_eq!(bench.calls(Operation::Release, "a").len(), 0, "what was lost is not released");
}

/// K16.
#[tokio::test(start_paused = true)]
async fn the_end_of_the_work_is_awaited_once() {
    let bench = Bench::new();
    let ended = bench
        .election("a")
        .run_as_leader(CancellationToken::new(), |_| {
            let mut done = false;
            poll_fn(move |_| {
                assert!(!done, "polled after it had returned");
                done = true;
                Poll::Ready(7)
            })
        })
        .await;
    assert_eq!(ended.unwrap(), Ended::Finished(7));
    assert_eq!(bench.record().await, None);
}

/// K01.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_does_not_let_the_work_run_past_the_lease() {
    let bench = Bench::new();
    let acted = Arc::new(Mutex::new(Vec::new()));
    let (clock, actions) = (bench.clone(), acted.clone());
    let election = bench.builder("a").once().build().unwrap();
    bench.faults(|call| if call.operation == Operation::Renew { Fault::LoseRequest } else { Fault::None });
    let ended = election
        .run_as_leader(CancellationToken::new(), |_| async {
            loop {
                actions.lock().unwrap().push(clock.now());
                clock.pass(Duration::from_millis(100)).await;
            }
        })
        .await;
    assert!(matches!(ended, Ok(Ended::<()>::Lost(LossReason::Expired { kind: Some(StoreErrorKind::Unknown), .. }))));
    let bid = bench.calls(Operation::Acquire, "a")[0];
    let last: Moment = *acted.lock().unwrap().last().unwrap();
    assert!(last < bid + election.timing().validity(TTL), "acted {:?} after the bid", last - bid);
    assert!(last > bid + 14 * S, "and was not stopped much too early");
}

/// K07.
#[tokio::test(start_paused = true)]
async fn on_shutdown_the_lease_is_kept_until_the_work_has_ended() {
    let bench = Bench::new();
    let shutdown = CancellationToken::new();
    let ended_at = Arc::new(Mutex::new(None));
    let (clock, ended) = (bench.clone(), ended_at.clone());
    let election = bench.election("a");
    let stop = shutdown.clone();
    let work = tokio::spawn(async move {
        election
            .run_as_leader(stop, |lead| {
                let (clock, ended) = (clock.clone(), ended.clone());
                async move {
                    lead.stopping().await;
                    clock.pass(2 * S).await;
                    *ended.lock().unwrap() = Some(clock.now());
                    "done"
                }
            })
            .await
    });
    bench.until(|| bench.calls(Operation::Renew, "a").len() == 1).await;
    shutdown.cancel();
    bench.pass(S).await;
    assert!(bench.record().await.is_some(), "released while the work was still running");
    assert_eq!(work.await.unwrap().unwrap(), Ended::Finished("done"));
    let released = bench.calls(Operation::Release, "a")[0];
    assert!(released >= ended_at.lock().unwrap().unwrap());
    assert_eq!(bench.record().await, None, "and was given back");
}

#[tokio::test(start_paused = true)]
async fn the_timers_of_one_role_do_not_fire_in_the_other() {
    let bench = Bench::new();
    let lead = bench.election("leader").campaign().await.unwrap();
    let follower = bench.election("follower");
    let waiting = tokio::spawn(async move { follower.campaign().await.map(drop) });
    bench.pass(10 * TTL).await;
    assert_eq!(bench.calls(Operation::Acquire, "leader").len(), 1, "a leader does not bid");
    assert_eq!(bench.calls(Operation::Renew, "follower").len(), 0, "a follower does not renew");
    assert!(bench.calls(Operation::Renew, "leader").len() >= 30);
    assert!(lead.check().is_ok());
    waiting.abort();
}

/// K15.
#[tokio::test(start_paused = true)]
async fn two_candidates_with_one_label_never_both_lead() {
    let bench = Bench::new();
    let leaders = Arc::new(AtomicU32::new(0));
    let terms = Arc::new(AtomicU32::new(0));
    let candidates: Vec<_> = (0..5)
        .map(|_| {
            let (bench, leaders, terms) = (bench.clone(), leaders.clone(), terms.clone());
            tokio::spawn(async move {
                let election = bench.election("same");
                for _ in 0..4 {
                    let lead = election.campaign().await.unwrap();
                    assert_eq!(leaders.fetch_add(1, SeqCst), 0, "two leaders");
                    bench.pass(Duration::from_millis(300)).await;
                    assert_eq!(leaders.fetch_sub(1, SeqCst), 1);
                    terms.fetch_add(1, SeqCst);
                    lead.resign().await.unwrap();
                }
            })
        })
        .collect();
    for candidate in candidates {
        candidate.await.unwrap();
    }
    assert_eq!(terms.load(SeqCst), 20);
}

/// K11.
#[tokio::test(start_paused = true)]
async fn an_abandoned_request_that_is_applied_late_does_not_disturb_the_term_after_it() {
    let bench = Bench::new();
    let first = AtomicBool::new(true);
    bench.faults(move |call| match call.operation {
        // The first renewal is on its way for longer than the lease; the others are lost.
        Operation::Renew if call.candidate.as_ref().is_some_and(|c| c.label() == "a") => {
            if first.swap(false, SeqCst) {
                Fault::DelayRequest(20 * S)
            } else {
                Fault::LoseRequest
            }
        }
        _ => Fault::None,
    });
    let old = bench.election("a").campaign().await.unwrap();
    let new = bench.election("b").campaign().await.unwrap();
    assert!(old.check().is_err() && new.token() > old.token());
    let before = bench.record().await.unwrap();
    // The release and the renewal of the old term arrive now.
    bench.pass(12 * S).await;
    drop(old);
    let after = bench.record().await.unwrap();
    assert_eq!((before.holder, before.token), (after.holder, after.token));
    assert!(new.check().is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_bid_that_is_applied_late_under_its_own_term_changes_nothing() {
    let bench = Bench::new();
    let bids = AtomicU32::new(0);
    bench.faults(move |call| match (call.operation, bids.fetch_add(1, SeqCst)) {
        (Operation::Acquire, 0) => Fault::DelayRequest(8 * S),
        _ => Fault::None,
    });
    let lead = bench.election("a").campaign().await.unwrap();
    let token = lead.token();
    bench.pass(30 * S).await;
    assert_eq!(lead.check(), Ok(token));
    assert_eq!(bench.store.read(&name()).await.unwrap().unwrap().token, token);
}
