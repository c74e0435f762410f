//! The fence beside the data.

use std::time::Duration;

use tenure_core::FencingToken;
use tenure_sql::sqlx::Connection;
use tenure_sql::{MySqlFence, PostgresFence, TableName};

use crate::bench::PgBench;
use crate::my_bench::MyBench;

const TRIES: [(u64, bool); 6] = [(5, true), (5, true), (7, true), (6, false), (5, false), (7, true)];

/// K19.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_later_term_shuts_the_earlier_one_out_of_postgres() {
    let bench = PgBench::empty().await;
    let fence = PostgresFence::new(&TableName::new(&format!("{}.fence", bench.schema)).unwrap());
    bench.run(fence.ddl()).await;
    let mut raw = bench.raw().await;
    for (number, admitted) in TRIES {
        let mut transaction = raw.begin().await.unwrap();
        assert_eq!(fence.admit(&mut transaction, "books", FencingToken(number)).await.unwrap(), admitted, "{number}");
        transaction.commit().await.unwrap();
    }
    // Whoever was let in keeps later terms waiting until its transaction ends.
    let mut open = raw.begin().await.unwrap();
    assert!(fence.admit(&mut open, "books", FencingToken(7)).await.unwrap());
    let mut later = bench.raw().await;
    let waiting = fence.admit(&mut later, "books", FencingToken(8));
    tokio::pin!(waiting);
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut waiting).await.is_err(), "both were let in at once");
    open.commit().await.unwrap();
    assert!(waiting.await.unwrap());
    bench.done().await;
}

/// K19.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_later_term_shuts_the_earlier_one_out_of_mysql() {
    let bench = MyBench::empty().await;
    let fence = MySqlFence::new(&TableName::fence());
    bench.run(fence.ddl()).await;
    let mut raw = bench.raw().await;
    for (number, admitted) in TRIES {
        let mut transaction = raw.begin().await.unwrap();
        assert_eq!(fence.admit(&mut transaction, "books", FencingToken(number)).await.unwrap(), admitted, "{number}");
        transaction.commit().await.unwrap();
    }
    let mut open = raw.begin().await.unwrap();
    assert!(fence.admit(&mut open, "books", FencingToken(7)).await.unwrap());
    let mut later = bench.raw().await;
    let waiting = fence.admit(&mut later, "books", FencingToken(8));
    tokio::pin!(waiting);
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut waiting).await.is_err(), "both were let in at once");
    open.commit().await.unwrap();
    assert!(waiting.await.unwrap());
    bench.done().await;
}
