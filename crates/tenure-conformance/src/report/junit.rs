//! The report as JUnit XML.

use std::fmt::Write;
use std::time::Duration;

use super::{ClauseReport, Outcome, Report};

pub(super) fn render(report: &Report) -> String {
    let seconds = report.clauses.iter().map(|clause| clause.took).sum::<Duration>().as_secs_f64();
    let counts = format!(
        r#"tests="{}" failures="{}" skipped="{}" errors="0" time="{seconds:.3}""#,
        report.clauses.len(),
        report.failed(),
        report.skipped(),
    );
    let store = escaped(&report.store);
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a String cannot fail.
    let _ = writeln!(xml, "<testsuites>\n  <testsuite name=\"tenure-conformance {store}\" {counts}>");
    for clause in &report.clauses {
        case(&mut xml, &store, clause);
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn case(xml: &mut String, store: &str, ClauseReport { id, outcome, took, .. }: &ClauseReport) {
    let head = format!(r#"    <testcase classname="{store}" name="{id}" time="{:.3}""#, took.as_secs_f64());
    let _ = match outcome {
        Outcome::Passed => writeln!(xml, "{head}/>"),
        Outcome::Failed(reason) => {
            writeln!(xml, "{head}><failure message=\"{}\"/></testcase>", escaped(reason))
        }
        Outcome::Skipped(reason) => {
            writeln!(xml, "{head}><skipped message=\"{}\"/></testcase>", escaped(reason))
        }
    };
}

/// Text as an attribute's value; characters that XML does not know become a replacement character.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\r' => out.push_str("&#13;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
