//! The rules of the module documentation, by number, and the finer points of the protocol.

use super::*;
use StoreErrorKind::{Denied, Unavailable, Unknown};

const V: Duration = Duration::from_nanos(14_697_970_297);

fn words_so_far(play: &Play) -> Vec<&'static str> {
    words(&play.log.iter().map(|(_, action)| action.clone()).collect::<Vec<_>>())
}

/// K04.
#[test]
fn rule_1_work_starts_only_after_a_confirmed_grant_whose_deadline_lies_ahead() {
    let mut play = Play::bidding();
    let bid = play.last(Call::Bid);
    play.answer(bid, failed(Unknown));
    assert_eq!(play.state(), "following", "a bid of unknown fate makes no leader");

    let mut play = Play::bidding();
    let bid = play.last(Call::Bid);
    play.now = play.now + V;
    play.machine.state = State::Bidding { flight: Flight { attempt: bid, until: play.now + S }, race: false };
    assert_eq!(words(&play.answer(bid, granted(7))), ["release"], "too late: given back");
    let release = play.last(Call::Release);
    play.answer(release, Answer::Released(Released::Freed));
    assert_eq!(play.state(), "following", "and the campaign goes on");
}

/// K02.
#[test]
fn rule_1_the_deadline_counts_from_the_sending_of_the_bid_that_was_answered() {
    let mut play = Play::bidding();
    let first = play.now;
    play.after(3 * S, Input::Tick);
    let second = play.last(Call::Bid);
    assert!(second.sent > first);
    play.now = play.now + S;
    play.answer(second, granted(7));
    assert_eq!(play.deadline(), second.sent + V);
}

/// K01.
#[test]
fn rule_2_the_stop_signal_comes_at_c_and_the_cut_at_the_deadline() {
    let play = {
        let mut play = Play::leading();
        let deadline = play.deadline();
        while play.now < deadline {
            play.next();
        }
        play
    };
    let at = |word| play.log.iter().find(|(_, action)| words(std::slice::from_ref(action)) == [word]).unwrap().0;
    let bid_sent = play.log[0].0;
    assert_eq!(at("signal"), bid_sent + V.checked_sub(3 * S).unwrap());
    assert_eq!(at("cut"), bid_sent + V);
}

/// K02.
#[test]
fn rule_2_a_renewal_moves_the_deadline_from_its_own_sending_and_never_back() {
    let mut play = Play::renewing();
    let slow = play.last(Call::Renew);
    play.next();
    let quick = play.last(Call::Renew);
    play.answer(quick, extended());
    assert_eq!(play.deadline(), quick.sent + V);
    play.now = play.now + S;
    play.answer(slow, extended());
    assert_eq!(play.deadline(), quick.sent + V, "a late answer counts for its own sending only");
}

#[test]
fn rule_2_an_unknown_answer_never_moves_the_deadline() {
    let mut play = Play::renewing();
    let deadline = play.deadline();
    let renewal = play.last(Call::Renew);
    play.answer(renewal, failed(Unknown));
    assert_eq!(play.deadline(), deadline);
}

/// K02.
#[test]
fn rule_2_an_extension_that_arrives_after_the_deadline_is_too_late() {
    let mut play = Play::renewing();
    let renewal = play.last(Call::Renew);
    play.now = play.deadline();
    assert_eq!(words(&play.answer(renewal, extended())), ["signal", "cut"]);
    assert_eq!(play.machine.deadline(), None);
}

/// K07.
#[test]
fn rule_3_renewing_goes_on_during_a_planned_stop_and_the_release_waits_for_the_work() {
    let mut play = Play::draining();
    play.machine.timing = Timing::builder(15 * S).stop_budget(3 * S).build().unwrap();
    let mut renewals = 0;
    // Work that swallows its cancellation for a minute keeps the lease for as long.
    while play.now < Moment::new(1060 * S) {
        for action in play.next() {
            if let Action::Renew(attempt, _) = action {
                renewals += 1;
                play.answer(attempt, extended());
            }
        }
    }
    assert!(renewals >= 11, "{renewals}");
    assert!(!words_so_far(&play).contains(&"release"));
    assert_eq!(words(&play.input(Input::WorkEnded)), ["release"]);
}

#[test]
fn rule_3_nothing_is_released_when_the_work_overran_the_deadline() {
    let mut play = Play::expiring();
    play.now = play.deadline();
    play.tick();
    play.after(S, Input::Tick);
    assert!(matches!(play.machine.standing(), Standing::Stopping { overrun: true, .. }));
    play.input(Input::WorkEnded);
    assert_eq!(play.release(), Release::NotNeeded);
    assert_eq!(words_so_far(&play).iter().filter(|word| **word == "overrun").count(), 1);
}

#[test]
fn rule_4_one_slow_call_never_costs_the_term() {
    let mut play = Play::leading();
    let stop_at = play.deadline().saturating_sub(3 * S);
    let mut sent = Vec::new();
    while play.state() == "leading" {
        for action in play.next() {
            if let Action::Renew(attempt, _) = action {
                let until = play.machine.wake_at().unwrap();
                if attempt.sent < stop_at {
                    assert!(until - attempt.sent <= (stop_at - attempt.sent) / 2, "more than half of what was left");
                    sent.push(attempt.sent);
                }
            }
        }
    }
    assert!(sent.len() >= 3, "{sent:?}");
}

#[test]
fn rule_5_lost_is_final_whatever_comes_later() {
    let mut play = Play::renewing();
    let slow = play.last(Call::Renew);
    play.next();
    let quick = play.last(Call::Renew);
    assert_eq!(words(&play.answer(quick, lost(LossReason::Removed))), ["signal", "cut"]);
    assert_eq!(words(&play.answer(slow, extended())), [""; 0]);
    assert_eq!(play.machine.deadline(), None);
    play.input(Input::WorkEnded);
    assert_eq!(play.cause(), &Cause::Lost(LossReason::Removed));
    assert_eq!(play.release(), Release::NotNeeded, "what is not ours is not released");
}

/// K03.
#[test]
fn rule_5_a_late_answer_that_says_lost_counts_at_once() {
    let mut play = Play::renewing();
    let abandoned = play.last(Call::Renew);
    play.next();
    assert_ne!(play.last(Call::Renew), abandoned);
    assert_eq!(words(&play.answer(abandoned, lost(LossReason::EXPIRED))), ["signal", "cut"]);
}

#[test]
fn rule_5_an_answer_of_an_earlier_term_of_the_campaign_is_not_heard() {
    let mut play = Play::leading();
    let stale = Attempt { number: 0, call: Call::Renew, sent: play.now };
    if let State::Leading { term } = &mut play.machine.state {
        term.won_by = 5;
    }
    assert_eq!(play.answer(stale, lost(LossReason::Removed)), []);
    assert_eq!(play.state(), "leading");
}

/// K10.
#[test]
fn rule_6_transient_trouble_never_ends_a_campaign_and_bids_keep_their_distance() {
    let mut play = Play::new();
    let mut bids = Vec::new();
    for round in 0..1000 {
        for action in play.next() {
            if let Action::Bid(attempt) = action {
                bids.push(attempt.sent);
                play.jitter = Jitter::new((round * 7919 % 65536) as u16);
                play.answer(attempt, failed(if round % 2 == 0 { Unavailable } else { Unknown }));
            }
        }
    }
    assert!(bids.windows(2).all(|pair| pair[1] - pair[0] >= S / 2), "retry_every is 1 s, jittered by half");
    assert!(bids.windows(2).all(|pair| pair[1] - pair[0] <= S * 3 / 2));
}

#[test]
fn rule_6_a_refusal_for_good_ends_a_campaign_and_not_a_term() {
    let mut play = Play::bidding();
    let bid = play.last(Call::Bid);
    play.answer(bid, failed(Denied));
    assert_eq!(play.cause(), &Cause::Failed(Denied));

    let mut play = Play::leading();
    let deadline = play.deadline();
    while play.state() == "leading" {
        for action in play.next() {
            if let Action::Renew(attempt, _) = action {
                play.answer(attempt, failed(Denied));
            }
        }
    }
    assert_eq!(play.now, deadline.saturating_sub(3 * S), "credentials rotate: tried until C");
    let reason = LossReason::Expired { kind: Some(Denied), error: None };
    assert_eq!(play.machine.stopping_for(), Some(&Cause::Lost(reason)));
}

#[test]
fn rule_6_a_refusal_after_an_unknown_bid_gives_back_what_that_bid_may_hold() {
    let mut play = Play::doubting();
    play.next();
    let bid = play.last(Call::Bid);
    assert_eq!(words(&play.answer(bid, failed(Denied))), ["read"]);
    let read = play.last(Call::Read);
    play.answer(read, Answer::Read(None));
    assert_eq!(play.cause(), &Cause::Failed(Denied));
}

/// K06.
#[test]
fn rule_7_stopping_ends_in_time_in_every_state_when_no_call_is_ever_answered() {
    let states: [fn() -> Play; 6] =
        [Play::bidding, Play::following, Play::doubting, Play::settling, Play::leading, Play::renewing];
    for state in states {
        let mut play = state();
        let limit = play.now + 6 * S;
        play.input(Input::Stop);
        while play.machine.end().is_none() {
            let actions = play.next();
            if actions.contains(&Action::CutOff) {
                play.input(Input::WorkEnded);
            }
        }
        assert!(play.now <= limit, "{:?} after the limit", play.now - limit);
        assert_eq!(play.cause(), &Cause::Stopped);
    }
}

#[test]
fn rule_7_a_release_that_was_not_confirmed_is_said_so() {
    let mut play = Play::releasing();
    while play.machine.end().is_none() {
        play.next();
    }
    assert_eq!(play.release(), Release::Failed(Unknown));
    let tries = words_so_far(&play).iter().filter(|word| **word == "release").count();
    assert!(tries >= 2, "a hung release leaves room for another");
}

/// K16.
#[test]
fn rule_8_each_term_starts_and_ends_its_work_once() {
    let mut play = Play::draining();
    play.after(3 * S, Input::Tick);
    play.after(S, Input::Tick);
    play.input(Input::Resign);
    play.input(Input::Stop);
    play.input(Input::WorkEnded);
    play.input(Input::WorkEnded);
    let count = |word| words_so_far(&play).iter().filter(|other| **other == word).count();
    assert_eq!(["start", "signal", "cut", "release"].map(count), [1, 1, 1, 1]);
}

#[test]
fn a_suspend_that_outlasts_the_deadline_has_its_own_reason() {
    let mut play = Play::leading();
    play.after(20 * S, Input::Suspended(20 * S));
    assert_eq!(play.machine.stopping_for(), Some(&Cause::Lost(LossReason::Suspended { slept: 20 * S })));

    let mut play = Play::renewing();
    play.after(S, Input::Suspended(S));
    play.next();
    let renewal = play.last(Call::Renew);
    play.answer(renewal, extended());
    while play.state() == "leading" {
        play.next();
    }
    let reason = LossReason::Expired { kind: Some(Unknown), error: None };
    assert_eq!(
        play.machine.stopping_for(),
        Some(&Cause::Lost(reason)),
        "a suspend before the last confirmation is over"
    );
}

#[test]
fn a_follower_wakes_when_the_holders_lease_runs_out() {
    let mut play = Play::bidding();
    let bid = play.last(Call::Bid);
    play.answer(bid, held(2 * S));
    assert_eq!(play.machine.wake_at(), Some(play.now + 2 * S));
    let bid = {
        play.next();
        play.last(Call::Bid)
    };
    play.answer(bid, held(14 * S));
    assert_eq!(play.machine.wake_at(), Some(play.now + 5 * S * 3 / 4), "and polls slowly besides");
}

/// K20.
#[test]
fn a_follower_that_loses_races_spreads_its_bids_and_one_that_sees_a_new_holder_drops_its_bid() {
    let mut play = Play::following();
    play.jitter = Jitter::new(u16::MAX);
    let mut windows = Vec::new();
    for _ in 0..10 {
        play.now = play.now + S / 2;
        play.input(Input::Woken(WakeUp::Vacated));
        if play.state() == "following" {
            windows.push(play.machine.wake_at().unwrap() - play.now);
            play.next();
        }
        let bid = play.last(Call::Bid);
        play.answer(bid, held(14 * S));
    }
    assert!(windows.is_sorted() && windows.len() >= 8, "{windows:?}");
    assert!(*windows.last().unwrap() > S * 9 / 10 && *windows.last().unwrap() <= S);

    play.now = play.now + S / 2;
    play.input(Input::Woken(WakeUp::Vacated));
    let planned = play.machine.wake_at().unwrap();
    play.input(Input::Woken(WakeUp::Taken));
    assert!(play.machine.wake_at().unwrap() > planned + S, "somebody else was quicker");
}

/// K20.
#[test]
fn hints_bring_a_renewal_forward_and_never_make_a_hot_loop() {
    let mut play = Play::leading();
    let mut renewals = 0;
    for _ in 0..1000 {
        for action in play.after(S / 1000, Input::Woken(WakeUp::Changed)) {
            if let Action::Renew(attempt, _) = action {
                renewals += 1;
                play.answer(attempt, extended());
            }
        }
    }
    assert!((1..=4).contains(&renewals), "{renewals} renewals in a second of a thousand hints");
}

#[test]
fn a_hint_while_a_renewal_is_in_flight_is_not_forgotten() {
    let mut play = Play::renewing();
    let renewal = play.last(Call::Renew);
    play.after(S / 100, Input::Woken(WakeUp::Vacated));
    play.answer(renewal, extended());
    assert!(play.machine.wake_at().unwrap() - play.now <= S / 4);
}

#[test]
fn a_grant_too_short_for_the_timing_is_given_back_and_named() {
    let mut play = Play::bidding();
    let bid = play.last(Call::Bid);
    play.answer(bid, Answer::Acquired(Acquired::Granted(grant(7).with_ttl(10 * S))));
    let release = play.last(Call::Release);
    play.answer(release, Answer::Released(Released::Freed));
    assert_eq!(play.cause(), &Cause::ShortGrant(10 * S));
}

/// K18.
#[test]
fn a_longer_grant_gives_no_longer_authority() {
    let mut play = Play::bidding();
    let bid = play.last(Call::Bid);
    play.answer(bid, Answer::Acquired(Acquired::Granted(grant(7).with_ttl(60 * S))));
    assert_eq!(play.deadline(), bid.sent + V);
}

#[test]
fn what_a_machine_says_of_itself_follows_its_state() {
    let token = FencingToken(7);
    assert_eq!(Play::bidding().machine.standing(), Standing::Following);
    assert_eq!(Play::following().machine.standing(), Standing::Following);
    assert_eq!(Play::settling().machine.standing(), Standing::Following);
    assert!(matches!(Play::leading().machine.standing(), Standing::Leading { token: t, .. } if t == token));
    assert!(
        matches!(Play::draining().machine.standing(), Standing::Stopping { token: Some(t), deadline: Some(_), overrun: false } if t == token)
    );
    assert!(matches!(Play::releasing().machine.standing(), Standing::Stopping { token: None, deadline: None, .. }));
    let mut stopping_bid = Play::bidding();
    stopping_bid.input(Input::Stop);
    assert_eq!(stopping_bid.machine.standing(), Standing::Following);
    assert_eq!(Play::ended().machine.standing(), Standing::Ended);
    assert_eq!(Play::ended().machine.candidate(), &candidate(1));
    assert_eq!(Play::ended().machine.herd(), Herd::default());
}

#[test]
fn a_late_extension_of_a_renewal_that_was_given_up_sends_nothing_and_forgets_nothing() {
    let mut play = Play::renewing();
    let given_up = play.last(Call::Renew);
    play.next();
    let confirmed = play.last(Call::Renew);
    play.answer(confirmed, extended());
    let wake_at = play.machine.wake_at();
    play.now = play.now + S;
    assert_eq!(play.answer(given_up, extended()), []);
    assert_eq!(play.machine.wake_at(), wake_at);
}

#[test]
fn a_store_that_refuses_a_release_at_once_is_not_asked_in_a_hot_loop() {
    let mut play = Play::releasing();
    let mut asked = 0;
    while play.machine.end().is_none() {
        asked += 1;
        let release = play.last(Call::Release);
        play.now = play.now + Duration::from_micros(40);
        play.answer(release, failed(Unavailable));
        if play.machine.end().is_none() {
            play.next();
        }
    }
    assert!((3..=20).contains(&asked), "{asked} releases in 3 s");
    assert_eq!(play.release(), Release::Failed(Unavailable));
}

#[test]
fn a_term_that_could_not_be_renewed_while_settling_is_given_back_on_a_stop() {
    for refusal in [failed(StoreErrorKind::Unsupported), failed(StoreErrorKind::Malformed)] {
        let mut play = Play::with(Timing::builder(15 * S).settle_delay(8 * S).build().unwrap(), OnFinish::Release);
        play.tick();
        let bid = play.last(Call::Bid);
        play.answer(bid, granted(7));
        play.next();
        let renewal = play.last(Call::Renew);
        play.answer(renewal, refusal);
        assert_eq!(words(&play.input(Input::Stop)), ["read"]);
    }
    let mut play = Play::settling();
    play.now = play.now + 15 * S;
    play.tick();
    assert_eq!(words(&play.input(Input::Stop)), ["read"], "the record outlives the deadline");
}

#[test]
fn a_grant_that_is_heard_of_while_stopping_is_given_back() {
    let mut play = Play::bidding();
    let bid = play.last(Call::Bid);
    play.input(Input::Stop);
    play.next();
    let read = play.last(Call::Read);
    assert_eq!(words(&play.answer(bid, granted(7))), ["release"]);
    assert_eq!(play.answer(read, Answer::Read(None)), [], "decided before the bid was applied");
    assert_eq!(play.state(), "releasing");

    let mut play = Play::releasing();
    let release = play.last(Call::Release);
    let late = Attempt { number: 0, call: Call::Bid, sent: play.now };
    assert_eq!(play.answer(late, granted(7)), [], "the very term that is being released");
    let actions = play.answer(late, granted(8));
    assert!(matches!(&actions[..], [Action::Release(_, grant)] if grant.token == FencingToken(8)));
    play.answer(release, Answer::Released(Released::NotHeld));
    assert_eq!(play.state(), "releasing", "the newer term is still to be given back");
}

#[test]
fn a_late_grant_that_is_heard_of_while_bidding_outlives_an_older_refusal() {
    let bidding_again = || {
        let mut play = Play::bidding();
        let given_up = play.last(Call::Bid);
        play.after(3 * S, Input::Tick);
        let second = play.last(Call::Bid);
        // The refusal was decided first, and is overtaken by the grant.
        play.answer(given_up, granted(7));
        assert_eq!(play.state(), "bidding");
        (play, second)
    };

    let (mut play, second) = bidding_again();
    assert_eq!(words(&play.answer(second, held(S))), ["bid"], "the next one finds out");

    let (mut play, second) = bidding_again();
    play.input(Input::Stop);
    assert_eq!(words(&play.answer(second, held(S))), ["read"], "asked to stop, it looks for what it holds");

    let (mut play, second) = bidding_again();
    assert_eq!(words(&play.answer(second, failed(Denied))), ["read"], "and when it is refused for good");
}

#[test]
fn a_late_read_that_finds_the_candidate_itself_counts() {
    let mut play = Play::doubting();
    play.input(Input::Stop);
    let slow = play.last(Call::Read);
    play.next();
    let second = play.last(Call::Read);
    assert!(second.number > slow.number);
    assert_eq!(words(&play.answer(slow, Answer::Read(Some(record(1))))), ["release"]);
    assert_eq!(words(&play.answer(second, Answer::Read(None))), [""; 0], "it was decided before");
    assert_eq!(play.state(), "releasing");
}

#[test]
fn a_term_whose_release_may_be_under_way_never_begins() {
    let mut play = Play::with(Timing::builder(15 * S).settle_delay(14 * S).build().unwrap(), OnFinish::Release);
    play.tick();
    let bid = play.last(Call::Bid);
    play.answer(bid, granted(7));
    assert_eq!(words(&play.after(12 * S, Input::Tick)), ["release"], "too late to begin");
    while play.state() != "bidding" {
        play.next();
    }
    let bid = play.last(Call::Bid);
    let again = Answer::Acquired(Acquired::Granted(grant(7).with_after_release(true)));
    assert_eq!(words(&play.answer(bid, again)), ["release"], "a late copy of the first release would free it");
    let release = play.last(Call::Release);
    play.answer(release, Answer::Released(Released::Freed));
    play.next();
    let bid = play.last(Call::Bid);
    let next = Answer::Acquired(Acquired::Granted(grant(8).with_after_release(true)));
    assert_eq!(words(&play.answer(bid, next)), ["start"]);
}

#[test]
fn a_renewal_that_is_due_when_its_term_ends_does_not_go_out() {
    let is_renewal = |action: &Action| matches!(action, Action::Renew(..));
    let mut play = Play::renewing();
    let first = play.last(Call::Renew);
    play.answer(first, Answer::Failed(StoreErrorKind::Unavailable));
    let due = play.machine.wake_at().unwrap();
    for (input, then) in [
        (Input::Answer(first, Answer::Renewed(Renewed::Lost(LossReason::Removed))), "stopping"),
        (Input::WorkEnded, "releasing"),
    ] {
        let mut play = play.clone();
        play.now = due;
        // The clock has come to it, and the answer is heard before the timer.
        let actions = play.input(input);
        assert_eq!(play.state(), then);
        assert!(!actions.iter().any(is_renewal), "{actions:?}");
    }
}
