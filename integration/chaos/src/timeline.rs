//! Who led when, with the harm marked, as a picture.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::history::{History, What};

const WIDTH: f64 = 1200.0;
const LEFT: f64 = 70.0;
const ROW: f64 = 26.0;

/// An SVG that stands by itself.
pub(crate) fn draw(history: &History) -> String {
    let terms = history.terms(&mut Vec::new());
    let (first, last) = match (history.events.first(), history.events.last()) {
        (Some(first), Some(last)) => (first.at, last.at.max(first.at + 1)),
        _ => (0, 1),
    };
    let x = |at: u64| LEFT + (at.saturating_sub(first)) as f64 / (last - first) as f64 * (WIDTH - LEFT - 20.0);
    let mut rows: BTreeMap<&str, f64> = BTreeMap::new();
    for term in &terms {
        rows.entry(&term.who).or_insert(0.0);
    }
    for (n, row) in rows.values_mut().enumerate() {
        *row = 40.0 + n as f64 * ROW;
    }
    let bottom = 40.0 + rows.len() as f64 * ROW;
    let height = bottom + 60.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\">Who led when; above, the harm that was done ({:.0} s)</text>\n",
        (last - first) as f64 / 1e9
    );
    for event in &history.events {
        if let What::Harm(name, lasts) = &event.what {
            let (from, to) = (x(event.at), x(event.at + u64::try_from(lasts.as_nanos()).unwrap_or(0)));
            let row = name.split_whitespace().last().and_then(|who| rows.get(who));
            let (y, h) = row.map_or((36.0, bottom - 36.0), |y| (y - 2.0, ROW - 4.0));
            let _ = writeln!(
                svg,
                "<rect x=\"{from:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"{h}\" fill=\"#f3c6b8\" opacity=\"0.7\"><title>{name} {lasts:.1?}</title></rect>",
                (to - from).max(1.0)
            );
        }
    }
    for (who, y) in &rows {
        let _ = writeln!(svg, "<text x=\"10\" y=\"{:.1}\">{who}</text>", y + 14.0);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{0:.1}\" y2=\"{0:.1}\" stroke=\"#ddd\"/>",
            y + ROW - 4.0
        );
    }
    for term in &terms {
        let (from, to) = (x(term.begun), x(term.last.max(term.begun)));
        let y = rows[term.who.as_str()] + 2.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"14\" fill=\"#2f6f9f\"><title>{} token {}</title></rect>",
            (to - from).max(1.0),
            term.who,
            term.token
        );
    }
    let _ = writeln!(
        svg,
        "<rect x=\"{LEFT}\" y=\"{0:.1}\" width=\"14\" height=\"12\" fill=\"#2f6f9f\"/><text x=\"{1:.1}\" y=\"{2:.1}\">leads</text>\
         <rect x=\"{3:.1}\" y=\"{0:.1}\" width=\"14\" height=\"12\" fill=\"#f3c6b8\"/><text x=\"{4:.1}\" y=\"{2:.1}\">harm (the whole height: to a server)</text>",
        bottom + 24.0,
        LEFT + 20.0,
        bottom + 34.0,
        LEFT + 90.0,
        LEFT + 110.0
    );
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::history::Event;

    #[test]
    fn every_term_and_every_harm_is_drawn() {
        let event = |at, who: &str, what| Event { at, who: who.to_owned(), what };
        let events = vec![
            event(1, "a", What::Elected(1)),
            event(2, "bench", What::Harm("pause everybody".to_owned(), Duration::from_nanos(3))),
            event(4, "a", What::Stopped(1)),
            event(9, "b", What::Elected(2)),
        ];
        let svg = draw(&History::new(events, Duration::from_secs(1)));
        for drawn in ["a token 1", "b token 2", "pause everybody"] {
            assert!(svg.contains(drawn), "{drawn} is missing: {svg}");
        }
        assert!(svg.ends_with("</svg>\n"));
    }
}
