//! How single values of the command line are read.

use std::time::Duration;

use rustix::process::Signal;
use tenure::CandidateId;

use super::Until;

/// Reads `1500ms`, `15s`, `2m`, or a bare number of seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = match text.parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text).ok(),
    };
    parsed.ok_or_else(|| "a duration is written as 1500ms, 15s, 2m or 1h; a bare number is seconds".to_owned())
}

/// The signals that have a name here; others go by number.
const SIGNALS: [(&str, Signal); 11] = [
    ("HUP", Signal::HUP),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("ABRT", Signal::ABORT),
    ("KILL", Signal::KILL),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
    ("PIPE", Signal::PIPE),
    ("ALRM", Signal::ALARM),
    ("TERM", Signal::TERM),
    ("WINCH", Signal::WINCH),
];

/// Reads a signal: `TERM`, `SIGTERM`, `15`.
pub(super) fn signal(text: &str) -> Result<Signal, String> {
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let named = SIGNALS.iter().find(|(known, _)| *known == name).map(|(_, signal)| *signal);
    named.or_else(|| Signal::from_named_raw(text.parse().ok()?)).ok_or_else(|| {
        let known: Vec<_> = SIGNALS.iter().map(|(name, _)| *name).collect();
        format!("a signal is a number or one of {}", known.join(", "))
    })
}

/// Reads what to wait for.
pub(super) fn until(text: &str) -> Result<Until, String> {
    match text {
        "leader" => Ok(Until::Leader),
        "vacant" => Ok(Until::Vacant),
        _ => match text.strip_prefix("id=") {
            Some(id) => CandidateId::from_wire(id).map(Until::Candidate).map_err(|error| error.to_string()),
            None => Err("it is leader, vacant, or id= and a candidate or its label".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_or_are_seconds() {
        assert_eq!(duration("1500ms"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("15"), Ok(Duration::from_secs(15)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for text in ["", "-1", "1x", "s", "99999999999999999999"] {
            assert!(duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn signals_go_by_name_or_number() {
        assert_eq!(signal("TERM"), Ok(Signal::TERM));
        assert_eq!(signal("sigint"), Ok(Signal::INT));
        assert_eq!(signal("9"), Ok(Signal::KILL));
        for text in ["", "TERMX", "0", "-1", "999"] {
            assert!(signal(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_label_may_hold_an_equals_sign() {
        assert_eq!(until("id=a=b"), Ok(Until::Candidate(CandidateId::from_wire("a=b").unwrap())));
        assert!(until("id=").is_err());
        assert!(until("led").is_err());
    }
}
