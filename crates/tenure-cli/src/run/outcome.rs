//! How a run ended: its exit code, and the line of JSON that says the same without ambiguity.

use serde::Serialize;
use tenure::LossReason;

use super::tree::End;
use crate::exit;

/// How a run ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The program ended while leading.
    Exited(End),
    /// A signal stopped tenure, and the program with it if it ran.
    Stopped { signal: i32, program: Option<End> },
    /// Leadership was lost, and the program was stopped.
    Lost(LossReason),
    /// Gave up before leading, for this reason.
    NeverLed { code: u8, why: &'static str },
    /// The program was not run.
    Failed { code: u8, error: anyhow::Error },
}

impl Outcome {
    /// Tenure itself failed.
    pub(crate) fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self::Failed { code: exit::FAILED, error: error.into() }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Exited(end) | Self::Stopped { program: Some(end), .. } => end.code(),
            Self::Stopped { signal, program: None } => exit::of_signal(*signal),
            Self::Lost(_) => exit::LOST,
            Self::NeverLed { code, .. } | Self::Failed { code, .. } => *code,
        }
    }

    /// One line of JSON about it, for the term `token` if there was one.
    pub(crate) fn json(&self, token: Option<u64>) -> String {
        let line = Line {
            v: 1,
            outcome: match self {
                Self::Exited(_) => "exited",
                Self::Stopped { .. } => "stopped",
                Self::Lost(_) => "lost",
                Self::NeverLed { .. } => "never_led",
                Self::Failed { .. } => "failed",
            },
            code: self.code(),
            signal: match self {
                Self::Exited(end) | Self::Stopped { program: Some(end), .. } => end.signal(),
                Self::Stopped { signal, program: None } => Some(*signal),
                _ => None,
            },
            token,
            reason: match self {
                Self::Exited(_) | Self::Stopped { .. } => None,
                Self::Lost(reason) => Some(reason.as_str().to_owned()),
                Self::NeverLed { why, .. } => Some((*why).to_owned()),
                Self::Failed { error, .. } => Some(format!("{error:#}")),
            },
        };
        // A struct of strings and numbers.
        serde_json::to_string(&line).unwrap_or_default()
    }
}

/// Fields are only ever added; what is not known is `null`.
#[derive(Serialize)]
struct Line {
    v: u8,
    outcome: &'static str,
    /// What tenure exits with.
    code: u8,
    /// The signal that ended the program, or tenure while it waited.
    signal: Option<i32>,
    token: Option<u64>,
    reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_its_line_and_its_code() {
        let cases = [
            (
                Outcome::Exited(End::Code(7)),
                r#"{"v":1,"outcome":"exited","code":7,"signal":null,"token":3,"reason":null}"#,
            ),
            (
                Outcome::Exited(End::Signal(9)),
                r#"{"v":1,"outcome":"exited","code":137,"signal":9,"token":3,"reason":null}"#,
            ),
            (
                Outcome::Stopped { signal: 15, program: Some(End::Code(0)) },
                r#"{"v":1,"outcome":"stopped","code":0,"signal":null,"token":3,"reason":null}"#,
            ),
            (
                Outcome::Lost(LossReason::EXPIRED),
                r#"{"v":1,"outcome":"lost","code":120,"signal":null,"token":3,"reason":"expired"}"#,
            ),
        ];
        for (outcome, line) in cases {
            assert_eq!(outcome.json(Some(3)), line);
        }
        let without_a_term = [
            (
                Outcome::Stopped { signal: 2, program: None },
                r#"{"v":1,"outcome":"stopped","code":130,"signal":2,"token":null,"reason":null}"#,
            ),
            (
                Outcome::NeverLed { code: 0, why: "held" },
                r#"{"v":1,"outcome":"never_led","code":0,"signal":null,"token":null,"reason":"held"}"#,
            ),
            (
                Outcome::failed(anyhow::anyhow!("cause").context("what")),
                r#"{"v":1,"outcome":"failed","code":125,"signal":null,"token":null,"reason":"what: cause"}"#,
            ),
        ];
        for (outcome, line) in without_a_term {
            assert_eq!(outcome.json(None), line);
        }
    }
}
