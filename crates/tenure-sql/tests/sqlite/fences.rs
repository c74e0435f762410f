//! The fence beside the data.

use tenure_core::FencingToken;
use tenure_sql::sqlx::Connection;
use tenure_sql::{SqliteFence, TableName};

use crate::bench::{Bench, run};

/// K19.
#[tokio::test]
async fn a_later_term_shuts_the_earlier_one_out() {
    let bench = Bench::new();
    let fence = SqliteFence::new(&TableName::fence());
    let (mut old, mut new) = (bench.raw().await, bench.raw().await);
    run(&mut old, "CREATE TABLE books (text)").await;
    run(&mut old, fence.ddl()).await;
    let token = FencingToken;
    for (number, admitted) in [(5, true), (5, true), (7, true), (6, false), (5, false), (7, true)] {
        let connection = if number == 7 { &mut new } else { &mut old };
        let mut transaction = connection.begin().await.unwrap();
        assert_eq!(fence.admit(&mut transaction, "books", token(number)).await.unwrap(), admitted, "{number}");
        if admitted {
            run(&mut transaction, &format!("INSERT INTO books VALUES ({number})")).await;
            transaction.commit().await.unwrap();
        }
    }
    assert!(fence.admit(&mut old, "other books", token(1)).await.unwrap());
    assert!(fence.admit(&mut old, "books", token(u64::MAX)).await.is_err());
    assert_eq!(fence.statements().count(), 1);
}
