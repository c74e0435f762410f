//! The report as JSON.

use serde_json::{Map, Value, json};

use super::{ClauseReport, Report};
use crate::figures::{Figure, Figures};

pub(super) fn render(report: &Report) -> String {
    json!({
        "v": 1,
        "store": report.store,
        "version": report.version,
        "clauses": report.clauses.iter().map(clause).collect::<Vec<_>>(),
        "figures": figures(&report.figures),
        "leftovers": report.leftovers,
        "passed": report.passed(),
        "failed": report.failed(),
        "skipped": report.skipped(),
    })
    .to_string()
}

fn clause(clause: &ClauseReport) -> Value {
    json!({
        "id": clause.id,
        "outcome": clause.outcome.as_str(),
        "reason": clause.outcome.reason(),
        "ms": u64::try_from(clause.took.as_millis()).unwrap_or(u64::MAX),
    })
}

/// Every figure; what was not measured is `null`.
fn figures(figures: &Figures) -> Map<String, Value> {
    let value =
        |figure| figures.summary(figure).map(|s| json!({ "p50": s.p50, "max": s.max, "min": s.min, "count": s.count }));
    Figure::ALL.into_iter().map(|figure| (figure.as_str().to_owned(), json!(value(figure)))).collect()
}
