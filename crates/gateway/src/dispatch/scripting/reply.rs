//! Renders what a script came to as a reply.

use script::protocol::ScriptError;
use script::{Finished, Journal, Limits};
use serde_json::json;
use tool::{Json, Object, Reply};

use super::stored_journal::Unfinished;
use crate::choice::Surface;

/// What a reply about a script needs to know.
pub(super) struct ScriptReport<'a> {
    pub(super) limits: &'a Limits,
    pub(super) handle: &'a str,
    pub(super) surface: Surface,
    pub(super) journal: &'a Journal,
    /// The calls that wait for approval, in words.
    pub(super) awaited: Vec<String>,
    /// The tools of those calls, as `upstream/tool`.
    pub(super) waits_for: Vec<String>,
    /// The calls that may have changed something.
    pub(super) changed: Vec<String>,
}

pub(super) fn error(why: &str) -> Reply {
    Reply::error_text(&format!("**Error:** {why}."))
}

/// Renders that the script was begun before. A program may resume it by the handle.
pub(super) fn unfinished(unfinished: &Unfinished, surface: Surface) -> Reply {
    let Unfinished { handle, is_recipe } = unfinished;
    let Some(handle) = handle else {
        let again = if *is_recipe { "call it once more" } else { "add `\"fresh\": true`" };
        return error(&format!(
            "this script was begun before, on another connection, and did not end. Look at what it did: \
             nothing of it is undone. To start it again, which may do things twice, {again}"
        ));
    };
    let text = match is_recipe {
        false => format!(
            "**Error:** this script was begun before and did not end; it is kept as `{handle}`. Go on with \
             `{{\"resume\": \"{handle}\"}}`, or start it again with `\"fresh\": true`, which may do \
             things twice."
        ),
        true => format!(
            "**Error:** this recipe was begun before and did not end; it is kept as `{handle}`. Go on with \
             `{}`, or start it again, which may do things twice, with `\"fresh\": true` beside it.",
            resume_call(surface, handle)
        ),
    };
    let meta = json!({"gatelet/script": {"id": handle, "unfinished": true}});
    result([text].into_iter(), true, meta.into())
}

impl ScriptReport<'_> {
    /// Renders the result of a script that ended.
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
                let text = format!("**Script failed:** {why}.{}", self.calls_made());
                result([text].into_iter().chain(log), true, self.meta(finished))
            }
        }
    }

    fn meta(&self, finished: &Finished) -> Json {
        let calls = self.journal.n_answered();
        json!({"gatelet/script": {"id": self.handle, "calls": calls, "steps": finished.steps}})
            .into()
    }

    fn resume_call(&self) -> String {
        resume_call(self.surface, self.handle)
    }

    /// Renders that the script waits for an approval; `stored` says whether its journal is.
    pub(super) fn paused(&self, stored: Result<(), String>) -> Reply {
        let more = self.awaited.len().saturating_sub(MAX_NAMED);
        let more = (more != 0).then(|| format!("{more} more calls, which are asked about later"));
        let awaited: Vec<String> =
            self.awaited.iter().take(MAX_NAMED).cloned().chain(more).collect();
        let awaited = awaited.join("\n- ");
        let n_calls = self.journal.n_answered();
        let next = match stored {
            Ok(()) => format!(
                "{n_calls} calls are done and will not run again. To go on once that is settled: `{}`, \
                 with the same `confirm` if a token was given.",
                self.resume_call()
            ),
            Err(why) => format!("It cannot be continued: its journal is not kept ({why})."),
        };
        let text = format!(
            "**Paused:** the script waits before\n- {awaited}\n{next}{}",
            self.calls_made()
        );
        let state = json!({"id": self.handle, "calls": n_calls, "paused": true, "waits_for": self.waits_for});
        let meta = json!({"gatelet/script": state});
        result([text].into_iter(), true, meta.into())
    }

    /// Renders that the script was stopped from outside.
    pub(super) fn stopped(&self, why: &str, stored: &Result<(), String>) -> Reply {
        let next = match stored {
            Ok(()) if self.journal.n_answered() != 0 => format!(
                " To go on from there without repeating what is done: `{}`.",
                self.resume_call()
            ),
            Ok(()) | Err(_) => String::new(),
        };
        let text = format!("**Script stopped:** {why}.{next}{}", self.calls_made());
        let meta =
            json!({"gatelet/script": {"id": self.handle, "calls": self.journal.n_answered()}});
        result([text].into_iter(), true, meta.into())
    }

    /// Renders that somebody else goes on with the script.
    pub(super) fn taken_over(&self) -> Reply {
        let handle = self.handle;
        let text = format!(
            "**Script stopped:** `{handle}` goes on elsewhere: it was resumed there while this gatelet \
             did not answer, and nothing more is done here.{}",
            self.calls_made()
        );
        let meta = json!({"gatelet/script": {"id": handle, "taken_over": true}});
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

    /// Lists the calls that were made, which the next script must not repeat.
    fn calls_made(&self) -> String {
        let begun: Vec<String> = self.journal.begun().map(|made| made.path.join(".")).collect();
        let mut text = match self.changed.as_slice() {
            [] => String::new(),
            changed => format!("\nDone before that, and not undone: {}.", join_some(changed)),
        };
        if !begun.is_empty() {
            text.push_str(&format!("\nBegun, and may have run: {}.", join_some(&begun)));
        }
        text
    }
}

/// Returns the call that resumes a script, as its surface writes it.
fn resume_call(surface: Surface, handle: &str) -> String {
    match surface {
        Surface::Gateway => format!("tool_run({{\"resume\": \"{handle}\"}})"),
        Surface::Cash | Surface::Proxy | Surface::Direct | Surface::Auto => format!(
            "call(namespace=\"gatelet\", function=\"run\", kwargs={{\"resume\": \"{handle}\"}})"
        ),
    }
}

/// The most calls that are named.
const MAX_NAMED: usize = 12;

fn join_some(names: &[String]) -> String {
    let more = match names.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", "))
}

/// Joins what the script logged into one text.
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
