//! What lies at the path: each mistake is told in words, and nothing foreign is touched.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use futures::StreamExt;
use tenure_core::clock::SystemClock;
use tenure_core::{LeaseStore, LossReason, Renewed, StoreError, StoreErrorKind, StoreUrl};
use tenure_sql::sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use tenure_sql::{SqlConfig, SqliteStore, TableName};

use crate::bench::{Bench, bid, granted, name, run};

async fn connect(url: &str) -> Result<SqliteStore, StoreError> {
    SqliteStore::connect(&StoreUrl::parse(url).unwrap()).await
}

async fn refusal(url: &str) -> (StoreErrorKind, String) {
    let error = connect(url).await.unwrap_err();
    (error.kind(), error.to_string())
}

#[tokio::test]
async fn a_url_opens_a_file_and_creates_what_is_missing() {
    let bench = Bench::new();
    let path = bench.path();
    let absolute = connect(&format!("sqlite://{}", path.display())).await.unwrap();
    let grant = granted(&absolute, &bid("nightly")).await;
    let up = "../".repeat(env::current_dir().unwrap().components().count());
    let relative = connect(&format!("sqlite:{up}{}?timeout=1s", path.display())).await.unwrap();
    assert_eq!(relative.read(&name("nightly")).await.unwrap().unwrap().holder, grant.candidate);
    assert!(absolute.describe().version.is_some_and(|version| version.starts_with("3.")));
}

#[tokio::test]
async fn a_url_of_another_shape_says_what_is_expected() {
    let shape = "sqlite url names a host, which a file has not: write sqlite:///absolute/path.db (three slashes) or \
                 sqlite:relative.db (none)";
    for url in ["sqlite://relative.db", "sqlite://user:canary@host/x.db"] {
        assert_eq!(refusal(url).await, (StoreErrorKind::Invalid, format!("sqlite connect: invalid request: {shape}")));
    }
    for url in ["sqlite:", "sqlite::memory:"] {
        let (kind, text) = refusal(url).await;
        assert_eq!(kind, StoreErrorKind::Invalid);
        assert!(text.contains("names no file that candidates can share: write sqlite:///absolute/path.db"), "{text}");
    }
    assert_eq!(
        refusal("sqlite:x.db?mode=ro").await.1,
        "sqlite connect: invalid request: store url has the parameter \"mode\": sqlite takes table, timeout"
    );
    assert_eq!(
        refusal("sqlite:x.db?table=a.b").await.1,
        "sqlite connect: invalid request: table \"a.b\" names a schema, which sqlite has not: name the table alone"
    );
    assert_eq!(refusal("mysql://h/x").await.0, StoreErrorKind::Invalid);
}

#[tokio::test]
async fn a_missing_directory_and_what_is_no_file_are_named() {
    let bench = Bench::new();
    let at = bench.directory.path().display();
    assert_eq!(
        refusal(&format!("sqlite://{at}/none/x.db")).await,
        (
            StoreErrorKind::Invalid,
            format!(
                "sqlite connect: invalid request: the directory \"{at}/none\" does not exist: create it, or choose \
                 another path"
            )
        )
    );
    assert_eq!(
        refusal(&format!("sqlite://{at}")).await,
        (
            StoreErrorKind::Invalid,
            format!(
                "sqlite connect: invalid request: \"{at}\" is a directory: name a file in it, such as \"{at}/tenure.db\""
            )
        )
    );
    assert_eq!(
        refusal("sqlite:///dev/null").await,
        (
            StoreErrorKind::Invalid,
            "sqlite connect: invalid request: \"/dev/null\" is not a regular file: name one, or a path where none is \
             yet"
            .to_owned()
        )
    );
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_as_it_is() {
    let bench = Bench::new();
    let text = "this is a text, and quite a long one: more than the hundred bytes of a header. ".repeat(20);
    fs::write(bench.path(), &text).unwrap();
    let at = bench.path();
    assert_eq!(
        refusal(&format!("sqlite://{}", at.display())).await,
        (
            StoreErrorKind::Malformed,
            format!(
                "sqlite connect: malformed record: {at:?} is not a sqlite database: choose another path, or move that \
                 file out of the way"
            )
        )
    );
    assert_eq!(fs::read_to_string(&at).unwrap(), text);
}

#[tokio::test]
async fn a_foreign_table_is_not_taken_for_ours() {
    let bench = Bench::new();
    let mut raw = bench.raw().await;
    run(&mut raw, "CREATE TABLE tenure_leases (id INTEGER, name TEXT)").await;
    let (kind, text) = refusal(&format!("sqlite://{}", bench.path().display())).await;
    assert_eq!(kind, StoreErrorKind::Malformed);
    assert_eq!(
        text,
        "sqlite connect: malformed record: the table tenure_leases is not tenure's (no such column: candidate): choose \
         another by the table setting, or move that one out of the way"
    );
    let store = connect(&format!("sqlite://{}?table=ours", bench.path().display())).await.unwrap();
    granted(&store, &bid("nightly")).await;
}

#[tokio::test]
async fn a_missing_table_says_how_to_create_it() {
    let bench = Bench::new();
    drop(bench.raw().await);
    let options = SqliteConnectOptions::new().filename(bench.path());
    let store = SqliteStore::with_options(options, SqlConfig::default(), SystemClock::new());
    let error = store.try_acquire(&bid("nightly")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "sqlite acquire of lease \"nightly\": malformed record: there is no table tenure_leases: create it with \
         ensure_schema, or with what tenure schema prints"
    );
    run(&mut bench.raw().await, &SqliteStore::ddl(&TableName::leases())).await;
    granted(&store, &bid("nightly")).await;
    store.ensure_schema().await.unwrap();
    store.ensure_schema().await.unwrap();
}

#[tokio::test]
async fn a_full_disk_changes_nothing_and_is_told() {
    let bench = Bench::new();
    let held = granted(&bench.open().await, &bid("held")).await;
    let options = SqliteConnectOptions::new().filename(bench.path()).pragma("max_page_count", "3");
    let store = SqliteStore::with_options(options, SqlConfig::default(), SystemClock::new());
    let mut errors = Vec::new();
    for n in 0..200 {
        if let Err(error) = store.try_acquire(&bid(&format!("{n}-{}", "x".repeat(150)))).await {
            errors.push(error);
        }
    }
    let error = errors.first().expect("the disk is full");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    let path = bench.path();
    let told =
        format!("the disk of {path:?}, or the size allowed to it, is full: nothing was changed; free some space");
    assert_eq!(error.detail(), Some(told.as_str()));
    let taken = store.list().count().await;
    assert_eq!(taken, 201 - errors.len());
    assert!(matches!(store.renew(&held).await.unwrap(), Renewed::Extended(_)));
}

#[tokio::test]
async fn a_database_that_was_removed_or_replaced_is_noticed() {
    let bench = Bench::new();
    let store = bench.open().await;
    let grant = granted(&store, &bid("nightly")).await;
    let remove = || {
        for file in ["x.db", "x.db-wal", "x.db-shm"] {
            fs::remove_file(bench.directory.path().join(file)).unwrap();
        }
    };
    remove();
    let error = store.renew(&grant).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Malformed);
    assert!(error.to_string().ends_with("does not exist: ensure_schema, or tenure schema, creates it"), "{error}");
    let other = bench.open().await;
    let successor = granted(&other, &bid("nightly")).await;
    let by = Some(successor.candidate.clone());
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Lost(LossReason::Superseded { by }));
    remove();
    bench.open().await;
    assert_eq!(other.renew(&successor).await.unwrap(), Renewed::Lost(LossReason::Removed));
}

#[tokio::test]
async fn a_pool_of_the_service_gives_the_file_and_nothing_else() {
    let bench = Bench::new();
    let options = SqliteConnectOptions::new().filename(bench.path()).create_if_missing(true);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    let store = SqliteStore::new(pool.clone());
    store.ensure_schema().await.unwrap();
    // The pool is used up by a transaction that sees an old state: neither concerns the store.
    let mut transaction = pool.begin().await.unwrap();
    run(&mut transaction, "SELECT * FROM tenure_leases").await;
    let grant = granted(&store, &bid("nightly")).await;
    transaction.rollback().await.unwrap();
    assert!(matches!(store.renew(&grant).await.unwrap(), Renewed::Extended(_)));

    let memory = SqlitePoolOptions::new().connect("sqlite::memory:").await.unwrap();
    let error = SqliteStore::new(memory).try_acquire(&bid("nightly")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert!(error.to_string().contains("names no file that candidates can share"), "{error}");
}

/// Rights mean nothing to root: the test runs itself as somebody else then.
#[test]
fn a_file_or_directory_without_rights_is_denied_with_its_path() {
    const CHILD: &str = "TENURE_SQL_RIGHTS_CHILD";
    if let Ok(directory) = env::var(CHILD) {
        return in_a_directory_without_rights(Path::new(&directory));
    }
    let bench = Bench::new();
    let directory = bench.directory.path();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).unwrap();
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "files::a_file_or_directory_without_rights_is_denied_with_its_path", "--nocapture"]);
    child.env(CHILD, directory);
    if rustix::process::geteuid().is_root() {
        use std::os::unix::process::CommandExt;
        child.uid(65534).gid(65534);
    }
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::main(flavor = "current_thread")]
async fn in_a_directory_without_rights(directory: &Path) {
    let path = directory.join("x.db");
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let url = format!("sqlite://{}", path.display());
    granted(&connect(&url).await.unwrap(), &bid("nightly")).await;
    let denied = |what: &str| {
        let both = "candidates need both; change its owner or mode, or choose another path";
        format!("sqlite connect: denied: the database file {path:?} may not be {what} by this user: {both}")
    };
    mode(&path, 0o444);
    assert_eq!(refusal(&url).await, (StoreErrorKind::Denied, denied("written")));
    mode(&path, 0o000);
    assert_eq!(refusal(&url).await, (StoreErrorKind::Denied, denied("read")));
    mode(&path, 0o644);
    let inner = directory.join("inner");
    fs::create_dir(&inner).unwrap();
    fs::copy(&path, inner.join("x.db")).unwrap();
    mode(&inner, 0o555);
    let not_writable = format!(
        "sqlite connect: denied: the directory {inner:?} may not be written by this user: sqlite keeps its -wal and \
         -shm files beside the database; change its owner or mode, or choose another path"
    );
    for file in ["x.db", "new.db"] {
        let url = format!("sqlite://{}", inner.join(file).display());
        assert_eq!(refusal(&url).await, (StoreErrorKind::Denied, not_writable.clone()));
    }
    mode(&inner, 0o000);
    let (kind, text) = refusal(&format!("sqlite://{}", inner.join("x.db").display())).await;
    assert_eq!(kind, StoreErrorKind::Denied, "{text}");
    mode(&inner, 0o755);
}
