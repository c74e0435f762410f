//! One row per transition.

use super::*;
use StoreErrorKind::{Denied, Invalid, Malformed, Unavailable, Unknown, Unsupported};

struct Row {
    name: &'static str,
    from: fn() -> Play,
    when: fn(&mut Play) -> Vec<Action>,
    does: &'static [&'static str],
    then: &'static str,
}

const fn row(
    name: &'static str,
    from: fn() -> Play,
    when: fn(&mut Play) -> Vec<Action>,
    does: &'static [&'static str],
    then: &'static str,
) -> Row {
    Row { name, from, when, does, then }
}

fn answer_last(play: &mut Play, call: Call, answer: Answer) -> Vec<Action> {
    let attempt = play.last(call);
    play.answer(attempt, answer)
}

fn bid_answered(play: &mut Play, answer: Answer) -> Vec<Action> {
    answer_last(play, Call::Bid, answer)
}

fn renewal_answered(play: &mut Play, answer: Answer) -> Vec<Action> {
    answer_last(play, Call::Renew, answer)
}

fn release_answered(play: &mut Play, answer: Answer) -> Vec<Action> {
    answer_last(play, Call::Release, answer)
}

fn to_deadline(play: &mut Play) -> Vec<Action> {
    play.now = play.deadline();
    play.tick()
}

/// Reads back after a bid of unknown fate.
fn reading() -> Play {
    let mut play = Play::doubting();
    play.input(Input::Stop);
    play
}

/// The first bid was given up, and a second one is in flight.
fn bidding_again() -> Play {
    let mut play = Play::bidding();
    play.after(3 * S, Input::Tick);
    play
}

fn first_bid_answered(play: &mut Play, answer: Answer) -> Vec<Action> {
    let first = Attempt { number: 0, ..play.last(Call::Bid) };
    play.answer(first, answer)
}

/// Asked to stop while a bid is in flight.
fn awaiting() -> Play {
    let mut play = Play::bidding();
    play.input(Input::Stop);
    play
}

#[test]
fn while_following() {
    check(&[
        row("time for a bid", Play::new, Play::tick, &["bid"], "bidding"),
        row("not yet", Play::following, Play::tick, &[], "following"),
        row("the poll", Play::following, Play::next, &["bid"], "bidding"),
        row("vacated", Play::following, |p| p.after(S, Input::Woken(WakeUp::Vacated)), &["bid"], "bidding"),
        row("changed", Play::following, |p| p.after(S, Input::Woken(WakeUp::Changed)), &["bid"], "bidding"),
        row("a gap", Play::following, |p| p.after(S, Input::Woken(WakeUp::Resync)), &["bid"], "bidding"),
        row("taken", Play::following, |p| p.after(S, Input::Woken(WakeUp::Taken)), &[], "following"),
        row("a hint too soon", Play::following, |p| p.input(Input::Woken(WakeUp::Vacated)), &[], "following"),
        row("stop", Play::following, |p| p.input(Input::Stop), &[], "ended"),
        row("stop in doubt", Play::doubting, |p| p.input(Input::Stop), &["read"], "releasing"),
        row(
            "a late grant",
            Play::doubting,
            |p| {
                p.now = p.now + S / 50;
                bid_answered(p, granted(7))
            },
            &["bid"],
            "bidding",
        ),
        row("a late refusal", Play::doubting, |p| bid_answered(p, held(S)), &[], "following"),
        row("no work to end", Play::following, |p| p.input(Input::WorkEnded), &[], "following"),
        row("nothing to resign", Play::following, |p| p.input(Input::Resign), &[], "following"),
        row("a suspend", Play::following, |p| p.after(S, Input::Suspended(S)), &[], "following"),
    ]);
}

#[test]
fn while_bidding() {
    check(&[
        row("granted", Play::bidding, |p| bid_answered(p, granted(7)), &["start"], "leading"),
        row("held", Play::bidding, |p| bid_answered(p, held(S)), &[], "following"),
        row("unavailable", Play::bidding, |p| bid_answered(p, failed(Unavailable)), &[], "following"),
        row("unknown", Play::bidding, |p| bid_answered(p, failed(Unknown)), &[], "following"),
        row("denied", Play::bidding, |p| bid_answered(p, failed(Denied)), &[], "ended"),
        row("malformed", Play::bidding, |p| bid_answered(p, failed(Malformed)), &[], "ended"),
        row("unsupported", Play::bidding, |p| bid_answered(p, failed(Unsupported)), &[], "ended"),
        row("invalid", Play::bidding, |p| bid_answered(p, failed(Invalid)), &[], "ended"),
        row("a senseless answer", Play::bidding, |p| bid_answered(p, extended()), &[], "following"),
        row("abandoned", Play::bidding, |p| p.after(3 * S, Input::Tick), &["bid"], "bidding"),
        row(
            "granted after C",
            Play::bidding,
            |p| {
                p.now = p.now + 12 * S;
                bid_answered(p, granted(7))
            },
            &["bid"],
            "bidding",
        ),
        row("a hint", Play::bidding, |p| p.input(Input::Woken(WakeUp::Vacated)), &[], "bidding"),
        row("a late grant", bidding_again, |p| first_bid_answered(p, granted(7)), &[], "bidding"),
        row(
            "held, after a late grant",
            || {
                let mut p = bidding_again();
                first_bid_answered(&mut p, granted(7));
                p
            },
            |p| bid_answered(p, held(S)),
            &["bid"],
            "bidding",
        ),
        row("stop", Play::bidding, |p| p.input(Input::Stop), &[], "releasing"),
        row(
            "settles first",
            || {
                let mut p = Play::with(Timing::builder(15 * S).settle_delay(S).build().unwrap(), OnFinish::Release);
                p.tick();
                p
            },
            |p| bid_answered(p, granted(7)),
            &[],
            "settling",
        ),
        row(
            "need not settle",
            || {
                let mut p = Play::with(Timing::builder(15 * S).settle_delay(S).build().unwrap(), OnFinish::Release);
                p.tick();
                p
            },
            |p| bid_answered(p, Answer::Acquired(Acquired::Granted(grant(7).with_after_release(true)))),
            &["start"],
            "leading",
        ),
        row(
            "too short a grant",
            Play::bidding,
            |p| bid_answered(p, Answer::Acquired(Acquired::Granted(grant(7).with_ttl(10 * S)))),
            &["release"],
            "releasing",
        ),
    ]);
}

#[test]
fn while_settling() {
    check(&[
        row("settled", Play::settling, |p| p.after(2 * S, Input::Tick), &["start"], "leading"),
        row("not yet", Play::settling, |p| p.after(S, Input::Tick), &[], "settling"),
        row("stop", Play::settling, |p| p.input(Input::Stop), &["release"], "releasing"),
        row("C came first", || slow_settling(12 * S), Play::next, &["renew"], "settling"),
        row(
            "late past C",
            || slow_settling(14 * S),
            |p| {
                p.now = p.now + 12 * S;
                p.tick()
            },
            &["release"],
            "releasing",
        ),
        row(
            "late past D",
            || slow_settling(14 * S),
            |p| {
                p.now = p.now + 15 * S;
                p.tick()
            },
            &[],
            "following",
        ),
        row("lost", renewing_while_settling, |p| renewal_answered(p, lost(LossReason::Removed)), &[], "following"),
        row("extended", renewing_while_settling, |p| renewal_answered(p, extended()), &[], "settling"),
    ]);
}

fn slow_settling(delay: Duration) -> Play {
    let mut play = Play::with(Timing::builder(15 * S).settle_delay(delay).build().unwrap(), OnFinish::Release);
    play.tick();
    bid_answered(&mut play, granted(7));
    play
}

fn renewing_while_settling() -> Play {
    let mut play = slow_settling(8 * S);
    play.next();
    play
}

#[test]
fn while_leading() {
    check(&[
        row("time to renew", Play::leading, Play::next, &["renew"], "leading"),
        row("extended", Play::renewing, |p| renewal_answered(p, extended()), &[], "leading"),
        row("unavailable", Play::renewing, |p| renewal_answered(p, failed(Unavailable)), &[], "leading"),
        row("denied", Play::renewing, |p| renewal_answered(p, failed(Denied)), &[], "leading"),
        row("invalid", Play::renewing, |p| renewal_answered(p, failed(Invalid)), &[], "leading"),
        row("malformed", Play::renewing, |p| renewal_answered(p, failed(Malformed)), &["signal", "cut"], "stopping"),
        row(
            "unsupported",
            Play::renewing,
            |p| renewal_answered(p, failed(Unsupported)),
            &["signal", "cut"],
            "stopping",
        ),
        row("lost", Play::renewing, |p| renewal_answered(p, lost(LossReason::Removed)), &["signal", "cut"], "stopping"),
        row(
            "another token",
            Play::renewing,
            |p| renewal_answered(p, Answer::Renewed(Renewed::Extended(grant(8)))),
            &["signal", "cut"],
            "stopping",
        ),
        row("a senseless answer", Play::renewing, |p| renewal_answered(p, Answer::Read(None)), &[], "leading"),
        row("a hung renewal is repeated", Play::renewing, Play::next, &["renew"], "leading"),
        row(
            "C",
            Play::leading,
            |p| {
                p.now = p.deadline().saturating_sub(3 * S);
                p.tick()
            },
            &["signal", "renew"],
            "stopping",
        ),
        row("D at once", Play::leading, to_deadline, &["signal", "cut"], "stopping"),
        row("a hint", Play::leading, |p| p.after(S, Input::Woken(WakeUp::Vacated)), &["renew"], "leading"),
        row("stop", Play::leading, |p| p.input(Input::Stop), &["signal"], "stopping"),
        row("resign", Play::leading, |p| p.input(Input::Resign), &["signal", "cut"], "stopping"),
        row("work ended", Play::leading, |p| p.input(Input::WorkEnded), &["release"], "releasing"),
        row(
            "held on finish",
            || {
                let mut p = Play::with(Timing::default(), OnFinish::Hold);
                p.tick();
                bid_answered(&mut p, granted(7));
                p
            },
            |p| p.input(Input::WorkEnded),
            &[],
            "ended",
        ),
        row("a late bid, same token", Play::leading, |p| bid_answered(p, granted(7)), &[], "leading"),
        row("a late bid, higher token", Play::leading, |p| bid_answered(p, granted(8)), &["signal", "cut"], "stopping"),
        row(
            "a suspend past D",
            Play::leading,
            |p| p.after(20 * S, Input::Suspended(20 * S)),
            &["signal", "cut"],
            "stopping",
        ),
        row("a suspend within", Play::leading, |p| p.after(S, Input::Suspended(S)), &[], "leading"),
    ]);
}

#[test]
fn while_stopping() {
    check(&[
        row("the work obeyed", Play::draining, |p| p.input(Input::WorkEnded), &["release"], "releasing"),
        row("the budget is over", Play::draining, |p| p.after(3 * S, Input::Tick), &["cut"], "stopping"),
        row("renews meanwhile", Play::expiring, Play::next, &["renew"], "stopping"),
        row("D", Play::expiring, to_deadline, &["cut"], "stopping"),
        row(
            "lost while draining",
            || {
                let mut p = Play::renewing();
                p.input(Input::Stop);
                p
            },
            |p| renewal_answered(p, lost(LossReason::Removed)),
            &["cut"],
            "stopping",
        ),
        row("resigned while draining", Play::draining, |p| p.input(Input::Resign), &["cut"], "stopping"),
        row("a second stop", Play::draining, |p| p.input(Input::Stop), &[], "stopping"),
        row(
            "work overruns",
            || {
                let mut p = Play::draining();
                p.after(3 * S, Input::Tick);
                p
            },
            |p| p.after(S, Input::Tick),
            &["overrun"],
            "stopping",
        ),
        row(
            "work ended after D",
            || {
                let mut p = Play::expiring();
                to_deadline(&mut p);
                p
            },
            |p| p.input(Input::WorkEnded),
            &[],
            "ended",
        ),
        row(
            "work ended after a loss",
            || {
                let mut p = Play::renewing();
                renewal_answered(&mut p, lost(LossReason::Removed));
                p
            },
            |p| p.input(Input::WorkEnded),
            &[],
            "ended",
        ),
        row("work ended between C and D", Play::expiring, |p| p.input(Input::WorkEnded), &["release"], "releasing"),
    ]);
}

#[test]
fn while_releasing() {
    check(&[
        row("freed", Play::releasing, |p| release_answered(p, Answer::Released(Released::Freed)), &[], "ended"),
        row("not held", Play::releasing, |p| release_answered(p, Answer::Released(Released::NotHeld)), &[], "ended"),
        row("unavailable", Play::releasing, |p| release_answered(p, failed(Unavailable)), &[], "releasing"),
        row(
            "tried again",
            || {
                let mut p = Play::releasing();
                release_answered(&mut p, failed(Unavailable));
                p
            },
            Play::next,
            &["release"],
            "releasing",
        ),
        row("hung, tried again", Play::releasing, Play::next, &["release"], "releasing"),
        row("denied", Play::releasing, |p| release_answered(p, failed(Denied)), &[], "ended"),
        row("budget over", Play::releasing, |p| p.after(3 * S, Input::Tick), &[], "ended"),
        row("a senseless answer", Play::releasing, |p| release_answered(p, extended()), &[], "releasing"),
        row("stop", Play::releasing, |p| p.input(Input::Stop), &[], "releasing"),
        row("a hint", Play::releasing, |p| p.input(Input::Woken(WakeUp::Vacated)), &[], "releasing"),
        row("found nothing", reading, |p| answer_last(p, Call::Read, Answer::Read(None)), &[], "ended"),
        row("found another", reading, |p| answer_last(p, Call::Read, Answer::Read(Some(record(2)))), &[], "ended"),
        row(
            "found its own",
            reading,
            |p| answer_last(p, Call::Read, Answer::Read(Some(record(1)))),
            &["release"],
            "releasing",
        ),
        row(
            "found its own, late",
            || {
                let mut p = reading();
                p.next();
                p
            },
            |p| {
                let slow = Attempt { number: p.last(Call::Read).number - 1, ..p.last(Call::Read) };
                p.answer(slow, Answer::Read(Some(record(1))))
            },
            &["release"],
            "releasing",
        ),
        row("the read failed", reading, |p| answer_last(p, Call::Read, failed(Unavailable)), &[], "releasing"),
        row("the read was denied", reading, |p| answer_last(p, Call::Read, failed(Denied)), &[], "ended"),
        row("the read hung", reading, Play::next, &["read"], "releasing"),
        row("the bid was granted", awaiting, |p| bid_answered(p, granted(7)), &["release"], "releasing"),
        row("the bid was refused", awaiting, |p| bid_answered(p, held(S)), &[], "ended"),
        row("the bid was not applied", awaiting, |p| bid_answered(p, failed(Unavailable)), &[], "ended"),
        row("the bid is in doubt", awaiting, |p| bid_answered(p, failed(Unknown)), &["read"], "releasing"),
        row("the bid hung", awaiting, Play::next, &["read"], "releasing"),
    ]);
}

#[test]
fn after_the_end() {
    check(&[
        row("time", Play::ended, |p| p.after(100 * S, Input::Tick), &[], "ended"),
        row("stop", Play::ended, |p| p.input(Input::Stop), &[], "ended"),
        row("a late answer", Play::ended, |p| bid_answered(p, granted(9)), &[], "ended"),
        row("a hint", Play::ended, |p| p.input(Input::Woken(WakeUp::Vacated)), &[], "ended"),
    ]);
    assert_eq!(Play::ended().machine.wake_at(), None);
}

#[track_caller]
fn check(rows: &[Row]) {
    for Row { name, from, when, does, then } in rows {
        let mut play = from();
        let actions = when(&mut play);
        assert_eq!((words(&actions).as_slice(), play.state()), (*does, *then), "{name}: {play:#?}");
    }
}
