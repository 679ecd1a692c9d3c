//! `gatelet.view`: from plain arguments to a piece of a kept result.

use offload::Stop;
use serde_json::{Value, json};
use tool::reply::ToolResult;
use tool::{Context, Json, Reply};

use artifacts::envelope;
use artifacts::gate::thousands;
use artifacts::view as selecting;
use artifacts::view::{Budget, Selector};
use artifacts::{Artifact, ArtifactMeta, Owner, ResultText, Store};

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

/// How much a view may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnswerBudget {
    chars: usize,
    image_bytes: usize,
}

/// What stands below a piece has about so many characters.
const FOOTER: usize = 200;

impl Default for AnswerBudget {
    fn default() -> AnswerBudget {
        let Budget { chars, image_bytes, .. } = Budget::default();
        AnswerBudget { chars, image_bytes }
    }
}

impl AnswerBudget {
    /// What fits a limit in characters together with what is said about it. An
    /// image is no text to be read: only the ceiling bounds it.
    pub(crate) fn of(limit: usize, ceiling: Option<usize>) -> AnswerBudget {
        let most = AnswerBudget::default();
        let chars = (limit - FOOTER.min(limit / 2)).max(1);
        let bytes = ceiling.map_or(usize::MAX, |ceiling| ceiling / 4 * 3);
        AnswerBudget { chars: chars.min(most.chars), image_bytes: bytes.min(most.image_bytes) }
    }

    /// Lines are counted as readers do.
    fn limits(self) -> Budget {
        let AnswerBudget { chars, image_bytes } = self;
        Budget { chars, image_bytes, first_line: 1, ..Budget::default() }
    }
}

pub(crate) async fn view(
    store: &dyn Store,
    arguments: &Json,
    budget: &AnswerBudget,
    context: &Context,
) -> Reply {
    let limits = budget.limits();
    let owner = Owner::from_context(context);
    let selector = match selector(arguments) {
        Ok(selector) => selector,
        Err(why) => return Reply::error_text(&format!("**Error:** {why}")),
    };
    let Some(handle) = arguments.member_as::<String>("handle") else {
        return listed(&store.list(&owner).await, selector, limits, context).await;
    };
    let (own, at) = envelope::split_handle(&handle);
    let selector = selector.unwrap_or(Selector::Head { start: 0, chars: 2_000 });
    let viewed = match store.get(&owner, own).await {
        Ok(Some(artifact)) => {
            let cut = move |stop: &Stop| piece(&artifact, at, &selector, &limits, stop);
            let cut = offload::evaluate(context.caller.caller_key(), cut).await;
            cut.unwrap_or(Some(Err(selecting::ViewError::Stopped)))
        }
        Ok(None) => None,
        Err(away) => return Reply::error_text(&format!("**Error:** {away}. Try again later.")),
    };
    match viewed {
        Some(viewed) => answered(viewed),
        None => {
            let kept = kept(&store.list(&owner).await, limits.chars);
            let handle = catalog::summary::echo(&handle);
            Reply::error_text(&format!("**Error:** Nothing is kept as `{handle}`. {kept}"))
        }
    }
}

/// The piece of a part that is asked for, if there is such a part.
fn piece(
    artifact: &Artifact,
    at: usize,
    selector: &Selector,
    limits: &Budget,
    stop: &Stop,
) -> Option<Viewed> {
    let part = match (at, selector) {
        // Who asks for the image of a result means the one that is in it.
        (0, Selector::Image) => {
            let seen = artifact.parts().iter().position(|part| is_media(&part.media_type));
            envelope::part(artifact, seen.unwrap_or(0))?
        }
        (0, Selector::Bytes { .. }) => envelope::part(artifact, 0)?,
        (0, _) => {
            let (text, media_type) = content(artifact, selector);
            let viewed = selecting::view(text.as_bytes(), media_type, selector, limits, stop);
            return Some(viewed.map(|view| with_parts(view, artifact, selector)));
        }
        (at, _) => envelope::part(artifact, at)?,
    };
    Some(selecting::view(&part.bytes, &part.media_type, selector, limits, stop))
}

/// How many parts of a result are told apart by their lines.
const PARTS_TOLD: usize = 12;

/// Matching lines of a result with several texts, with the lines at which each
/// text begins: so a reader knows which part a match is in.
fn with_parts(view: selecting::View, artifact: &Artifact, selector: &Selector) -> selecting::View {
    let counted = match selector {
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
    let result = Reply::Result(artifact.result.clone()).tool_result().filter(|_| counted);
    let Some(result) = result else { return view };
    let starts = ResultText::starts(&result);
    if starts.len() < 2 {
        return view;
    }
    let part = |(at, (line, uri)): (usize, &(usize, Option<String>))| {
        let name = uri.as_deref().map(|uri| catalog::summary::cut(uri, 60));
        format!("{} at line {}", name.unwrap_or_else(|| format!("part {}", at + 1)), line + 1)
    };
    let told: Vec<String> = starts.iter().enumerate().take(PARTS_TOLD).map(part).collect();
    let more = if PARTS_TOLD < starts.len() { ", …" } else { "" };
    selecting::View { note: format!("{}; {}{more}", view.note, told.join(", ")), ..view }
}

/// How long an error may be, which may repeat what was asked for.
const MISTAKE: usize = 800;

type Viewed = Result<selecting::View, selecting::ViewError>;

fn answered(viewed: Viewed) -> Reply {
    match viewed {
        Ok(view) => {
            // As this function takes it, beside the handle.
            let next = view.next.as_ref().map(|next| {
                tool::Object::from_iter([("selector".to_owned(), next.clone())]).to_json()
            });
            Reply::Result(selecting::View { next, ..view }.to_result())
        }
        Err(error) => {
            let error = catalog::summary::cut(&error.to_string(), MISTAKE);
            Reply::error_text(&format!("**Error:** {error}"))
        }
    }
}

/// What a selector works on: the text as a reader sees it, but for jq and its
/// like the structured content where the text is no JSON.
fn content(artifact: &Artifact, selector: &Selector) -> (String, &'static str) {
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

/// Whether this is seen or heard rather than read.
pub(crate) fn is_media(media_type: &str) -> bool {
    media_type.starts_with("image/") || media_type.starts_with("audio/")
}

/// The arguments that say which part, of which there can be one.
const PARTS: [&str; 6] = ["head", "tail", "lines", "grep", "jq", "selector"];

/// What else can be said about `grep`.
const GREP: [&str; 2] = ["count", "context"];

/// Which part is asked for, if one is; or what is wrong with how it is.
fn selector(arguments: &Json) -> Result<Option<Selector>, String> {
    let given: Vec<&str> = PARTS
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
            for more in GREP {
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
        |error: selecting::ViewError| catalog::summary::cut(&error.to_string(), MISTAKE);
    Selector::parse(&wanted).map(Some).map_err(malformed)
}

/// `10-40`, `10-` or `10`, both ends included, as a selector counts them.
fn lines(range: &str) -> Option<Value> {
    let (start, end) = match range.trim().split_once(['-', ':', ',']) {
        Some((start, end)) => (start.trim(), end.trim()),
        None => (range.trim(), range.trim()),
    };
    let start: u32 = start.parse().ok().filter(|start| *start != 0)?;
    let end: u32 = if end.is_empty() { start.saturating_add(PAGE) } else { end.parse().ok()? };
    (start <= end).then(|| json!({"type": "lines", "start": start - 1, "end": end}))
}

/// How many lines are shown from one on.
const PAGE: u32 = 99;

/// How many kept results are named at once.
const NAMED: usize = 20;

/// What is kept, or the part of that list that is asked for.
async fn listed(
    headers: &[ArtifactMeta],
    selector: Option<Selector>,
    limits: Budget,
    context: &Context,
) -> Reply {
    let Some(selector) = selector.filter(|_| !headers.is_empty()) else {
        return Reply::text(&kept(headers, limits.chars));
    };
    let text = headers.iter().map(line).collect::<Vec<_>>().join("\n");
    let cut =
        move |stop: &Stop| selecting::view(text.as_bytes(), "text/plain", &selector, &limits, stop);
    let cut = offload::evaluate(context.caller.caller_key(), cut).await;
    answered(cut.unwrap_or(Err(selecting::ViewError::Stopped)))
}

fn line(meta: &ArtifactMeta) -> String {
    let ArtifactMeta { handle, upstream, tool, chars, .. } = meta;
    format!("- {handle}: {upstream} {tool}, {} characters", thousands(*chars))
}

/// As many as are named at once and have room, but one in any case.
fn kept(headers: &[ArtifactMeta], chars: usize) -> String {
    if headers.is_empty() {
        return "Nothing is kept for you now.".to_owned();
    }
    let mut lines: Vec<String> = Vec::new();
    let mut left = chars;
    for line in headers.iter().take(NAMED).map(line) {
        let length = line.chars().count() + 1;
        if left < length && !lines.is_empty() {
            break;
        }
        left = left.saturating_sub(length);
        lines.push(line);
    }
    let named = lines.len();
    let more = match headers.len() - named {
        0 => String::new(),
        more => {
            let next = named + 1;
            format!("\n{} older ones: `lines=\"{next}-{}\"`", thousands(more), 2 * named)
        }
    };
    format!("Kept:\n{}{more}", lines.join("\n"))
}
