//! A service that has a pool of SQLite already leads on the same database, and fences what it writes there.
//!
//! ```text
//! cargo run -p tenure-sql --features sqlite --example sqlite_own_pool -- sqlite:///tmp/app.db?mode=rwc
//! ```

use std::error::Error;

use tenure_core::{CancellationToken, Election, Leadership};
use tenure_sql::sqlx::{self, SqlitePool};
use tenure_sql::{SqliteFence, SqliteStore, TableName};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "sqlite:app.db?mode=rwc".to_owned());
    let pool = SqlitePool::connect(&url).await?;
    let fence = SqliteFence::new(&TableName::fence());
    sqlx::raw_sql(sqlx::AssertSqlSafe(fence.ddl().to_owned())).execute(&pool).await?;
    sqlx::raw_sql("CREATE TABLE IF NOT EXISTS tenure_example (total BIGINT NOT NULL)").execute(&pool).await?;

    // The pool's address and login are used, not its connections: renewals never wait for the service's queries.
    let store = SqliteStore::new(pool.clone());
    store.ensure_schema().await?;
    let election = Election::builder("tenure-example-own", store).build()?;
    let work = |lead| work(lead, &pool, &fence);
    println!("{:?}", election.run_as_leader(CancellationToken::new(), work).await?);
    Ok(())
}

/// Writes a total that no earlier leader can overwrite any more.
async fn work(lead: Leadership, pool: &SqlitePool, fence: &SqliteFence) -> Result<bool, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    if !fence.admit(&mut transaction, "totals", lead.token()).await? {
        // A later leader has written already; dropping the transaction rolls it back.
        return Ok(false);
    }
    sqlx::query("INSERT INTO tenure_example VALUES (1)").execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(true)
}
