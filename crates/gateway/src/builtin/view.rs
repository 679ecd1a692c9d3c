//! `gatelet.view`: returns a part of an artifact, chosen by simple arguments.

use offload::StopFlag;
use serde_json::{Value, json};
use tool::reply::ToolResult;
use tool::{Context, Json, Reply};

use artifacts::envelope;
use artifacts::gate::thousands;
use artifacts::view as selecting;
use artifacts::view::{Budget, Selector};
use artifacts::{Artifact, ArtifactMeta, Owner, ResultText, Store};

/// Returns the schema of the arguments.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": "From the gated answer."},
            "head": {
                "type": "integer",
                "minimum": 1,
                "description": "That many characters from the beginning.",
            },
            "tail": {
                "type": "integer",
                "minimum": 1,
                "description": "That many characters at the end.",
            },
            "lines": {
                "type": "string",
                "description": "A range of lines, such as 10-40; the first is 1.",
            },
            "grep": {"type": "string", "description": "Lines that match a regular expression."},
            "count": {"type": "boolean", "description": "With `grep`: only how many lines match."},
            "context": {
                "type": "integer",
                "minimum": 0,
                "description": "With `grep`: that many lines around each match.",
            },
            "jq": {
                "type": "string",
                "description": "A jq filter, for JSON; also to count and group: `length`, `group_by(.x)`.",
            },
            "selector": {
                "type": "object",
                "description": "Any other selector, such as {\"type\": \"image\"}; what comes after `next:` has one.",
            },
        },
        "additionalProperties": false,
    })
}

/// How much the reply of one view may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnswerBudget {
    chars: usize,
    image_bytes: usize,
}

/// About how many characters the notes below a viewed part have.
const FOOTER_CHARS: usize = 200;

impl Default for AnswerBudget {
    fn default() -> AnswerBudget {
        let Budget { chars, image_bytes, .. } = Budget::default();
        AnswerBudget { chars, image_bytes }
    }
}

impl AnswerBudget {
    /// Derives the budget from the size limit in characters, of which the notes need
    /// some too. Images are bounded by the operator's `ceiling` only.
    pub(crate) fn new(limit: usize, ceiling: Option<usize>) -> AnswerBudget {
        let most = AnswerBudget::default();
        let chars = (limit - FOOTER_CHARS.min(limit / 2)).max(1);
        let bytes = ceiling.map_or(usize::MAX, |ceiling| ceiling / 4 * 3);
        AnswerBudget { chars: chars.min(most.chars), image_bytes: bytes.min(most.image_bytes) }
    }

    /// Returns the budget for the selectors, with lines counted from 1.
    fn selector_budget(self) -> Budget {
        let AnswerBudget { chars, image_bytes } = self;
        Budget { chars, image_bytes, first_line: 1, ..Budget::default() }
    }
}

/// Answers a call of `gatelet.view`: a part of the artifact that `handle` names, or the
/// list of the caller's artifacts without one.
pub(crate) async fn view(
    store: &dyn Store,
    arguments: &Json,
    budget: &AnswerBudget,
    context: &Context,
) -> Reply {
    let limits = budget.selector_budget();
    let owner = Owner::from_context(context);
    let selector = match selector(arguments) {
        Ok(selector) => selector,
        Err(why) => return Reply::error_text(&format!("**Error:** {why}")),
    };
    let Some(handle) = arguments.member_as::<String>("handle") else {
        return view_list(&store.list(&owner).await, selector, limits, context).await;
    };
    let (artifact_handle, part) = envelope::split_handle(&handle);
    let selector = selector.unwrap_or(Selector::Head { start: 0, chars: 2_000 });
    // Until it is cut the whole result is in memory.
    let Ok(turn) = offload::reading_turn(context.caller.caller_key()).await else {
        return Reply::error_text("**Error:** Too many views at once. Try again later.");
    };
    let viewed = match store.get(&owner, artifact_handle).await {
        Ok(Some(artifact)) => {
            let cut = move |stop: &StopFlag| {
                let _turn = turn;
                view_part(&artifact, part, &selector, &limits, stop)
            };
            let cut = offload::evaluate(context.caller.caller_key(), cut).await;
            cut.unwrap_or(Some(Err(selecting::ViewError::Stopped)))
        }
        Ok(None) => None,
        Err(away) => return Reply::error_text(&format!("**Error:** {away}. Try again later.")),
    };
    match viewed {
        Some(viewed) => view_reply(viewed),
        None => {
            let kept = artifact_list(&store.list(&owner).await, limits.chars);
            let handle = catalog::summary::echo(&handle);
            Reply::error_text(&format!("**Error:** Nothing is kept as `{handle}`. {kept}"))
        }
    }
}

/// Applies a selector to one part of a result, by the part's number; `None` if there
/// is no such part.
fn view_part(
    artifact: &Artifact,
    part: usize,
    selector: &Selector,
    limits: &Budget,
    stop: &StopFlag,
) -> Option<Viewed> {
    let part = match (part, selector) {
        // The image of a result is the first one in it.
        (0, Selector::Image) => {
            let seen = artifact.parts().iter().position(|part| is_media(&part.media_type));
            envelope::part(artifact, seen.unwrap_or(0))?
        }
        (0, Selector::Bytes { .. }) => envelope::part(artifact, 0)?,
        (0, _) => {
            let (text, media_type) = text_for(artifact, selector);
            let viewed = selecting::view(text.as_bytes(), media_type, selector, limits, stop);
            return Some(viewed.map(|view| with_part_lines(view, artifact, selector)));
        }
        (part, _) => envelope::part(artifact, part)?,
    };
    Some(selecting::view(&part.bytes, &part.media_type, selector, limits, stop))
}

/// How many parts are named with the line at which they begin.
const MAX_PART_LINES: usize = 12;

/// Adds to a view of lines at which line each text of the result begins, so that a
/// reader knows which part a match is in.
fn with_part_lines(
    view: selecting::View,
    artifact: &Artifact,
    selector: &Selector,
) -> selecting::View {
    let shows_lines = match selector {
        Selector::Grep(grep) => !grep.count,
        Selector::Lines(_) => true,
        Selector::Head { .. }
        | Selector::Tail { .. }
        | Selector::Rows(_)
        | Selector::JsonKeys { .. }
        | Selector::Slice { .. }
        | Selector::Jq { .. }
        | Selector::Bytes { .. }
        | Selector::Image => false,
    };
    let result = Reply::Result(artifact.result.clone()).tool_result().filter(|_| shows_lines);
    let Some(result) = result else { return view };
    let starts = ResultText::starts(&result);
    if starts.len() < 2 {
        return view;
    }
    let part = |(at, (line, uri)): (usize, &(usize, Option<String>))| {
        let name = uri.as_deref().map(|uri| catalog::summary::cut(uri, 60));
        format!("{} at line {}", name.unwrap_or_else(|| format!("part {}", at + 1)), line + 1)
    };
    let begins: Vec<String> = starts.iter().enumerate().take(MAX_PART_LINES).map(part).collect();
    let more = if MAX_PART_LINES < starts.len() { ", …" } else { "" };
    selecting::View { note: format!("{}; {}{more}", view.note, begins.join(", ")), ..view }
}

/// The most characters of an error, which may repeat what was asked for.
const MAX_ERROR: usize = 800;

type Viewed = Result<selecting::View, selecting::ViewError>;

fn view_reply(viewed: Viewed) -> Reply {
    match viewed {
        Ok(view) => {
            // In the form of this function's arguments.
            let next = view.next.as_ref().map(|next| {
                tool::Object::from_iter([("selector".to_owned(), next.clone())]).to_json()
            });
            Reply::Result(selecting::View { next, ..view }.to_result())
        }
        Err(error) => {
            let error = catalog::summary::cut(&error.to_string(), MAX_ERROR);
            Reply::error_text(&format!("**Error:** {error}"))
        }
    }
}

/// Returns the text that a selector is applied to, and its media type: the text as a
/// reader sees it, but for jq and the like the structured content if the text is not
/// JSON.
fn text_for(artifact: &Artifact, selector: &Selector) -> (String, &'static str) {
    let is_json = |text: &str| {
        text.trim_start().starts_with(['{', '[']) && Json::parse(text.to_owned()).is_ok()
    };
    let wants_json = match selector {
        Selector::Jq { .. } | Selector::JsonKeys { .. } | Selector::Slice { .. } => true,
        Selector::Head { .. }
        | Selector::Tail { .. }
        | Selector::Lines(_)
        | Selector::Rows(_)
        | Selector::Grep(_)
        | Selector::Bytes { .. }
        | Selector::Image => false,
    };
    let result: Option<ToolResult> = Reply::Result(artifact.result.clone()).tool_result();
    let text = result.as_ref().and_then(|result| Some(ResultText::new(result).main()?.to_owned()));
    match (text, result.and_then(|result| result.structured)) {
        (Some(text), _) if is_json(&text) => (text, "application/json"),
        (_, Some(structured)) if wants_json => (structured.to_string(), "application/json"),
        (Some(text), _) => (text, "text/plain"),
        (None, Some(structured)) => (structured.to_string(), "application/json"),
        (None, None) => (artifact.result.to_string(), "application/json"),
    }
}

/// Returns whether a media type is an image or sound.
pub(crate) fn is_media(media_type: &str) -> bool {
    media_type.starts_with("image/") || media_type.starts_with("audio/")
}

/// The arguments that select a part, of which there can be one.
const SELECTING_ARGUMENTS: [&str; 6] = ["head", "tail", "lines", "grep", "jq", "selector"];

/// The arguments that go with `grep`.
const GREP_ARGUMENTS: [&str; 2] = ["count", "context"];

/// Parses the selecting argument, if there is one.
fn selector(arguments: &Json) -> Result<Option<Selector>, String> {
    let given: Vec<&str> = SELECTING_ARGUMENTS
        .into_iter()
        .filter(|part| arguments.member(part).is_some_and(|it| !it.is_null()))
        .collect();
    let part = match given.as_slice() {
        [] => return Ok(None),
        [part] => *part,
        several => {
            let named: Vec<String> = several.iter().map(|part| format!("`{part}`")).collect();
            return Err(format!("Give one of {}, not all of them.", named.join(", ")));
        }
    };
    let text = || arguments.member_as::<String>(part);
    let number = || arguments.member_as::<u64>(part).filter(|number| *number != 0);
    let wanted = match part {
        "selector" => arguments.member(part),
        "jq" => text().map(|filter| json!({"type": "jq", "filter": filter}).into()),
        "grep" => text().map(|pattern| {
            let mut grep = json!({"type": "grep", "pattern": pattern});
            for more in GREP_ARGUMENTS {
                if let Some(value) = arguments.member_as::<Value>(more) {
                    grep[more] = value;
                }
            }
            grep.into()
        }),
        "lines" => text().as_deref().and_then(lines).map(Json::from),
        _ => number().map(|chars| json!({"type": part, "chars": chars}).into()),
    };
    let expected = match part {
        "selector" => "an object",
        "lines" => "a range of lines such as \"10-40\"; the first line is 1",
        "head" | "tail" => "a number of characters from 1 on",
        _ => "a text",
    };
    let wanted = wanted.ok_or_else(|| format!("`{part}` must be {expected}."))?;
    let malformed =
        |error: selecting::ViewError| catalog::summary::cut(&error.to_string(), MAX_ERROR);
    Selector::parse(&wanted).map(Some).map_err(malformed)
}

/// Makes a selector of a range of lines: `10-40`, `10-` or `10`, both ends included.
fn lines(range: &str) -> Option<Value> {
    let (start, end) = match range.trim().split_once(['-', ':', ',']) {
        Some((start, end)) => (start.trim(), end.trim()),
        None => (range.trim(), range.trim()),
    };
    let start: u32 = start.parse().ok().filter(|start| *start != 0)?;
    let end: u32 = if end.is_empty() { start.saturating_add(PAGE) } else { end.parse().ok()? };
    (start <= end).then(|| json!({"type": "lines", "start": start - 1, "end": end}))
}

/// How many lines follow the first one when the range has no end.
const PAGE: u32 = 99;

/// How many artifacts are listed at once.
const MAX_LISTED: usize = 20;

/// Lists the caller's artifacts, or applies a selector to that list.
async fn view_list(
    artifacts: &[ArtifactMeta],
    selector: Option<Selector>,
    limits: Budget,
    context: &Context,
) -> Reply {
    let Some(selector) = selector.filter(|_| !artifacts.is_empty()) else {
        return Reply::text(&artifact_list(artifacts, limits.chars));
    };
    let text = artifacts.iter().map(line).collect::<Vec<_>>().join("\n");
    let cut = move |stop: &StopFlag| {
        selecting::view(text.as_bytes(), "text/plain", &selector, &limits, stop)
    };
    let cut = offload::evaluate(context.caller.caller_key(), cut).await;
    view_reply(cut.unwrap_or(Err(selecting::ViewError::Stopped)))
}

fn line(meta: &ArtifactMeta) -> String {
    let ArtifactMeta { handle, upstream, tool, chars, .. } = meta;
    format!("- {handle}: {upstream} {tool}, {} characters", thousands(*chars))
}

/// Lists as many artifacts as fit into `chars` characters, but at least one.
fn artifact_list(artifacts: &[ArtifactMeta], chars: usize) -> String {
    if artifacts.is_empty() {
        return "Nothing is kept for you now.".to_owned();
    }
    let mut lines: Vec<String> = Vec::new();
    let mut left = chars;
    for line in artifacts.iter().take(MAX_LISTED).map(line) {
        let length = line.chars().count() + 1;
        if left < length && !lines.is_empty() {
            break;
        }
        left = left.saturating_sub(length);
        lines.push(line);
    }
    let named = lines.len();
    let more = match artifacts.len() - named {
        0 => String::new(),
        more => {
            let next = named + 1;
            format!("\n{} older ones: `lines=\"{next}-{}\"`", thousands(more), 2 * named)
        }
    };
    format!("Kept:\n{}{more}", lines.join("\n"))
}
