//! Removes characters that move, hide or colour text from the definitions of a listing.
//!
//! Texts for readers are cleaned: titles and descriptions at any depth, the names of
//! resources and templates, which are identified by their URIs, and all other members
//! beside schemas. In the other strings of a schema (defaults, patterns, types, words that
//! nobody knows) only invisible characters and those that control a terminal are removed.
//! Names of tools and prompts stay unchanged; whoever shows them has to escape them. Items
//! that can be requested only by a URI, an argument or a value with such characters are
//! left out, and so is a tool with a schema that has them in any key. Of duplicate keys,
//! the last counts.

use std::borrow::Cow;

use catalog::summary::cut;
use policy::uri;
use serde_json::Value;
use tool::scan::duplicate_key;
use tool::text::{json_without_invisible, without_invisible, without_invisible_non_ascii};
use tool::{Finding, Json, Listing, Object, Prompt, Resource, Severity, Template, Tool};

use crate::bounds;

/// Members that are text for readers, at any depth.
const TEXT_MEMBERS: [&str; 3] = ["title", "description", "$comment"];

/// Members of a definition that are not only text; in all others every string is for
/// readers.
const STRUCTURED_MEMBERS: [&str; 6] =
    ["name", "inputSchema", "outputSchema", "uri", "uriTemplate", "arguments"];

/// Members of a definition that are schemas.
const SCHEMAS: [&str; 2] = ["inputSchema", "outputSchema"];

/// Members of a schema with values that arguments repeat exactly.
const REQUIRED_VALUES: [&str; 2] = ["const", "enum"];

/// Cleans a listing, and reports what was changed or left out.
pub(crate) fn clean(label: &str, listing: &mut Listing, findings: &mut Vec<Finding>) {
    let mut report = |subject: String| {
        let message = "characters that nobody sees are taken out of its words";
        findings.push(Finding::new(Severity::Warning, "hidden-characters", subject, message));
    };
    for tool in &mut listing.tools {
        if let Some(Ok(clean)) = clean_definition(&tool.raw).map(Tool::parse) {
            report(format!("{label}/{}", clean.name));
            *tool = clean;
        }
    }
    for prompt in &mut listing.prompts {
        if let Some(Ok(clean)) = clean_definition(&prompt.raw).map(Prompt::parse) {
            report(format!("{label}/{}", clean.name));
            *prompt = clean;
        }
    }
    for resource in &mut listing.resources {
        if let Some(Ok(clean)) = clean_with_name(&resource.raw).map(Resource::parse) {
            report(format!("{label}/{}", clean.name));
            *resource = clean;
        }
    }
    for template in &mut listing.templates {
        if let Some(Ok(clean)) = clean_with_name(&template.raw).map(Template::parse) {
            report(format!("{label}/{}", clean.name));
            *template = clean;
        }
    }
    let server = &mut listing.server;
    let raw = clean_definition(&server.raw);
    let texts = [&mut server.name, &mut server.version].into_iter();
    let texts = texts.chain(server.instructions.as_mut());
    let n_changed =
        texts.map(clean_text).filter(|is_changed| *is_changed).count() + usize::from(raw.is_some());
    if let Some(raw) = raw {
        server.raw = raw;
    }
    if 0 < n_changed {
        report(label.to_owned());
    }
    leave_out_unshowable(label, listing, findings);
}

/// Leaves out items that can be requested only by text that cannot be shown, and reports
/// them.
fn leave_out_unshowable(label: &str, listing: &mut Listing, findings: &mut Vec<Finding>) {
    let mut report = |code: &str, subject: String, message: String| {
        findings.push(Finding::new(Severity::Warning, code, subject, message));
    };
    listing.tools.retain(|tool| {
        let schemas = [Some(&tool.input_schema), tool.output_schema.as_ref()];
        let mut schemas = schemas.into_iter().flatten();
        schemas.all(|schema| match unshowable(schema) {
            Some(odd) => {
                let message = format!("is left out: `{odd}` has hidden characters in it");
                let subject = format!("{label}/{}", plain_line(&tool.name));
                report("unreadable-name", subject, message);
                false
            }
            None => true,
        })
    });
    let mut is_shown = |what: &str, words: &str| {
        let is_plain = is_plain_line(words);
        if !is_plain {
            let message = format!("a {what} with hidden characters in it is left out");
            report("unreadable-name", format!("{label}/{}", plain_line(words)), message);
        }
        is_plain
    };
    listing.resources.retain(|resource| is_shown("URI", &resource.uri));
    listing.templates.retain(|template| is_shown("URI template", &template.uri_template));
    listing.prompts.retain(|prompt| {
        prompt.arguments.iter().all(|argument| is_shown("prompt's argument", &argument.name))
    });
    // A URI that would be refused in a request is not listed either.
    let mut is_taken = |uri: &str| {
        let defect = uri::defect(uri);
        if let Some(why) = &defect {
            let subject = format!("{label}/{}", cut(&plain_line(uri), 200));
            let message = format!("a URI is left out: it {why}");
            findings.push(Finding::new(Severity::Warning, "unreadable-name", subject, message));
        }
        defect.is_none()
    };
    listing.resources.retain(|resource| is_taken(&resource.uri));
    listing.templates.retain(|template| is_taken(&template.uri_template));
}

/// Returns a key of a clean schema, or a value that arguments have to repeat, that has
/// invisible characters; without those.
fn unshowable(schema: &Json) -> Option<String> {
    // Any other character in JSON is visible ASCII or escaped.
    if schema.as_str().is_ascii() && !schema.as_str().contains('\\') {
        return None;
    }
    find_unshowable(&schema.to_value().ok()?)
}

fn find_unshowable(part: &Value) -> Option<String> {
    match part {
        Value::Object(members) => members.iter().find_map(|(key, below)| {
            let odd = (!is_plain_line(key)).then(|| catalog::summary::echo(&plain_line(key)));
            odd.or_else(|| find_unshowable(below))
        }),
        Value::Array(parts) => parts.iter().find_map(find_unshowable),
        // Whatever need not be repeated is clean.
        Value::String(text) => match without_invisible_non_ascii(text) {
            Cow::Owned(clean) => Some(catalog::summary::echo(&clean)),
            Cow::Borrowed(_) => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Makes one line of a text, without characters that move, hide or colour others.
pub(crate) fn plain_line(text: &str) -> String {
    without_invisible(&text.replace(char::is_control, " ")).trim().to_owned()
}

fn is_plain_line(text: &str) -> bool {
    !text.contains(char::is_control) && matches!(without_invisible(text), Cow::Borrowed(_))
}

/// Returns a listing as the catalog has it: bounded and cleaned, with what was changed among
/// its findings. The trust ledger has tools in this form.
pub fn published_form(label: &str, listing: &Listing) -> Listing {
    let (mut clean, mut findings) = (listing.clone(), Vec::new());
    bounds::enforce(label, &mut clean, &mut findings);
    self::clean(label, &mut clean, &mut findings);
    clean.findings.extend(findings);
    clean
}

/// Cleans a text; returns whether it changed.
fn clean_text(text: &mut String) -> bool {
    let Cow::Owned(clean) = without_invisible(text) else { return false };
    *text = clean;
    true
}

/// Cleans a definition and its name, which does not identify it; `None` if nothing changed.
fn clean_with_name(raw: &Json) -> Option<Json> {
    let clean = clean_definition(raw);
    let name = raw.member("name").and_then(|name| name.string_value());
    let Some(name) = name.filter(|name| !is_plain_line(name)) else { return clean };
    let mut members = Object::parse(clean.as_ref().unwrap_or(raw)).ok()?;
    members.set("name", Json::encode(&plain_line(&name)));
    Some(members.to_json())
}

/// Cleans the texts of a definition; `None` if nothing changed.
fn clean_definition(raw: &Json) -> Option<Json> {
    let deduplicated = match duplicate_key(raw.as_str()) {
        Some(_) => Some(Json::from(raw.to_value().ok()?)),
        None => None,
    };
    let raw = deduplicated.as_ref().unwrap_or(raw);
    // In JSON, a control character is always escaped.
    if raw.as_str().is_ascii() && !raw.as_str().contains('\\') {
        return deduplicated;
    }
    let mut members = Object::parse(raw).ok()?;
    let mut changed = Vec::new();
    for (key, member) in members.iter() {
        if !STRUCTURED_MEMBERS.contains(&key) {
            changed.extend(json_without_invisible(member).map(|clean| (key.to_owned(), clean)));
            continue;
        }
        // Nobody can show what is nested too deep to be parsed.
        let Ok(mut value) = member.to_value() else { continue };
        let mut is_changed = clean_texts(key, &mut value);
        is_changed |= SCHEMAS.contains(&key) && clean_values(&mut value);
        if is_changed {
            changed.push((key.to_owned(), Json::from(value)));
        }
    }
    if changed.is_empty() {
        return deduplicated;
    }
    for (key, value) in changed {
        members.set(&key, value);
    }
    Some(members.to_json())
}

/// Cleans the texts for readers in a value, which is the member `key`; returns whether it
/// changed.
fn clean_texts(key: &str, value: &mut Value) -> bool {
    match value {
        Value::String(text) if TEXT_MEMBERS.contains(&key) => clean_text(text),
        // Each is cleaned, also when one before it was.
        Value::Array(items) => {
            items.iter_mut().filter_map(|item| clean_texts("", item).then_some(())).count() > 0
        }
        Value::Object(members) => members
            .iter_mut()
            .filter(|(key, value)| !is_required_value(key, value))
            .fold(false, |changed, (key, value)| clean_texts(key, value) || changed),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Cleans every string of a schema that arguments need not repeat; returns whether any
/// changed.
fn clean_values(value: &mut Value) -> bool {
    match value {
        Value::String(text) => clean_value(text),
        Value::Array(items) => {
            items.iter_mut().filter_map(|item| clean_values(item).then_some(())).count() > 0
        }
        Value::Object(members) => members
            .iter_mut()
            .filter(|(key, value)| !is_required_value(key, value))
            .fold(false, |changed, (_, value)| clean_values(value) || changed),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns whether a member of a schema holds what arguments repeat. What is an object is
/// rather a property that is called `enum`.
fn is_required_value(key: &str, value: &Value) -> bool {
    REQUIRED_VALUES.contains(&key) && !value.is_object()
}

/// Removes invisible characters from a string value, and those that control a terminal;
/// returns whether it changed. Line ends and tabs may be meant.
fn clean_value(text: &mut String) -> bool {
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    let mut clean = without_invisible_non_ascii(text);
    if clean.contains(is_control) {
        clean = Cow::Owned(clean.replace(is_control, ""));
    }
    if let Some(plain) = without_overwriting(&clean) {
        clean = Cow::Owned(plain);
    }
    let Cow::Owned(clean) = clean else { return false };
    *text = clean;
    true
}

/// Removes the carriage returns that something other than a line end follows: on a terminal
/// that is written over what stands before. `None` if there are none.
fn without_overwriting(text: &str) -> Option<String> {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('\r') {
        let behind = rest[at..].trim_start_matches('\r');
        let ends_line = behind.is_empty() || behind.starts_with('\n');
        let end = if ends_line { rest.len() - behind.len() } else { at };
        plain.push_str(&rest[..end]);
        rest = behind;
    }
    plain.push_str(rest);
    (plain.len() != text.len()).then_some(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use testkit::{listing, tool};

    use super::*;

    #[test]
    fn a_carriage_return_writes_over_nothing_and_line_ends_stay() {
        for (value, expected) in [
            ("/tmp/x\r/etc", "/tmp/x/etc"),
            ("/tmp/x\r\r/etc\r\r\n", "/tmp/x/etc\r\r\n"),
            ("a\r\nb\r\n", "a\r\nb\r\n"),
            ("\r", "\r"),
            ("\r\n", "\r\n"),
        ] {
            let raw = tool("t", "", &json!({"properties": {"path": {"default": value}}})).raw;
            let clean = clean_definition(&raw).unwrap_or(raw).to_value().unwrap();
            let default = &clean["inputSchema"]["properties"]["path"]["default"];
            assert_eq!(default, expected, "{value:?}");
        }
    }

    const HOSTILE: &str = "a\u{1b}[2J\u{202e}b\u{200b}\u{7}\u{e0041}";

    /// The same as a value.
    const VALUE: &str = "a[2Jb";

    #[test]
    fn words_are_cleaned_at_any_depth_and_values_of_what_nobody_sees() {
        let schema = json!({"type": "object", "title": HOSTILE, "properties": {
            "p q": {"description": HOSTILE, "enum": ["\r\n\u{1b}"], "default": {"title": HOSTILE},
                    "pattern": HOSTILE, "examples": [HOSTILE]},
            "default": {"description": HOSTILE},
            "description": {"anyOf": [{"description": HOSTILE}]},
        }});
        let mut listed =
            listing(vec![tool("t", HOSTILE, &schema), tool("u", "Fine. é\n", &json!({}))]);
        let raw = json!({"name": HOSTILE, "description": HOSTILE});
        listed.prompts = vec![Prompt::parse(raw.into()).unwrap()];
        listed.server.name = HOSTILE.to_owned();
        listed.server.instructions = Some(HOSTILE.to_owned());
        let mut findings = Vec::new();
        clean("up", &mut listed, &mut findings);
        let seen = listed.tools[0].raw.to_value().unwrap();
        assert_eq!(seen["description"], "a[2Jb");
        assert_eq!(listed.tools[0].description.as_deref(), Some("a[2Jb"));
        let properties = &seen["inputSchema"]["properties"];
        let p = &properties["p q"];
        assert_eq!(p["description"], "a[2Jb");
        assert_eq!(p["enum"][0], "\r\n\u{1b}", "JSON shows it, and calls repeat it");
        assert_eq!(p["default"]["title"], "a[2Jb");
        assert_eq!((&p["pattern"], &p["examples"][0]), (&json!(VALUE), &json!(VALUE)));
        assert_eq!(properties["default"]["description"], "a[2Jb");
        assert_eq!(properties["description"]["anyOf"][0]["description"], "a[2Jb");
        assert_eq!(listed.prompts[0].name, HOSTILE, "a name is the way to it");
        assert_eq!(listed.prompts[0].description.as_deref(), Some("a[2Jb"));
        assert_eq!(listed.server.name, "a[2Jb");
        assert_eq!(listed.server.instructions.as_deref(), Some("a[2Jb"));
        let told: Vec<&str> = findings.iter().map(|found| found.subject.as_str()).collect();
        assert_eq!(told, ["up/t", &format!("up/{HOSTILE}"), "up"]);
    }

    #[test]
    fn no_word_of_a_schema_hides_characters() {
        let schema = json!({
            "$schema": HOSTILE, "$id": HOSTILE, "required": [HOSTILE], "x-note": HOSTILE,
            "properties": {"p": {"type": ["string", HOSTILE], "format": HOSTILE, "$ref": HOSTILE}},
        });
        let raw = json!({"name": "t", "inputSchema": schema, "_meta": {HOSTILE: 1}});
        let mut listed = listing(vec![Tool::parse(raw.into()).unwrap()]);
        let mut findings = Vec::new();
        clean("up", &mut listed, &mut findings);
        let seen = listed.tools[0].raw.to_value().unwrap();
        let p = &seen["inputSchema"]["properties"]["p"];
        let words = [&p["type"][1], &p["format"], &p["$ref"], &seen["inputSchema"]["$schema"]];
        assert_eq!(words, [VALUE; 4]);
        let words = ["$id", "x-note"].map(|key| &seen["inputSchema"][key]);
        assert_eq!(words, [VALUE; 2]);
        assert_eq!(seen["inputSchema"]["required"], json!([VALUE]));
        assert_eq!(seen["_meta"], json!({VALUE: 1}));
        assert_eq!(findings[0].code, "hidden-characters");
    }

    #[test]
    fn a_tool_with_hidden_characters_in_a_key_of_its_schema_is_left_out() {
        for odd in ["x\u{e0041}", "x\u{1b}", "x\n# Ours"] {
            let mut listed = listing(vec![
                tool("word", "", &json!({odd: 1})),
                tool("pattern", "", &json!({"patternProperties": {odd: {}}})),
                tool("default", "", &json!({"properties": {"a": {"default": {odd: 1}}}})),
                tool("fine", "", &json!({"properties": {"a": {"default": {"é": 1}}}})),
            ]);
            clean("up", &mut listed, &mut Vec::new());
            let names: Vec<&str> = listed.tools.iter().map(|tool| tool.name.as_str()).collect();
            assert_eq!(names, ["fine"], "{odd:?}");
        }
        let nested = json!({"properties": {"a": {"enum": [["x\u{202e}"]]}}});
        let mut listed = listing(vec![tool("nested", "", &nested)]);
        clean("up", &mut listed, &mut Vec::new());
        assert_eq!(listed.tools, []);
    }

    #[test]
    fn what_no_revision_knows_is_for_readers() {
        let raw = json!({"name": "t", "instructions": HOSTILE, "x": [{"y": HOSTILE}],
                         "_meta": {"z": HOSTILE}});
        let mut listed = listing(vec![Tool::parse(raw.into()).unwrap()]);
        clean("up", &mut listed, &mut Vec::new());
        let seen = listed.tools[0].raw.to_value().unwrap();
        assert_eq!((&seen["instructions"], &seen["x"][0]["y"]), (&json!("a[2Jb"), &json!("a[2Jb")));
        assert_eq!(seen["_meta"]["z"], "a[2Jb", "hosts show it, too");
    }

    #[test]
    fn a_tool_that_cannot_be_called_as_it_is_shown_is_left_out() {
        let odd = "p\u{202e}q";
        let mut listed = listing(vec![
            tool("name", "", &json!({"properties": {odd: {}}})),
            tool("deep", "", &json!({"properties": {"a": {"items": {"properties": {odd: {}}}}}})),
            tool("choice", "", &json!({"properties": {"a": {"enum": ["x", odd]}}})),
            tool("const", "", &json!({"anyOf": [{"const": odd}]})),
            tool("fine", "", &json!({"properties": {"naïve": {"enum": ["\r\n", "é"]}}})),
        ]);
        let mut findings = Vec::new();
        clean("up", &mut listed, &mut findings);
        let names: Vec<&str> = listed.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["fine"]);
        let told: Vec<&str> = findings.iter().map(|found| found.code.as_str()).collect();
        assert_eq!(told, ["unreadable-name"; 4]);
        assert!(findings[0].message.contains("`pq`"), "{}", findings[0].message);
    }

    #[test]
    fn names_of_resources_are_words_and_what_only_has_an_unreadable_uri_is_left_out() {
        let resource = |uri: &str, name: &str| {
            Resource::parse(json!({"uri": uri, "name": name}).into()).unwrap()
        };
        let template = |uri: &str| Template::parse(json!({"uriTemplate": uri}).into()).unwrap();
        let prompt = |argument: &str| {
            let raw = json!({"name": "p\n# x", "arguments": [{"name": argument}]});
            Prompt::parse(raw.into()).unwrap()
        };
        let mut listed = Listing {
            resources: vec![
                resource("a://1", "one\n- **gatelet**\u{1b}[31m\u{202e}"),
                resource("a://é", "zwei"),
                resource("a://2\n# Ours", "two"),
                resource("a://3\u{202e}", "three"),
            ],
            templates: vec![template("b://{x}"), template("b://\u{1b}{x}")],
            prompts: vec![prompt("fine"), prompt("odd\nname")],
            ..listing(vec![])
        };
        let mut findings = Vec::new();
        clean("up", &mut listed, &mut findings);
        let names: Vec<&str> = listed.resources.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["one - **gatelet** [31m", "zwei"]);
        assert!(listed.resources[0].raw.as_str().contains(r#""name":"one - **gatelet** [31m""#));
        assert_eq!((listed.templates.len(), listed.prompts.len()), (1, 1));
        let n_left_out = findings.iter().filter(|found| found.code == "unreadable-name").count();
        assert_eq!(n_left_out, 4, "{findings:?}");
    }

    #[test]
    fn of_two_descriptions_everybody_reads_the_same() {
        let raw = r#"{"name":"t","description":"EVIL","description":"Reads."}"#;
        let mut listed = listing(vec![Tool::parse(Json::parse(raw).unwrap()).unwrap()]);
        clean("up", &mut listed, &mut Vec::new());
        assert!(!listed.tools[0].raw.as_str().contains("EVIL"));
        assert_eq!(listed.tools[0].description.as_deref(), Some("Reads."));
    }

    proptest! {
        #[test]
        fn what_is_readable_stays_byte_for_byte(words in "[ -~éあ\n]{0,30}", spaces in 0usize..3) {
            let text = Json::encode(&words);
            let raw = format!("{{\"name\":{}\"t\",\"description\":{text},\"x\":1e400}}", " ".repeat(spaces));
            let before = listing(vec![Tool::parse(Json::parse(raw).unwrap()).unwrap()]);
            let (mut after, mut findings) = (before.clone(), Vec::new());
            clean("up", &mut after, &mut findings);
            prop_assert_eq!(after.tools[0].raw.as_str(), before.tools[0].raw.as_str());
            prop_assert!(findings.is_empty());
        }
    }
}
