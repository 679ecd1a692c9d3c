//! Help that somebody else gives.
//!
//! A function of a CaSH server behind this gate is documented by that server.
//! Its provider marks it in `_meta` as [`DISTANT`], with where it stands over
//! there, and answers the question [`HELP`].

use serde_json::json;
use tool::{Ask, Json, Object, Reply};

use super::View;
use super::arguments::Loose;

/// The mark in `_meta` of a tool: `{"namespace": …, "function": …}` over there.
pub const DISTANT: &str = "gatelet/cash";

/// The method that asks a provider for its help, with the arguments of `help`.
pub const HELP: &str = "cash/help";

impl View<'_> {
    /// The page of a function, from the server that has it; `None` when it is
    /// ours to write, or when the other side does not answer.
    pub(super) async fn delegated(&self, arguments: Option<&Json>) -> Option<Reply> {
        let (path, name, source, ask) = self.distant(arguments)?;
        let reply = self.snapshot.ask(source, ask, self.context).await.ok()?;
        let result = reply.tool_result().filter(|result| !result.is_error)?;
        let text = self.shared.dispatcher.stages.scrubber.scrub(&result.text()).into_owned();
        // A page in another format is not ours to write into.
        if text.trim_start().starts_with(['{', '[']) {
            return Some(Reply::text(&text));
        }
        let here =
            format!("Here: `call(namespace=\"{path}\", function=\"{name}\", kwargs={{…}})`.");
        Some(Reply::text(&format!("{}\n\n{here}\n", text.trim_end())))
    }

    /// Where a function stands, and what to ask for its page.
    fn distant(&self, arguments: Option<&Json>) -> Option<(String, String, usize, Ask)> {
        let asked = Loose::read(arguments);
        let function = asked.text("function").filter(|function| !function.is_empty())?;
        let namespace = asked.text("namespace").unwrap_or_default();
        let slot = self.resolve(&namespace, &function).ok()?;
        let catalog = &self.snapshot.catalog;
        let mark = catalog.tool(slot).raw.member("_meta")?.member(DISTANT)?;
        let mut kwargs = Object::new();
        for (key, value) in asked.spelled().filter(|(key, _)| !PLACE.contains(key)) {
            kwargs.push(key, value.clone());
        }
        let params = Object::from_iter([
            ("namespace".to_owned(), mark.member("namespace").unwrap_or_else(|| json!("").into())),
            ("function".to_owned(), mark.member("function")?),
            ("kwargs".to_owned(), kwargs.to_json()),
        ]);
        let ask = Ask::Other { method: HELP.to_owned(), params };
        let (path, name) = (catalog.path(slot), &catalog.function(slot).name);
        Some((path.to_owned(), name.clone(), catalog.function(slot).source, ask))
    }
}

/// What says where, as opposed to how.
const PLACE: [&str; 2] = ["namespace", "function"];
