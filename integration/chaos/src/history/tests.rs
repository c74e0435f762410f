use super::*;

fn history(events: &[(u64, &str, What)]) -> Verdict {
    let events = events.iter().map(|(at, who, what)| Event { at: *at, who: (*who).to_owned(), what: what.clone() });
    History::new(events.collect(), Duration::from_secs(1)).check()
}

fn found(verdict: &Verdict, what: &str) -> bool {
    !verdict.is_ok() && verdict.violations.iter().any(|violation| violation.contains(what))
}

use What::*;

#[test]
fn terms_one_after_the_other_are_fine() {
    let verdict = history(&[
        (1, "a", Elected(1)),
        (2, "a", Leads(1)),
        (3, "a", Stopped(1)),
        (4, "b", Elected(2)),
        (5, "b", Gone),
        (6, "a", Elected(3)),
    ]);
    assert!(verdict.is_ok(), "{verdict}");
    assert_eq!((verdict.terms, verdict.takeovers.len()), (3, 2));
}

/// K01.
#[test]
fn somebody_told_yes_after_the_next_term_began_is_an_overlap() {
    let verdict = history(&[(1, "a", Elected(1)), (2, "b", Elected(2)), (3, "a", Leads(1))]);
    assert!(found(&verdict, "a was told that it leads with token 1"));
    assert_eq!(verdict.overlaps, 1);
}

#[test]
fn an_overlap_over_several_terms_is_found_too() {
    let verdict = history(&[
        (1, "a", Elected(1)),
        (2, "b", Elected(2)),
        (3, "b", Stopped(2)),
        (4, "c", Elected(3)),
        (5, "a", Leads(1)),
    ]);
    assert_eq!(verdict.overlaps, 2);
}

/// K19.
#[test]
fn a_token_that_does_not_rise_is_found() {
    assert!(found(&history(&[(1, "a", Elected(2)), (2, "a", Stopped(2)), (3, "b", Elected(2))]), "follows token"));
}

/// K16.
#[test]
fn events_out_of_order_are_found() {
    assert!(found(&history(&[(1, "a", Leads(1))]), "outside of its term"));
    assert!(found(&history(&[(1, "a", Elected(1)), (2, "a", Elected(2))]), "while a term of its own"));
    assert!(found(&history(&[(1, "a", Elected(1)), (2, "a", Stopped(1)), (3, "a", Stopped(1))]), "had not begun"));
    assert!(found(&history(&[(1, "a", Elected(1)), (2, "a", Stopped(1)), (3, "a", Leads(1))]), "outside of its term"));
}

#[test]
fn a_late_write_that_the_register_takes_is_found_and_one_that_it_refuses_is_counted() {
    let begun = (1, "a", Elected(1));
    assert!(found(&history(&[begun.clone(), (2, "register", Took(2)), (3, "register", Took(1))]), "the register took"));
    let verdict = history(&[begun, (2, "register", Took(2)), (3, "register", Refused(1))]);
    assert!(verdict.is_ok());
    assert_eq!((verdict.taken, verdict.late), (1, 1));
}

#[test]
fn a_candidate_that_does_not_stop_when_it_is_asked_to_is_a_violation() {
    assert!(found(&history(&[(1, "a", Elected(1)), (2, "bench", Stuck("a".to_owned()))]), "a does not stop"));
}

#[test]
fn a_history_without_a_term_proves_nothing() {
    assert!(!history(&[(1, "a", Started)]).is_ok());
}

#[test]
fn an_unfenced_write_that_begins_after_a_later_term_is_found() {
    let verdict = history(&[(1, "a", Elected(1)), (2, "b", Elected(2)), (3, "a", Leads(1)), (4, "a", Leads(1))]);
    assert!(found(&verdict, "began an unfenced write"));
    assert_eq!(verdict.unfenced_late, 2);
}

const SECOND: u64 = 1_000_000_000;

/// K08.
#[test]
fn a_takeover_that_takes_too_long_with_nothing_wrong_is_found() {
    let killed = (SECOND, "bench", Harm("kill a".to_owned(), Duration::from_millis(1)));
    let verdict = history(&[(1, "a", Elected(1)), killed, (SECOND, "a", Gone), (3 * SECOND, "b", Elected(2))]);
    assert!(found(&verdict, "led only 2.0s after a"), "{verdict}");
}

#[test]
fn a_takeover_while_a_server_was_down_has_no_bound() {
    let paused = (SECOND, "bench", Harm("pause c1".to_owned(), Duration::from_secs(1)));
    let verdict = history(&[(1, "a", Elected(1)), paused, (SECOND, "a", Gone), (3 * SECOND, "b", Elected(2))]);
    assert!(verdict.is_ok(), "{verdict}");
    assert_eq!((verdict.takeovers.len(), verdict.undisturbed.len()), (1, 0));
}
