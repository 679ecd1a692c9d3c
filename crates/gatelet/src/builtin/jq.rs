//! jq in a process of its own.
//!
//! A jq program need not end and may ask for any amount of memory, and the
//! interpreter cannot be interrupted. So it runs in a child of ours, with a
//! limit on its memory and an empty environment, and is ended when its time
//! is over.

use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data};
use jaq_json::Val;
use native::Fault;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The hidden command that makes this program the child.
pub(crate) const COMMAND: &str = "jq-worker";

const TIME: Duration = Duration::from_secs(5);
const MEMORY: u64 = 512 << 20;
/// More output than this is not read by anybody.
const OUTPUT: usize = 4 << 20;

/// A filter and what to run it on.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Task {
    pub(super) filter: String,
    /// JSON text.
    pub(super) input: String,
}

/// Runs a filter in a child; its outputs as JSON, one per line.
pub(super) async fn run(task: &Task) -> Result<String, Fault> {
    let broken = |error: std::io::Error| Fault::new("JqUnavailable", error.to_string());
    let mut child = tokio::process::Command::new(std::env::current_exe().map_err(broken)?)
        .arg(COMMAND)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(broken)?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let talk = async {
        if let Some(mut stdin) = stdin {
            let task = serde_json::to_vec(task).unwrap_or_default();
            stdin.write_all(&task).await?;
        }
        let mut text = String::new();
        if let Some(stdout) = stdout {
            stdout.take(OUTPUT as u64 + 1024).read_to_string(&mut text).await?;
        }
        Ok(text)
    };
    let text = match tokio::time::timeout(TIME, talk).await {
        Ok(text) => text.map_err(broken)?,
        Err(_) => {
            let message = format!("the filter did not end within {} seconds", TIME.as_secs());
            return Err(Fault::new("JqTimeout", message));
        }
    };
    let ended: Ended = serde_json::from_str(&text).map_err(|_| {
        Fault::new("JqTooBig", "the filter needed more memory than it may have".to_owned())
    })?;
    match ended {
        Ended::Outputs(outputs) => Ok(outputs),
        Ended::Wrong(message) => Err(Fault::new("JqError", message)),
    }
}

/// What the child says on its stdout.
#[derive(Debug, Deserialize, Serialize)]
enum Ended {
    Outputs(String),
    Wrong(String),
}

/// The child: reads a task on stdin, writes how it ended on stdout.
pub(crate) fn work() -> anyhow::Result<()> {
    limit_memory();
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let ended = match evaluate(&serde_json::from_str(&text)?) {
        Ok(outputs) => Ended::Outputs(outputs),
        Err(message) => Ended::Wrong(message),
    };
    std::io::stdout().write_all(&serde_json::to_vec(&ended)?)?;
    Ok(())
}

#[cfg(unix)]
fn limit_memory() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limit = Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) };
    // Where the limit cannot be set, the time limit still holds.
    let _ = setrlimit(Resource::As, limit);
}

#[cfg(not(unix))]
fn limit_memory() {}

fn evaluate(task: &Task) -> Result<String, String> {
    let input = jaq_json::read::parse_single(task.input.as_bytes())
        .map_err(|error| format!("the input is not JSON: {error}"))?;
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let arena = Arena::default();
    let modules = Loader::new(defs)
        .load(&arena, File { code: task.filter.as_str(), path: () })
        .map_err(|errors| describe_load(&errors))?;
    let filter = Compiler::default()
        .with_funs(funs)
        .compile(modules)
        .map_err(|errors| describe_compile(&errors))?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut outputs = String::new();
    for output in filter.id.run((context, input)) {
        match output {
            Ok(value) => outputs += &format!("{value}\n"),
            Err(exception) => match exception.get_err() {
                Ok(error) => return Err(error.to_string()),
                Err(_) => break,
            },
        }
        if OUTPUT < outputs.len() {
            return Err(format!("the filter has more than {OUTPUT} bytes of output"));
        }
    }
    Ok(outputs)
}

type LoadErrors<'s> = jaq_core::load::Errors<&'s str, ()>;
type CompileErrors<'s> = jaq_core::compile::Errors<&'s str, ()>;

fn describe_load(errors: &LoadErrors<'_>) -> String {
    use jaq_core::load::Error;
    let place =
        |rest: &str| if rest.is_empty() { "its end".to_owned() } else { format!("`{rest}`") };
    let mut lines = Vec::new();
    for (_, error) in errors {
        match error {
            Error::Io(list) => lines.extend(list.iter().map(|(_, message)| message.clone())),
            Error::Lex(list) => {
                lines.extend(list.iter().map(|(wanted, rest)| {
                    format!("expected {} at {}", wanted.as_str(), place(rest))
                }))
            }
            Error::Parse(list) => {
                lines.extend(list.iter().map(|(wanted, rest)| {
                    format!("expected {} at {}", wanted.as_str(), place(rest))
                }))
            }
        }
    }
    format!("the filter cannot be read: {}", lines.join("; "))
}

fn describe_compile(errors: &CompileErrors<'_>) -> String {
    let undefined = errors.iter().flat_map(|(_, list)| list);
    let names: Vec<String> =
        undefined.map(|(name, what)| format!("{} `{name}`", what.as_str())).collect();
    format!("the filter uses what jq does not have: undefined {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(filter: &str, input: &str, expected: &str) {
        let task = Task { filter: filter.to_owned(), input: input.to_owned() };
        let found = evaluate(&task).unwrap_or_else(|message| format!("error: {message}"));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_filter_gives_one_line_per_output() {
        check(".[] | select(.a > 1)", r#"[{"a":1},{"a":2},{"a":3}]"#, "{\"a\":2}\n{\"a\":3}\n");
        check("[.[].a] | add", r#"[{"a":1},{"a":2}]"#, "3\n");
        check("12345678901234567890", "null", "12345678901234567890\n");
    }

    #[test]
    fn a_wrong_filter_says_what_is_wrong() {
        check(".a[", "{}", "error: the filter cannot be read: expected closing bracket at its end");
        check(
            "nope(1)",
            "{}",
            "error: the filter uses what jq does not have: undefined filter `nope`",
        );
        check(".a", "[]", "error: cannot index [] with \"a\"");
    }

    #[test]
    fn a_filter_may_stop_early() {
        check("1, halt, 2", "null", "1\n");
    }
}
