//! `tenure conformance`: holds a store to the suite.

use std::fs;
use std::io::{IsTerminal, Write, stderr};
use std::path::Path;

use anyhow::{Context, Result};
use tenure::{LeaseStore, StoreUrl};
use tenure_conformance::{Plan, Report, StoreHarness};

use crate::args::{ConformanceArgs, Format, Global};
use crate::{exit, logging, output, store};

pub(crate) fn conformance(global: &Global, args: &ConformanceArgs) -> u8 {
    let usage = |error: &anyhow::Error| {
        logging::failure(global, error);
        exit::USAGE
    };
    let url = match store::choose(&global.store) {
        Ok(url) => url,
        Err(error) => return usage(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return usage(&error.into()),
    };
    let report = runtime.block_on(async { Ok(tenure_conformance::run(&harness(url).await?, plan(args)).await) });
    let shown: Result<Report> = report.and_then(|report| show(global, args, &report).map(|()| report));
    match shown {
        Ok(report) if report.is_ok() => exit::YES,
        Ok(_) => exit::NO,
        Err(error) => {
            logging::failure(global, &error);
            exit::UNSURE
        }
    }
}

/// A client per call, as in life; but each client of `memory:` would be a store of its own.
async fn harness(url: StoreUrl) -> Result<StoreHarness> {
    let first: std::sync::Arc<dyn LeaseStore> = store::open(&url).await?;
    if url.scheme() == "memory" {
        return Ok(StoreHarness::new(first));
    }
    Ok(StoreHarness::connecting(move || {
        let url = url.clone();
        Box::pin(async move { store::open(&url).await })
    }))
}

fn plan(args: &ConformanceArgs) -> Plan {
    let plan = if args.only.is_empty() { Plan::default() } else { Plan::default().only(args.only.iter()) };
    if !stderr().is_terminal() {
        return plan;
    }
    plan.on_progress(|clause| {
        // Somebody who looks at a terminal sees that it goes on; a closed one is nobody's concern.
        let _ = write!(stderr(), "\r\x1b[K{}", clause.id);
        let _ = stderr().flush();
    })
}

fn show(global: &Global, args: &ConformanceArgs, report: &Report) -> Result<()> {
    if stderr().is_terminal() {
        let _ = write!(stderr(), "\r\x1b[K");
    }
    if let Some(path) = &args.junit {
        write(path, &report.to_junit())?;
    }
    match global.output {
        Format::Text => output::line(report.to_string().trim_end())?,
        Format::Json => output::line(&report.to_json())?,
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("--junit: cannot write {}", path.display()))
}
