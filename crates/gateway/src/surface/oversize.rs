//! The reply in place of something that is over the size limit: what it is, what
//! is kept of it, and how to read it.

use serde_json::{Value, json};
use tool::{Json, Object, Reply};

use crate::builtin;
use artifacts::envelope::PartRef;
use artifacts::gate::{self, Over, Shape, thousands};
use artifacts::pick::PickError;
use artifacts::{Artifact, TooLarge};

/// A text result with structured metadata beside it.
pub(crate) fn annotated(text: &str, is_error: bool, meta: &Value) -> Reply {
    let mut result = Object::new();
    result.push("content", json!([{"type": "text", "text": text}]).into());
    if is_error {
        result.push("isError", Json::encode(&true));
    }
    result.push("_meta", Json::encode(meta));
    Reply::Result(result.to_json())
}

/// Says that something other than a call's result, such as a skill, is kept, and
/// how to read it; `again` says how to ask for more of it at once.
pub(crate) fn kept(
    config: &gate::Config,
    what: &str,
    again: Option<&str>,
    artifact: &Artifact,
    over: &Over,
) -> Reply {
    let (handle, suggested) = (&artifact.handle, gate::suggestion(over.chars));
    let tokens = artifact.overview().tokens;
    let mut lines = vec![
        format!(
            "**Gated:** {what} exceeds size limit (~{} characters, ~{} tokens; limit {}). It is \
             kept as `{handle}`.",
            thousands(over.chars),
            thousands(tokens),
            thousands(over.limit),
        ),
        reading(artifact),
    ];
    lines.extend(parts(artifact));
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
    annotated(&lines.join("\n"), over.is_error || config.gated_is_error, &meta)
}

/// The same for what is too large to be kept.
pub(crate) fn lost(
    config: &gate::Config,
    what: &str,
    over: &Over,
    why: TooLarge,
    beginning: &str,
) -> Reply {
    let text = format!(
        "**Gated:** {what} exceeds size limit (~{} characters; limit {}) and could not be kept: \
         {why}.\n\nIt begins:\n\n{beginning}",
        thousands(over.chars),
        thousands(over.limit),
    );
    let meta = json!({"cash/gated": {"chars": over.chars, "limit": over.limit}});
    annotated(&text, over.is_error || config.gated_is_error, &meta)
}

/// Says that the part of a result that was asked for cannot be had or is too
/// long, what the result looks like, and where it is kept.
pub(crate) fn unpicked(
    artifact: &Artifact,
    why: &PickError,
    stored: Result<(), TooLarge>,
    gated_is_error: bool,
) -> Reply {
    let handle = &artifact.handle;
    let shape = why.shape().or(artifact.overview().shape.as_ref());
    let is = shape.map_or_else(String::new, |shape| {
        format!("\nIt is: {}.", catalog::summary::cut(&shape.describe(), 300))
    });
    let chars = thousands(artifact.chars);
    let (text, handle) = match stored {
        Ok(()) => {
            let text = format!(
                "**Not picked:** {why}. The function ran; its result (~{chars} characters) is kept as \
                 `{handle}`.{is}\nThe same call with another `pick` does not run again. Or \
                 `call(namespace=\"gatelet\", function=\"view\", kwargs={{\"handle\": \
                 \"{handle}\", \"jq\": \"…\"}})`."
            );
            (text, Some(handle))
        }
        Err(large) => {
            let text = format!(
                "**Not picked:** {why}. The function ran; its result (~{chars} characters) could not \
                 be kept: {large}. Calling it again runs it again.{is}"
            );
            (text, None)
        }
    };
    let (is_error, picked) = match why {
        PickError::TooLong { at_least, .. } => (gated_is_error, Some(at_least)),
        PickError::NoData | PickError::Program { .. } => (true, None),
    };
    let meta =
        json!({"cash/unpicked": {"chars": artifact.chars, "picked": picked, "handle": handle}});
    annotated(&text, is_error, &meta)
}

/// How to view what is kept: an image or a sound as such, a text in parts, and
/// with `jq` only where there is JSON.
pub(crate) fn reading(artifact: &Artifact) -> String {
    let (handle, overview) = (&artifact.handle, artifact.overview());
    let view = "call(namespace=\"gatelet\", function=\"view\", kwargs={\"handle\": ";
    // Only then is it worth parsing the result.
    let first = artifact.parts().first().filter(|_| overview.is_mixed);
    if first.is_some_and(|first| builtin::is_media(&first.media_type)) {
        return format!(
            "- See or hear it: `{view}\"{handle}\", \"selector\": {{\"type\": \"image\"}}}})`, or \
             read its bytes with `{{\"type\": \"bytes\", \"start\": 0, \"length\": 3000}}`"
        );
    }
    let jq = match (overview.is_beside, overview.has_data) {
        (true, _) => ", `jq` (which reads its `structuredContent`)",
        (false, true) => ", `jq`",
        (false, false) => "",
    };
    format!(
        "- Read a part: `{view}\"{handle}\", …}})` with `head`, `tail` (characters), `lines`{jq} or \
         `grep` (and `context` lines, or `count`)"
    )
}

/// How many parts of a result are named.
const PARTS: usize = 8;

/// The parts that a result consists of, where they are several of several kinds.
pub(crate) fn parts(artifact: &Artifact) -> Option<String> {
    let all = artifact.parts();
    if !artifact.overview().is_mixed || all.len() < 2 {
        return None;
    }
    let part = |part: &PartRef| {
        let PartRef { handle, media_type, size_bytes, label } = part;
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

/// `4,821 items in `.orders`, `, before what else is counted.
pub(crate) fn counted(shape: Option<&Shape>) -> String {
    shape.map_or_else(String::new, |shape| format!("{}, ", shape.count()))
}
