//! Help pages that another server writes.
//!
//! A function of a CaSH server behind gatelet is documented by that server. Its
//! provider marks it in `_meta` with [`REMOTE_FUNCTION`] and its address there,
//! and answers [`HELP`]. Any upstream may set the mark, so the page is treated
//! like every other answer: rules, limits, scrubbing, gate and record hold.

use catalog::Slot;
use serde_json::json;
use tool::{Json, Object, Reply};

use super::arguments::LenientArguments;
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
        let (path, name) = (catalog.path(slot), &catalog.function(slot).name);
        let here =
            format!("Here: `call(namespace=\"{path}\", function=\"{name}\", kwargs={{…}})`.");
        let what = What::Help { slot };
        let target = Target { what, ..self.snapshot.target(slot) };
        let mode = Mode::Strict;
        let request = Request { target, arguments: None, rest: params, wanted: None, mode };
        let render = |reply: &Reply| page(reply, &here);
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
            Ok(Outcome::Plan(_)) => Reply::text(""),
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

/// The page, with how the function is called here.
fn page(reply: &Reply, here: &str) -> Reply {
    let Some(result) = reply.tool_result().filter(|result| !result.is_error) else {
        return Reply::error_text("no page came");
    };
    let text = result.text();
    // A page in another format is not changed.
    if text.trim_start().starts_with(['{', '[']) {
        return Reply::text(&text);
    }
    Reply::text(&format!("{}\n\n{here}\n", text.trim_end()))
}

/// The arguments that address a function.
const ADDRESS: [&str; 2] = ["namespace", "function"];
