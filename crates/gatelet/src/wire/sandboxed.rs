//! Programs that are confined before they run, and refusals that say so.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use mcp::connect::Program;
use sandbox::{container, launch};
use serde_json::{Value, json};
use tool::{Ask, Context, Event, Failure, Listing, Provider, Reply, Resource};

use crate::paths;
use config::Sandbox;

/// The program that confines itself and then becomes this one; or why it cannot
/// be confined here. Without a sandbox it stays as it is.
pub(crate) fn confined(program: Program, sandbox: Option<&Sandbox>) -> Result<Program, String> {
    let Some(sandbox) = sandbox else { return Ok(program) };
    let command = program.command.display().to_string();
    match sandbox {
        Sandbox::Kernel(policy) => {
            let unenforceable = |why| format!("its sandbox cannot be enforced: {why}");
            policy.check(sandbox::support()).map_err(unenforceable)?;
            let args = launch::arguments(policy, &command, &program.args);
            // The launcher is our own executable, whatever stands at its path by now.
            Ok(Program { command: PathBuf::from("/proc/self/exe"), args, ..program })
        }
        Sandbox::Container { image, policy } => {
            let engine = ["docker", "podman"].into_iter().find_map(paths::program);
            let engine =
                engine.ok_or("its sandbox needs docker or podman, and neither is in the PATH")?;
            let names = program.env.keys().map(String::as_str);
            let args = container::arguments(policy, image, &command, &program.args, names);
            Ok(Program { command: engine, args, ..program })
        }
    }
}

/// Whether somebody was refused something by the system.
pub(crate) fn is_refusal(text: &str) -> bool {
    let words =
        ["permission denied", "eacces", "eperm", "operation not permitted", launch::REFUSAL];
    let text = text.to_lowercase();
    words.iter().any(|word| text.contains(word))
}

/// What is added to a refusal, for who can widen the sandbox.
fn note(sandbox: &Sandbox) -> String {
    format!(
        "gatelet runs this server in a sandbox ({}), which may be why; the operator can widen `sandbox` in its entry",
        sandbox.policy()
    )
}

/// A failure to start that says that there is a sandbox, where that may be why.
pub(super) fn explained(failure: Failure, sandbox: Option<&Sandbox>) -> Failure {
    match (failure, sandbox) {
        (Failure::Unavailable { reason }, Some(sandbox)) if is_refusal(&reason) => {
            Failure::Unavailable { reason: format!("{reason}. {}", note(sandbox)) }
        }
        (failure, _) => failure,
    }
}

/// A session with a confined program: errors that look like a refusal by the
/// sandbox say so.
pub(super) struct Explained {
    pub(super) inner: Arc<dyn Provider>,
    pub(super) sandbox: Sandbox,
}

#[async_trait]
impl Provider for Explained {
    fn listing(&self) -> Arc<Listing> {
        self.inner.listing()
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.inner.events()
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let reply = self.inner.ask(ask, context).await?;
        Ok(match with_note(&reply, &self.sandbox) {
            Some(noted) => noted,
            None => reply,
        })
    }

    async fn resources_for(&self, context: &Context) -> Vec<Resource> {
        self.inner.resources_for(context).await
    }

    fn enforces_timeout(&self) -> bool {
        self.inner.enforces_timeout()
    }
}

/// The reply with a note behind it, if it reports a refusal.
fn with_note(reply: &Reply, sandbox: &Sandbox) -> Option<Reply> {
    let view = reply.tool_result().filter(|view| view.is_error && is_refusal(&view.text()))?;
    drop(view);
    let Reply::Result(result) = reply else { return None };
    let mut result = result.to_value().ok()?;
    let note = json!({"type": "text", "text": note(sandbox)});
    result.get_mut("content").and_then(Value::as_array_mut)?.push(note);
    Some(Reply::Result(result.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_that_look_like_a_refusal_get_a_note() {
        let sandbox = Sandbox::Kernel(sandbox::Policy::default());
        let reply = |text: &str, is_error: bool| {
            Reply::Result(
                json!({"content": [{"type": "text", "text": text}], "isError": is_error}).into(),
            )
        };
        let noted =
            with_note(&reply("EACCES: permission denied, open '/x'", true), &sandbox).unwrap();
        assert!(noted.tool_result().unwrap().text().contains("widen `sandbox`"));
        assert!(with_note(&reply("EACCES", false), &sandbox).is_none());
        assert!(with_note(&reply("no such file", true), &sandbox).is_none());
    }
}
