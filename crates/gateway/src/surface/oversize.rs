//! Replies in place of something that is over the size limit: what it is, where it is
//! stored, and how to read it.

use serde_json::{Value, json};
use tool::{Json, Object, Reply};

use crate::builtin;
use crate::dispatch::{CallError, Outcome};
use artifacts::envelope::PartRef;
use artifacts::gate::{self, Excess, Shape, thousands};
use artifacts::pick::PickError;
use artifacts::{Artifact, TooLarge};

/// Makes a text result with `_meta`.
pub(crate) fn annotated(text: &str, is_error: bool, meta: &Value) -> Reply {
    let mut result = Object::new();
    result.push("content", json!([{"type": "text", "text": text}]).into());
    if is_error {
        result.push("isError", Json::encode(&true));
    }
    result.push("_meta", Json::encode(meta));
    Reply::Result(result.to_json())
}

/// Says that something is over the size limit and stored, and how to read it. `noun`
/// says what it is, such as "The skill"; `again` says how to ask for all of it at once.
pub(crate) fn kept(
    config: &gate::Config,
    noun: &str,
    again: Option<&str>,
    artifact: &Artifact,
    over: &Excess,
) -> Reply {
    let (handle, suggested) = (&artifact.handle, gate::suggested_limit(over.chars));
    let tokens = artifact.overview().tokens;
    let mut lines = vec![
        format!(
            "**Gated:** {noun} exceeds size limit (~{} characters, ~{} tokens; limit {}). It is \
             kept as `{handle}`.",
            thousands(over.chars),
            thousands(tokens),
            thousands(over.limit),
        ),
        how_to_view(artifact),
    ];
    lines.extend(part_list(artifact));
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

/// Turns an outcome into a reply for requests that are never planned and of which no
/// part is picked. `noun` and `again` are those of [`kept`]. A call error is returned
/// as it is.
pub(crate) fn outcome_reply(
    config: &gate::Config,
    noun: &str,
    again: Option<&str>,
    outcome: Result<Outcome, CallError>,
) -> Result<Reply, CallError> {
    Ok(match outcome? {
        Outcome::Reply(reply) => reply,
        Outcome::Kept { artifact, over } => kept(config, noun, again, &artifact, &over),
        Outcome::Unkept { over, why, beginning, .. } => {
            not_kept(config, noun, &over, why, &beginning)
        }
        // Nothing is planned or picked here.
        Outcome::Plan(_) | Outcome::Unpicked { .. } => Reply::text(""),
    })
}

/// Says that something is over the size limit and too large to be stored, and how it
/// begins.
pub(crate) fn not_kept(
    config: &gate::Config,
    noun: &str,
    over: &Excess,
    why: TooLarge,
    beginning: &str,
) -> Reply {
    let text = format!(
        "**Gated:** {noun} exceeds size limit (~{} characters; limit {}) and could not be kept: \
         {why}.\n\nIt begins:\n\n{beginning}",
        thousands(over.chars),
        thousands(over.limit),
    );
    let meta = json!({"cash/gated": {"chars": over.chars, "limit": over.limit}});
    annotated(&text, over.is_error || config.gated_is_error, &meta)
}

/// Says that the part of a result that was asked for could not be picked or is too long,
/// what the result looks like, and where it is stored.
pub(crate) fn pick_failed(
    artifact: &Artifact,
    why: &PickError,
    stored: Result<(), TooLarge>,
    gated_is_error: bool,
) -> Reply {
    let handle = &artifact.handle;
    let shape = why.shape().or(artifact.overview().shape.as_ref());
    let described = shape.map_or_else(String::new, |shape| {
        format!("\nIt is: {}.", catalog::summary::cut(&shape.describe(), 300))
    });
    let chars = thousands(artifact.chars);
    let (text, handle) = match stored {
        Ok(()) => {
            let text = format!(
                "**Not picked:** {why}. The function ran; its result (~{chars} characters) is kept as \
                 `{handle}`.{described}\nThe same call with another `pick` does not run again. Or \
                 `call(namespace=\"gatelet\", function=\"view\", kwargs={{\"handle\": \
                 \"{handle}\", \"jq\": \"…\"}})`."
            );
            (text, Some(handle))
        }
        Err(large) => {
            let text = format!(
                "**Not picked:** {why}. The function ran; its result (~{chars} characters) could not \
                 be kept: {large}. Calling it again runs it again.{described}"
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

/// Says how to view an artifact: media as such, text in parts, and with `jq` only if it
/// has JSON.
pub(crate) fn how_to_view(artifact: &Artifact) -> String {
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
    let jq = match (overview.hides_structured, overview.has_data) {
        (true, _) => ", `jq` (which reads its `structuredContent`)",
        (false, true) => ", `jq`",
        (false, false) => "",
    };
    format!(
        "- Read a part: `{view}\"{handle}\", …}})` with `head`, `tail` (characters), `lines`{jq} or \
         `grep` (and `context` lines, or `count`)"
    )
}

/// The most parts of a result that are listed.
const MAX_PARTS: usize = 8;

/// Lists the parts of a result, if it has several of different kinds.
pub(crate) fn part_list(artifact: &Artifact) -> Option<String> {
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
    let parts: Vec<String> = all.iter().take(MAX_PARTS).map(part).collect();
    let more = match all.len().saturating_sub(MAX_PARTS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("Its parts, each with a handle: {}{more}.", parts.join(", ")))
}

/// Returns the number of items in a result, such as `4,821 items in `.orders`, `, or an
/// empty text.
pub(crate) fn item_count(shape: Option<&Shape>) -> String {
    shape.map_or_else(String::new, |shape| format!("{}, ", shape.count()))
}
