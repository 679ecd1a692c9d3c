//! Help pages that another server writes.
//!
//! A function of a CaSH server behind this gate is documented by that server.
//! Its provider, which is ours, marks it in `_meta` as [`REMOTE_FUNCTION`], with where it
//! stands over there, and answers the question [`HELP`]. The mark is believed of
//! nobody else. What the server answers goes the way of every other answer, within
//! the rules and limits, scrubbed, gated and recorded, and stands as a quotation on
//! a page of ours: whose function it is and what it may do is not theirs to say.

use catalog::Slot;
use serde_json::json;
use tool::text::quoted;
use tool::{Json, Object, Reply};

use super::arguments::LenientArguments;
use super::function_page;
use super::request::{CashRequest, ORIGIN};
use crate::dispatch::{CallError, Outcome};
use crate::surface::oversize;
use policy::call::{Mode, Request, Target, What};

/// The mark in `_meta` of a tool: its `{"namespace": …, "function": …}` on the
/// other server.
pub const REMOTE_FUNCTION: &str = "gatelet/cash";

pub use policy::call::HELP;

impl CashRequest<'_> {
    /// The page of a function from the server that has it; `None` when gatelet
    /// writes the page, or when the other server does not answer.
    pub(super) async fn remote_help(&self, arguments: Option<&Json>) -> Option<Reply> {
        let (slot, params) = self.remote_function(arguments)?;
        let catalog = &self.snapshot.catalog;
        let frame = Frame {
            path: catalog.path(slot),
            name: &catalog.function(slot).name,
            upstream: &catalog.source(slot).label,
            hints: function_page::hints(catalog.tool(slot).annotations),
        };
        let what = What::Help { slot };
        let target = Target { what, ..self.snapshot.target(slot) };
        let mode = Mode::Strict;
        let request = Request {
            target,
            arguments: None,
            rest: params,
            wanted: None,
            share: None,
            pick: None,
            script: None,
            mode,
        };
        let render = |reply: &Reply| frame.page(reply);
        let gate = self.cash.pipeline.gate.load();
        let mut is_page = true;
        let say = |outcome: Result<Outcome, CallError>| match outcome {
            Ok(Outcome::Reply(reply)) => {
                is_page = reply.tool_result().is_some_and(|result| !result.is_error);
                reply
            }
            Ok(Outcome::Kept { artifact, over }) => {
                oversize::kept(&gate, "The page", None, &artifact, &over)
            }
            Ok(Outcome::Unkept { over, why, beginning, .. }) => {
                oversize::lost(&gate, "The page", &over, why, &beginning)
            }
            // Nothing is planned or picked here.
            Ok(Outcome::Plan(_) | Outcome::Unpicked { .. }) => Reply::text(""),
            Err(error) => {
                is_page = false;
                Reply::error_text(&error.to_string())
            }
        };
        let (snapshot, context) = (self.snapshot, self.context);
        let reply = self
            .cash
            .pipeline
            .dispatch_rendered(snapshot, request, ORIGIN, context, Some(&render), say)
            .await;
        is_page.then_some(reply)
    }

    /// A function with a remote page, and the request for it.
    fn remote_function(&self, arguments: Option<&Json>) -> Option<(Slot, Object)> {
        let asked = LenientArguments::read(arguments);
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

/// What a page of ours says around one of theirs.
struct Frame<'a> {
    path: &'a str,
    name: &'a str,
    upstream: &'a str,
    hints: String,
}

impl Frame<'_> {
    /// The page that came, with how the function is called here.
    fn page(&self, reply: &Reply) -> Reply {
        let Some(result) = reply.tool_result().filter(|result| !result.is_error) else {
            return Reply::error_text("no page came");
        };
        let Frame { path, name, upstream, hints } = self;
        let text = result.text();
        // In another format than words.
        if let Ok(page) = serde_json::from_str::<serde_json::Value>(&text) {
            let told = json!({"namespace": path, "function": name, "upstream": upstream,
                "hints": hints, "page": page});
            return Reply::text(&told.to_string());
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
