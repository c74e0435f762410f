//! A service that has a pool of MySQL or MariaDB already leads on the same database, and fences what it writes there.
//!
//! ```text
//! cargo run -p tenure-sql --features mysql --example mysql_own_pool -- mysql://user:password@127.0.0.1/app
//! ```

use std::error::Error;

use tenure_core::{CancellationToken, Election, Leadership};
use tenure_sql::sqlx::{self, MySqlPool};
use tenure_sql::{MySqlFence, MySqlStore, TableName};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "mysql://root@127.0.0.1/app".to_owned());
    let pool = MySqlPool::connect(&url).await?;
    let fence = MySqlFence::new(&TableName::fence());
    sqlx::raw_sql(sqlx::AssertSqlSafe(fence.ddl().to_owned())).execute(&pool).await?;
    sqlx::raw_sql("CREATE TABLE IF NOT EXISTS tenure_example (total BIGINT NOT NULL)").execute(&pool).await?;

    // The pool's address and login are used, not its connections: renewals never wait for the service's queries.
    let store = MySqlStore::new(pool.clone());
    store.ensure_schema().await?;
    let election = Election::builder("tenure-example-own", store).build()?;
    let work = |lead| work(lead, &pool, &fence);
    println!("{:?}", election.run_as_leader(CancellationToken::new(), work).await?);
    Ok(())
}

/// Writes a total that no earlier leader can overwrite any more.
async fn work(lead: Leadership, pool: &MySqlPool, fence: &MySqlFence) -> Result<bool, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    if !fence.admit(&mut transaction, "totals", lead.token()).await? {
        // A later leader has written already; dropping the transaction rolls it back.
        return Ok(false);
    }
    sqlx::query("INSERT INTO tenure_example VALUES (1)").execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(true)
}
