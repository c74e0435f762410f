//! What a run measures besides right and wrong.

use std::collections::BTreeMap;
use std::time::Duration;

/// Something that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Figure {
    /// How much later than its ttl a lease that nobody renewed was another candidate's, in milliseconds. Counted from
    /// the sending of the last confirmed request to the answer to the bid that won, so a round trip is in it.
    ExpiryLateness,
    /// How long a lease was kept in all, measured in the same way, in milliseconds.
    EffectiveTtl,
    /// Time from the sending of a release to the wake-up of who watches, in microseconds.
    WakeUp,
    /// Rounds of 64 bids at once that there was time for, of 200.
    ContendedRounds,
}

impl Figure {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 4] = [Self::ExpiryLateness, Self::EffectiveTtl, Self::WakeUp, Self::ContendedRounds];

    /// Its name in reports, with the unit.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ExpiryLateness => "expiry_lateness_ms",
            Self::EffectiveTtl => "effective_ttl_ms",
            Self::WakeUp => "wake_up_us",
            Self::ContendedRounds => "contended_rounds",
        }
    }
}

/// The values of each figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    values: BTreeMap<Figure, Vec<i64>>,
}

/// A figure summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// How many values there are.
    pub count: usize,
    /// The smallest.
    pub min: i64,
    /// The median.
    pub p50: i64,
    /// The largest.
    pub max: i64,
}

impl Figures {
    /// A figure summed up; `None` when it was not measured.
    pub fn summary(&self, figure: Figure) -> Option<Summary> {
        let mut values = self.values.get(&figure)?.clone();
        values.sort_unstable();
        let (min, max) = (*values.first()?, *values.last()?);
        Some(Summary { count: values.len(), min, p50: values[values.len() / 2], max })
    }

    pub(crate) fn add(&mut self, figure: Figure, value: i64) {
        self.values.entry(figure).or_default().push(value);
    }

    /// Notes that a lease of `ttl` was another's after `kept`.
    pub(crate) fn add_expiry(&mut self, ttl: Duration, kept: Duration) {
        let millis = |d: Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
        self.add(Figure::ExpiryLateness, millis(kept) - millis(ttl));
        self.add(Figure::EffectiveTtl, millis(kept));
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (figure, mut values) in other.values {
            self.values.entry(figure).or_default().append(&mut values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_summed_up_and_an_unmeasured_one_is_unknown() {
        let mut figures = Figures::default();
        for kept in [512, 498, 503] {
            figures.add_expiry(Duration::from_millis(500), Duration::from_millis(kept));
        }
        let summary = figures.summary(Figure::ExpiryLateness).unwrap();
        assert_eq!((summary.count, summary.min, summary.p50, summary.max), (3, -2, 3, 12));
        assert_eq!(figures.summary(Figure::WakeUp), None);
    }
}
