//! The check at a resource that is kept in Redis.

use redis::Script;

/// The beginning of a script that refuses stale fencing tokens.
///
/// It compares the token in `ARGV[1]` with the newest one that was ever used, which it keeps under `KEYS[1]`, and ends
/// the script with an error of the code `FENCED` when a newer one has been seen. An equal token passes: it is the same
/// leader's. What follows it in the script runs in the same atomic step. In a cluster, `KEYS[1]` and the resource's
/// keys need one hash tag.
///
/// Tokens are compared as decimal numbers of any length, so that those of other stores work too.
pub const FENCE_GUARD: &str = include_str!("lua/fence.lua");

/// A script that runs `body` only when the token in `ARGV[1]` is no older than every other that was used with the key
/// `KEYS[1]`.
///
/// A new leader uses it once, with an empty body, before it reads the resource's state: from then on no write of an
/// older leader is taken.
///
/// # Example
///
/// ```no_run
/// # async fn example(mut connection: redis::aio::ConnectionManager, token: tenure_core::FencingToken) -> redis::RedisResult<()> {
/// let pay_out = tenure_redis::fenced_script("return redis.call('INCRBY', KEYS[2], ARGV[2])");
/// let balance: i64 = pay_out
///     .key("fence:{account:7}")
///     .key("balance:{account:7}")
///     .arg(token.value())
///     .arg(-20)
///     .invoke_async(&mut connection)
///     .await?; // an error with the code FENCED when a newer leader has written
/// # let _ = balance;
/// # Ok(())
/// # }
/// ```
pub fn fenced_script(body: &str) -> Script {
    Script::new(&format!("{FENCE_GUARD}\n{body}"))
}
