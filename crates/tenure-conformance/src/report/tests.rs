use super::*;

fn clause(id: &'static str, outcome: Outcome, ms: u64) -> ClauseReport {
    ClauseReport { id, says: "It holds.", outcome, took: Duration::from_millis(ms) }
}

fn report() -> Report {
    let mut report = Report::of_store(StoreDescriptor::new("redis").with_version(Some("7.2".to_owned())));
    report.clauses = vec![
        clause("acquire-free", Outcome::Passed, 12),
        clause("renew-extends", Outcome::Failed("a <b> \"c\" & d\nnext \u{1}".to_owned()), 3),
        clause("time-zone", Outcome::Skipped("no second process".to_owned()), 0),
    ];
    report.figures.add_expiry(Duration::from_millis(500), Duration::from_millis(509));
    report
}

#[test]
fn the_text_ends_with_the_counts() {
    let text = report().to_string();
    assert!(text.ends_with("\n1 passed, 1 failed, 1 skipped"), "{text}");
    assert!(text.contains("expiry_lateness_ms: p50 9, max 9 (of 1)"), "{text}");
}

#[test]
fn the_json_has_every_field_that_programs_read() {
    let json: serde_json::Value = serde_json::from_str(&report().to_json()).unwrap();
    assert_eq!((&json["v"], &json["store"], &json["version"]), (&1.into(), &"redis".into(), &"7.2".into()));
    let clause = |at: usize| json["clauses"][at].clone();
    assert_eq!(clause(0), serde_json::json!({ "id": "acquire-free", "outcome": "passed", "reason": null, "ms": 12 }));
    assert_eq!(
        (clause(1)["outcome"].clone(), clause(2)["reason"].clone()),
        ("failed".into(), "no second process".into())
    );
    assert_eq!(
        (&json["figures"]["expiry_lateness_ms"]["p50"], &json["figures"]["wake_up_us"]),
        (&9.into(), &().into())
    );
    assert_eq!((&json["passed"], &json["failed"], &json["skipped"]), (&1.into(), &1.into(), &1.into()));
}

#[test]
fn the_junit_is_well_formed_whatever_a_reason_holds() {
    let xml = report().to_junit();
    assert!(xml.contains(r#"tests="3" failures="1" skipped="1""#), "{xml}");
    assert!(xml.contains("message=\"a &lt;b&gt; &quot;c&quot; &amp; d&#10;next \u{fffd}\""), "{xml}");
}

#[test]
fn a_run_of_nothing_and_a_store_that_does_not_answer_are_failures() {
    assert!(!Report::of_nothing("the plan names no clause").is_ok());
    let unanswered = Report::unanswered(&crate::clauses(), &Stop::Failed("refused".to_owned()));
    assert!(!unanswered.is_ok());
    assert_eq!(unanswered.failed(), crate::clauses().len());
}
