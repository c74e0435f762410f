//! What `/metrics` tells Prometheus: what the library counts, kept here since the last scrape.

use anyhow::Context;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// Upper bounds in seconds: from a store on the same host to the longest call that a ttl of minutes allows.
const BUCKETS: [f64; 13] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// The recorder of this process.
pub(super) struct Metrics(PrometheusHandle);

impl Metrics {
    /// Records from now on; what is built later is seen. Once in a process.
    pub(super) fn install() -> anyhow::Result<Self> {
        let recorder = PrometheusBuilder::new().set_buckets(&BUCKETS).context("the buckets of histograms")?;
        let recorder = recorder.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).ok().context("metrics are recorded already")?;
        Ok(Self(handle))
    }

    /// All of it as text, in the format of Prometheus.
    pub(super) fn render(&self) -> String {
        self.0.render()
    }

    /// Sorts what has come in, so that it does not pile up where nobody scrapes.
    pub(super) fn tidy(&self) {
        self.0.run_upkeep();
    }
}
