//! Checks a document against the JSON Schema of the configuration.
//!
//! It is the schema that editors use (`gatelet config schema`), so the two cannot
//! disagree. A value that does not fit is reported and dropped, so that the rest of
//! the document can still be parsed and checked in the same run.

use document::tree::{Member, Node, Path, Value};
use serde_json::Value as Json;

use super::problem::{Problem, Problems, Severity};

/// Returns the part of `node` that fits `schema`; everything else is reported to `problems`.
pub(crate) fn fit(node: &Node, schema: &Json, problems: &mut Problems) -> Option<Node> {
    let mut fitter = Fitter { root: schema, problems, dropped: Vec::new() };
    let fitting = fitter.fit(node, schema, &Path::default());
    let dropped = fitter.dropped;
    problems.drop_items(dropped);
    fitting
}

struct Fitter<'a> {
    root: &'a Json,
    problems: &'a mut Problems,
    /// The list items that were dropped.
    dropped: Vec<Path>,
}

impl<'a> Fitter<'a> {
    fn fit(&mut self, node: &Node, schema: &'a Json, path: &Path) -> Option<Node> {
        let schema = match self.choose_alternative(node, resolve_reference(self.root, schema)) {
            Ok(schema) => schema,
            Err(message) => {
                self.problems.error(path, message, None);
                return None;
            }
        };
        if let Some(allowed) = allowed_texts(schema) {
            return self.fit_choice(node, &allowed, path);
        }
        if let Err(message) = check_type(node, schema).and_then(|()| check_range(node, schema)) {
            // The most common mistake: `[upstream]` for `[[upstream]]`.
            let is_bracket =
                type_names(schema) == ["array"] && matches!(node.value, Value::Table(_));
            let hint = is_bracket.then(|| format!("write it with two brackets: `[[{path}]]`"));
            self.problems.error(path, message, hint.as_deref());
            return None;
        }
        match &node.value {
            Value::Table(members) => self.fit_table(node, members, schema, path),
            Value::List(items) => Some(self.fit_list(node, items, schema, path)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::DateTime(_) => Some(node.clone()),
        }
    }

    /// Chooses the alternative of an `anyOf` by the type of the value.
    fn choose_alternative(&self, node: &Node, schema: &'a Json) -> Result<&'a Json, String> {
        let Some(any) = schema["anyOf"].as_array() else { return Ok(schema) };
        let kinds =
            |one| if allowed_texts(one).is_some() { vec!["string"] } else { type_names(one) };
        let mut wanted = Vec::new();
        for one in any.iter().map(|one| resolve_reference(self.root, one)) {
            let kinds = kinds(one);
            if kinds.iter().any(|kind| is_of_type(node, kind)) {
                return Ok(one);
            }
            wanted.extend(kinds.into_iter().map(type_in_words));
        }
        Err(format!("must be {}, not {}", wanted.join(" or "), node.kind()))
    }

    fn fit_table(
        &mut self,
        node: &Node,
        members: &[Member],
        schema: &'a Json,
        path: &Path,
    ) -> Option<Node> {
        let mut kept = Vec::with_capacity(members.len());
        for member in members {
            let known = schema["properties"].get(&member.key);
            let any = schema.get("additionalProperties").filter(|any| any.is_object());
            match known.or(any) {
                Some(below) => {
                    if let Some(node) = self.fit(&member.node, below, &path.key(&member.key)) {
                        kept.push(Member { node, ..member.clone() });
                    }
                }
                None if schema["additionalProperties"] == false => {
                    self.report_unknown(member, schema, path);
                }
                None => kept.push(member.clone()),
            }
        }
        let fitting = Node { span: node.span.clone(), value: Value::Table(kept) };
        self.is_complete(&fitting, schema, path).then_some(fitting)
    }

    /// Returns whether all required keys are present, and reports those that are not. A
    /// key with a value that does not fit is reported already.
    fn is_complete(&mut self, fitting: &Node, schema: &Json, path: &Path) -> bool {
        let required = schema["required"].as_array().into_iter().flatten();
        let lacking: Vec<&str> = required
            .filter_map(Json::as_str)
            .filter(|key| fitting.get(key).is_none())
            .inspect(|key| self.report_missing(key, schema, path))
            .collect();
        lacking.is_empty()
    }

    fn report_missing(&mut self, key: &str, schema: &Json, path: &Path) {
        let meaning = schema["properties"][key]["description"].as_str();
        let hint = meaning.and_then(|meaning| meaning.lines().next()).unwrap_or_default();
        self.problems.missing(path, key, &format!("needs `{key}`"), hint);
    }

    fn fit_list(&mut self, node: &Node, items: &[Node], schema: &'a Json, path: &Path) -> Node {
        let mut kept = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let fitting = match schema.get("items") {
                Some(below) => self.fit(item, below, &path.index(at)),
                None => Some(item.clone()),
            };
            match fitting {
                Some(item) => kept.push(item),
                None => self.dropped.push(path.index(at)),
            }
        }
        Node { span: node.span.clone(), value: Value::List(kept) }
    }

    fn fit_choice(&mut self, node: &Node, allowed: &[&str], path: &Path) -> Option<Node> {
        match node.text() {
            Some(text) if allowed.contains(&text) => Some(node.clone()),
            found => {
                let nearest = found.and_then(|text| closest_name(text, allowed.iter().copied()));
                let list: Vec<String> = allowed.iter().map(|one| format!("\"{one}\"")).collect();
                let message = format!("must be {}", list.join(" or "));
                let hint = nearest.map(|name| format!("did you mean \"{name}\"?"));
                self.problems.error(path, message, hint.as_deref());
                None
            }
        }
    }

    fn report_unknown(&mut self, member: &Member, schema: &Json, path: &Path) {
        let known = schema["properties"].as_object();
        let names = || known.into_iter().flat_map(|known| known.keys().map(String::as_str));
        let hint = match closest_name(&member.key, names()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("known here: {}", names().collect::<Vec<_>>().join(", ")),
        };
        let message = format!("unknown key `{}`", path.key(&member.key));
        self.problems.push(Problem {
            severity: Severity::Error,
            span: member.key_span.clone(),
            message,
            hint: Some(hint),
        });
    }
}

/// Follows `$ref`, and takes `X` for `anyOf [X, null]`.
pub(crate) fn resolve_reference<'a>(root: &'a Json, mut schema: &'a Json) -> &'a Json {
    loop {
        let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
        let option = schema["anyOf"].as_array().and_then(|any| {
            let mut real = any.iter().filter(|one| one["type"] != "null");
            real.next().filter(|_| real.next().is_none())
        });
        match target.and_then(|pointer| root.pointer(pointer)).or(option) {
            Some(next) => schema = next,
            None => return schema,
        }
    }
}

/// Returns the texts that an enumeration allows; `None` for any other schema. schemars
/// writes a documented variant as `const` and all others as one `enum`.
pub(crate) fn allowed_texts(schema: &Json) -> Option<Vec<&str>> {
    if let Some(list) = schema["enum"].as_array() {
        return list.iter().map(Json::as_str).collect();
    }
    if let Some(word) = schema["const"].as_str() {
        return Some(vec![word]);
    }
    let parts: Option<Vec<Vec<&str>>> =
        schema["oneOf"].as_array()?.iter().map(allowed_texts).collect();
    parts.map(|parts| parts.concat())
}

fn check_type(node: &Node, schema: &Json) -> Result<(), String> {
    let types = type_names(schema);
    if types.is_empty() || types.iter().any(|kind| is_of_type(node, kind)) {
        return Ok(());
    }
    if types.contains(&"integer") && is_too_large_integer(node) {
        return Err("is too large a number".to_owned());
    }
    let wanted: Vec<&str> = types.into_iter().map(type_in_words).collect();
    Err(format!("must be {}, not {}", wanted.join(" or "), node.kind()))
}

fn check_range(node: &Node, schema: &Json) -> Result<(), String> {
    let Value::Number(number) = &node.value else { return Ok(()) };
    let value = number.as_f64().unwrap_or_default();
    // The schema gives the width of an unsigned integer, but no maximum.
    let widest = match schema["format"].as_str() {
        Some("uint8") => Some(f64::from(u8::MAX)),
        Some("uint16") => Some(f64::from(u16::MAX)),
        Some("uint32") => Some(f64::from(u32::MAX)),
        Some(_) | None => None,
    };
    let least = schema["minimum"].as_f64().filter(|least| value < *least);
    let most = schema["maximum"].as_f64().or(widest).filter(|most| *most < value);
    match (least, most) {
        (Some(least), _) => Err(format!("must be at least {least}")),
        (None, Some(most)) => Err(format!("must be at most {most}")),
        (None, None) => Ok(()),
    }
}

/// Returns whether this is a whole number that is too large for an integer type.
fn is_too_large_integer(node: &Node) -> bool {
    let Value::Number(number) = &node.value else { return false };
    number.is_f64() && number.as_f64().is_some_and(|value| value.abs() >= 9_007_199_254_740_992.0)
}

pub(crate) fn type_names(schema: &Json) -> Vec<&str> {
    match &schema["type"] {
        Json::String(one) => vec![one],
        Json::Array(many) => {
            many.iter().filter_map(Json::as_str).filter(|t| *t != "null").collect()
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_) => Vec::new(),
    }
}

fn is_of_type(node: &Node, kind: &str) -> bool {
    match &node.value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::Number(number) => {
            let whole = number.is_i64() || number.is_u64();
            kind == "number" || kind == "integer" && whole
        }
        Value::Text(_) => kind == "string",
        Value::List(_) => kind == "array",
        Value::Table(_) => kind == "object",
        Value::DateTime(_) => false,
    }
}

fn type_in_words(kind: &str) -> &str {
    match kind {
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "text",
        "array" => "a list",
        "object" => "a table",
        other => other,
    }
}

/// Returns the known name that is most similar to a misspelled one.
pub(crate) fn closest_name<'n>(
    text: &str,
    names: impl Iterator<Item = &'n str>,
) -> Option<&'n str> {
    let (likeness, name) = catalog::nearest::rank_by_similarity(text, names).into_iter().next()?;
    (catalog::nearest::TYPO_SIMILARITY <= likeness).then_some(name)
}
