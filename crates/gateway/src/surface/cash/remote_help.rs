//! Help pages of functions of a nested CaSH server, which that server writes.
//!
//! The provider of such a server is part of gatelet. It marks the server's functions with
//! [`REMOTE_FUNCTION`] in `_meta` and answers the method [`HELP`]; the mark of any other
//! provider is ignored. The server's page goes through the pipeline like every other
//! answer and is shown as a quotation on a page of gatelet, which says whose function it
//! is and what it may do.

use catalog::Slot;
use serde_json::json;
use tool::text::quoted;
use tool::{Json, Object, Reply};

use super::arguments::LenientArguments;
use super::function_page;
use super::request::{CashRequest, ORIGIN};
use crate::dispatch::{CallError, ForwardedRequest, Outcome};
use crate::surface::oversize;
use policy::call::{CallMode, Target, TargetKind};

/// The key in `_meta` of a tool that has its `{"namespace": …, "function": …}` on the
/// other server.
pub const REMOTE_FUNCTION: &str = "gatelet/cash";

pub use policy::call::HELP;

impl CashRequest<'_> {
    /// Returns the page that the other server writes; `None` if gatelet writes the page, or
    /// the other server does not answer.
    pub(super) async fn remote_help(&self, arguments: Option<&Json>) -> Option<Reply> {
        let (slot, params) = self.remote_function(arguments)?;
        let catalog = &self.snapshot.catalog;
        let frame = PageFrame {
            path: catalog.path(slot),
            name: &catalog.function(slot).name,
            upstream: &catalog.source(slot).label,
            hints: function_page::hints(catalog.tool(slot).annotations),
        };
        let what = TargetKind::Help { slot };
        let target = Target { kind: what, ..self.snapshot.target(slot) };
        let render = |reply: &Reply| frame.render(reply);
        let forwarded = ForwardedRequest {
            target,
            arguments: None,
            other_params: params,
            size_limit: None,
            mode: CallMode::Strict,
            render: Some(&render),
        };
        let pipeline = &self.cash.pipeline;
        let mut is_page = true;
        let to_reply = |outcome: Result<Outcome, CallError>| {
            is_page = match &outcome {
                Ok(Outcome::Reply(reply)) => {
                    reply.tool_result().is_some_and(|result| !result.is_error)
                }
                Ok(_) => true,
                Err(_) => false,
            };
            let reply = oversize::outcome_reply(&pipeline.gate.load(), "The page", None, outcome);
            reply.unwrap_or_else(|error| Reply::error_text(&error.to_string()))
        };
        let (snapshot, context) = (self.snapshot, self.context);
        let reply = pipeline.forward(snapshot, forwarded, ORIGIN, context, to_reply).await;
        is_page.then_some(reply)
    }

    /// Returns the function if it has a remote page, and the parameters of the request for
    /// it.
    fn remote_function(&self, arguments: Option<&Json>) -> Option<(Slot, Object)> {
        let asked = LenientArguments::parse(arguments);
        let function = asked.text("function").filter(|function| !function.is_empty())?;
        let namespace = asked.text("namespace").unwrap_or_default();
        let slot = self.resolve(&namespace, &function).ok()?;
        if !self.snapshot.catalog.source(slot).listing.is_nested {
            return None;
        }
        let mark = self.snapshot.catalog.tool(slot).raw.member("_meta")?.member(REMOTE_FUNCTION)?;
        let mut kwargs = Object::new();
        for (key, value) in asked.spelled().filter(|(key, _)| !ADDRESS.contains(key)) {
            kwargs.push(key, value.clone());
        }
        let params = Object::from_iter([
            ("namespace".to_owned(), mark.member("namespace").unwrap_or_else(|| json!("").into())),
            ("function".to_owned(), mark.member("function")?),
            ("kwargs".to_owned(), kwargs.to_json()),
        ]);
        Some((slot, params))
    }
}

/// What gatelet's page says around the other server's.
struct PageFrame<'a> {
    path: &'a str,
    name: &'a str,
    upstream: &'a str,
    hints: String,
}

impl PageFrame<'_> {
    /// Renders gatelet's page around the other server's reply.
    fn render(&self, reply: &Reply) -> Reply {
        let Some(result) = reply.tool_result().filter(|result| !result.is_error) else {
            return Reply::error_text("no page came");
        };
        let PageFrame { path, name, upstream, hints } = self;
        let text = result.text();
        // The page was requested as JSON.
        if let Ok(page) = serde_json::from_str::<serde_json::Value>(&text) {
            let framed = json!({"namespace": path, "function": name, "upstream": upstream,
                "hints": hints, "page": page});
            return Reply::text(&framed.to_string());
        }
        let hints = match hints.as_str() {
            "" => String::new(),
            hints => format!("Hints: {hints}.\n\n"),
        };
        let page = quoted(&text, usize::MAX);
        Reply::text(&format!(
            "# {path}.{name}\n\n{hints}Here: `call(namespace=\"{path}\", function=\"{name}\", \
             kwargs={{…}})`. `{upstream}` says:\n\n{page}\n"
        ))
    }
}

/// The arguments that address a function.
const ADDRESS: [&str; 2] = ["namespace", "function"];
