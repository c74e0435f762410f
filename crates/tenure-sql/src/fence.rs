//! Fencing tokens, checked where the writes go.

use std::fmt;
use std::marker::PhantomData;

use async_trait::async_trait;
use sqlx::SqlStr;
use tenure_core::FencingToken;

use crate::TableName;
use crate::text::shared;

/// Lets the writes of a term into a database, and refuses those of earlier terms for good.
///
/// No lease can stop a leader that was paused in the middle of a write. A table beside the data can: it remembers the
/// largest token that has written to a *resource* (any name that the application gives to what its leader guards), and
/// each write asks it **in its own transaction**, before it writes:
///
/// ```no_run
/// # #[cfg(feature = "postgres")]
/// # mod example {
/// use tenure_core::Leadership;
/// use tenure_sql::sqlx::{self, PgPool};
/// use tenure_sql::{PostgresFence, TableName};
///
/// async fn close_the_books(lead: &Leadership, pool: &PgPool) -> Result<(), Box<dyn std::error::Error>> {
///     let fence = PostgresFence::new(&TableName::fence());
///     let mut transaction = pool.begin().await?;
///     if !fence.admit(&mut transaction, "books", lead.token()).await? {
///         return Err("a later leader has written already".into()); // the transaction is rolled back
///     }
///     sqlx::query("UPDATE books SET closed = true").execute(&mut *transaction).await?;
///     transaction.commit().await?;
///     Ok(())
/// }
/// # }
/// ```
///
/// The same token is let through again and again. A new leader calls it once before it *reads* what it will decide on:
/// from then on nothing of an earlier leader can change the data behind its back.
///
/// The table may lie in another database than the leases, and of another kind: tokens are numbers. It must be the one
/// that the data lie in.
pub struct SqlFence<D: Fencing> {
    ddl: String,
    statements: Vec<SqlStr>,
    dialect: PhantomData<fn() -> D>,
}

/// A database that can fence. Sealed: the three dialects of this crate.
#[async_trait]
pub trait Fencing: 'static {
    /// The client's connection; a transaction of the client is one too.
    type Connection: Send;

    #[doc(hidden)]
    const QUOTE: char;
    #[doc(hidden)]
    fn ddl(table: &str) -> String;
    #[doc(hidden)]
    fn statements(table: &str) -> Vec<String>;
    #[doc(hidden)]
    async fn admit(
        statements: &[SqlStr],
        connection: &mut Self::Connection,
        resource: &str,
        token: i64,
    ) -> Result<bool, sqlx::Error>;
}

impl<D: Fencing> SqlFence<D> {
    /// A fence on `table`: [`TableName::fence`], unless there is a reason for another.
    pub fn new(table: &TableName) -> Self {
        let quoted = table.quoted(D::QUOTE);
        let statements = D::statements(&quoted).into_iter().map(shared).collect();
        Self { ddl: D::ddl(&quoted), statements, dialect: PhantomData }
    }

    /// The statement that creates the table.
    pub fn ddl(&self) -> &str {
        &self.ddl
    }

    /// The statements of [`admit`](Self::admit), for those who run them by another client: each row that the last one
    /// returns lets the write through, and none refuses it. Values stand in the order resource, token.
    pub fn statements(&self) -> impl Iterator<Item = &str> {
        self.statements.iter().map(SqlStr::as_str)
    }

    /// Says whether the term `token` may write to `resource`, and refuses all earlier ones from here on. To be called in
    /// the transaction that writes: the row stays locked until it ends, so that no other term comes in between.
    ///
    /// # Errors
    ///
    /// The client's. The transaction should be rolled back then, as with any other statement.
    ///
    /// # Cancel safety
    ///
    /// As for every statement of the client: the transaction should be rolled back.
    pub async fn admit(
        &self,
        transaction: &mut D::Connection,
        resource: &str,
        token: FencingToken,
    ) -> Result<bool, sqlx::Error> {
        let token = i64::try_from(token.value()).map_err(|error| sqlx::Error::Encode(error.into()))?;
        D::admit(&self.statements, transaction, resource, token).await
    }
}

impl<D: Fencing> fmt::Debug for SqlFence<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlFence").field("statements", &self.statements).finish_non_exhaustive()
    }
}

/// PostgreSQL and SQLite say it in the same words; only their connections are of different types.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
macro_rules! fenced_by_an_upsert {
    ($dialect:ty, $connection:ty) => {
        #[async_trait]
        impl Fencing for $dialect {
            type Connection = $connection;

            const QUOTE: char = '"';

            fn ddl(table: &str) -> String {
                format!("CREATE TABLE IF NOT EXISTS {table} (resource text PRIMARY KEY, token bigint NOT NULL);\n")
            }

            fn statements(table: &str) -> Vec<String> {
                vec![format!(
                    "INSERT INTO {table} AS fence (resource, token) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token
RETURNING token"
                )]
            }

            async fn admit(
                statements: &[SqlStr],
                connection: &mut $connection,
                resource: &str,
                token: i64,
            ) -> Result<bool, sqlx::Error> {
                let query = sqlx::query(statements[0].clone()).bind(resource).bind(token);
                Ok(!query.fetch_all(connection).await?.is_empty())
            }
        }
    };
}

#[cfg(feature = "postgres")]
fenced_by_an_upsert!(crate::Postgres, sqlx::PgConnection);
#[cfg(feature = "sqlite")]
fenced_by_an_upsert!(crate::Sqlite, sqlx::SqliteConnection);

/// MySQL cannot tell in one statement: the first raises the token and locks the row, the second says whose it is.
#[cfg(feature = "mysql")]
#[async_trait]
impl Fencing for crate::MySql {
    type Connection = sqlx::MySqlConnection;

    const QUOTE: char = '`';

    fn ddl(table: &str) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS {table} (resource VARBINARY(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL) \
             ENGINE = InnoDB;\n"
        )
    }

    fn statements(table: &str) -> Vec<String> {
        vec![
            format!(
                "INSERT INTO {table} (resource, token) VALUES (?, ?)
ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))"
            ),
            format!("SELECT token FROM {table} WHERE resource = ? AND token = ? FOR UPDATE"),
        ]
    }

    async fn admit(
        statements: &[SqlStr],
        connection: &mut sqlx::MySqlConnection,
        resource: &str,
        token: i64,
    ) -> Result<bool, sqlx::Error> {
        let query = |n: usize| sqlx::query(statements[n].clone()).bind(resource.as_bytes()).bind(token);
        query(0).execute(&mut *connection).await?;
        Ok(!query(1).fetch_all(connection).await?.is_empty())
    }
}
