use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures::StreamExt;
use sqlx::sqlite::SqliteConnectOptions;
use tenure_core::clock::Moment;
use tenure_core::{
    Acquired, CandidateId, FencingToken, Label, LeaseStore, LossReason, Payload, Released, Renewed, WakeUp,
};

use super::*;
use crate::SqlStore;

const TTL: Duration = Duration::from_secs(10);

/// A clock that moves when told.
#[derive(Clone, Debug)]
struct HandClock(Arc<AtomicU64>);

impl HandClock {
    fn pass(&self, d: Duration) {
        self.0.fetch_add(u64::try_from(d.as_micros()).unwrap(), Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for HandClock {
    fn now(&self) -> Moment {
        Moment::new(Duration::from_micros(self.0.load(Ordering::Relaxed)))
    }

    fn suspended(&self) -> Duration {
        Duration::ZERO
    }

    async fn sleep_until(&self, _: Moment) {
        std::future::pending().await
    }
}

struct Bench {
    clock: HandClock,
    store: SqliteStore,
    name: LeaseName,
    directory: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = HandClock(Arc::new(AtomicU64::new(3_600_000_000)));
        let store = store(&directory, &clock, host("boot-1", "time:[1]"));
        store.prepare().await.unwrap();
        Self { clock, store, name: LeaseName::new("nightly").unwrap(), directory }
    }

    /// The same file, seen from another boot or time namespace.
    fn seen_from(&self, boot_id: &str, time_namespace: &str) -> SqliteStore {
        store(&self.directory, &self.clock, host(boot_id, time_namespace))
    }

    fn bid(&self, nonce: u128) -> Bid {
        Bid::new(self.name.clone(), CandidateId::with_nonce(&Label::new("worker").unwrap(), nonce), TTL)
    }

    async fn granted(&self, bid: &Bid) -> Grant {
        granted(&self.store, bid).await
    }

    async fn remaining(&self) -> Duration {
        self.store.read(&self.name).await.unwrap().unwrap().remaining
    }

    async fn raw(&self) -> SqliteConnection {
        SqliteConnectOptions::new().filename(self.directory.path().join("x.db")).connect().await.unwrap()
    }

    /// Every byte of the row.
    async fn row(&self) -> String {
        let sql = "SELECT format('%s|%s|%d|%d|%d|%d|%s|%d|%s|%s', name, candidate, token, expires_at, ttl, acquired_at, \
                   payload, after_release, boot_id, time_namespace) FROM tenure_leases";
        sqlx::query_scalar(sql).fetch_one(&mut self.raw().await).await.unwrap()
    }
}

fn host(boot_id: &str, time_namespace: &str) -> Host {
    Host { boot_id: boot_id.to_owned(), time_namespace: time_namespace.to_owned() }
}

fn store(directory: &tempfile::TempDir, clock: &HandClock, host: Host) -> SqliteStore {
    let config = SqlConfig::default();
    let options = SqliteConnectOptions::new().filename(directory.path().join("x.db"));
    let mut dialect = Sqlite::new(options, &config, clock.clone());
    dialect.host = Ok(host);
    SqlStore::with_dialect(dialect, &config)
}

async fn granted(store: &SqliteStore, bid: &Bid) -> Grant {
    match store.try_acquire(bid).await.unwrap() {
        Acquired::Granted(grant) => grant,
        Acquired::Held(record) => panic!("held by {record:?}"),
    }
}

#[tokio::test]
async fn a_repeated_bid_is_the_same_grant_and_restarts_the_ttl() {
    let bench = Bench::new().await;
    let first = bench.granted(&bench.bid(1)).await;
    assert_eq!(first.token, FencingToken(1));
    bench.clock.pass(TTL / 2);
    let again = bench.granted(&bench.bid(1).with_payload(Payload::new("10.0.0.7").unwrap())).await;
    assert_eq!((again.token, again.after_release), (first.token, first.after_release));
    let record = bench.store.read(&bench.name).await.unwrap().unwrap();
    assert_eq!((record.remaining, record.payload.as_str()), (TTL, "10.0.0.7"));
}

#[tokio::test]
async fn a_held_lease_is_shown_with_its_holder_and_time_left() {
    let bench = Bench::new().await;
    let first = bench.granted(&bench.bid(1).with_payload(Payload::new("10.0.0.7").unwrap())).await;
    bench.clock.pass(TTL / 4);
    let Acquired::Held(record) = bench.store.try_acquire(&bench.bid(2)).await.unwrap() else { panic!("granted twice") };
    assert_eq!((&record.holder, record.token), (&first.candidate, first.token));
    assert_eq!((record.remaining, record.ttl, record.payload.as_str()), (TTL * 3 / 4, TTL, "10.0.0.7"));
}

#[tokio::test]
async fn tokens_rise_over_expiry_and_release_and_survive_a_new_client() {
    let bench = Bench::new().await;
    let a = bench.granted(&bench.bid(1)).await;
    bench.clock.pass(TTL);
    let b = bench.granted(&bench.bid(1)).await;
    assert_eq!(bench.store.release(&b).await.unwrap(), Released::Freed);
    assert_eq!(bench.store.release(&b).await.unwrap(), Released::NotHeld);
    assert_eq!(bench.store.read(&bench.name).await.unwrap(), None);
    let c = granted(&bench.seen_from("boot-1", "time:[1]"), &bench.bid(2)).await;
    assert_eq!((a.token, b.token, c.token), (FencingToken(1), FencingToken(2), FencingToken(3)));
    assert!(a.after_release && !b.after_release && c.after_release);
}

#[tokio::test]
async fn a_renewal_extends_by_the_full_ttl_and_keeps_the_token() {
    let bench = Bench::new().await;
    let grant = bench.granted(&bench.bid(1)).await;
    for _ in 0..3 {
        bench.clock.pass(TTL * 9 / 10);
        assert_eq!(bench.store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
        assert_eq!(bench.remaining().await, TTL);
    }
    assert_eq!(bench.store.read(&bench.name).await.unwrap().unwrap().token, grant.token);
}

#[tokio::test]
async fn a_renewal_never_revives_creates_or_steals() {
    let bench = Bench::new().await;
    let a = bench.granted(&bench.bid(1)).await;
    bench.clock.pass(TTL);
    assert_eq!(bench.store.renew(&a).await.unwrap(), Renewed::Lost(LossReason::EXPIRED));
    let b = bench.granted(&bench.bid(2)).await;
    let by = Some(b.candidate.clone());
    assert_eq!(bench.store.renew(&a).await.unwrap(), Renewed::Lost(LossReason::Superseded { by }));
    let _ = bench.store.release(&b).await.unwrap();
    assert_eq!(bench.store.renew(&b).await.unwrap(), Renewed::Lost(LossReason::Removed));
    sqlx::query("DELETE FROM tenure_leases").execute(&mut bench.raw().await).await.unwrap();
    assert_eq!(bench.store.renew(&b).await.unwrap(), Renewed::Lost(LossReason::Removed));
    assert_eq!(bench.store.read(&bench.name).await.unwrap(), None);
}

/// K05.
#[tokio::test]
async fn a_refused_renewal_or_release_changes_not_a_byte() {
    let bench = Bench::new().await;
    let old = bench.granted(&bench.bid(1)).await;
    bench.clock.pass(TTL);
    let held = bench.granted(&bench.bid(2).with_payload(Payload::new("here").unwrap())).await;
    let before = bench.row().await;
    bench.clock.pass(TTL / 10);
    let mut stranger = held.clone();
    stranger.candidate = bench.bid(3).candidate;
    let mut earlier = held.clone();
    earlier.token = FencingToken(held.token.value() - 1);
    let mut later = held.clone();
    later.token = FencingToken(held.token.value() + 1);
    for wrong in [&old, &stranger, &earlier, &later] {
        assert!(matches!(bench.store.renew(wrong).await.unwrap(), Renewed::Lost(_)));
        assert_eq!(bench.store.release(wrong).await.unwrap(), Released::NotHeld);
    }
    assert!(matches!(bench.store.try_acquire(&bench.bid(4)).await.unwrap(), Acquired::Held(_)));
    assert_eq!(bench.row().await, before);
    bench.clock.pass(TTL);
    let expired = bench.row().await;
    assert!(matches!(bench.store.renew(&held).await.unwrap(), Renewed::Lost(_)));
    assert_eq!(bench.store.release(&held).await.unwrap(), Released::NotHeld);
    assert_eq!(bench.row().await, expired);
}

#[tokio::test]
async fn a_late_copy_never_moves_an_expiry_back() {
    let bench = Bench::new().await;
    let grant = bench.granted(&bench.bid(1)).await;
    let mut short = bench.bid(1);
    short.ttl = TTL / 10;
    assert_eq!(bench.granted(&short).await.token, grant.token);
    assert_eq!(bench.remaining().await, TTL);
    let renewal = grant.clone().with_ttl(TTL / 10);
    assert_eq!(bench.store.renew(&renewal).await.unwrap(), Renewed::Extended(renewal.clone()));
    assert_eq!(bench.remaining().await, TTL);
}

#[tokio::test]
async fn a_reboot_frees_the_lease_and_keeps_the_counter() {
    let bench = Bench::new().await;
    let before = bench.granted(&bench.bid(1)).await;
    let rebooted = bench.seen_from("boot-2", "time:[1]");
    assert_eq!(rebooted.read(&bench.name).await.unwrap(), None);
    assert_eq!(rebooted.renew(&before).await.unwrap(), Renewed::Lost(LossReason::EXPIRED));
    assert_eq!(rebooted.release(&before).await.unwrap(), Released::NotHeld);
    let after = granted(&rebooted, &bench.bid(2)).await;
    assert_eq!(after.token, FencingToken(2));
    // The namespace of another boot means nothing.
    assert_eq!(granted(&bench.seen_from("boot-3", "time:[9]"), &bench.bid(3)).await.token, FencingToken(3));
}

#[tokio::test]
async fn a_lease_of_another_time_namespace_is_neither_judged_nor_taken_over() {
    let bench = Bench::new().await;
    let grant = bench.granted(&bench.bid(1)).await;
    bench.clock.pass(TTL * 100);
    let before = bench.row().await;
    let elsewhere = bench.seen_from("boot-1", "time:[2]");
    let bid = elsewhere.try_acquire(&bench.bid(2)).await.unwrap_err();
    assert_eq!(bid.kind(), StoreErrorKind::Unsupported);
    assert_eq!(
        bid.to_string(),
        "sqlite acquire of lease \"nightly\": not supported: it is held from another time namespace of this host, \
         whose clock cannot be compared with this one's: run all candidates in one time namespace, or set candidate to \
         null in its row once the holder is gone"
    );
    assert_eq!(elsewhere.read(&bench.name).await.unwrap_err().kind(), StoreErrorKind::Unsupported);
    assert!(matches!(elsewhere.renew(&grant).await.unwrap(), Renewed::Lost(_)));
    assert_eq!(elsewhere.release(&grant).await.unwrap(), Released::NotHeld);
    let listed: Vec<_> = elsewhere.list().collect().await;
    assert_eq!(listed[0].as_ref().unwrap_err().lease(), Some(&bench.name));
    assert_eq!(bench.row().await, before);
    // Free is free, whoever released it.
    let next = bench.granted(&bench.bid(2)).await;
    let _ = bench.store.release(&next).await.unwrap();
    assert_eq!(elsewhere.read(&bench.name).await.unwrap(), None);
    assert_eq!(granted(&elsewhere, &bench.bid(3)).await.token, FencingToken(next.token.value() + 1));
}

#[tokio::test]
async fn a_host_that_does_not_tell_its_boot_is_refused() {
    let bench = Bench::new().await;
    let options = SqliteConnectOptions::new().filename(bench.directory.path().join("x.db"));
    let mut dialect = Sqlite::new(options, &SqlConfig::default(), bench.clock.clone());
    dialect.host = Err(Verdict::new(StoreErrorKind::Unsupported, "mount /proc"));
    let store: SqliteStore = SqlStore::with_dialect(dialect, &SqlConfig::default());
    let error = store.try_acquire(&bench.bid(1)).await.unwrap_err();
    assert_eq!((error.kind(), error.detail()), (StoreErrorKind::Unsupported, Some("mount /proc")));
}

#[tokio::test]
async fn every_name_is_its_own_lease() {
    let bench = Bench::new().await;
    let names = ["a", "a/b", "{a}", "A", "a ", " a", "%61", "a%", "a_", "'; drop table tenure_leases; --", "日本", "é"];
    for (nonce, text) in names.iter().enumerate() {
        let mut bid = bench.bid(nonce as u128);
        bid.name = LeaseName::new(*text).unwrap();
        assert_eq!(bench.granted(&bid).await.token, FencingToken(1), "{text:?}");
    }
    let mut listed: Vec<_> = bench.store.list().map(|record| record.unwrap().name.to_string()).collect().await;
    let mut names: Vec<_> = names.iter().map(ToString::to_string).collect();
    listed.sort();
    names.sort();
    assert_eq!(listed, names);
}

#[tokio::test]
async fn a_list_goes_over_pages_and_leaves_free_leases_out() {
    let bench = Bench::new().await;
    let mut raw = bench.raw().await;
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1203)
        INSERT INTO tenure_leases
        SELECT printf('lease-%04d', i), CASE WHEN i % 3 THEN 'w_' || i END, i, 3600000000 + (i % 2) * 1000, 1000, 0, '', 0,
            'boot-1', 'time:[1]' FROM n";
    sqlx::query(sql).execute(&mut raw).await.unwrap();
    let listed: Vec<_> = bench.store.list().map(Result::unwrap).collect().await;
    assert_eq!(listed.len(), (1..=1203).filter(|i| i % 3 != 0 && i % 2 != 0).count());
    assert!(listed.iter().all(|record| record.remaining == Duration::from_millis(1)));
}

#[tokio::test]
async fn a_row_of_another_writer_is_reported_and_never_taken_over() {
    let bench = Bench::new().await;
    let grant = bench.granted(&bench.bid(1)).await;
    sqlx::query("UPDATE tenure_leases SET payload = char(0)").execute(&mut bench.raw().await).await.unwrap();
    let before = bench.row().await;
    for error in
        [bench.store.read(&bench.name).await.unwrap_err(), bench.store.try_acquire(&bench.bid(2)).await.unwrap_err()]
    {
        assert_eq!((error.kind(), error.lease()), (StoreErrorKind::Malformed, Some(&bench.name)));
        assert!(error.to_string().contains("was not written by tenure (payload holds the character U+0000"), "{error}");
    }
    let mut stranger = grant.clone();
    stranger.token = FencingToken(9);
    assert_eq!(bench.store.renew(&stranger).await.unwrap(), Renewed::Lost(LossReason::Malformed));
    assert_eq!(bench.row().await, before);
}

#[tokio::test]
async fn a_ttl_that_cannot_be_kept_is_refused_before_anything_is_sent() {
    let bench = Bench::new().await;
    for ttl in [Duration::ZERO, Duration::from_nanos(1_000_500), Duration::from_secs(u64::MAX / 4)] {
        let mut bid = bench.bid(1);
        bid.ttl = ttl;
        assert_eq!(bench.store.try_acquire(&bid).await.unwrap_err().kind(), StoreErrorKind::Invalid);
    }
    assert_eq!(bench.store.read(&bench.name).await.unwrap(), None);
}

#[tokio::test]
async fn a_watch_wakes_once_at_first_and_then_for_changes_only() {
    let bench = Bench::new().await;
    let mut watch = bench.store.watch(&bench.name);
    assert_eq!(next(&mut watch).await, Some(WakeUp::Changed));
    let grant = bench.granted(&bench.bid(1)).await;
    assert_eq!(next(&mut watch).await, Some(WakeUp::Changed));
    for _ in 0..20 {
        assert!(matches!(bench.store.renew(&grant).await.unwrap(), Renewed::Extended(_)));
    }
    let mut other = bench.bid(7);
    other.name = LeaseName::new("other").unwrap();
    bench.granted(&other).await;
    assert!(tokio::time::timeout(Duration::from_millis(300), watch.next()).await.is_err(), "a renewal woke");
    let _ = bench.store.release(&grant).await.unwrap();
    assert_eq!(next(&mut watch).await, Some(WakeUp::Changed));
}

async fn next(watch: &mut futures::stream::BoxStream<'static, WakeUp>) -> Option<WakeUp> {
    tokio::time::timeout(Duration::from_secs(5), watch.next()).await.expect("a wake-up within 5 s")
}

#[tokio::test]
async fn the_task_of_the_watches_ends_with_the_last_of_them() {
    let bench = Bench::new().await;
    let (mut first, second) = (bench.store.watch(&bench.name), bench.store.watch(&bench.name));
    next(&mut first).await;
    drop((first, second));
    let weak = Arc::downgrade(bench.store.leases());
    let Bench { store, directory, .. } = bench;
    drop(store);
    let gone = async {
        while weak.strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.expect("nothing keeps the store");
    drop(directory);
}
