//! How a command ends: its exit code, and the error message on stderr.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | it was done, and the answer is an error (a tool said so, a check failed) |
//! | 2 | the command line or the configuration is wrong |
//! | 3 | no answer came: an upstream is unavailable, too slow, or refuses us |
//! | 4 | the machine refused: a port in use, a file that cannot be written |

use std::process::ExitCode;

use crate::terminal::{BAD, DIM, foreign, paint, say, write_error};
use config::edit::EditError;
use config::{LoadError, Problems};

/// How a command ended that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Fine,
    /// The answer was given, and it is an error.
    AnswerIsError,
    /// No answer came, and the command has printed why.
    NoAnswer,
}

/// Why a command could not be carried out. One variant per exit code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    NoAnswer(String),
    /// gatelet answered, and would not do it.
    #[error("{0}")]
    Refused(String),
}

/// The exit code of a command that ran to its end; a failure if its output could not be
/// written.
pub(crate) fn success(done: Done) -> ExitCode {
    if let Some(error) = write_error() {
        return failure(&anyhow::anyhow!("cannot write to standard output: {error}"));
    }
    match done {
        Done::Fine => ExitCode::SUCCESS,
        Done::AnswerIsError => ExitCode::from(1),
        Done::NoAnswer => ExitCode::from(3),
    }
}

/// Prints an error and picks the exit code for it.
pub(crate) fn failure(error: &anyhow::Error) -> ExitCode {
    if let Some(problems) = problems(error) {
        say(&problems.to_string());
    } else {
        say(&format!("{}: {}", paint(BAD, "error"), foreign(&error.to_string())));
        for cause in new_causes(error) {
            say(&paint(DIM, format!("  because: {}", foreign(&cause))));
        }
    }
    ExitCode::from(code(error))
}

/// The causes of an error that no earlier message contains already.
fn new_causes(error: &anyhow::Error) -> Vec<String> {
    let mut messages = vec![error.to_string()];
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !messages.iter().any(|message| message.contains(&cause)) {
            messages.push(cause);
        }
    }
    messages.split_off(1)
}

fn code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref() {
        Some(CliError::Usage(_)) => 2,
        Some(CliError::NoAnswer(_)) => 3,
        Some(CliError::Refused(_)) => 1,
        None if error.is::<LoadError>() || error.is::<Problems>() || error.is::<EditError>() => 2,
        None => 4,
    }
}

/// The problems of the configuration, if the error is about those.
fn problems(error: &anyhow::Error) -> Option<&Problems> {
    match error.downcast_ref() {
        Some(LoadError::Wrong(problems)) => Some(problems),
        Some(LoadError::Unreadable { .. } | LoadError::NoServers(_)) => None,
        None => match error.downcast_ref() {
            Some(EditError::Wrong(problems)) => Some(problems),
            Some(
                EditError::Foreign(_)
                | EditError::Taken(_)
                | EditError::Unknown { .. }
                | EditError::Unsafe { .. },
            ) => None,
            None => error.downcast_ref(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_was_said_is_not_said_again() {
        let full = std::io::Error::other("no space left");
        let error = anyhow::Error::new(full).context("cannot write `x`").context("cannot add it");
        assert_eq!(new_causes(&error), ["cannot write `x`", "no space left"]);
        let said =
            LoadError::Unreadable { file: "x".to_owned(), source: std::io::Error::other("no") };
        assert_eq!(new_causes(&said.into()), [""; 0]);
    }

    #[test]
    fn every_way_to_stop_has_its_exit_code() {
        assert_eq!(code(&CliError::Usage("x".to_owned()).into()), 2);
        assert_eq!(code(&CliError::NoAnswer("x".to_owned()).into()), 3);
        assert_eq!(code(&CliError::Refused("x".to_owned()).into()), 1);
        assert_eq!(code(&anyhow::anyhow!("the port is taken")), 4);
    }
}
