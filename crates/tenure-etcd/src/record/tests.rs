use etcd_client::proto::PbKeyValue;
use tenure_core::Label;

use super::*;

const TTL: Duration = Duration::from_secs(15);

fn bid() -> Bid {
    let candidate = CandidateId::with_nonce(&Label::new("worker \"7\"").unwrap(), 1);
    let payload = Payload::new("{\"at\": \"10.0.0.7\"}\nnaïve").unwrap();
    Bid::new(LeaseName::new("nightly").unwrap(), candidate, TTL).with_payload(payload)
}

fn stored(value: impl Into<Vec<u8>>, lease: i64) -> KeyValue {
    KeyValue(PbKeyValue { value: value.into(), lease, create_revision: 7, mod_revision: 9, ..PbKeyValue::default() })
}

#[test]
fn a_record_reads_as_it_was_written() {
    let at = UNIX_EPOCH + Duration::from_millis(1_796_106_322_505);
    let record = Record::read(&stored(written(&bid(), 0x694d, TTL, Some(at)), 0x694d)).unwrap();
    assert_eq!((&record.candidate, &record.payload), (&bid().candidate, &bid().payload));
    assert_eq!((record.ttl, record.acquired_at, record.token()), (TTL, Some(at), FencingToken(7)));
    assert!(record.is_in_place());
    assert!(!Record { bound_to: 1, ..record }.is_in_place());
}

#[test]
fn no_wall_clock_is_too_far_off() {
    let before_1970 = UNIX_EPOCH - Duration::from_secs(86_400);
    let in_ten_years = SystemTime::now() + Duration::from_secs(10 * 365 * 86_400);
    for at in [None, Some(before_1970), Some(in_ten_years)] {
        assert!(Record::read(&stored(written(&bid(), 1, TTL, at), 1)).is_ok());
    }
    let absurd = r#"{"v":1,"candidate":"a","payload":"","ttl":2,"acquired_at":18446744073709551615,"lease":"1"}"#;
    assert!(Record::read(&stored(absurd, 1)).is_ok());
}

#[test]
fn what_is_not_written_like_that_is_no_record_and_the_reason_is_said() {
    let refusal = |value: &str, lease| Record::read(&stored(value, lease)).unwrap_err();
    let good = r#"{"v":1,"candidate":"a","payload":"","ttl":2,"acquired_at":null,"lease":"1"}"#;
    assert!(Record::read(&stored(good, 1)).is_ok());
    assert!(refusal(good, 0).contains("would never run out"));
    assert!(refusal(&good.replace("\"v\":1", "\"v\":2"), 1).contains("version 2"));
    for (part, wrong) in [("\"a\"", "\"\""), ("\"a\"", "\"a\\n\""), ("\"lease\":\"1\"", "\"lease\":\"x\"")] {
        assert!(!refusal(&good.replace(part, wrong), 1).is_empty());
    }
    for value in ["", "leader-7", "{}", "[1]", "\u{0}", r#"{"v":1}"#] {
        assert_eq!(refusal(value, 1), "its value is not a lease of version 1", "{value:?}");
    }
}

#[test]
fn a_later_version_with_further_fields_of_its_own_is_told_by_its_number() {
    let newer = r#"{"v":3,"holder":{"id":"a"}}"#;
    assert!(Record::read(&stored(newer, 1)).unwrap_err().contains("version 3"));
}
