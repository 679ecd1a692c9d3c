//! How much of a listing is taken in.
//!
//! Everything that an upstream lists is indexed, compared, written on pages and
//! remembered, for all callers of the gate. So it is bounded before anything else
//! looks at it, and what is over a bound becomes a finding: words are cut, what has
//! an endless name or definition is left out, and so is what comes after the first
//! many. The bounds are far above what any honest server lists.

use serde_json::Value;
use tool::{Finding, Json, Listing, Object, Prompt, Resource, Server, Severity, Template, Tool};

/// Bytes of a name: of a tool, a prompt or a parameter. Clients take 64 to 128.
const NAME: usize = 256;

/// Bytes of a URI, or a template of URIs.
const URI: usize = 8 << 10;

/// Bytes of a title, and of a name that is only for readers.
const TITLE: usize = 1 << 10;

/// Bytes of a description, and of a server's instructions.
const WORDS: usize = 32 << 10;

/// Bytes of a whole definition, with words that are cut already.
const DEFINITION: usize = 1 << 20;

/// Properties of a schema, at all levels together.
const PROPERTIES: usize = 10_000;

/// Items of one kind.
const ITEMS: usize = 20_000;

/// Bytes of all definitions together.
const LISTING: usize = 32 << 20;

/// How many findings are kept; the rest are counted.
const FINDINGS: usize = 100;

/// Bounds a listing, and tells what was over.
pub(crate) fn enforce(label: &str, listing: &mut Listing, findings: &mut Vec<Finding>) {
    let mut bounds = Bounds { label, room: LISTING, findings: Vec::new(), n_more: 0 };
    bounds.enforce(&mut listing.tools, "tools");
    bounds.enforce(&mut listing.prompts, "prompts");
    bounds.enforce(&mut listing.resources, "resources");
    bounds.enforce(&mut listing.templates, "resource templates");
    bounds.enforce_server(&mut listing.server);
    findings.append(&mut bounds.findings);
    if 0 < bounds.n_more {
        let message = format!("{} more findings like these", bounds.n_more);
        findings.push(Finding::new(Severity::Warning, "more-findings", label, message));
    }
}

struct Bounds<'a> {
    label: &'a str,
    /// Bytes that are left for definitions.
    room: usize,
    findings: Vec<Finding>,
    n_more: usize,
}

impl Bounds<'_> {
    fn tell(&mut self, code: &str, name: &str, message: String) {
        if FINDINGS <= self.findings.len() {
            self.n_more += 1;
            return;
        }
        let subject = match name {
            "" => self.label.to_owned(),
            name => format!("{}/{}", self.label, catalog::summary::echo(start(name, NAME))),
        };
        self.findings.push(Finding::new(Severity::Warning, code, subject, message));
    }

    fn enforce<T: Item>(&mut self, items: &mut Vec<T>, kind: &str) {
        if ITEMS < items.len() {
            let message = format!("lists {} {kind}; the first {ITEMS} are used", items.len());
            self.tell("listing-too-long", "", message);
            items.truncate(ITEMS);
        }
        let mut n_over = 0;
        items.retain_mut(|item| {
            if let Some(why) = item.is_over() {
                self.tell("definition-too-long", item.key(), format!("is left out: {why}"));
                return false;
            }
            if let Some(shorter) = shortened(item.raw(), T::WORDS).and_then(T::read) {
                self.tell("words-too-long", item.key(), "its words are cut".to_owned());
                *item = shorter;
            }
            let n_bytes = item.raw().as_str().len();
            if DEFINITION < n_bytes {
                let message = format!("is left out: its definition has {n_bytes} bytes");
                self.tell("definition-too-long", item.key(), message);
                return false;
            }
            n_over += usize::from(self.room < n_bytes);
            let fits = n_bytes <= self.room;
            self.room = if fits { self.room - n_bytes } else { 0 };
            fits
        });
        if 0 < n_over {
            let message = format!("{n_over} of its {kind} are left out: its listing is too long");
            self.tell("listing-too-long", "", message);
        }
    }

    fn enforce_server(&mut self, server: &mut Server) {
        let mut is_cut = false;
        for (text, limit) in [(&mut server.name, NAME), (&mut server.version, NAME)]
            .into_iter()
            .chain(server.instructions.as_mut().map(|words| (words, WORDS)))
        {
            if limit < text.len() {
                *text = cut(text, limit);
                is_cut = true;
            }
        }
        if DEFINITION / 16 < server.raw.as_str().len() {
            let known = serde_json::json!({"name": server.name, "version": server.version});
            server.raw = known.into();
            is_cut = true;
        }
        if is_cut {
            self.tell("words-too-long", "", "what it says of itself is cut".to_owned());
        }
    }
}

/// One thing that is listed.
trait Item: Sized {
    /// The members that are only for readers, and how long they may be.
    const WORDS: &'static [(&'static str, usize)];

    fn read(raw: Json) -> Option<Self>;
    fn raw(&self) -> &Json;

    /// What it is asked for by.
    fn key(&self) -> &str;

    /// Why it cannot be used, though its words were short.
    fn is_over(&self) -> Option<String>;
}

/// Words of something that has a name of its own, by which it is asked for.
const ABOUT: &[(&str, usize)] = &[("title", TITLE), ("description", WORDS)];

/// Words of something that has a URI.
const NAMED: &[(&str, usize)] = &[("name", TITLE), ("title", TITLE), ("description", WORDS)];

impl Item for Tool {
    const WORDS: &'static [(&'static str, usize)] = ABOUT;

    fn read(raw: Json) -> Option<Tool> {
        Tool::parse(raw).ok()
    }

    fn raw(&self) -> &Json {
        &self.raw
    }

    fn key(&self) -> &str {
        &self.name
    }

    fn is_over(&self) -> Option<String> {
        let schemas = [Some(&self.input_schema), self.output_schema.as_ref()];
        let schemas = schemas.into_iter().flatten();
        long("name", &self.name, NAME).or_else(|| schemas.filter_map(too_much).next())
    }
}

impl Item for Prompt {
    const WORDS: &'static [(&'static str, usize)] = ABOUT;

    fn read(raw: Json) -> Option<Prompt> {
        Prompt::parse(raw).ok()
    }

    fn raw(&self) -> &Json {
        &self.raw
    }

    fn key(&self) -> &str {
        &self.name
    }

    fn is_over(&self) -> Option<String> {
        let arguments = self.arguments.iter();
        let arguments = arguments.filter_map(|one| long("argument's name", &one.name, NAME));
        long("name", &self.name, NAME).or_else(|| arguments.into_iter().next())
    }
}

impl Item for Resource {
    const WORDS: &'static [(&'static str, usize)] = NAMED;

    fn read(raw: Json) -> Option<Resource> {
        Resource::parse(raw).ok()
    }

    fn raw(&self) -> &Json {
        &self.raw
    }

    fn key(&self) -> &str {
        &self.uri
    }

    fn is_over(&self) -> Option<String> {
        long("URI", &self.uri, URI)
    }
}

impl Item for Template {
    const WORDS: &'static [(&'static str, usize)] = NAMED;

    fn read(raw: Json) -> Option<Template> {
        Template::parse(raw).ok()
    }

    fn raw(&self) -> &Json {
        &self.raw
    }

    fn key(&self) -> &str {
        &self.uri_template
    }

    fn is_over(&self) -> Option<String> {
        long("URI template", &self.uri_template, URI)
    }
}

fn long(what: &str, text: &str, limit: usize) -> Option<String> {
    let n_bytes = text.len();
    (limit < n_bytes).then(|| format!("its {what} has {n_bytes} bytes, more than {limit}"))
}

/// Why a schema is more than anybody checks arguments against.
fn too_much(schema: &Json) -> Option<String> {
    let n_bytes = schema.as_str().len();
    if DEFINITION < n_bytes {
        return Some(format!("a schema of it has {n_bytes} bytes"));
    }
    if n_bytes <= NAME {
        return None;
    }
    // One that cannot be read is told where schemas are examined.
    let schema = schema.to_value().ok()?;
    let mut n_properties = 0;
    endless_name(&schema, &mut n_properties).or_else(|| {
        let is_over = PROPERTIES < n_properties;
        is_over.then(|| format!("a schema of it has {n_properties} properties"))
    })
}

/// Why a property cannot be shown, if one has an endless name; counts them all.
fn endless_name(part: &Value, n_properties: &mut usize) -> Option<String> {
    match part {
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get("properties") {
                *n_properties += properties.len();
                let names = properties.keys();
                let over = names.filter_map(|name| long("parameter's name", name, NAME)).next();
                if over.is_some() {
                    return over;
                }
            }
            members.values().find_map(|below| endless_name(below, n_properties))
        }
        Value::Array(parts) => parts.iter().find_map(|below| endless_name(below, n_properties)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// A definition with shorter words, if they were too long.
fn shortened(raw: &Json, words: &[(&str, usize)]) -> Option<Json> {
    // Every byte of a text is one of its definition, at least.
    let least = words.iter().map(|(_, limit)| *limit).min()?;
    if raw.as_str().len() <= least {
        return None;
    }
    let mut members = None;
    for (key, limit) in words {
        let Some(text) = raw.member(key).and_then(|text| text.string_value()) else { continue };
        if *limit < text.len() {
            let members = match &mut members {
                Some(members) => members,
                none => none.insert(Object::parse(raw).ok()?),
            };
            members.set(key, Json::encode(&cut(&text, *limit)));
        }
    }
    members.map(|members| members.to_json())
}

/// The start of a text. What it ends with tells two apart that start alike, so that a
/// change of what nobody sees is a change all the same.
fn cut(text: &str, limit: usize) -> String {
    let tag = catalog::name::tag(text, 16);
    format!("{}… [cut: {} bytes, {tag}]", start(text, limit), text.len())
}

fn start(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use testkit::{listing, tool};

    use super::*;

    fn bounded(mut listing: Listing) -> (Listing, Vec<String>) {
        let mut findings = Vec::new();
        enforce("up", &mut listing, &mut findings);
        let told = findings.iter().map(|found| {
            assert!(found.subject.len() + found.message.len() < 1000, "{}", found.code);
            format!("{} {}", found.subject.split("nn").next().unwrap(), found.code)
        });
        (listing, told.collect())
    }

    fn names(listing: &Listing) -> Vec<&str> {
        listing.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    #[test]
    fn what_has_an_endless_name_or_definition_is_left_out_and_told() {
        let many: serde_json::Map<String, Value> =
            (0..=PROPERTIES).map(|n| (format!("p{n}"), json!({}))).collect();
        let (kept, told) = bounded(listing(vec![
            tool(&"n".repeat(2 << 20), "", &json!({})),
            tool("dots", "", &json!({"properties": {"a".repeat(300): {}}})),
            tool("deep", "", &json!({"items": {"properties": {"a".repeat(300): {}}}})),
            tool("many", "", &json!({"properties": many})),
            tool("long", "", &json!({"default": "x".repeat(DEFINITION)})),
            tool("fine", "", &json!({"properties": {"a": {}}})),
        ]));
        assert_eq!(names(&kept), ["fine"]);
        let left_out = |name: &str| format!("up/{name} definition-too-long");
        assert_eq!(told, ["", "dots", "deep", "many", "long"].map(left_out));
    }

    #[test]
    fn long_words_are_cut_and_a_change_of_what_is_cut_stays_a_change() {
        let words = |end: &str| "word ".repeat(10_000_000 / 5) + end;
        let (one, told) = bounded(listing(vec![tool("t", &words("a"), &json!({}))]));
        let (other, _) = bounded(listing(vec![tool("t", &words("b"), &json!({}))]));
        assert_eq!(told, ["up/t words-too-long"]);
        let of = |listing: &Listing| listing.tools[0].description.clone().unwrap();
        assert!(of(&one).len() < WORDS + 100 && of(&one).starts_with("word word"));
        assert!(one.tools[0].raw.as_str().len() < WORDS + 1000);
        assert_ne!(of(&one), of(&other));
    }

    #[test]
    fn of_too_many_the_first_are_used() {
        let tools = (0..ITEMS + 5).map(|n| tool(&format!("t{n}"), "", &json!({})));
        let (kept, told) = bounded(listing(tools.collect()));
        assert_eq!(kept.tools.len(), ITEMS);
        assert_eq!(told, ["up listing-too-long"]);
        let schema = json!({"default": "x".repeat(1_000_000)});
        let tools = (0..40).map(|n| tool(&format!("t{n}"), "", &schema));
        let (kept, told) = bounded(listing(tools.collect()));
        assert_eq!((kept.tools.len(), told.len()), (33, 1), "{told:?}");
    }

    #[test]
    fn findings_are_bounded_too() {
        let tools = (0..500).map(|n| tool(&format!("{}{n}", "n".repeat(300)), "", &json!({})));
        let (kept, told) = bounded(listing(tools.collect()));
        assert_eq!((kept.tools.len(), told.len()), (0, FINDINGS + 1));
    }

    #[test]
    fn what_a_server_says_of_itself_is_bounded() {
        let mut listed = listing(vec![]);
        listed.server = Server::new(&"s".repeat(10 << 20), &"v".repeat(300), json!({}).into());
        listed.server.instructions = Some("i ".repeat(5 << 20));
        listed.resources = ["a://1".to_owned(), "a".repeat(URI + 1)]
            .map(|uri| {
                let raw = json!({"uri": uri, "name": "r".repeat(6_000_000)});
                Resource::parse(raw.into()).unwrap()
            })
            .into();
        let (kept, told) = bounded(listed);
        assert!(kept.server.name.len() < 400 && kept.server.version.len() < 400);
        assert!(kept.server.raw.as_str().len() < 1000);
        assert!(kept.server.instructions.unwrap().len() < WORDS + 100);
        assert_eq!((kept.resources.len(), told.len()), (1, 3), "{told:?}");
        assert!(kept.resources[0].name.len() < TITLE + 100);
    }

    proptest! {
        #[test]
        fn what_is_within_bounds_stays_byte_for_byte(name in ".{1,60}", words in ".{0,400}") {
            let before = listing(vec![tool(&name, &words, &json!({"properties": {"é": {}}}))]);
            let (after, told) = bounded(before.clone());
            prop_assert_eq!(after, before);
            prop_assert!(told.is_empty());
        }
    }
}
