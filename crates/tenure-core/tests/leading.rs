//! What a leader can rely on: signals, handles, results, panics, overruns.

mod bench;

use std::cell::Cell;
use std::future::{Future, pending};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use bench::{Bench, S, TTL, name};
use futures::{FutureExt, StreamExt};
use tenure_core::{
    CancellationToken, Election, ElectionError, Ended, Fault, LeaderChange, Leadership, LossReason, OnFinish,
    Operation, OverrunPolicy, Standing, StoreErrorKind, Timing, observe_on,
};

#[tokio::test(start_paused = true)]
async fn a_handle_that_is_dropped_early_does_not_end_the_term() {
    async fn job() -> u32 {
        tokio::task::yield_now().await;
        1
    }
    async fn fenced(token: tenure_core::FencingToken) -> u32 {
        job().await + token.value() as u32
    }
    let run = || (Bench::new().election("a"), CancellationToken::new());

    let (election, shutdown) = run();
    assert_eq!(election.run_as_leader(shutdown, |_| async { job().await }).await.unwrap(), Ended::Finished(1));
    let (election, shutdown) = run();
    assert_eq!(election.run_as_leader(shutdown, |lead| fenced(lead.token())).await.unwrap(), Ended::Finished(2));
    let (election, shutdown) = run();
    let ended = election.run_as_leader(shutdown, |lead| {
        let token = lead.token();
        async move { fenced(token).await }
    });
    assert_eq!(ended.await.unwrap(), Ended::Finished(2));
}

#[tokio::test(start_paused = true)]
async fn work_may_borrow_and_the_whole_can_be_spawned() {
    let bench = Bench::new();
    let counter = Cell::new(0);
    let text = String::from("borrowed");
    let ended = bench
        .election("a")
        .run_as_leader(CancellationToken::new(), |_| async {
            counter.set(counter.get() + 1);
            text.len()
        })
        .await;
    assert_eq!((ended.unwrap(), counter.get()), (Ended::Finished(8), 1));

    let election = bench.election("b");
    let spawned = tokio::spawn(async move {
        election.run_as_leader(CancellationToken::new(), |lead: Leadership| async move { lead.token() }).await
    });
    assert!(matches!(spawned.await.unwrap().unwrap(), Ended::Finished(_)));
}

#[tokio::test(start_paused = true)]
async fn resigning_inside_the_work_cuts_it_there_and_campaigns_again() {
    let bench = Bench::new();
    let (terms, after) = (AtomicU32::new(0), AtomicBool::new(false));
    let ended = bench
        .election("a")
        .run_as_leader(CancellationToken::new(), |lead| async {
            let token = lead.token();
            if terms.fetch_add(1, SeqCst) == 0 {
                lead.resign().await.unwrap();
                after.store(true, SeqCst);
            }
            token
        })
        .await
        .unwrap();
    assert!(!after.load(SeqCst), "the work went on after it had resigned");
    assert!(matches!(ended, Ended::Finished(token) if token.value() == 2), "{ended:?}");
    assert_eq!(bench.calls(Operation::Release, "a").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn stopping_comes_before_lost_a_stop_budget_before_the_deadline() {
    let bench = Bench::new();
    let lead = bench.election("a").campaign().await.unwrap();
    bench.faults(|_| Fault::Fail(StoreErrorKind::Unavailable));
    let deadline = lead.deadline();
    lead.stopping().await;
    let left = deadline - bench.now();
    assert!(left <= 3 * S && left > 3 * S - Duration::from_millis(2), "{left:?}");
    assert!(lead.check().is_ok(), "authority lasts until the deadline");
    assert!(lead.lost().now_or_never().is_none());
    let reason = lead.lost().await;
    assert!(bench.now() >= deadline && bench.now() - deadline < Duration::from_millis(2));
    assert!(
        matches!(&reason, LossReason::Expired { kind: Some(StoreErrorKind::Unavailable), error: Some(_) }),
        "{reason:?}"
    );
    assert_eq!(lead.check(), Err(reason));
}

/// K03.
#[tokio::test(start_paused = true)]
async fn a_definite_loss_cuts_the_work_off_at_once() {
    let bench = Bench::new();
    let lead = bench.election("a").campaign().await.unwrap();
    let term = lead.term();
    let work = tokio::spawn(async move { lead.run_until_lost(pending::<()>()).await });
    bench.pass(S).await;
    let removed = bench.now();
    bench.store.remove(&name());
    assert_eq!(work.await.unwrap(), Err(LossReason::Removed));
    assert_eq!(term.check(), Err(LossReason::Removed));
    assert!(bench.now() - removed < S, "the leader watches its own record");
}

/// K10.
#[tokio::test(start_paused = true)]
async fn after_a_loss_the_campaign_goes_on_under_a_higher_token() {
    let bench = Bench::new();
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let (seen, store) = (tokens.clone(), bench.store.clone());
    let ended = bench
        .election("a")
        .run_as_leader(CancellationToken::new(), |lead| {
            let (seen, store) = (seen.clone(), store.clone());
            async move {
                seen.lock().unwrap().push(lead.token());
                if seen.lock().unwrap().len() < 3 {
                    store.remove(&name());
                    pending().await
                }
            }
        })
        .await;
    assert_eq!(ended.unwrap(), Ended::Finished(()));
    let tokens = tokens.lock().unwrap();
    assert!(tokens.len() == 3 && tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_comes_after_a_loss_is_dropped_and_one_after_a_shutdown_is_kept() {
    let bench = Bench::new();
    bench.faults(|call| {
        if call.operation == Operation::Renew { Fault::Fail(StoreErrorKind::Unavailable) } else { Fault::None }
    });
    let election = bench.builder("a").once().build().unwrap();
    let obeys = |lead: Leadership| async move {
        lead.stopping().await;
        "stopped by itself"
    };
    assert!(matches!(
        election.run_as_leader(CancellationToken::new(), obeys).await.unwrap(),
        Ended::Lost(LossReason::Expired { .. })
    ));
    bench.heal();
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let renewed = bench.calls(Operation::Renew, "a").len();
    let work = tokio::spawn(async move { election.run_as_leader(stop, obeys).await });
    bench.until(|| bench.calls(Operation::Renew, "a").len() > renewed).await;
    shutdown.cancel();
    assert_eq!(work.await.unwrap().unwrap(), Ended::Finished("stopped by itself"));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_comes_after_the_deadline_is_dropped_though_nobody_noticed_the_deadline_yet() {
    let bench = Bench::new();
    let election = bench.builder("a").once().build().unwrap();
    let clock = bench.clock.clone();
    let ended = election
        .run_as_leader(CancellationToken::new(), |_| async {
            // The whole process was frozen: no timer fired, no task ran.
            clock.advance(20 * S);
            "too late"
        })
        .await;
    assert!(matches!(ended.unwrap(), Ended::Lost(LossReason::Expired { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_work_is_its_result() {
    let bench = Bench::new();
    let ended =
        bench.election("a").run_as_leader(CancellationToken::new(), |_| async { Err::<(), _>("no disk") }).await;
    assert_eq!(ended.unwrap(), Ended::Finished(Err("no disk")));
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_work_gives_the_lease_back_and_goes_on_up() {
    for early in [true, false] {
        let bench = Bench::new();
        let election = bench.election("a");
        let work = tokio::spawn(async move {
            election
                .run_as_leader(CancellationToken::new(), |_| {
                    assert!(!early, "before the future");
                    async { panic!("in the future") }
                })
                .await
                .map(|_: Ended<()>| ())
        });
        assert!(work.await.unwrap_err().is_panic());
        assert_eq!(bench.record().await, None, "the lease was not given back");
    }
}

/// K07.
#[tokio::test(start_paused = true)]
async fn tasks_of_a_term_are_cut_off_with_it_and_the_release_waits_for_them() {
    struct Slow(Bench);
    impl Drop for Slow {
        fn drop(&mut self) {
            assert_eq!(self.0.calls(Operation::Release, "a").len(), 0, "released before the task had ended");
        }
    }
    let bench = Bench::new();
    let lead = bench.election("a").campaign().await.unwrap();
    let slow = Slow(bench.clone());
    let task = lead.spawn(async move {
        let _slow = slow;
        pending::<()>().await;
    });
    tokio::task::yield_now().await;
    lead.resign().await.unwrap();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(bench.record().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_leadership_is_given_up() {
    let bench = Bench::new();
    drop(bench.election("a").campaign().await.unwrap());
    bench.until_free().await;
    assert_eq!(bench.calls(Operation::Release, "a").len(), 1);
}

/// K06.
#[tokio::test(start_paused = true)]
async fn a_release_that_is_not_confirmed_is_an_error_in_time() {
    let bench = Bench::new();
    let lead = bench.election("a").campaign().await.unwrap();
    bench.faults(|_| Fault::LoseRequest);
    let asked = bench.now();
    let error = lead.resign().await.unwrap_err();
    assert!(matches!(&error, ElectionError::Store(error) if error.kind() == StoreErrorKind::Unknown), "{error}");
    assert!(bench.now() - asked <= 3 * S + Duration::from_millis(2));
}

#[tokio::test(start_paused = true)]
async fn a_permanent_refusal_ends_the_campaign_with_the_stores_own_error() {
    let bench = Bench::new();
    bench.faults(|_| Fault::Fail(StoreErrorKind::Denied));
    let ended = bench.election("a").run_as_leader(CancellationToken::new(), |_| async {}).await;
    let Err(ElectionError::Store(error)) = ended else { panic!("{ended:?}") };
    assert_eq!((error.kind(), error.operation()), (StoreErrorKind::Denied, Operation::Acquire));
    assert!(bench.election("a").campaign().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_host_that_slept_past_the_deadline_has_lost_and_says_why() {
    let bench = Bench::new();
    let lead = bench.election("a").campaign().await.unwrap();
    bench.clock.suspend(20 * S);
    assert!(lead.check().is_err(), "before any timer fired");
    assert_eq!(lead.lost().await, LossReason::Suspended { slept: 20 * S });
}

/// K16.
#[tokio::test(start_paused = true)]
async fn shutdown_before_leading_ends_the_candidacy_and_never_calls_the_work() {
    let bench = Bench::new();
    let leader = bench.election("leader").campaign().await.unwrap();
    let shutdown = CancellationToken::new();
    let (stop, election) = (shutdown.clone(), bench.election("a"));
    let waiting = tokio::spawn(async move {
        election.run_as_leader(stop, |_| async { panic!("the work of a follower was called") }).await
    });
    bench.until(|| !bench.calls(Operation::Acquire, "a").is_empty()).await;
    shutdown.cancel();
    assert_eq!(waiting.await.unwrap().unwrap(), Ended::<()>::Shutdown);
    let bids = bench.calls(Operation::Acquire, "a").len();
    bench.pass(3 * TTL).await;
    assert_eq!(bench.calls(Operation::Acquire, "a").len(), bids);
    drop(leader);
    let token = CancellationToken::new();
    token.cancel();
    assert_eq!(bench.election("b").run_as_leader(token, |_| async {}).await.unwrap(), Ended::Shutdown);
    assert_eq!(bench.calls(Operation::Acquire, "b").len(), 0);
}

/// K11.
#[tokio::test(start_paused = true)]
async fn a_bid_under_way_at_shutdown_leaves_no_record() {
    let bench = Bench::new();
    bench.faults(|call| if call.operation == Operation::Acquire { Fault::LoseReply } else { Fault::None });
    let shutdown = CancellationToken::new();
    let (stop, election) = (shutdown.clone(), bench.election("a"));
    let waiting = tokio::spawn(async move { election.run_as_leader(stop, |_| async {}).await });
    bench.until(|| !bench.calls(Operation::Acquire, "a").is_empty()).await;
    assert!(bench.record().await.is_some());
    shutdown.cancel();
    assert_eq!(waiting.await.unwrap().unwrap(), Ended::Shutdown);
    assert_eq!(bench.record().await, None, "the lease that the lost answer was about was not given back");
}

#[tokio::test(start_paused = true)]
async fn a_lease_held_on_finish_runs_out_by_itself() {
    let bench = Bench::new();
    let election = bench.builder("a").on_finish(OnFinish::Hold).build().unwrap();
    assert_eq!(election.run_as_leader(CancellationToken::new(), |_| async {}).await.unwrap(), Ended::Finished(()));
    assert!(bench.record().await.is_some());
    bench.pass(TTL).await;
    assert_eq!(bench.record().await, None);
}

/// K08.
#[tokio::test(start_paused = true)]
async fn the_next_candidate_leads_at_once_after_a_graceful_stop_and_within_the_ttl_after_a_crash() {
    let bench = Bench::new();
    let first = bench.election("first").campaign().await.unwrap();
    let next = bench.election("next");
    let waiting = tokio::spawn(async move { next.campaign().await.unwrap() });
    bench.pass(20 * S).await;
    let released = bench.now();
    first.resign().await.unwrap();
    let second = waiting.await.unwrap();
    assert!(bench.now() - released < Duration::from_millis(50), "{:?}", bench.now() - released);

    // A crash: the process is gone, and nothing of it reaches the store any more.
    bench.faults(|call| match &call.candidate {
        Some(candidate) if candidate.label() == "next" => Fault::LoseRequest,
        _ => Fault::None,
    });
    let crashed = bench.now();
    let third = bench.election("third").campaign().await.unwrap();
    assert!(bench.now() - crashed <= TTL + Duration::from_millis(50), "{:?}", bench.now() - crashed);
    assert!(second.check().is_err() && third.check().is_ok());
}

#[tokio::test(start_paused = true)]
async fn standings_and_observers_tell_the_same_story() {
    let bench = Bench::new();
    let election = bench.builder("a").payload("10.0.0.7:8080").build().unwrap();
    let mut standings = election.standings();
    let mut leaders = observe_on(bench.store.clone(), bench::NAME, bench.clock.clone()).unwrap();
    assert_eq!(standings.next().await, Some(Standing::Following));
    assert_eq!(leaders.next().await.unwrap().unwrap(), LeaderChange::Vacant);
    let lead = election.campaign().await.unwrap();
    assert!(matches!(standings.next().await, Some(Standing::Leading { token, .. }) if token == lead.token()));
    let Some(Ok(LeaderChange::Elected(record))) = leaders.next().await else { panic!("nobody was elected") };
    assert_eq!((record.holder.label(), record.payload.as_str()), ("a", "10.0.0.7:8080"));
    bench.store.interrupt_watches();
    assert_eq!(leaders.next().await.unwrap().unwrap(), LeaderChange::Resync);
    bench.faults(|_| Fault::Fail(StoreErrorKind::Unavailable));
    bench.clock.advance(14 * S + S * 7 / 10);
    assert!(!matches!(election.standing(), Standing::Leading { .. }), "a starved driver may be late, never wrong");
    assert!(leaders.next().await.unwrap().is_err(), "trouble is told");
    bench.heal();
    assert_eq!(leaders.next().await.unwrap().unwrap(), LeaderChange::Vacant, "and the stream goes on");
}

/// K01.
#[test]
fn work_that_blocks_its_thread_past_the_deadline_is_reported_and_knows_it_itself() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        let bench = Bench::new();
        let election = bench.builder("a").once().build().unwrap();
        let (entered, wait_entered) = mpsc::channel();
        let (leave, wait_leave) = mpsc::channel::<()>();
        let wait_leave = Mutex::new(wait_leave);
        let running = election.clone();
        let work = tokio::spawn(async move {
            running
                .run_as_leader(CancellationToken::new(), move |lead| {
                    entered.send(lead.term()).unwrap();
                    wait_leave.lock().unwrap().recv().unwrap();
                    std::future::ready(lead.check().is_err())
                })
                .await
        });
        let term = tokio::task::spawn_blocking(move || wait_entered.recv().unwrap()).await.unwrap();
        bench.faults(|_| Fault::Fail(StoreErrorKind::Unavailable));
        bench.clock.advance(TTL);
        assert!(term.check().is_err(), "at once, though its thread is blocked");
        term.lost().await;
        while election.overruns() == 0 {
            bench.clock.advance(Duration::from_millis(10));
            tokio::task::yield_now().await;
        }
        leave.send(()).unwrap();
        let ended = work.await.unwrap().unwrap();
        assert!(matches!(ended, Ended::Lost(LossReason::Expired { .. })), "{ended:?}");
    });
}

#[test]
fn work_that_outlives_its_deadline_ends_the_process_if_that_is_the_policy() {
    const CHILD: &str = "TENURE_TEST_OVERRUN_CHILD";
    if std::env::var_os(CHILD).is_none() {
        let test = "work_that_outlives_its_deadline_ends_the_process_if_that_is_the_policy";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(child.status.signal(), Some(6), "not aborted: {child:?}");
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        let bench = Bench::new();
        let election = bench.builder("a").overrun_policy(OverrunPolicy::Abort).build().unwrap();
        let (entered, wait_entered) = mpsc::channel();
        tokio::spawn(async move {
            let _ = election
                .run_as_leader(CancellationToken::new(), move |_| {
                    entered.send(()).unwrap();
                    std::thread::park();
                    pending::<()>()
                })
                .await;
        });
        tokio::task::spawn_blocking(move || wait_entered.recv().unwrap()).await.unwrap();
        bench.faults(|_| Fault::Fail(StoreErrorKind::Unavailable));
        bench.clock.advance(TTL);
        // The clock moves on until the process is gone; the parent sees to the bound.
        for _ in 0..1_000_000 {
            bench.clock.advance(Duration::from_millis(10));
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn values_that_are_shared_can_be_shared() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Election>();
    shared::<Leadership>();
    shared::<tenure_core::Term>();
    shared::<ElectionError>();
    fn future<T: Send>(_: &T) {}
    let election = Bench::new().election("a");
    let campaign: std::pin::Pin<Box<dyn Future<Output = _>>> = {
        let campaign = election.campaign();
        future(&campaign);
        Box::pin(campaign)
    };
    drop(campaign);
}

#[test]
fn what_cannot_work_is_refused_when_it_is_built() {
    let bench = Bench::new();
    let refusal = |builder: tenure_core::ElectionBuilder| builder.build().unwrap_err().to_string();
    assert_eq!(refusal(Election::builder("", bench.store.clone())), "lease name is empty: 1 to 200 bytes are allowed");
    assert_eq!(refusal(bench.builder("")), "candidate label is empty: 1 to 200 bytes are allowed");
    assert_eq!(
        refusal(bench.builder("a").payload("x".repeat(1025))),
        "payload has 1025 bytes: at most 1024 bytes are allowed"
    );
    let long = Timing::with_ttl(Duration::from_secs(10 * 365 * 86_400)).unwrap();
    assert!(bench.builder("a").timing(long).build().is_ok());
}
