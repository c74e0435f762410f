//! `tenure schema`: what a store needs to be set up with, for those who run it by hand.

use crate::args::Global;
use crate::{exit, logging, output, store};

pub(crate) fn schema(global: &Global) -> u8 {
    let printed = store::choose(&global.store).and_then(|url| match tenure::schema(url.expose())? {
        Some(statements) => Ok(output::line(statements.trim_end())?),
        None => {
            tracing::warn!("a store of the kind {} needs nothing to be set up", url.scheme());
            Ok(())
        }
    });
    match printed {
        Ok(()) => exit::YES,
        Err(error) => {
            logging::failure(global, &error);
            exit::USAGE
        }
    }
}
