//! `tenure watch`: a line per change of leadership.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::stream::{BoxStream, SelectAll};
use futures::{StreamExt, TryStreamExt};
use serde::Serialize;
use tenure::{LeaderChange, LeaseName, LeaseRecord, LeaseStore, StoreError};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::args::{Format, Global, Until, WatchArgs};
use crate::ask::{Usage, ask, in_time};
use crate::{exit, output};

/// Time between two looks for leases that are new, when none was named: their first lines may be so late.
const LIST_EVERY: Duration = Duration::from_secs(1);

pub(crate) fn watch(global: &Global, args: WatchArgs) -> u8 {
    ask(global, |store| async move {
        let names: HashSet<_> = args.leases.into_iter().chain(global.name.clone()).collect();
        if args.until.is_some() && names.is_empty() {
            return Err(Usage("--until needs the name of a lease".to_owned()).into());
        }
        let mut watch = Watch::new(store, names, args.until, global.output)?;
        let ended = match args.timeout {
            Some(longest) => timeout(longest, watch.run()).await.unwrap_or(Ok(exit::TIMED_OUT)),
            None => watch.run().await,
        };
        match ended {
            Err(error) if output::is_closed(&error) => Ok(exit::YES),
            ended => ended,
        }
    })
}

type Changes = BoxStream<'static, (LeaseName, Result<LeaderChange, StoreError>)>;

struct Watch {
    store: Arc<dyn LeaseStore>,
    /// The leases that are watched, and whether what is waited for is so.
    leases: HashMap<LeaseName, bool>,
    /// Whether leases that turn up later are watched too.
    all: bool,
    changes: SelectAll<Changes>,
    until: Option<Until>,
    format: Format,
}

impl Watch {
    fn new(
        store: Arc<dyn LeaseStore>,
        names: HashSet<LeaseName>,
        until: Option<Until>,
        format: Format,
    ) -> anyhow::Result<Self> {
        let (leases, changes) = (HashMap::new(), SelectAll::new());
        let mut watch = Self { store, leases, all: names.is_empty(), changes, until, format };
        names.into_iter().try_for_each(|name| watch.add(name))?;
        Ok(watch)
    }

    /// Shows changes until what is waited for is so.
    async fn run(&mut self) -> anyhow::Result<u8> {
        let mut list_again = interval(LIST_EVERY);
        list_again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some((name, change)) = self.changes.next(), if !self.changes.is_empty() => match change {
                    Ok(change) => {
                        self.show(&name, &change)?;
                        if self.comes_true(name, &change) {
                            return Ok(exit::YES);
                        }
                    }
                    Err(error) if error.kind().is_transient() => tracing::warn!(%error, "cannot see the store"),
                    Err(error) => return Err(error.into()),
                },
                _ = list_again.tick(), if self.all => self.list().await?,
            }
        }
    }

    async fn list(&mut self) -> anyhow::Result<()> {
        let records: Vec<LeaseRecord> = match in_time(self.store.list().try_collect()).await {
            Ok(records) => records,
            Err(error) => match error.downcast_ref::<StoreError>() {
                Some(error) if error.kind().is_transient() => {
                    tracing::warn!(%error, "cannot list the leases");
                    return Ok(());
                }
                _ => return Err(error),
            },
        };
        records.into_iter().try_for_each(|record| self.add(record.name))
    }

    fn add(&mut self, name: LeaseName) -> anyhow::Result<()> {
        if self.leases.insert(name.clone(), false).is_none() {
            let changes = tenure::observe(self.store.clone(), name.clone())?;
            self.changes.push(changes.map(move |change| (name.clone(), change)).boxed());
        }
        Ok(())
    }

    fn show(&self, name: &LeaseName, change: &LeaderChange) -> anyhow::Result<()> {
        let Some(line) = Change::new(name, change) else { return Ok(()) };
        match self.format {
            Format::Json => output::json(&line)?,
            Format::Text => output::line(&line.in_words())?,
        }
        Ok(())
    }

    /// Whether what is waited for is so now, of every lease.
    fn comes_true(&mut self, name: LeaseName, change: &LeaderChange) -> bool {
        let Some(until) = &self.until else { return false };
        let met = match (change, until) {
            (LeaderChange::Elected(_), Until::Leader) | (LeaderChange::Vacant, Until::Vacant) => true,
            (LeaderChange::Elected(record), Until::Candidate(id)) => {
                record.holder == *id || record.holder.label() == id.as_str()
            }
            (LeaderChange::Elected(_) | LeaderChange::Vacant, _) => false,
            _ => return false,
        };
        self.leases.insert(name, met);
        self.leases.values().all(|met| *met)
    }
}

/// The JSON of one change. Fields are only ever added; what is not known is `null`.
#[derive(Serialize)]
struct Change<'a> {
    v: u8,
    name: &'a str,
    change: &'static str,
    candidate: Option<&'a str>,
    token: Option<u64>,
    at: String,
}

impl<'a> Change<'a> {
    fn new(name: &'a LeaseName, change: &'a LeaderChange) -> Option<Self> {
        let (change, record) = match change {
            LeaderChange::Elected(record) => ("elected", Some(record)),
            LeaderChange::Vacant => ("vacant", None),
            LeaderChange::Resync => ("resync", None),
            // A kind of change that this command does not know yet.
            _ => return None,
        };
        Some(Self {
            v: 1,
            name: name.as_str(),
            change,
            candidate: record.map(|record| record.holder.as_str()),
            token: record.map(|record| record.token.value()),
            at: output::rfc3339(SystemTime::now()),
        })
    }

    fn in_words(&self) -> String {
        let Self { name, change, at, .. } = self;
        match (self.candidate, self.token) {
            (Some(candidate), Some(token)) => format!("{at} {name}: {change} {candidate} under token {token}"),
            _ => format!("{at} {name}: {change}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure::{CandidateId, FencingToken};

    use super::*;

    #[test]
    fn changes_have_one_shape_in_json() {
        let name = LeaseName::new("nightly").unwrap();
        let holder = CandidateId::from_wire("w_1").unwrap();
        let record = LeaseRecord::new(name.clone(), holder, FencingToken(7), Duration::from_secs(15));
        let json = |change: LeaderChange| {
            let line = Change { at: "T".to_owned(), ..Change::new(&name, &change).unwrap() };
            serde_json::to_string(&line).unwrap()
        };
        assert_eq!(
            json(LeaderChange::Elected(record)),
            r#"{"v":1,"name":"nightly","change":"elected","candidate":"w_1","token":7,"at":"T"}"#
        );
        assert_eq!(
            json(LeaderChange::Vacant),
            r#"{"v":1,"name":"nightly","change":"vacant","candidate":null,"token":null,"at":"T"}"#
        );
        assert_eq!(
            json(LeaderChange::Resync),
            r#"{"v":1,"name":"nightly","change":"resync","candidate":null,"token":null,"at":"T"}"#
        );
    }
}
