//! What a model reads instead of an answer that is too long.

use std::sync::Arc;

use catalog::{Slot, tokens};
use serde_json::json;
use tool::reply::ToolResult;
use tool::{Json, Reply};

use super::View;
use crate::artifact::{Artifact, TooLong, is_structured, readable};
use crate::envelope::Reference;
use crate::gate::{self, Over, Shape, thousands};
use crate::own;

/// How many arguments are named as ways to narrow a query.
const FILTERS: usize = 6;

impl View<'_> {
    /// Says that the function ran, what came back, and how to get at it: first
    /// by asking for less, then by reading parts, then by allowing it all.
    pub(super) fn gated(&self, slot: Slot, artifact: &Arc<Artifact>, over: &Over) -> Reply {
        let config = self.shared.dispatcher.gate.load();
        let suggested = gate::suggestion(over.chars);
        let result = Reply::Result(artifact.result.clone()).tool_result();
        let shape = result.as_ref().map(Shape::of);
        let counted = counted(shape.as_ref());
        let tokens = tokens::about(&artifact.text());
        let handle = &artifact.handle;
        let mut lines = vec![format!(
            "**Gated:** Response exceeds size limit ({counted}~{} characters, ~{} tokens; limit {}). \
             The function ran; its result is kept as `{handle}`.",
            thousands(over.chars),
            thousands(tokens),
            thousands(over.limit),
        )];
        if let Some(shape) = &shape {
            lines.push(format!("It is: {}.", catalog::summary::cut(&shape.describe(), 300)));
        }
        // What was said beside the data is no part of it, and short.
        if let Some(said) =
            result.as_ref().filter(|result| is_structured(result)).and_then(readable)
        {
            lines.push(format!("Its text: {}", catalog::summary::cut(said.trim(), 300)));
        }
        lines.extend(parts(artifact, result.as_ref()));
        lines.push("\nTo go on, prefer the first that does:".to_owned());
        lines.push(self.narrowing(slot));
        lines.push(reading(artifact, result.as_ref(), shape.as_ref()));
        lines.push(match config.ceiling {
            Some(ceiling) if ceiling < over.chars => format!(
                "- `sizelimit={suggested}` would fit it, but the operator allows at most {ceiling}: \
                 read it in parts"
            ),
            Some(_) | None => format!(
                "- Repeat the call with `sizelimit={suggested}`: returns the kept result without \
                 running the function again"
            ),
        });
        let meta = json!({"cash/gated": {
            "chars": over.chars,
            "limit": over.limit,
            "suggested": suggested,
            "tokens": tokens,
            "handle": handle,
        }});
        super::annotated(&lines.join("\n"), over.is_error || config.gated_is_error, &meta)
    }

    /// Says that the function ran and that its result is lost but for its
    /// beginning, because nobody may have that much kept.
    pub(super) fn unkept(
        &self,
        slot: Slot,
        artifact: &Arc<Artifact>,
        over: &Over,
        why: TooLong,
    ) -> Reply {
        let config = self.shared.dispatcher.gate.load();
        let result = Reply::Result(artifact.result.clone()).tool_result();
        let shape = result.as_ref().map(Shape::of);
        let lines = [
            format!(
                "**Gated:** Response exceeds size limit ({}~{} characters; limit {}). The function \
                 ran; its result could not be kept: {why}.",
                counted(shape.as_ref()),
                thousands(over.chars),
                thousands(over.limit),
            ),
            "\nCalling it again runs it again. To get less:".to_owned(),
            self.narrowing(slot),
            format!("\nIt begins:\n\n{}", gate::beginning(artifact, over)),
        ];
        let meta = json!({"cash/gated": {"chars": over.chars, "limit": over.limit}});
        super::annotated(&lines.join("\n"), over.is_error || config.gated_is_error, &meta)
    }

    fn narrowing(&self, slot: Slot) -> String {
        let contract = self.snapshot.catalog.contract(slot);
        let optional = contract.parameters.iter().filter(|parameter| !parameter.required);
        let names: Vec<String> =
            optional.take(FILTERS).map(|parameter| format!("`{}`", parameter.name)).collect();
        if names.is_empty() {
            "- Narrow the query, if the function allows it".to_owned()
        } else {
            format!("- Narrow the query with filters (arguments: {})", names.join(", "))
        }
    }
}

/// The same for what is no call and runs no function, such as a skill: `again`
/// tells how to ask for more of it at once.
pub(crate) fn kept(
    config: &gate::Config,
    what: &str,
    again: Option<&str>,
    artifact: &Artifact,
    over: &Over,
) -> Reply {
    let (handle, suggested) = (&artifact.handle, gate::suggestion(over.chars));
    let tokens = tokens::about(&artifact.text());
    let result = Reply::Result(artifact.result.clone()).tool_result();
    let shape = result.as_ref().map(Shape::of);
    let mut lines = vec![
        format!(
            "**Gated:** {what} exceeds size limit (~{} characters, ~{} tokens; limit {}). It is \
             kept as `{handle}`.",
            thousands(over.chars),
            thousands(tokens),
            thousands(over.limit),
        ),
        reading(artifact, result.as_ref(), shape.as_ref()),
    ];
    lines.extend(parts(artifact, result.as_ref()));
    let fits = config.ceiling.is_none_or(|ceiling| over.chars <= ceiling);
    lines.extend(again.filter(|_| fits).map(|again| {
        format!("- Or all of it: {again} with `kwargs={{\"sizelimit\": {suggested}, …}}`")
    }));
    let mut meta = json!({"cash/gated": {
        "chars": over.chars,
        "limit": over.limit,
        "tokens": tokens,
        "handle": handle,
    }});
    if again.is_some() && fits {
        meta["cash/gated"]["suggested"] = suggested.into();
    }
    super::annotated(&lines.join("\n"), over.is_error || config.gated_is_error, &meta)
}

/// The same where nobody may have that much kept.
pub(crate) fn lost(
    config: &gate::Config,
    what: &str,
    artifact: &Artifact,
    over: &Over,
    why: TooLong,
) -> Reply {
    let text = format!(
        "**Gated:** {what} exceeds size limit (~{} characters; limit {}) and could not be kept: \
         {why}.\n\nIt begins:\n\n{}",
        thousands(over.chars),
        thousands(over.limit),
        gate::beginning(artifact, over),
    );
    let meta = json!({"cash/gated": {"chars": over.chars, "limit": over.limit}});
    super::annotated(&text, over.is_error || config.gated_is_error, &meta)
}

/// How what is kept is looked at: an image or a sound as such, a text in parts,
/// and with `jq` only where there is JSON.
fn reading(artifact: &Artifact, result: Option<&ToolResult>, shape: Option<&Shape>) -> String {
    let handle = &artifact.handle;
    let view = "call(namespace=\"gatelet\", function=\"view\", kwargs={\"handle\": ";
    // Only there is it worth taking the result apart.
    let first = result.filter(|result| is_mixed(result)).and_then(|_| artifact.parts().first());
    if first.is_some_and(|first| own::is_media(&first.media_type)) {
        return format!(
            "- See or hear it: `{view}\"{handle}\", \"selector\": {{\"type\": \"image\"}}}})`, or \
             read its bytes with `{{\"type\": \"bytes\", \"start\": 0, \"length\": 3000}}`"
        );
    }
    let has_data = result.is_none_or(|result| result.structured.is_some());
    let is_json = shape.is_some_and(|shape| shape.kind.starts_with("JSON"));
    let ways = match (result.is_some_and(is_beside), has_data || is_json) {
        (true, _) => "`grep` or `jq` (which reads its `structuredContent`)",
        (false, true) => "`grep` or `jq`",
        (false, false) => "or `grep`",
    };
    format!("- Read a part: `{view}\"{handle}\", …}})` with `head`, `tail`, `lines`, {ways}")
}

/// Whether a result has more in it than text and data.
fn is_mixed(result: &ToolResult) -> bool {
    let is_text = |block: &Json| block.member_as::<String>("type").as_deref() == Some("text");
    !result.content.iter().all(is_text)
}

/// How many parts of a result are named.
const PARTS: usize = 8;

/// The parts that a result consists of, where they are several of several kinds.
fn parts(artifact: &Artifact, result: Option<&ToolResult>) -> Option<String> {
    result.filter(|result| is_mixed(result))?;
    let all = artifact.parts();
    if all.len() < 2 {
        return None;
    }
    let part = |part: &Reference| {
        let Reference { handle, media_type, size_bytes, label } = part;
        let media_type = catalog::summary::cut(media_type, 60);
        let size = thousands(*size_bytes);
        match label.as_str() {
            "" => format!("`{handle}` ({media_type}, {size} bytes)"),
            label => {
                let label = catalog::summary::cut(&label.replace('`', " "), 60);
                format!("`{handle}` ({label}: {media_type}, {size} bytes)")
            }
        }
    };
    let told: Vec<String> = all.iter().take(PARTS).map(part).collect();
    let more = match all.len().saturating_sub(PARTS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("Its parts, each with a handle: {}{more}.", told.join(", ")))
}

/// Whether data stands beside a text that is shown in its stead, and is no data.
fn is_beside(result: &ToolResult) -> bool {
    let is_data = |text: String| text.trim_start().starts_with(['{', '[']);
    result.structured.is_some() && !is_structured(result) && !readable(result).is_some_and(is_data)
}

/// `4,821 items in `.orders`, `, before what else is counted.
fn counted(shape: Option<&Shape>) -> String {
    shape.map_or_else(String::new, |shape| format!("{}, ", shape.count()))
}
