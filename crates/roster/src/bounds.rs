//! Bounds the size of a listing.
//!
//! Everything that an upstream lists is indexed, compared, shown and stored, for all
//! callers. So its size is bounded first, and everything over a bound becomes a finding:
//! long texts are cut; items with a too long name or definition, and items after the
//! first many, are left out. The bounds are far above what any honest server lists.

use serde_json::Value;
use tool::{Finding, Json, Listing, Object, Prompt, Resource, Server, Severity, Template, Tool};

/// The most bytes of a name of a tool, a prompt or a parameter. Clients accept 64 to 128.
const MAX_NAME: usize = 256;

/// The most bytes of a URI or a URI template.
const MAX_URI: usize = 8 << 10;

/// The most bytes of a title, and of a name that does not identify its item.
const MAX_TITLE: usize = 1 << 10;

/// The most bytes of a description, and of a server's instructions.
const MAX_TEXT: usize = 32 << 10;

/// The most bytes of a definition, after its texts were cut.
const MAX_DEFINITION: usize = 1 << 20;

/// The most properties of a schema, at all levels together.
const MAX_PROPERTIES: usize = 10_000;

/// The most items of one kind.
const MAX_ITEMS: usize = 20_000;

/// The most bytes of all definitions together.
const MAX_LISTING: usize = 32 << 20;

/// The most findings that are reported one by one; the rest are counted.
const MAX_FINDINGS: usize = 100;

/// Bounds a listing, and reports what was over a bound.
pub(crate) fn enforce(label: &str, listing: &mut Listing, findings: &mut Vec<Finding>) {
    let mut bounds = Bounds { label, room: MAX_LISTING, findings: Vec::new(), n_more: 0 };
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

/// The state of bounding one listing.
struct Bounds<'a> {
    label: &'a str,
    /// The bytes that are left for definitions.
    room: usize,
    findings: Vec<Finding>,
    /// The findings that are only counted.
    n_more: usize,
}

impl Bounds<'_> {
    fn report(&mut self, code: &str, name: &str, message: String) {
        if MAX_FINDINGS <= self.findings.len() {
            self.n_more += 1;
            return;
        }
        let subject = match name {
            "" => self.label.to_owned(),
            name => format!("{}/{}", self.label, catalog::summary::echo(start(name, MAX_NAME))),
        };
        self.findings.push(Finding::new(Severity::Warning, code, subject, message));
    }

    fn enforce<T: Item>(&mut self, items: &mut Vec<T>, kind: &str) {
        if MAX_ITEMS < items.len() {
            let message = format!("lists {} {kind}; the first {MAX_ITEMS} are used", items.len());
            self.report("listing-too-long", "", message);
            items.truncate(MAX_ITEMS);
        }
        let mut n_over = 0;
        items.retain_mut(|item| {
            if let Some(why) = item.why_too_large() {
                self.report("definition-too-long", item.key(), format!("is left out: {why}"));
                return false;
            }
            if let Some(shorter) = cut_texts(item.raw(), T::TEXT_MEMBERS).and_then(T::parse) {
                self.report("words-too-long", item.key(), "its words are cut".to_owned());
                *item = shorter;
            }
            let n_bytes = item.raw().as_str().len();
            if MAX_DEFINITION < n_bytes {
                let message = format!("is left out: its definition has {n_bytes} bytes");
                self.report("definition-too-long", item.key(), message);
                return false;
            }
            n_over += usize::from(self.room < n_bytes);
            let fits = n_bytes <= self.room;
            self.room = if fits { self.room - n_bytes } else { 0 };
            fits
        });
        if 0 < n_over {
            let message = format!("{n_over} of its {kind} are left out: its listing is too long");
            self.report("listing-too-long", "", message);
        }
    }

    fn enforce_server(&mut self, server: &mut Server) {
        let mut is_cut = false;
        for (text, limit) in [(&mut server.name, MAX_NAME), (&mut server.version, MAX_NAME)]
            .into_iter()
            .chain(server.instructions.as_mut().map(|words| (words, MAX_TEXT)))
        {
            if limit < text.len() {
                *text = cut(text, limit);
                is_cut = true;
            }
        }
        if MAX_DEFINITION / 16 < server.raw.as_str().len() {
            let known = serde_json::json!({"name": server.name, "version": server.version});
            server.raw = known.into();
            is_cut = true;
        }
        if is_cut {
            self.report("words-too-long", "", "what it says of itself is cut".to_owned());
        }
    }
}

/// An item of a listing.
trait Item: Sized {
    /// The members that are text for readers, and their most bytes.
    const TEXT_MEMBERS: &'static [(&'static str, usize)];

    fn parse(raw: Json) -> Option<Self>;
    fn raw(&self) -> &Json;

    /// Returns the name or URI by which the item is requested.
    fn key(&self) -> &str;

    /// Returns why the item is left out, if it is too large in other ways than its texts.
    fn why_too_large(&self) -> Option<String>;
}

/// The texts of an item that is requested by its name.
const TEXTS_OF_NAMED: &[(&str, usize)] = &[("title", MAX_TITLE), ("description", MAX_TEXT)];

/// The texts of an item that is requested by its URI.
const TEXTS_WITH_URI: &[(&str, usize)] =
    &[("name", MAX_TITLE), ("title", MAX_TITLE), ("description", MAX_TEXT)];

impl Item for Tool {
    const TEXT_MEMBERS: &'static [(&'static str, usize)] = TEXTS_OF_NAMED;

    fn parse(raw: Json) -> Option<Tool> {
        Tool::parse(raw).ok()
    }

    fn raw(&self) -> &Json {
        &self.raw
    }

    fn key(&self) -> &str {
        &self.name
    }

    fn why_too_large(&self) -> Option<String> {
        let schemas = [Some(&self.input_schema), self.output_schema.as_ref()];
        let schemas = schemas.into_iter().flatten();
        too_long("name", &self.name, MAX_NAME)
            .or_else(|| schemas.filter_map(schema_too_large).next())
    }
}

impl Item for Prompt {
    const TEXT_MEMBERS: &'static [(&'static str, usize)] = TEXTS_OF_NAMED;

    fn parse(raw: Json) -> Option<Prompt> {
        Prompt::parse(raw).ok()
    }

    fn raw(&self) -> &Json {
        &self.raw
    }

    fn key(&self) -> &str {
        &self.name
    }

    fn why_too_large(&self) -> Option<String> {
        let arguments = self.arguments.iter();
        let arguments =
            arguments.filter_map(|one| too_long("argument's name", &one.name, MAX_NAME));
        too_long("name", &self.name, MAX_NAME).or_else(|| arguments.into_iter().next())
    }
}

impl Item for Resource {
    const TEXT_MEMBERS: &'static [(&'static str, usize)] = TEXTS_WITH_URI;

    fn parse(raw: Json) -> Option<Resource> {
        Resource::parse(raw).ok()
    }

    fn raw(&self) -> &Json {
        &self.raw
    }

    fn key(&self) -> &str {
        &self.uri
    }

    fn why_too_large(&self) -> Option<String> {
        too_long("URI", &self.uri, MAX_URI)
    }
}

impl Item for Template {
    const TEXT_MEMBERS: &'static [(&'static str, usize)] = TEXTS_WITH_URI;

    fn parse(raw: Json) -> Option<Template> {
        Template::parse(raw).ok()
    }

    fn raw(&self) -> &Json {
        &self.raw
    }

    fn key(&self) -> &str {
        &self.uri_template
    }

    fn why_too_large(&self) -> Option<String> {
        too_long("URI template", &self.uri_template, MAX_URI)
    }
}

fn too_long(what: &str, text: &str, limit: usize) -> Option<String> {
    let n_bytes = text.len();
    (limit < n_bytes).then(|| format!("its {what} has {n_bytes} bytes, more than {limit}"))
}

/// Returns why a schema is too large, if it is.
fn schema_too_large(schema: &Json) -> Option<String> {
    let n_bytes = schema.as_str().len();
    if MAX_DEFINITION < n_bytes {
        return Some(format!("a schema of it has {n_bytes} bytes"));
    }
    if n_bytes <= MAX_NAME {
        return None;
    }
    // A schema that cannot be parsed is reported by the schema check.
    let schema = schema.to_value().ok()?;
    let mut n_properties = 0;
    long_property_name(&schema, &mut n_properties).or_else(|| {
        let why_too_large = MAX_PROPERTIES < n_properties;
        why_too_large.then(|| format!("a schema of it has {n_properties} properties"))
    })
}

/// Returns why a property has a too long name, if one does. Counts all properties.
fn long_property_name(part: &Value, n_properties: &mut usize) -> Option<String> {
    match part {
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get("properties") {
                *n_properties += properties.len();
                let names = properties.keys();
                let over =
                    names.filter_map(|name| too_long("parameter's name", name, MAX_NAME)).next();
                if over.is_some() {
                    return over;
                }
            }
            members.values().find_map(|below| long_property_name(below, n_properties))
        }
        Value::Array(parts) => {
            parts.iter().find_map(|below| long_property_name(below, n_properties))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Cuts the texts of a definition; `None` if they were short.
fn cut_texts(raw: &Json, words: &[(&str, usize)]) -> Option<Json> {
    // A definition is at least as long as each of its texts.
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

/// Cuts a text and appends a hash of the whole, so that a change of the part that was cut
/// off still counts as a change.
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
            (0..=MAX_PROPERTIES).map(|n| (format!("p{n}"), json!({}))).collect();
        let (kept, told) = bounded(listing(vec![
            tool(&"n".repeat(2 << 20), "", &json!({})),
            tool("dots", "", &json!({"properties": {"a".repeat(300): {}}})),
            tool("deep", "", &json!({"items": {"properties": {"a".repeat(300): {}}}})),
            tool("many", "", &json!({"properties": many})),
            tool("long", "", &json!({"default": "x".repeat(MAX_DEFINITION)})),
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
        assert!(of(&one).len() < MAX_TEXT + 100 && of(&one).starts_with("word word"));
        assert!(one.tools[0].raw.as_str().len() < MAX_TEXT + 1000);
        assert_ne!(of(&one), of(&other));
    }

    #[test]
    fn of_too_many_the_first_are_used() {
        let tools = (0..MAX_ITEMS + 5).map(|n| tool(&format!("t{n}"), "", &json!({})));
        let (kept, told) = bounded(listing(tools.collect()));
        assert_eq!(kept.tools.len(), MAX_ITEMS);
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
        assert_eq!((kept.tools.len(), told.len()), (0, MAX_FINDINGS + 1));
    }

    #[test]
    fn what_a_server_says_of_itself_is_bounded() {
        let mut listed = listing(vec![]);
        listed.server = Server::new(&"s".repeat(10 << 20), &"v".repeat(300), json!({}).into());
        listed.server.instructions = Some("i ".repeat(5 << 20));
        listed.resources = ["a://1".to_owned(), "a".repeat(MAX_URI + 1)]
            .map(|uri| {
                let raw = json!({"uri": uri, "name": "r".repeat(6_000_000)});
                Resource::parse(raw.into()).unwrap()
            })
            .into();
        let (kept, told) = bounded(listed);
        assert!(kept.server.name.len() < 400 && kept.server.version.len() < 400);
        assert!(kept.server.raw.as_str().len() < 1000);
        assert!(kept.server.instructions.unwrap().len() < MAX_TEXT + 100);
        assert_eq!((kept.resources.len(), told.len()), (1, 3), "{told:?}");
        assert!(kept.resources[0].name.len() < MAX_TITLE + 100);
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
