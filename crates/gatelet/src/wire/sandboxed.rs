//! Runs the programs of upstreams in sandboxes, and mentions the sandbox in errors that
//! it may have caused.

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

/// The command that runs `program` inside of its sandbox; or why this machine cannot
/// enforce the sandbox. Without a sandbox, `program` itself.
pub(crate) fn confine_program(
    program: Program,
    sandbox: Option<&Sandbox>,
) -> Result<Program, String> {
    let Some(sandbox) = sandbox else { return Ok(program) };
    let command = program.command.display().to_string();
    match sandbox {
        Sandbox::Kernel(policy) => {
            let unenforceable = |why| format!("its sandbox cannot be enforced: {why}");
            policy.check(sandbox::support()).map_err(unenforceable)?;
            let args = launch::arguments(policy, &command, &program.args);
            // Our own executable confines itself and then becomes the program. Its path
            // may lead to another version by now.
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

/// Whether a message looks as if the operating system refused something.
pub(crate) fn looks_like_refusal(text: &str) -> bool {
    let words =
        ["permission denied", "eacces", "eperm", "operation not permitted", launch::REFUSAL];
    let text = text.to_lowercase();
    words.iter().any(|word| text.contains(word))
}

/// The sentence that is added to a refusal, for the operator, who can widen the sandbox.
fn sandbox_note(sandbox: &Sandbox) -> String {
    format!(
        "gatelet runs this server in a sandbox ({}), which may be why; the operator can widen `sandbox` in its entry",
        sandbox.policy()
    )
}

/// A failure to start, with a note about the sandbox if that may be the cause.
pub(super) fn explain_failure(failure: Failure, sandbox: Option<&Sandbox>) -> Failure {
    match (failure, sandbox) {
        (Failure::Unavailable { reason }, Some(sandbox)) if looks_like_refusal(&reason) => {
            Failure::Unavailable { reason: format!("{reason}. {}", sandbox_note(sandbox)) }
        }
        (failure, _) => failure,
    }
}

/// A session with a program in a sandbox, which adds a note to errors that the sandbox
/// may have caused.
pub(super) struct SandboxedSession {
    pub(super) inner: Arc<dyn Provider>,
    pub(super) sandbox: Sandbox,
}

#[async_trait]
impl Provider for SandboxedSession {
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

/// The reply with a note appended, if it is an error that looks like a refusal.
fn with_note(reply: &Reply, sandbox: &Sandbox) -> Option<Reply> {
    let is_refusal =
        reply.tool_result().is_some_and(|view| view.is_error && looks_like_refusal(&view.text()));
    if !is_refusal {
        return None;
    }
    let Reply::Result(result) = reply else { return None };
    let mut result = result.to_value().ok()?;
    let note = json!({"type": "text", "text": sandbox_note(sandbox)});
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
