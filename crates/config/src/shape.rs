//! Checks a document against the JSON Schema of the configuration.
//!
//! The schema is the one that editors use (`gatelet config schema`), so the
//! two can never disagree. What does not fit is noted at its place and left
//! out, so that everything else can still be read and judged in the same run.

use document::tree::{Member, Node, Path, Value};
use serde_json::Value as Json;

use super::problem::{Problem, Problems, Weight};

/// The part of `node` that fits `schema`; the rest is noted in `problems`.
pub(crate) fn fit(node: &Node, schema: &Json, problems: &mut Problems) -> Option<Node> {
    let mut shape = Shape { root: schema, problems, gaps: Vec::new() };
    let fitting = shape.fit(node, schema, &Path::default());
    let gaps = shape.gaps;
    problems.leave(gaps);
    fitting
}

struct Shape<'a> {
    root: &'a Json,
    problems: &'a mut Problems,
    /// The items of lists that were left out.
    gaps: Vec<Path>,
}

impl<'a> Shape<'a> {
    fn fit(&mut self, node: &Node, schema: &'a Json, path: &Path) -> Option<Node> {
        let schema = match self.branch(node, resolve(self.root, schema)) {
            Ok(schema) => schema,
            Err(message) => {
                self.problems.error(path, message, None);
                return None;
            }
        };
        if let Some(allowed) = choices(schema) {
            return self.fit_choice(node, &allowed, path);
        }
        if let Err(message) = of_type(node, schema).and_then(|()| within(node, schema)) {
            // The commonest slip: `[upstream]` for `[[upstream]]`.
            let is_bracket = types(schema) == ["array"] && matches!(node.value, Value::Table(_));
            let hint = is_bracket.then(|| format!("write it with two brackets: `[[{path}]]`"));
            self.problems.error(path, message, hint.as_deref());
            return None;
        }
        match &node.value {
            Value::Table(members) => self.fit_table(node, members, schema, path),
            Value::List(items) => Some(self.fit_list(node, items, schema, path)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Moment(_) => {
                Some(node.clone())
            }
        }
    }

    /// Chooses the shape that is meant, where several are allowed, by what
    /// stands there: text, a table, a list.
    fn branch(&self, node: &Node, schema: &'a Json) -> Result<&'a Json, String> {
        let Some(any) = schema["anyOf"].as_array() else { return Ok(schema) };
        let kinds = |one| if choices(one).is_some() { vec!["string"] } else { types(one) };
        let mut wanted = Vec::new();
        for one in any.iter().map(|one| resolve(self.root, one)) {
            let kinds = kinds(one);
            if kinds.iter().any(|kind| is_of_type(node, kind)) {
                return Ok(one);
            }
            wanted.extend(kinds.into_iter().map(spoken));
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
                    self.unknown(member, schema, path);
                }
                None => kept.push(member.clone()),
            }
        }
        let fitting = Node { span: node.span.clone(), value: Value::Table(kept) };
        self.is_complete(&fitting, schema, path).then_some(fitting)
    }

    /// Returns whether everything is there that must be. What stands in the
    /// document but does not fit is noted already.
    fn is_complete(&mut self, fitting: &Node, schema: &Json, path: &Path) -> bool {
        let required = schema["required"].as_array().into_iter().flatten();
        let lacking: Vec<&str> = required
            .filter_map(Json::as_str)
            .filter(|key| fitting.get(key).is_none())
            .inspect(|key| self.lacks(key, schema, path))
            .collect();
        lacking.is_empty()
    }

    fn lacks(&mut self, key: &str, schema: &Json, path: &Path) {
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
                None => self.gaps.push(path.index(at)),
            }
        }
        Node { span: node.span.clone(), value: Value::List(kept) }
    }

    fn fit_choice(&mut self, node: &Node, allowed: &[&str], path: &Path) -> Option<Node> {
        match node.text() {
            Some(text) if allowed.contains(&text) => Some(node.clone()),
            found => {
                let nearest = found.and_then(|text| nearest(text, allowed.iter().copied()));
                let list: Vec<String> = allowed.iter().map(|one| format!("\"{one}\"")).collect();
                let message = format!("must be {}", list.join(" or "));
                let hint = nearest.map(|name| format!("did you mean \"{name}\"?"));
                self.problems.error(path, message, hint.as_deref());
                None
            }
        }
    }

    fn unknown(&mut self, member: &Member, schema: &Json, path: &Path) {
        let known = schema["properties"].as_object();
        let names = || known.into_iter().flat_map(|known| known.keys().map(String::as_str));
        let hint = match nearest(&member.key, names()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("known here: {}", names().collect::<Vec<_>>().join(", ")),
        };
        let message = format!("unknown key `{}`", path.key(&member.key));
        self.problems.push(Problem {
            weight: Weight::Error,
            span: member.key_span.clone(),
            message,
            hint: Some(hint),
        });
    }
}

/// Follows references and looks through `anyOf [X, null]`.
pub(crate) fn resolve<'a>(root: &'a Json, mut schema: &'a Json) -> &'a Json {
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

/// The texts that are allowed, where only some are. A variant with a comment
/// of its own is a `const` beside the `enum` of those without one.
pub(crate) fn choices(schema: &Json) -> Option<Vec<&str>> {
    if let Some(list) = schema["enum"].as_array() {
        return list.iter().map(Json::as_str).collect();
    }
    if let Some(word) = schema["const"].as_str() {
        return Some(vec![word]);
    }
    let parts: Option<Vec<Vec<&str>>> = schema["oneOf"].as_array()?.iter().map(choices).collect();
    parts.map(|parts| parts.concat())
}

fn of_type(node: &Node, schema: &Json) -> Result<(), String> {
    let types = types(schema);
    if types.is_empty() || types.iter().any(|kind| is_of_type(node, kind)) {
        return Ok(());
    }
    if types.contains(&"integer") && is_beyond_counting(node) {
        return Err("is too large a number".to_owned());
    }
    let wanted: Vec<&str> = types.into_iter().map(spoken).collect();
    Err(format!("must be {}, not {}", wanted.join(" or "), node.kind()))
}

fn within(node: &Node, schema: &Json) -> Result<(), String> {
    let Value::Number(number) = &node.value else { return Ok(()) };
    let value = number.as_f64().unwrap_or_default();
    // The schema names the width of a number, but not the most that it holds.
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

/// Returns whether this is a whole number, of more digits than we count with.
fn is_beyond_counting(node: &Node) -> bool {
    let Value::Number(number) = &node.value else { return false };
    number.is_f64() && number.as_f64().is_some_and(|value| value.abs() >= 9_007_199_254_740_992.0)
}

pub(crate) fn types(schema: &Json) -> Vec<&str> {
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
        Value::Moment(_) => false,
    }
}

fn spoken(kind: &str) -> &str {
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

/// The known name that was probably meant.
pub(crate) fn nearest<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let (likeness, name) = catalog::nearest::rated(text, names).into_iter().next()?;
    (catalog::nearest::CLOSE <= likeness).then_some(name)
}
