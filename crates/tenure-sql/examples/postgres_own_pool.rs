//! A service that has a pool of PostgreSQL already leads on the same database, and fences what it writes there.
//!
//! ```text
//! cargo run -p tenure-sql --features postgres --example postgres_own_pool -- postgres://user:password@127.0.0.1/app
//! ```

use std::error::Error;

use tenure_core::{CancellationToken, Election, Leadership};
use tenure_sql::sqlx::{self, PgPool};
use tenure_sql::{PostgresFence, PostgresStore, TableName};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "postgres://127.0.0.1/postgres".to_owned());
    let pool = PgPool::connect(&url).await?;
    let fence = PostgresFence::new(&TableName::fence());
    sqlx::raw_sql(sqlx::AssertSqlSafe(fence.ddl().to_owned())).execute(&pool).await?;
    sqlx::raw_sql("CREATE TABLE IF NOT EXISTS tenure_example (total BIGINT NOT NULL)").execute(&pool).await?;

    // The pool's address and login are used, not its connections: renewals never wait for the service's queries.
    let store = PostgresStore::new(pool.clone());
    store.ensure_schema().await?;
    let election = Election::builder("tenure-example-own", store).build()?;
    let work = |lead| work(lead, &pool, &fence);
    println!("{:?}", election.run_as_leader(CancellationToken::new(), work).await?);
    Ok(())
}

/// Writes a total that no earlier leader can overwrite any more.
async fn work(lead: Leadership, pool: &PgPool, fence: &PostgresFence) -> Result<bool, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    if !fence.admit(&mut transaction, "totals", lead.token()).await? {
        // A later leader has written already; dropping the transaction rolls it back.
        return Ok(false);
    }
    sqlx::query("INSERT INTO tenure_example VALUES (1)").execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(true)
}
