//! Dropping a future of the paved path at every await: the lease is free soon after, and nothing goes on.

mod bench;

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use bench::{Bench, S, TTL};
use futures::FutureExt;
use tenure_core::{CancellationToken, Operation};

/// Polls `future` so many times, letting the world go on in between, and drops it. Returns whether it was still pending.
async fn drop_after(polls: u32, bench: &Bench, future: impl Future) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        if future.as_mut().now_or_never().is_some() {
            return false;
        }
        bench.pass(S / 1000).await;
    }
    true
}

/// K11.
#[tokio::test(start_paused = true)]
async fn a_dropped_campaign_leaves_no_record_and_no_task() {
    for polls in 0..12 {
        let bench = Bench::new();
        let election = bench.election("a");
        drop_after(polls, &bench, election.campaign()).await;
        bench.until_free().await;
        let calls = bench.calls(Operation::Acquire, "a").len();
        bench.pass(3 * TTL).await;
        assert_eq!(bench.record().await, None, "after {polls} polls");
        assert_eq!(bench.calls(Operation::Acquire, "a").len(), calls, "still bidding after {polls} polls");
        assert_eq!(bench.calls(Operation::Renew, "a").len(), 0, "still renewing after {polls} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_run_drops_the_work_first_and_gives_the_lease_back() {
    struct Working(Arc<AtomicU32>, Bench);
    impl Drop for Working {
        fn drop(&mut self) {
            assert_eq!(self.1.calls(Operation::Release, "a").len(), 0, "released before the work was dropped");
            self.0.fetch_sub(1, SeqCst);
        }
    }
    for polls in 0..12 {
        let (bench, working) = (Bench::new(), Arc::new(AtomicU32::new(0)));
        let election = bench.election("a");
        let run = election.run_as_leader(CancellationToken::new(), |_| {
            working.fetch_add(1, SeqCst);
            let guard = Working(working.clone(), bench.clone());
            async move {
                let _guard = guard;
                pending::<()>().await;
            }
        });
        assert!(drop_after(polls, &bench, run).await);
        assert_eq!(working.load(SeqCst), 0, "the work lives on after {polls} polls");
        bench.until_free().await;
        bench.pass(3 * TTL).await;
        assert_eq!(bench.record().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_resignation_goes_on_in_the_background() {
    for polls in 0..6 {
        let bench = Bench::new();
        let lead = bench.election("a").campaign().await.unwrap();
        drop_after(polls, &bench, lead.resign()).await;
        bench.until_free().await;
        assert_eq!(bench.calls(Operation::Release, "a").len(), 1, "after {polls} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_work_in_its_own_hands_keeps_the_term() {
    let bench = Bench::new();
    let lead = bench.election("a").campaign().await.unwrap();
    for polls in 0..4 {
        assert!(drop_after(polls, &bench, lead.run_until_lost(pending::<()>())).await);
        assert!(lead.check().is_ok());
    }
    assert_eq!(lead.run_until_lost(async { 7 }).await, Ok(7));
}
