//! `tenure check`: the fencing test for scripts.

use anyhow::Result;
use serde::Serialize;
use tenure::{FencingToken, LeaseName};

use crate::args::{CheckArgs, Format, Global};
use crate::ask::{Usage, ask, in_time, one_name};
use crate::{exit, output};

pub(crate) fn check(global: &Global, args: CheckArgs) -> u8 {
    ask(global, |store| async move {
        let Some(name) = one_name(args.lease.as_ref(), global)? else {
            return Err(Usage("no lease is named: tenure check N TOKEN".to_owned()).into());
        };
        let record = in_time(store.read(name)).await?;
        let verdict = Verdict::of(name, FencingToken(args.token), record.map(|record| record.token));
        verdict.print(global.output)?;
        Ok(if verdict.current { exit::YES } else { exit::NO })
    })
}

/// The JSON of the answer.
#[derive(Serialize)]
struct Verdict {
    v: u8,
    name: String,
    token: u64,
    current: bool,
    /// The token of the term that the store knows now; `null` when nobody leads.
    current_token: Option<u64>,
}

impl Verdict {
    /// A token is current as long as its own term is: one that the store has not issued is no better than an old one.
    fn of(name: &LeaseName, token: FencingToken, held: Option<FencingToken>) -> Self {
        let (name, current_token) = (name.to_string(), held.map(FencingToken::value));
        Self { v: 1, name, token: token.value(), current: held == Some(token), current_token }
    }

    fn print(&self, format: Format) -> Result<()> {
        let Self { name, token, .. } = self;
        match (format, self.current, self.current_token) {
            (Format::Json, ..) => output::json(self)?,
            (Format::Text, true, _) => output::line(&format!("{name}: token {token} is current"))?,
            (Format::Text, false, Some(other)) => {
                output::line(&format!("{name}: token {token} is stale, the current one is {other}"))?;
            }
            (Format::Text, false, None) => output::line(&format!("{name}: token {token} is stale, nobody leads"))?,
        }
        Ok(())
    }
}
