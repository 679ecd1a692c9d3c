//! Help that somebody else gives.
//!
//! A function of a CaSH server behind this gate is documented by that server.
//! Its provider marks it in `_meta` as [`DISTANT`], with where it stands over
//! there, and answers the question [`HELP`]. Any upstream may set the mark, so
//! what it answers goes the way of every other answer: within the rules and
//! limits, scrubbed, gated and recorded.

use catalog::Slot;
use serde_json::json;
use tool::{Json, Object, Reply};

use super::arguments::Loose;
use super::{ORIGIN, View};
use crate::dispatch::{CallError, Outcome};
use crate::surface::oversize;
use policy::call::{Mode, Request, Target, What};

/// The mark in `_meta` of a tool: `{"namespace": …, "function": …}` over there.
pub const DISTANT: &str = "gatelet/cash";

pub use policy::call::HELP;

impl View<'_> {
    /// The page of a function, from the server that has it; `None` when it is
    /// ours to write, or when the other side does not answer.
    pub(super) async fn delegated(&self, arguments: Option<&Json>) -> Option<Reply> {
        let (slot, params) = self.distant(arguments)?;
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

    /// A function whose page is elsewhere, and what to ask for it.
    fn distant(&self, arguments: Option<&Json>) -> Option<(Slot, Object)> {
        let asked = Loose::read(arguments);
        let function = asked.text("function").filter(|function| !function.is_empty())?;
        let namespace = asked.text("namespace").unwrap_or_default();
        let slot = self.resolve(&namespace, &function).ok()?;
        let mark = self.snapshot.catalog.tool(slot).raw.member("_meta")?.member(DISTANT)?;
        let mut kwargs = Object::new();
        for (key, value) in asked.spelled().filter(|(key, _)| !PLACE.contains(key)) {
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

/// The page that came, with how the function is called here.
fn page(reply: &Reply, here: &str) -> Reply {
    let Some(result) = reply.tool_result().filter(|result| !result.is_error) else {
        return Reply::error_text("no page came");
    };
    let text = result.text();
    // A page in another format is not ours to write into.
    if text.trim_start().starts_with(['{', '[']) {
        return Reply::text(&text);
    }
    Reply::text(&format!("{}\n\n{here}\n", text.trim_end()))
}

/// What says where, as opposed to how.
const PLACE: [&str; 2] = ["namespace", "function"];
