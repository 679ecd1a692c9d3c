//! Polishes the result of a tool for a model: removes data that is in it twice, and
//! says so when a result is empty or names no id.
//!
//! Only duplicates are removed, and remarks are added as a block of their own. The
//! surface `direct` passes results unchanged and does not use this.

use artifacts::gate::SameData;
use serde_json::{Value, json};
use tool::reply::ToolResult;
use tool::{Json, Object, Reply};

/// Results of more bytes are not searched for duplicate data.
const MAX_COMPARED_BYTES: usize = 1 << 20;
/// Results of more bytes count as neither empty nor without an id.
const SHORT_BYTES: usize = 600;

const EMPTY: &str = "(The answer is empty.)";
const NO_ID: &str = "(The server named no id.)";

/// What kind of effect a tool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It creates something that could have an id: `create_issue`, `send_mail`.
    Creates,
    Other,
}

impl Effect {
    /// Guesses the effect of a tool from the verbs in its name and its annotations.
    pub(crate) fn of_tool(tool: &tool::Tool) -> Effect {
        const VERBS: [&str; 8] =
            ["create", "add", "post", "send", "insert", "publish", "upload", "schedule"];
        let words: Vec<&str> = tool.name.split(|c: char| !c.is_alphanumeric()).collect();
        // Without a thing behind it, as in `git_add`, the verb makes nothing.
        let verbs = words.split_last().map_or(&[][..], |(_, before)| before);
        let makes = verbs.iter().any(|word| VERBS.contains(&word.to_lowercase().as_str()));
        match makes && tool.annotations.read_only != Some(true) {
            true => Effect::Creates,
            false => Effect::Other,
        }
    }
}

/// Returns the result with duplicate data removed, or with a remark if it is empty or
/// names no id of what was created.
pub(crate) fn polish(reply: Reply, same_data: SameData, effect: Effect) -> Reply {
    let Reply::Result(json) = &reply else { return reply };
    let may_repeat =
        json.mentions("structuredContent") && json.as_bytes().len() <= MAX_COMPARED_BYTES;
    if !may_repeat && SHORT_BYTES < json.as_bytes().len() {
        return reply;
    }
    let (Some(result), Ok(mut object)) = (reply.tool_result(), Object::parse(json)) else {
        return reply;
    };
    let unfinished = result.result_type.as_deref().is_some_and(|kind| kind != "complete");
    // A result with two members `content` is ambiguous.
    let n_contents = object.keys().filter(|key| *key == "content").count();
    if unfinished || n_contents != 1 {
        return reply;
    }
    if let Some(remark) = remark(&result, effect) {
        let block = json!({"type": "text", "text": remark}).into();
        let content = result.content.iter().chain([&block]);
        object.set("content", Json::array(content));
        return Reply::Result(object.to_json());
    }
    if may_repeat && remove_duplicate(&mut object, same_data) {
        return Reply::Result(object.to_json());
    }
    reply
}

/// Returns the remark for a result that is empty or names no id.
fn remark(result: &ToolResult, effect: Effect) -> Option<&'static str> {
    if result.is_error || result.structured.is_some() {
        return None;
    }
    let texts: Vec<Option<String>> =
        result.content.iter().map(|block| block.member_as::<String>("text")).collect();
    // An image or a link is an answer.
    let text = texts.into_iter().collect::<Option<Vec<String>>>()?.concat();
    let names_it = |c: char| c.is_ascii_digit() || c == '{';
    let identifies = text.contains("://") || text.contains(names_it);
    match (text.trim().is_empty(), effect) {
        (true, _) => Some(EMPTY),
        (false, Effect::Creates) if !identifies && text.len() < SHORT_BYTES => Some(NO_ID),
        (false, Effect::Creates | Effect::Other) => None,
    }
}

/// Removes the text or the structured content if both are the same data. Returns
/// whether it did.
fn remove_duplicate(object: &mut Object, same_data: SameData) -> bool {
    let content: Vec<Json> =
        object.get("content").and_then(|it| it.parse_as().ok()).unwrap_or_default();
    let structured = object.get("structuredContent").and_then(|it| it.to_value().ok());
    let ([block], Some(structured)) = (content.as_slice(), structured) else { return false };
    let Some(text) = block.member_as::<String>("text") else { return false };
    let is_json = text.starts_with(['{', '[', '"']);
    let is_same = match wrapped(&structured) {
        Some(Value::String(inside)) if *inside == text => true,
        _ if !is_json => false,
        inside => serde_json::from_str::<Value>(&text)
            .is_ok_and(|text| text == structured || inside.is_some_and(|inside| text == *inside)),
    };
    if !is_same {
        return false;
    }
    match same_data {
        SameData::Text => {
            let Ok(mut block) = Object::parse(block) else { return false };
            // Servers indent JSON for people; a model pays for every space.
            if is_json && wrapped(&structured).is_none_or(|inside| !inside.is_string()) {
                block.set("text", Json::encode(&compacted(&text)));
            }
            object.set("content", Json::array([&block.to_json()]));
            object.remove("structuredContent");
            true
        }
        SameData::Structured => {
            object.set("content", Json::array([]));
            true
        }
        SameData::Both => false,
    }
}

/// What a result that is no object is wrapped in: FastMCP sends a text as the text, and
/// again as `{"result": "…"}`.
fn wrapped(structured: &Value) -> Option<&Value> {
    let members = structured.as_object().filter(|members| members.len() == 1)?;
    members.get("result")
}

/// Removes the white space between the parts of JSON text; every name, text and
/// number stays as it is written.
fn compacted(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let (mut quoted, mut escaped) = (false, false);
    for c in json.chars() {
        if quoted || !c.is_ascii_whitespace() {
            text.push(c);
        }
        if c == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = c == '\\' && !escaped;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(given: Value, same_data: SameData, effect: Effect, expected: &Value) {
        let reply = polish(Reply::Result(given.into()), same_data, effect);
        let Reply::Result(json) = reply else { panic!("an error: {reply:?}") };
        assert_eq!(&json.to_value().unwrap(), expected);
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn equal_data_is_sent_once() {
        let both = json!({"content": [text("{\"b\": [1.0, 2], \"a\": 1}")],
            "structuredContent": {"a": 1, "b": [1.0, 2]}});
        let only_text = json!({"content": [text("{\"b\":[1.0,2],\"a\":1}")]});
        let only_data = json!({"content": [], "structuredContent": {"a": 1, "b": [1.0, 2]}});
        check(both.clone(), SameData::Text, Effect::Other, &only_text);
        check(both.clone(), SameData::Structured, Effect::Other, &only_data);
        check(both.clone(), SameData::Both, Effect::Other, &both);
    }

    #[test]
    fn a_value_that_is_sent_again_in_an_object_is_sent_once() {
        for (told, value) in [
            ("Moved  3\nfiles.", json!("Moved  3\nfiles.")),
            ("{\n  as it is }", json!("{\n  as it is }")),
            ("[1,2]", json!([1, 2])),
        ] {
            let both = json!({"content": [text(told)], "structuredContent": {"result": value}});
            let only_text = json!({"content": [text(told)]});
            check(both.clone(), SameData::Text, Effect::Other, &only_text);
            let only_data = json!({"content": [], "structuredContent": {"result": value}});
            check(both.clone(), SameData::Structured, Effect::Other, &only_data);
            check(both.clone(), SameData::Both, Effect::Other, &both);
        }
        for structured in [
            json!({"result": "other"}),
            json!({"result": "same", "more": 1}),
            json!({"answer": "same"}),
        ] {
            let given = json!({"content": [text("same")], "structuredContent": structured});
            check(given.clone(), SameData::Text, Effect::Other, &given);
        }
    }

    #[test]
    fn data_that_is_sent_once_has_no_layout_and_every_value_as_written() {
        let laid_out = "{\n  \"a b\": \" \\\" x \\\\\",\n  \"n\": [1.50, 1e2],\n  \"e\": {}\n}";
        let value: Value = serde_json::from_str(laid_out).unwrap();
        let block = json!({"type": "text", "text": laid_out, "annotations": {"priority": 1}});
        let given = json!({"content": [block], "structuredContent": value});
        let compact = "{\"a b\":\" \\\" x \\\\\",\"n\":[1.50,1e2],\"e\":{}}";
        let block = json!({"type": "text", "text": compact, "annotations": {"priority": 1}});
        check(given, SameData::Text, Effect::Other, &json!({"content": [block]}));
        // A text alone may be a file whose layout counts.
        let alone = json!({"content": [text(laid_out)]});
        check(alone.clone(), SameData::Text, Effect::Other, &alone);
    }

    #[test]
    fn what_differs_in_anything_is_sent_as_it_is() {
        for content in [
            json!([text("{\"a\": 2}")]),
            json!([text("{\"a\": 1.5}")]),
            json!([text("{\"a\": 1}"), text("more")]),
            json!([text("done")]),
            json!([]),
        ] {
            let given = json!({"content": content, "structuredContent": {"a": 1}});
            check(given.clone(), SameData::Text, Effect::Creates, &given);
        }
    }

    #[test]
    fn silence_is_said_to_be_silence() {
        let empty = json!({"content": [text("")]});
        let told = json!({"content": [text(""), text(EMPTY)]});
        check(empty, SameData::Text, Effect::Other, &told);
        let none = json!({"content": [text(EMPTY)]});
        check(json!({"content": []}), SameData::Text, Effect::Other, &none);
        let image = json!({"content": [{"type": "image", "data": "", "mimeType": "image/png"}]});
        check(image.clone(), SameData::Text, Effect::Creates, &image);
        let question = json!({"resultType": "input_required", "content": []});
        check(question.clone(), SameData::Text, Effect::Creates, &question);
    }

    #[test]
    fn a_write_that_names_no_id_is_said_to_name_none() {
        let vague = json!({"content": [text("Issue created")]});
        let told = json!({"content": [text("Issue created"), text(NO_ID)]});
        check(vague.clone(), SameData::Text, Effect::Creates, &told);
        check(vague.clone(), SameData::Text, Effect::Other, &vague);
        let named = json!({"content": [text("Created ENG-7")]});
        check(named.clone(), SameData::Text, Effect::Creates, &named);
        let failed = json!({"content": [text("no rights")], "isError": true});
        check(failed.clone(), SameData::Text, Effect::Creates, &failed);
    }

    #[test]
    fn what_makes_something_is_told_by_its_verb() {
        let of = |name: &str, hints: Value| {
            let raw = json!({"name": name, "annotations": hints});
            Effect::of_tool(&tool::Tool::parse(raw.into()).unwrap())
        };
        assert_eq!(of("slack_post_message", json!({})), Effect::Creates);
        assert_eq!(of("API-post-search", json!({"readOnlyHint": true})), Effect::Other);
        assert_eq!(of("list_issues", json!({})), Effect::Other);
        assert_eq!(of("git_add", json!({})), Effect::Other);
    }
}
