//! `tenure status`: who leads.

use std::io::{IsTerminal, stdout};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::TryStreamExt;
use serde::Serialize;
use tenure::{LeaseName, LeaseRecord, LeaseStore};

use crate::args::{Format, Global, StatusArgs};
use crate::ask::{ask, in_time, one_name};
use crate::{exit, logging, output};

/// Time between two looks of `--watch`: as often as a person reads it.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

pub(crate) fn status(global: &Global, args: &StatusArgs) -> u8 {
    ask(global, |store| async move {
        let name = one_name(args.lease.as_ref(), global)?;
        loop {
            let (shown, code) = match look(&store, name).await {
                // Whoever watches wants to see it come back, and must not take what was shown before for the truth.
                Err(error) if args.watch => {
                    clear_screen()?;
                    logging::failure(global, &error);
                    tokio::time::sleep(AGAIN_AFTER).await;
                    continue;
                }
                looked => looked?,
            };
            if args.watch {
                clear_screen()?;
            }
            match shown.print(global.output).map_err(anyhow::Error::from) {
                Err(error) if output::is_closed(&error) => return Ok(code),
                printed => printed?,
            }
            if !args.watch {
                return Ok(code);
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    })
}

/// Starts at the top of an empty screen, where there is one.
fn clear_screen() -> std::io::Result<()> {
    if stdout().is_terminal() { output::line("\x1b[2J\x1b[H") } else { Ok(()) }
}

/// What the store says now, and the exit code that goes with it.
async fn look(store: &Arc<dyn LeaseStore>, name: Option<&LeaseName>) -> anyhow::Result<(Shown, u8)> {
    let kind = store.describe().name.into_owned();
    let at = |record: Option<LeaseRecord>, name: LeaseName| Status::new(name, kind.clone(), record);
    let shown = match name {
        Some(name) => Shown::One(at(in_time(store.read(name)).await?, name.clone())),
        None => {
            let mut records: Vec<_> = in_time(store.list().try_collect()).await?;
            records.sort_by(|a: &LeaseRecord, b| a.name.cmp(&b.name));
            Shown::All(records.into_iter().map(|record| at(Some(record.clone()), record.name)).collect())
        }
    };
    let somebody = match &shown {
        Shown::One(status) => status.leader.is_some(),
        Shown::All(all) => !all.is_empty(),
    };
    Ok((shown, if somebody { exit::YES } else { exit::NO }))
}

#[derive(Serialize)]
#[serde(untagged)]
enum Shown {
    One(Status),
    All(Vec<Status>),
}

/// The JSON of one lease. Fields are only ever added; what is not known is `null`.
#[derive(Serialize)]
struct Status {
    v: u8,
    name: String,
    store: String,
    leader: Option<Leader>,
    observed_at: String,
}

#[derive(Serialize)]
struct Leader {
    candidate: String,
    label: String,
    token: u64,
    payload: Option<String>,
    acquired_at: Option<String>,
    expires_in_ms: u64,
}

impl Status {
    fn new(name: LeaseName, store: String, record: Option<LeaseRecord>) -> Self {
        let observed_at = output::rfc3339(SystemTime::now());
        Self { v: 1, name: name.to_string(), store, leader: record.map(Leader::from), observed_at }
    }
}

impl From<LeaseRecord> for Leader {
    fn from(record: LeaseRecord) -> Self {
        Self {
            label: record.holder.label().to_owned(),
            candidate: record.holder.to_string(),
            token: record.token.value(),
            payload: (!record.payload.is_empty()).then(|| record.payload.to_string()),
            acquired_at: record.acquired_at.map(output::rfc3339),
            expires_in_ms: u64::try_from(record.remaining.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl Shown {
    fn print(&self, format: Format) -> std::io::Result<()> {
        match (format, self) {
            (Format::Json, shown) => output::json(shown),
            (Format::Text, Self::One(status)) => output::line(&status.in_words()),
            (Format::Text, Self::All(all)) => output::line(&table(all)),
        }
    }
}

impl Status {
    fn in_words(&self) -> String {
        let Some(leader) = &self.leader else { return format!("{}: nobody leads", self.name) };
        let mut words = format!("{}: {} leads under token {}", self.name, leader.label, leader.token);
        if let Some(since) = &leader.acquired_at {
            words += &format!(" since {since}");
        }
        words += &format!(", lease for another {:?}, candidate {}", leader.left(), leader.candidate);
        if let Some(payload) = &leader.payload {
            words += &format!(", payload {payload:?}");
        }
        words
    }
}

impl Leader {
    fn left(&self) -> Duration {
        Duration::from_millis(self.expires_in_ms)
    }
}

fn table(all: &[Status]) -> String {
    let rows = all.iter().filter_map(|status| {
        let leader = status.leader.as_ref()?;
        let since = leader.acquired_at.clone().unwrap_or_else(|| "?".to_owned());
        let payload = leader.payload.as_ref().map(|payload| format!("{payload:?}")).unwrap_or_default();
        let left = format!("{:?}", leader.left());
        Some([status.name.clone(), leader.label.clone(), leader.token.to_string(), since, left, payload])
    });
    let head = ["LEASE", "LEADER", "TOKEN", "SINCE", "LEFT", "PAYLOAD"].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use tenure::{CandidateId, FencingToken, Payload};

    use super::*;

    fn record() -> LeaseRecord {
        let holder = CandidateId::from_wire(format!("worker-7_{}", "0".repeat(32))).unwrap();
        LeaseRecord::new(LeaseName::new("nightly").unwrap(), holder, FencingToken(7), Duration::from_secs(15))
            .with_remaining(Duration::from_millis(9123))
    }

    fn status(record: Option<LeaseRecord>) -> Status {
        let status = Status::new(LeaseName::new("nightly").unwrap(), "redis".to_owned(), record);
        Status { observed_at: "2026-01-02T03:04:05.678Z".to_owned(), ..status }
    }

    fn json(status: Status) -> String {
        serde_json::to_string(&Shown::One(status)).unwrap()
    }

    #[test]
    fn what_is_not_known_is_null_in_json() {
        assert_eq!(
            json(status(Some(record()))),
            "{\"v\":1,\"name\":\"nightly\",\"store\":\"redis\",\"leader\":{\"candidate\":\
             \"worker-7_00000000000000000000000000000000\",\"label\":\"worker-7\",\"token\":7,\"payload\":null,\
             \"acquired_at\":null,\"expires_in_ms\":9123},\"observed_at\":\"2026-01-02T03:04:05.678Z\"}"
        );
        assert_eq!(
            json(status(None)),
            "{\"v\":1,\"name\":\"nightly\",\"store\":\"redis\",\"leader\":null,\
             \"observed_at\":\"2026-01-02T03:04:05.678Z\"}"
        );
    }

    #[test]
    fn what_is_known_is_shown_in_both_formats() {
        let full = record().with_payload(Payload::new("a\nb").unwrap()).with_acquired_at(Some(SystemTime::UNIX_EPOCH));
        let full = status(Some(full));
        assert_eq!(
            full.in_words(),
            "nightly: worker-7 leads under token 7 since 1970-01-01T00:00:00.000Z, lease for another 9.123s, candidate \
             worker-7_00000000000000000000000000000000, payload \"a\\nb\""
        );
        let text = json(full);
        assert!(text.contains("\"payload\":\"a\\nb\",\"acquired_at\":\"1970-01-01T00:00:00.000Z\""), "{text}");
        assert_eq!(status(None).in_words(), "nightly: nobody leads");
    }

    #[test]
    fn a_table_is_aligned() {
        assert_eq!(
            table(&[status(Some(record()))]),
            "LEASE    LEADER    TOKEN  SINCE  LEFT    PAYLOAD\nnightly  worker-7  7      ?      9.123s"
        );
    }
}
