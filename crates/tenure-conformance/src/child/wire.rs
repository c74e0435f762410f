//! Calls and answers as JSON.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::{
    Acquired, Bid, CandidateId, FencingToken, Grant, LeaseName, LeaseRecord, LossReason, Operation, Payload, Receipt,
    Released, Renewed, StoreDescriptor, StoreError, StoreErrorKind,
};

type Read<T> = Result<T, String>;

pub(super) fn descriptor(descriptor: &StoreDescriptor) -> Value {
    json!({ "store": descriptor.name, "min_ttl": nanos(descriptor.min_ttl), "max_ttl": nanos(descriptor.max_ttl),
        "ttl_unit": nanos(descriptor.ttl_unit), "lateness": nanos(descriptor.lateness) })
}

pub(super) fn descriptor_of(value: &Value) -> Read<StoreDescriptor> {
    let limits = (duration(value, "min_ttl")?, duration(value, "max_ttl")?, duration(value, "ttl_unit")?);
    Ok(StoreDescriptor::new(text(value, "store")?)
        .with_ttl_limits(limits.0, limits.1, limits.2)
        .with_lateness(duration(value, "lateness")?))
}

pub(super) fn bid(bid: &Bid) -> Value {
    json!({ "call": "acquire", "name": bid.name.as_str(), "candidate": bid.candidate.as_str(), "ttl": nanos(bid.ttl),
        "payload": bid.payload.as_str() })
}

pub(super) fn bid_of(value: &Value) -> Read<Bid> {
    let bid = Bid::new(name_of(value)?, candidate(value, "candidate")?, duration(value, "ttl")?);
    Ok(bid.with_payload(payload(value)?))
}

pub(super) fn renewal(of: &Grant) -> Value {
    with_call("renew", grant(of))
}

pub(super) fn release(of: &Grant) -> Value {
    with_call("release", grant(of))
}

pub(super) fn read(name: &LeaseName) -> Value {
    json!({ "call": "read", "name": name.as_str() })
}

fn with_call(call: &str, mut request: Value) -> Value {
    request["call"] = json!(call);
    request
}

fn grant(grant: &Grant) -> Value {
    json!({ "name": grant.name.as_str(), "candidate": grant.candidate.as_str(), "token": grant.token.value(),
        "ttl": nanos(grant.ttl), "receipt": grant.receipt.as_str(), "after_release": grant.after_release })
}

pub(super) fn grant_of(value: &Value) -> Read<Grant> {
    let (name, candidate) = (name_of(value)?, candidate(value, "candidate")?);
    Ok(Grant::new(name, candidate, token(value)?, duration(value, "ttl")?)
        .with_receipt(Receipt::new(text(value, "receipt")?))
        .with_after_release(value["after_release"] == json!(true)))
}

fn record(record: &LeaseRecord) -> Value {
    json!({ "name": record.name.as_str(), "holder": record.holder.as_str(), "token": record.token.value(),
        "ttl": nanos(record.ttl), "remaining": nanos(record.remaining), "payload": record.payload.as_str(),
        "receipt": record.receipt.as_str() })
}

fn record_of(value: &Value) -> Read<LeaseRecord> {
    let (name, holder) = (name_of(value)?, candidate(value, "holder")?);
    Ok(LeaseRecord::new(name, holder, token(value)?, duration(value, "ttl")?)
        .with_remaining(duration(value, "remaining")?)
        .with_payload(payload(value)?)
        .with_receipt(Receipt::new(text(value, "receipt")?)))
}

pub(super) fn acquired(answer: &Acquired) -> Value {
    match answer {
        Acquired::Granted(given) => json!({ "granted": grant(given) }),
        Acquired::Held(found) => json!({ "held": record(found) }),
    }
}

pub(super) fn acquired_of(value: &Value) -> Read<Acquired> {
    match (value.get("granted"), value.get("held")) {
        (Some(given), _) => grant_of(given).map(Acquired::Granted),
        (None, Some(found)) => record_of(found).map(Acquired::Held),
        (None, None) => Err(format!("no answer to a bid: {value}")),
    }
}

pub(super) fn renewed(answer: &Renewed) -> Value {
    match answer {
        Renewed::Extended(given) => json!({ "extended": grant(given) }),
        Renewed::Lost(LossReason::Superseded { by }) => {
            json!({ "lost": "superseded", "by": by.as_ref().map(CandidateId::as_str) })
        }
        Renewed::Lost(reason) => json!({ "lost": reason.as_str() }),
    }
}

pub(super) fn renewed_of(value: &Value) -> Read<Renewed> {
    if let Some(given) = value.get("extended") {
        return grant_of(given).map(Renewed::Extended);
    }
    Ok(Renewed::Lost(match value["lost"].as_str() {
        Some("superseded") => LossReason::Superseded { by: candidate(value, "by").ok() },
        Some("expired") => LossReason::EXPIRED,
        Some("removed") => LossReason::Removed,
        Some("malformed") => LossReason::Malformed,
        _ => return Err(format!("no answer to a renewal: {value}")),
    }))
}

pub(super) fn released(answer: Released) -> Value {
    json!({ "freed": answer == Released::Freed })
}

pub(super) fn released_of(value: &Value) -> Read<Released> {
    match value["freed"].as_bool() {
        Some(true) => Ok(Released::Freed),
        Some(false) => Ok(Released::NotHeld),
        None => Err(format!("no answer to a release: {value}")),
    }
}

pub(super) fn record_or_none(answer: Option<&LeaseRecord>) -> Value {
    json!({ "record": answer.map(record) })
}

pub(super) fn record_or_none_of(value: &Value) -> Read<Option<LeaseRecord>> {
    match &value["record"] {
        Value::Null => Ok(None),
        found => record_of(found).map(Some),
    }
}

const KINDS: [StoreErrorKind; 6] = [
    StoreErrorKind::Unavailable,
    StoreErrorKind::Unknown,
    StoreErrorKind::Denied,
    StoreErrorKind::Malformed,
    StoreErrorKind::Invalid,
    StoreErrorKind::Unsupported,
];

pub(super) fn error(error: &StoreError) -> Value {
    json!({ "error": error.kind().as_str(), "message": crate::unable::chain(error) })
}

/// The error in a reply, if it is one.
pub(super) fn error_of(value: &Value, operation: Operation, store: &str) -> Option<StoreError> {
    let word = value["error"].as_str()?;
    let kind = KINDS.into_iter().find(|kind| kind.as_str() == word).unwrap_or(StoreErrorKind::Unknown);
    let message = value["message"].as_str().unwrap_or("no message").to_owned();
    Some(StoreError::new(kind, operation, store.to_owned()).with_detail(message))
}

pub(super) fn name_of(value: &Value) -> Read<LeaseName> {
    LeaseName::new(text(value, "name")?).map_err(|error| error.to_string())
}

fn candidate(value: &Value, field: &str) -> Read<CandidateId> {
    CandidateId::from_wire(text(value, field)?).map_err(|error| error.to_string())
}

fn payload(value: &Value) -> Read<Payload> {
    Payload::new(text(value, "payload")?).map_err(|error| error.to_string())
}

fn token(value: &Value) -> Read<FencingToken> {
    value["token"].as_u64().map(FencingToken).ok_or_else(|| format!("no token in {value}"))
}

fn text(value: &Value, field: &str) -> Read<String> {
    value[field].as_str().map(str::to_owned).ok_or_else(|| format!("no {field} in {value}"))
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

fn duration(value: &Value, field: &str) -> Read<Duration> {
    value[field].as_u64().map(Duration::from_nanos).ok_or_else(|| format!("no {field} in {value}"))
}

#[cfg(test)]
mod tests {
    use tenure_core::Label;

    use super::*;

    #[test]
    fn calls_and_answers_come_out_as_they_went_in() {
        let candidate = CandidateId::draw(&Label::new("worker \"7\"").unwrap());
        let name = LeaseName::new("a/{b} é").unwrap();
        let bid_in = Bid::new(name.clone(), candidate.clone(), Duration::from_millis(1500))
            .with_payload(Payload::new("line\nline").unwrap());
        assert_eq!(bid_of(&bid(&bid_in)).unwrap(), bid_in);
        let given = Grant::of(&bid_in, FencingToken(u64::MAX)).with_receipt(Receipt::new("r")).with_after_release(true);
        assert_eq!(grant_of(&renewal(&given)).unwrap(), given);
        let found =
            LeaseRecord::new(name, candidate.clone(), FencingToken(7), bid_in.ttl).with_remaining(bid_in.ttl / 2);
        for answer in [Acquired::Granted(given.clone()), Acquired::Held(found.clone())] {
            assert_eq!(acquired_of(&acquired(&answer)).unwrap(), answer);
        }
        let losses = [LossReason::Superseded { by: Some(candidate) }, LossReason::EXPIRED, LossReason::Removed];
        for answer in losses.map(Renewed::Lost).into_iter().chain([Renewed::Extended(given)]) {
            assert_eq!(renewed_of(&renewed(&answer)).unwrap(), answer);
        }
        for answer in [None, Some(found)] {
            assert_eq!(record_or_none_of(&record_or_none(answer.as_ref())).unwrap(), answer);
        }
        assert_eq!(released_of(&released(Released::NotHeld)).unwrap(), Released::NotHeld);
        let denied = StoreError::new(StoreErrorKind::Denied, Operation::Renew, "x").with_source("why");
        let back = error_of(&error(&denied), Operation::Renew, "x").unwrap();
        assert_eq!(back.kind(), StoreErrorKind::Denied);
        assert!(back.to_string().ends_with("x renew: denied: why"), "{back}");
    }
}
