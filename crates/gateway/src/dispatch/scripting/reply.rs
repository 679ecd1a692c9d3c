//! What a caller is told of a script.

use script::protocol::ScriptError;
use script::{Finished, Journal, Limits};
use serde_json::json;
use tool::{Json, Object, Reply};

use crate::choice::Surface;
use artifacts::TooLarge;

/// What there is to tell of a script.
pub(super) struct Told<'a> {
    pub(super) limits: &'a Limits,
    pub(super) handle: &'a str,
    pub(super) surface: Surface,
    pub(super) journal: &'a Journal,
    /// What somebody has to agree to.
    pub(super) asked: Vec<String>,
    /// The tools of those calls, as `upstream/tool`.
    pub(super) waits_for: Vec<String>,
    /// The calls that may have changed something.
    pub(super) changed: Vec<String>,
}

pub(super) fn error(why: &str) -> Reply {
    Reply::error_text(&format!("**Error:** {why}."))
}

/// The script was begun before: a program may go on with it by the handle.
pub(super) fn unfinished(handle: &str) -> Reply {
    let text = format!(
        "**Error:** this script was begun before and did not end; it is kept as `{handle}`. Go on with \
         `{{\"resume\": \"{handle}\"}}`, or start it again with `\"fresh\": true`, which may do \
         things twice."
    );
    let meta = json!({"gatelet/script": {"id": handle, "unfinished": true}});
    result([text].into_iter(), true, meta.into())
}

impl Told<'_> {
    pub(super) fn finished(&self, finished: &Finished) -> Reply {
        let log = log(finished);
        match &finished.outcome {
            Ok(Some(returned)) => {
                let returned = Json::from_trusted(returned.get().to_owned());
                let text = returned.string_value().unwrap_or_else(|| returned.to_string());
                result([text].into_iter().chain(log), false, self.meta(finished))
            }
            Ok(None) => {
                let text = "The script returned nothing: end it with `return …`.".to_owned();
                result([text].into_iter().chain(log), false, self.meta(finished))
            }
            Err(error) => {
                let why = self.explain(error);
                let text = format!("**Script failed:** {why}.{}", self.done());
                result([text].into_iter().chain(log), true, self.meta(finished))
            }
        }
    }

    fn meta(&self, finished: &Finished) -> Json {
        let calls = self.journal.n_answered();
        json!({"gatelet/script": {"id": self.handle, "calls": calls, "steps": finished.steps}})
            .into()
    }

    /// The call that goes on with the script, as its surface writes it.
    fn resuming(&self) -> String {
        let handle = self.handle;
        match self.surface {
            Surface::Gateway => format!("tool_run({{\"resume\": \"{handle}\"}})"),
            Surface::Cash | Surface::Proxy | Surface::Direct | Surface::Auto => format!(
                "call(namespace=\"gatelet\", function=\"run\", kwargs={{\"resume\": \"{handle}\"}})"
            ),
        }
    }

    /// The script stopped before a call that somebody has to agree to.
    pub(super) fn paused(&self, kept: Result<(), TooLarge>) -> Reply {
        let asked = self.asked.join("\n- ");
        let n_calls = self.journal.n_answered();
        let next = match kept {
            Ok(()) => format!(
                "{n_calls} calls are done and will not run again. To go on once that is settled: `{}`, \
                 with the same `confirm` if a token was given.",
                self.resuming()
            ),
            Err(why) => format!("It cannot be continued: its journal is not kept ({why})."),
        };
        let text = format!("**Paused:** the script waits before\n- {asked}\n{next}{}", self.done());
        let told = json!({"id": self.handle, "calls": n_calls, "paused": true, "waits_for": self.waits_for});
        let meta = json!({"gatelet/script": told});
        result([text].into_iter(), true, meta.into())
    }

    /// The script was stopped from outside.
    pub(super) fn stopped(&self, why: &str, kept: Result<(), TooLarge>) -> Reply {
        let next = match kept {
            Ok(()) if self.journal.n_answered() != 0 => format!(
                " To go on from there without repeating what is done: `{}`.",
                self.resuming()
            ),
            Ok(()) | Err(_) => String::new(),
        };
        let text = format!("**Script stopped:** {why}.{next}{}", self.done());
        let meta =
            json!({"gatelet/script": {"id": self.handle, "calls": self.journal.n_answered()}});
        result([text].into_iter(), true, meta.into())
    }

    fn explain(&self, error: &ScriptError) -> String {
        let at = |place: &str| if place.is_empty() { String::new() } else { format!(" ({place})") };
        match error {
            ScriptError::Thrown { message, place } => {
                format!("{}{}", catalog::summary::cut(message, 1_500), at(place))
            }
            ScriptError::Syntax { message, place } => format!(
                "{message}{}; the code is the body of an async JavaScript function",
                at(place)
            ),
            ScriptError::Limit(limit) => self.limits.explain(*limit),
            ScriptError::Stuck => {
                "it waits for something that never comes; `await` the promises of \
                                   `tools` only"
                    .to_owned()
            }
            ScriptError::Unwritable(why) => format!("what it returned is not JSON: {why}"),
        }
    }

    /// What was done before, which the next script must not do again.
    fn done(&self) -> String {
        let begun: Vec<String> = self.journal.begun().map(|made| made.path.join(".")).collect();
        let mut text = match self.changed.as_slice() {
            [] => String::new(),
            changed => format!("\nDone before that, and not undone: {}.", listed(changed)),
        };
        if !begun.is_empty() {
            text.push_str(&format!("\nBegun, and may have run: {}.", listed(&begun)));
        }
        text
    }
}

/// How many calls are named.
const NAMED: usize = 12;

fn listed(names: &[String]) -> String {
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", "))
}

/// What the script logged, as one text.
fn log(finished: &Finished) -> Option<String> {
    let mut lines = finished.log.clone();
    if finished.log_dropped != 0 {
        lines.push(format!("… {} more lines", finished.log_dropped));
    }
    (!lines.is_empty()).then(|| format!("Log:\n{}", lines.join("\n")))
}

fn result(texts: impl Iterator<Item = String>, is_error: bool, meta: Json) -> Reply {
    let blocks: Vec<_> = texts.map(|text| json!({"type": "text", "text": text})).collect();
    let mut result = Object::new();
    result.push("content", Json::encode(&blocks));
    if is_error {
        result.push("isError", Json::encode(&true));
    }
    result.push("_meta", meta);
    Reply::Result(result.to_json())
}
