//! How a command ends: the documented exit codes and the last words on stderr.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | it was done, and the answer is an error (a tool said so, a check failed) |
//! | 2 | the command line or the configuration is wrong |
//! | 3 | no answer came: an upstream is unavailable, too slow, or refuses us |
//! | 4 | the machine refused: a port in use, a file that cannot be written |

use std::process::ExitCode;

use crate::terminal::{BAD, DIM, foreign, paint, say, unwritten};
use config::edit::Unedited;
use config::{LoadError, Problems};

/// What a command that ran to its end has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Fine,
    /// The answer was given, and it is an error.
    AnswerIsError,
    /// What was said is why no answer came.
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

/// Picks the exit code of a command that ran to its end, if its answer arrived.
pub(crate) fn success(done: Done) -> ExitCode {
    if let Some(error) = unwritten() {
        return failure(&anyhow::anyhow!("cannot write to standard output: {error}"));
    }
    match done {
        Done::Fine => ExitCode::SUCCESS,
        Done::AnswerIsError => ExitCode::from(1),
        Done::NoAnswer => ExitCode::from(3),
    }
}

/// Says what went wrong and picks the exit code for it.
pub(crate) fn failure(error: &anyhow::Error) -> ExitCode {
    if let Some(problems) = problems(error) {
        say(&problems.to_string());
    } else {
        say(&format!("{}: {}", paint(BAD, "error"), foreign(&error.to_string())));
        for cause in error.chain().skip(1) {
            say(&paint(DIM, format!("  because: {}", foreign(&cause.to_string()))));
        }
    }
    ExitCode::from(code(error))
}

fn code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref() {
        Some(CliError::Usage(_)) => 2,
        Some(CliError::NoAnswer(_)) => 3,
        Some(CliError::Refused(_)) => 1,
        None if error.is::<LoadError>() || error.is::<Problems>() || error.is::<Unedited>() => 2,
        None => 4,
    }
}

/// What is wrong in a configuration, if that is why.
fn problems(error: &anyhow::Error) -> Option<&Problems> {
    match error.downcast_ref() {
        Some(LoadError::Wrong(problems)) => Some(problems),
        Some(LoadError::Unreadable { .. } | LoadError::NoServers(_)) => None,
        None => match error.downcast_ref() {
            Some(Unedited::Wrong(problems)) => Some(problems),
            Some(
                Unedited::Foreign(_)
                | Unedited::Taken(_)
                | Unedited::Unknown { .. }
                | Unedited::Unsafe { .. },
            ) => None,
            None => error.downcast_ref(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_stop_has_its_exit_code() {
        assert_eq!(code(&CliError::Usage("x".to_owned()).into()), 2);
        assert_eq!(code(&CliError::NoAnswer("x".to_owned()).into()), 3);
        assert_eq!(code(&CliError::Refused("x".to_owned()).into()), 1);
        assert_eq!(code(&anyhow::anyhow!("the port is taken")), 4);
    }
}
