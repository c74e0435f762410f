//! What stands under a lease key.
//!
//! ```text
//! tenure/1 TOKEN CANDIDATE\n
//! TTL_IN_MS TAKEN_AT_IN_US\n
//! PAYLOAD
//! ```
//!
//! The first line is the same for a whole term, so a script tells with one comparison of bytes whether a lease is
//! still a term's.

use std::time::{Duration, UNIX_EPOCH};

use tenure_core::{CandidateId, FencingToken, LeaseName, LeaseRecord, Payload};

/// The first line of the record of `candidate`'s term `token`, with its line end.
pub(crate) fn first_line(candidate: &CandidateId, token: FencingToken) -> String {
    format!("tenure/1 {token} {candidate}\n")
}

/// Reads a record of `name` with `remaining` time; `None` when the text is none.
pub(crate) fn parse(name: &LeaseName, text: &[u8], remaining: Duration) -> Option<LeaseRecord> {
    let text = std::str::from_utf8(text).ok()?.strip_prefix("tenure/1 ")?;
    let (term, text) = text.split_once('\n')?;
    let (times, payload) = text.split_once('\n')?;
    let (token, candidate) = term.split_once(' ')?;
    let (ttl, taken_at) = times.split_once(' ')?;
    let ttl = Duration::from_millis(number(ttl)?);
    let taken_at = UNIX_EPOCH.checked_add(Duration::from_micros(number(taken_at)?))?;
    let holder = CandidateId::from_wire(candidate).ok()?;
    let record = LeaseRecord::new(name.clone(), holder, FencingToken(number(token)?), ttl)
        .with_payload(Payload::new(payload).ok()?)
        .with_remaining(remaining)
        .with_acquired_at(Some(taken_at));
    Some(record)
}

/// Digits alone: no sign, no blanks, as the scripts' patterns have it.
pub(crate) fn number(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<LeaseRecord> {
        parse(&LeaseName::new("nightly").unwrap(), text.as_bytes(), Duration::from_secs(9))
    }

    #[test]
    fn a_record_is_read_back_with_blanks_in_the_label_and_lines_in_the_payload() {
        let record = parsed("tenure/1 7 my worker_00\n15000 1764568490123456\nline 1\nline 2").unwrap();
        assert_eq!((record.token, record.holder.as_str()), (FencingToken(7), "my worker_00"));
        assert_eq!((record.ttl, record.payload.as_str()), (Duration::from_secs(15), "line 1\nline 2"));
        assert_eq!(record.remaining, Duration::from_secs(9));
        let since_epoch = record.acquired_at.unwrap().duration_since(UNIX_EPOCH).unwrap();
        assert_eq!(since_epoch, Duration::from_micros(1_764_568_490_123_456));
        assert!("tenure/1 7 my worker_00\n15000".starts_with(&first_line(&record.holder, record.token)));
    }

    #[test]
    fn anything_else_is_no_record() {
        for text in [
            "",
            "7",
            "tenure/2 7 w\n1 1\n",
            "tenure/1 7 w",
            "tenure/1 7 w\n1 1",
            "tenure/1 x w\n1 1\n",
            "tenure/1 +7 w\n1 1\n",
            "tenure/1 7 \n1 1\n",
            "tenure/1 7 w\n1.5 1\n",
            "tenure/1 7 w\n1 99999999999999999999\n",
            "{\"candidate\":\"w\"}",
        ] {
            assert_eq!(parsed(text), None, "{text:?}");
        }
        assert_eq!(parse(&LeaseName::new("n").unwrap(), b"tenure/1 7 \xff\n1 1\n", Duration::ZERO), None);
    }
}
