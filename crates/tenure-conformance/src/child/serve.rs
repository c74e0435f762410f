//! The child's side of the line.

use serde_json::{Value, json};
use tenure_core::LeaseStore;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, stdin, stdout};

use super::{MARK, faketime, wire};

/// Serves `store` to the process that started this one, over standard input and output, until that ends or closes
/// the line.
///
/// For programs that [`ChildProcess::start`](crate::ChildProcess::start) starts.
///
/// # Errors
///
/// When the line breaks, or something else than the suite speaks on it.
///
/// # Cancel safety
///
/// A call that was read may go unanswered.
pub async fn serve_child(store: &dyn LeaseStore) -> std::io::Result<()> {
    let mut requests = BufReader::new(stdin()).lines();
    let mut hello = wire::descriptor(&store.describe());
    hello["unix_time"] = json!(faketime::unix_time());
    say(&hello).await?;
    while let Some(line) = requests.next_line().await? {
        let Some(request) = line.strip_prefix(MARK) else { continue };
        let request: Value = serde_json::from_str(request)?;
        let reply = match answer(store, &request).await {
            Ok(reply) => reply,
            Err(broken) => return Err(std::io::Error::other(broken)),
        };
        say(&reply).await?;
    }
    Ok(())
}

async fn answer(store: &dyn LeaseStore, request: &Value) -> Result<Value, String> {
    let reply = match request["call"].as_str() {
        Some("acquire") => store.try_acquire(&wire::bid_of(request)?).await.map(|answer| wire::acquired(&answer)),
        Some("renew") => store.renew(&wire::grant_of(request)?).await.map(|answer| wire::renewed(&answer)),
        Some("release") => store.release(&wire::grant_of(request)?).await.map(wire::released),
        Some("read") => store.read(&wire::name_of(request)?).await.map(|answer| wire::record_or_none(answer.as_ref())),
        _ => return Err(format!("an unknown request: {request}")),
    };
    Ok(reply.unwrap_or_else(|error| wire::error(&error)))
}

async fn say(message: &Value) -> std::io::Result<()> {
    let mut out = stdout();
    // On a line of its own, whatever a test harness wrote before.
    out.write_all(format!("\n{MARK}{message}\n").as_bytes()).await?;
    out.flush().await
}
