//! The bench: everything that a harness can do.

use std::sync::Arc;
use std::time::Duration;

use tenure_conformance::{Admin, Elsewhere, FaultInjector, Foreign, Harness, Surroundings, Trespass, Unable};
use tenure_core::{CandidateId, Fault, Label, LeaseName, LeaseStore, StoreError, WakeUp, async_trait};

use crate::mistake::Mistake;
use crate::server::{Caller, Server};
use crate::store::{CALL_BOUND, Client, Pass, SECRET};

pub(crate) struct Bench {
    server: Arc<Server>,
    slack: Duration,
}

impl Bench {
    /// With a store that is right.
    pub(crate) fn right() -> Self {
        Self { server: Server::new(None, true), slack: Duration::from_secs(2) }
    }

    /// With a store that is wrong in one thing. What it does too late is seen sooner.
    pub(crate) fn wrong(mistake: Mistake) -> Self {
        Self { server: Server::new(Some(mistake), true), slack: Duration::from_secs(1) }
    }

    fn client(&self, caller: Caller, pass: Pass) -> Arc<Client> {
        Client::new(&self.server, caller, pass)
    }

    fn trespasser(&self, pass: Pass) -> Trespass {
        Trespass { store: Ok(self.client(Caller::default(), pass)), secrets: vec![SECRET.to_owned()] }
    }
}

#[async_trait]
impl Harness for Bench {
    async fn store(&self) -> Result<Arc<dyn LeaseStore>, StoreError> {
        Ok(self.client(Caller::default(), Pass::Full))
    }

    fn slack(&self) -> Duration {
        self.slack
    }

    fn call_bound(&self) -> Duration {
        CALL_BOUND
    }

    async fn admin(&self) -> Result<Arc<dyn Admin>, Unable> {
        Ok(Arc::new(Operator(Arc::clone(&self.server))))
    }

    async fn faulty(&self) -> Result<Arc<dyn FaultInjector>, Unable> {
        Ok(Arc::new(Wire(self.client(Caller::default(), Pass::Full))))
    }

    async fn restart(&self) -> Result<(), Unable> {
        self.server.restart();
        Ok(())
    }

    async fn cut_watches(&self) -> Result<(), Unable> {
        let _ = self.server.changes.send((None, WakeUp::Resync));
        Ok(())
    }

    async fn connections(&self) -> Result<usize, Unable> {
        Ok(self.server.count_connections())
    }

    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn LeaseStore>>, Unable> {
        let server = Server::new(self.server.mistake, false);
        let client = || Client::new(&server, Caller::default(), Pass::Full) as Arc<dyn LeaseStore>;
        Ok((0..count).map(|_| client()).collect())
    }

    async fn wrong_credentials(&self) -> Result<Trespass, Unable> {
        Ok(self.trespasser(Pass::None))
    }

    async fn restricted(&self) -> Result<Trespass, Unable> {
        Ok(self.trespasser(Pass::ReadOnly))
    }

    async fn elsewhere(&self, surroundings: &Surroundings) -> Result<Box<dyn Elsewhere>, Unable> {
        let zone_ahead = match surroundings.time_zone {
            Some("Pacific/Kiritimati") => 14 * 3600,
            Some("Pacific/Pago_Pago") => -11 * 3600,
            _ => 0,
        };
        let caller = Caller { wall_clock_ahead: surroundings.wall_clock_ahead, zone_ahead, ..Caller::default() };
        let client = self.client(caller, Pass::Full);
        Ok(Box::new(Process(client)))
    }
}

/// A process that is none: what matters of one is its clock, and that its client ends with it.
struct Process(Arc<Client>);

#[async_trait]
impl Elsewhere for Process {
    fn store(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.0) as Arc<dyn LeaseStore>
    }

    async fn kill(&self) -> Result<(), Unable> {
        self.0.end();
        Ok(())
    }
}

struct Wire(Arc<Client>);

#[async_trait]
impl FaultInjector for Wire {
    fn store(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.0) as Arc<dyn LeaseStore>
    }

    async fn cause(&self, fault: Fault) -> Result<(), Unable> {
        *self.0.fault.lock().unwrap() = fault;
        Ok(())
    }
}

struct Operator(Arc<Server>);

#[async_trait]
impl Admin for Operator {
    async fn remove(&self, name: &LeaseName) -> Result<(), Unable> {
        self.0.remove(name);
        Ok(())
    }

    async fn put_foreign(&self, name: &LeaseName, foreign: Foreign) -> Result<(), Unable> {
        let label = Label::new("outsider").map_err(Unable::failed)?;
        self.0.put_foreign(name, (foreign == Foreign::WithoutExpiry).then(|| CandidateId::draw(&label)));
        Ok(())
    }

    async fn purge(&self, name: &LeaseName) -> Result<(), Unable> {
        self.remove(name).await
    }

    async fn raw(&self, name: &LeaseName) -> Result<String, Unable> {
        Ok(self.0.raw(name))
    }
}
