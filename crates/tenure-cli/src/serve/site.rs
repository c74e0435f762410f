//! Where a candidacy is shown over HTTP, beside the election and without a say in it.

use std::sync::Arc;

use tenure::LeaseName;

use super::candidacy::Candidacy;
use super::http;
use super::listen::Listen;

/// The places that are served. Sockets go with it.
pub(crate) struct Site {
    candidacy: Arc<Candidacy>,
    places: Vec<Listen>,
}

impl Site {
    /// Serves a candidacy for `name` in all of `places` until the process ends. Called before the first bid: a candidate that
    /// nobody can ask must not lead.
    ///
    /// # Errors
    ///
    /// Says which place cannot be had.
    pub(crate) fn open(name: &LeaseName, places: Vec<Listen>) -> anyhow::Result<Self> {
        let listeners = places.iter().map(Listen::bind).collect::<anyhow::Result<Vec<_>>>()?;
        let candidacy = Arc::new(Candidacy::new(name)?);
        for listener in listeners {
            http::start(listener, candidacy.clone())?;
        }
        Ok(Self { candidacy, places })
    }

    pub(crate) fn candidacy(&self) -> &Arc<Candidacy> {
        &self.candidacy
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for place in &self.places {
            place.remove();
        }
    }
}
