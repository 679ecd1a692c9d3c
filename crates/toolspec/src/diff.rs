//! Compares two states of the same tools, and rates each change by the version bump that
//! it needs: major (breaking), minor or patch.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;

use crate::document::{Definition, Document};
use crate::example::resolve;
use crate::finding::{Finding, Position};
use crate::types;

/// The version bump that a change needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bump {
    /// Wording only.
    Patch,
    /// An addition that existing callers can ignore.
    Minor,
    /// A breaking change: existing callers may fail.
    Major,
}

/// One change of one tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub tool: String,
    pub bump: Bump,
    /// The description of the change.
    pub what: String,
    /// Whether only a title, a description or a hint changed, which validators ignore.
    pub is_wording: bool,
}

/// A version that was not raised far enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingBump {
    pub tool: String,
    pub needed: Bump,
    pub from: String,
    pub to: String,
    /// The lowest version that is high enough.
    pub expected: String,
}

/// The changes between two states, and the versions that were not raised far enough.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub changes: Vec<Change>,
    #[serde(rename = "owed")]
    pub missing_bumps: Vec<MissingBump>,
}

/// Compares two states of the same tools.
pub fn diff(old: &[Definition], new: &[Definition]) -> Report {
    let mut report = Report::default();
    let find = |list: &'_ [Definition], name: &str| list.iter().position(|tool| tool.name == name);
    for before in old {
        match find(new, &before.name) {
            None => report.changes.push(change(
                &before.name,
                Bump::Major,
                "the tool was removed".to_owned(),
            )),
            Some(at) => compare(before, &new[at], &mut report),
        }
    }
    for after in new.iter().filter(|tool| find(old, &tool.name).is_none()) {
        report.changes.push(change(&after.name, Bump::Minor, "the tool is new".to_owned()));
    }
    report
}

/// Reports tools that only the document has, and tools that only the server has.
pub(crate) fn undocumented(document: &Document, live: &[Definition]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tool in &document.tools {
        if !live.iter().any(|other| other.name == tool.name) {
            let message = format!("`{}` is documented, but the server does not have it", tool.name);
            findings.push(Finding::new("E13", tool.heading.place, message).in_tool(&tool.name));
        }
    }
    let missing = live.iter().filter(|tool| document.tool(&tool.name).is_none());
    for tool in missing {
        let place = document.says_no_tools.unwrap_or(Position::line(1));
        let message = format!("the server has `{}`, which is not documented", tool.name);
        findings.push(Finding::new("E13", place, message).in_tool(&tool.name));
    }
    findings
}

fn change(tool: &str, bump: Bump, what: String) -> Change {
    Change { tool: tool.to_owned(), bump, what, is_wording: false }
}

fn compare(before: &Definition, after: &Definition, report: &mut Report) {
    let first = report.changes.len();
    let name = &before.name;
    let mut wording = |bump: Bump, what: String| {
        report.changes.push(Change { tool: name.clone(), bump, what, is_wording: true });
    };
    if before.description != after.description {
        wording(Bump::Patch, "the description changed".to_owned());
    }
    if before.title != after.title {
        wording(Bump::Patch, "the title changed".to_owned());
    }
    for (key, bump, what) in hints(before, after) {
        wording(bump, format!("`{key}` {what}"));
    }
    let mut found = SchemaComparison::between(Direction::Input, &before.input, &after.input);
    match (&before.output, &after.output) {
        (Some(old), Some(new)) => {
            found.extend(SchemaComparison::between(Direction::Output, old, new))
        }
        (Some(_), None) => found.push((Bump::Major, "the output schema was removed".to_owned())),
        (None, Some(_)) => found.push((Bump::Minor, "the output schema is new".to_owned())),
        (None, None) => {}
    }
    report.changes.extend(found.into_iter().map(|(bump, what)| change(name, bump, what)));
    let needed = report.changes[first..].iter().map(|change| change.bump).max();
    if let Some(from) = &before.version {
        let to = after.version.as_ref().unwrap_or(from);
        report.missing_bumps.extend(missing_bump(name, from, to, needed));
    }
}

/// Returns the hints that changed, with bump and description. A hint that promises less is
/// a breaking change.
fn hints(before: &Definition, after: &Definition) -> Vec<(&'static str, Bump, String)> {
    let value = |tool: &Definition, key: &str| tool.annotations.as_ref()?.get(key)?.as_bool();
    let mut found = Vec::new();
    for (key, safe) in [
        ("readOnlyHint", true),
        ("destructiveHint", false),
        ("idempotentHint", true),
        ("openWorldHint", false),
    ] {
        let (old, new) = (value(before, key), value(after, key));
        if old != new {
            let text =
                |hint: Option<bool>| hint.map_or("nothing".to_owned(), |hint| hint.to_string());
            let worse = old == Some(safe) || new == Some(!safe);
            let bump = if worse { Bump::Major } else { Bump::Minor };
            found.push((key, bump, format!("changed from {} to {}", text(old), text(new))));
        }
    }
    found
}

/// Whether a schema is that of the input or of the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Input,
    Output,
}

/// The comparison of two schemas, level by level.
struct SchemaComparison<'a> {
    side: Direction,
    old_root: &'a Value,
    new_root: &'a Value,
    /// The pairs of subschemas that were compared already, since references can lead to
    /// the same ones in very many ways.
    seen: HashSet<(*const Value, *const Value)>,
    found: Changes,
}

/// Changes with the bump that each needs, and its description.
type Changes = Vec<(Bump, String)>;

/// How deep schemas are compared.
const MAX_DEPTH: usize = 12;

impl<'a> SchemaComparison<'a> {
    fn between(side: Direction, old: &'a Value, new: &'a Value) -> Changes {
        let (seen, found) = (HashSet::new(), Changes::new());
        let mut walk = SchemaComparison { side, old_root: old, new_root: new, seen, found };
        walk.schema("", old, new, 0);
        walk.found
    }

    fn schema(&mut self, path: &str, old: &'a Value, new: &'a Value, depth: usize) {
        let old = resolve(old, self.old_root).unwrap_or(old);
        let new = resolve(new, self.new_root).unwrap_or(new);
        if MAX_DEPTH < depth || !self.seen.insert((old, new)) || old == new {
            return;
        }
        self.compare_types(path, old, new);
        self.compare_values(path, old, new);
        self.compare_members(path, old, new, depth);
        if let (Some(old), Some(new)) = (old.get("items"), new.get("items")) {
            self.schema(&format!("{path}[]"), old, new, depth + 1);
        }
        self.compare_other_keywords(path, old, new);
    }

    fn name(&self, path: &str) -> String {
        let side = match self.side {
            Direction::Input => "input",
            Direction::Output => "output",
        };
        if path.is_empty() { side.to_owned() } else { format!("{side} `{path}`") }
    }

    /// Compares types. Allowing more types is not breaking for an input, allowing fewer not
    /// for an output.
    fn compare_types(&mut self, path: &str, old: &Value, new: &Value) {
        let names = |schema: &Value| -> Vec<String> {
            match schema.get("type") {
                Some(Value::Array(list)) => {
                    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
                }
                Some(Value::String(name)) => vec![name.clone()],
                Some(_) | None => Vec::new(),
            }
        };
        let (before, after) = (names(old), names(new));
        if before == after {
            return;
        }
        let within = |one: &[String], all: &[String]| {
            all.is_empty()
                || one.iter().all(|name| {
                    all.contains(name) || (name == "integer" && all.iter().any(|n| n == "number"))
                })
        };
        let harmless = match self.side {
            Direction::Input => !before.is_empty() && within(&before, &after) || after.is_empty(),
            Direction::Output => !after.is_empty() && within(&after, &before),
        };
        let bump = if harmless { Bump::Minor } else { Bump::Major };
        let what = format!(
            "type of {} changed from `{}` to `{}`",
            self.name(path),
            types::write(old),
            types::write(new)
        );
        self.found.push((bump, what));
    }

    /// Compares the values of `enum`.
    fn compare_values(&mut self, path: &str, old: &Value, new: &Value) {
        let list = |schema: &'_ Value| schema.get("enum").and_then(Value::as_array).cloned();
        let (before, after) = (list(old), list(new));
        if before == after {
            return;
        }
        let only_in = |one: &Option<Vec<Value>>, other: &Option<Vec<Value>>| match (one, other) {
            (Some(one), Some(other)) => one.iter().any(|value| !other.contains(value)),
            (None, Some(_)) => true,
            (_, None) => false,
        };
        let narrower = only_in(&before, &after);
        let wider = only_in(&after, &before);
        let breaks = match self.side {
            Direction::Input => narrower,
            Direction::Output => wider && before.is_some() && after.is_none(),
        };
        let bump = if breaks { Bump::Major } else { Bump::Minor };
        self.found.push((bump, format!("the values of {} changed", self.name(path))));
    }

    /// Compares the members of objects.
    fn compare_members(&mut self, path: &str, old: &'a Value, new: &'a Value, depth: usize) {
        let empty = serde_json::Map::new();
        let after = types::properties(new).unwrap_or(&empty);
        let before = types::properties(old);
        let is_old = |name: &str| before.is_some_and(|before| before.contains_key(name));
        let (needed, needs) = (types::required(old), types::required(new));
        let join =
            |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        for (name, property) in before.into_iter().flatten() {
            let at = self.name(&join(name));
            let Some(now) = types::properties(new).and_then(|after| after.get(name)) else {
                self.found.push((Bump::Major, format!("{at} was removed")));
                continue;
            };
            match (needed.contains(&name.as_str()), needs.contains(&name.as_str()), self.side) {
                (false, true, Direction::Input) => {
                    self.found.push((Bump::Major, format!("{at} became required")))
                }
                (true, false, Direction::Input) => {
                    self.found.push((Bump::Minor, format!("{at} became optional")))
                }
                (true, false, Direction::Output) => {
                    self.found.push((Bump::Major, format!("{at} may be missing")))
                }
                (false, true, Direction::Output) => {
                    self.found.push((Bump::Minor, format!("{at} is always there")))
                }
                (true, true, _) | (false, false, _) => {}
            }
            self.schema(&join(name), property, now, depth + 1);
        }
        for name in after.keys().filter(|name| !is_old(name)) {
            let at = self.name(&join(name));
            let required = needs.contains(&name.as_str()) && self.side == Direction::Input;
            let (bump, kind) =
                if required { (Bump::Major, "required") } else { (Bump::Minor, "optional") };
            let what = match self.side {
                Direction::Input => format!("{at} is new and {kind}"),
                Direction::Output => format!("{at} is new"),
            };
            self.found.push((bump, what));
        }
    }

    /// Compares all other keywords: a changed description is a patch, a changed limit is
    /// breaking unless it is known to be harmless.
    fn compare_other_keywords(&mut self, path: &str, old: &Value, new: &Value) {
        let known = [
            "type",
            "enum",
            "properties",
            "required",
            "items",
            "$defs",
            "definitions",
            "$ref",
            "$schema",
            "$id",
        ];
        let wording = ["description", "title", "examples", "example", "$comment", "deprecated"];
        let empty = serde_json::Map::new();
        let (before, after) =
            (old.as_object().unwrap_or(&empty), new.as_object().unwrap_or(&empty));
        let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let (was, is) = (before.get(key), after.get(key));
            if was == is || known.contains(&key.as_str()) || key.starts_with("x-") {
                continue;
            }
            let bump = if wording.contains(&key.as_str()) {
                Bump::Patch
            } else if key == "default" || self.loosens(key, was, is) {
                Bump::Minor
            } else {
                Bump::Major
            };
            self.found.push((bump, format!("`{key}` of {} changed", self.name(path))));
        }
    }

    /// Returns whether a limit on the input got looser, or one on the output tighter.
    fn loosens(&self, key: &str, was: Option<&Value>, is: Option<&Value>) -> bool {
        let number = |value: Option<&Value>| value.and_then(Value::as_f64);
        let looser = match key {
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" => {
                number(is).is_none_or(|is| number(was).is_some_and(|was| is <= was))
            }
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" => {
                number(is).is_none_or(|is| number(was).is_some_and(|was| was <= is))
            }
            "pattern" | "format" | "uniqueItems" | "multipleOf" => is.is_none(),
            "additionalProperties" => is.is_none() || is == Some(&Value::Bool(true)),
            _ => return false,
        };
        looser == (self.side == Direction::Input)
    }
}

/// Checks that the version of a tool, or of a server, was raised far enough for its
/// greatest change (`needed`). A malformed version is never high enough; without a change
/// the version must only not fall.
pub fn missing_bump(name: &str, from: &str, to: &str, needed: Option<Bump>) -> Option<MissingBump> {
    let old = numbers(from)?;
    let expected = match needed {
        Some(Bump::Major) => [old[0].saturating_add(1), 0, 0],
        Some(Bump::Minor) => [old[0], old[1].saturating_add(1), 0],
        Some(Bump::Patch) => [old[0], old[1], old[2].saturating_add(1)],
        None => old,
    };
    let text = |v: [u64; 3]| format!("{}.{}.{}", v[0], v[1], v[2]);
    numbers(to).is_none_or(|new| new < expected).then(|| MissingBump {
        tool: name.to_owned(),
        needed: needed.unwrap_or(Bump::Patch),
        from: from.to_owned(),
        to: to.to_owned(),
        expected: text(expected),
    })
}

/// Parses a version such as `1.2` or `v1.2.3-rc1` into three numbers.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let core = version.trim_start_matches(['v', 'V']).split(['-', '+']).next()?;
    let mut parts = core.split('.');
    let mut next = || parts.next().map_or(Some(0), |part| part.trim().parse().ok());
    Some([next()?, next()?, next()?])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(input: Value, output: Value) -> Definition {
        Definition {
            name: "t".to_owned(),
            title: None,
            description: Some("d".to_owned()),
            input,
            output: Some(output),
            annotations: Some(json!({"readOnlyHint": true})),
            version: Some("1.2.3".to_owned()),
        }
    }

    fn base() -> Definition {
        tool(
            json!({"type": "object", "properties": {
                "a": {"type": "string", "maxLength": 5}, "b": {"type": "integer"},
                "e": {"type": "string", "enum": ["x", "y"]}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"r": {"type": "string"}}, "required": ["r"]}),
        )
    }

    #[track_caller]
    fn check(edit: impl Fn(&mut Definition), expected: &[(Bump, &str)]) {
        let mut new = base();
        edit(&mut new);
        let report = diff(&[base()], &[new]);
        let found: Vec<(Bump, &str)> =
            report.changes.iter().map(|change| (change.bump, change.what.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn changes_are_classified() {
        use Bump::{Major, Minor, Patch};
        check(|_| {}, &[]);
        check(|t| t.description = None, &[(Patch, "the description changed")]);
        check(
            |t| t.input["properties"]["n"] = json!({}),
            &[(Minor, "input `n` is new and optional")],
        );
        check(
            |t| {
                t.input["properties"]["n"] = json!({});
                t.input["required"] = json!(["a", "n"]);
            },
            &[(Major, "input `n` is new and required")],
        );
        check(|t| t.input["required"] = json!(["a", "b"]), &[(Major, "input `b` became required")]);
        check(|t| t.input["required"] = json!([]), &[(Minor, "input `a` became optional")]);
        check(
            |t| t.input["properties"]["b"] = json!({"type": "string"}),
            &[(Major, "type of input `b` changed from `integer` to `string`")],
        );
        check(
            |t| t.input["properties"]["b"] = json!({"type": ["integer", "null"]}),
            &[(Minor, "type of input `b` changed from `integer` to `integer | null`")],
        );
        check(
            |t| drop(t.input["properties"].as_object_mut().unwrap().remove("b")),
            &[(Major, "input `b` was removed")],
        );
        check(
            |t| t.input["properties"]["e"]["enum"] = json!(["x"]),
            &[(Major, "the values of input `e` changed")],
        );
        check(
            |t| t.input["properties"]["e"]["enum"] = json!(["x", "y", "z"]),
            &[(Minor, "the values of input `e` changed")],
        );
        check(
            |t| t.input["properties"]["a"]["maxLength"] = json!(9),
            &[(Minor, "`maxLength` of input `a` changed")],
        );
        check(
            |t| t.input["properties"]["a"]["maxLength"] = json!(2),
            &[(Major, "`maxLength` of input `a` changed")],
        );
        check(
            |t| t.input["properties"]["a"]["description"] = json!("x"),
            &[(Patch, "`description` of input `a` changed")],
        );
        check(
            |t| t.input["additionalProperties"] = json!(false),
            &[(Major, "`additionalProperties` of input changed")],
        );
        check(|t| t.output = Some(json!({"type": "object"})), &[(Major, "output `r` was removed")]);
        check(
            |t| t.output.as_mut().unwrap()["properties"]["s"] = json!({}),
            &[(Minor, "output `s` is new")],
        );
        check(
            |t| t.output.as_mut().unwrap()["required"] = json!([]),
            &[(Major, "output `r` may be missing")],
        );
        check(
            |t| t.annotations = Some(json!({"readOnlyHint": false})),
            &[(Major, "`readOnlyHint` changed from true to false")],
        );
    }

    #[test]
    fn a_version_that_was_not_raised_is_owed() {
        let expected = |version: &str, edit: fn(&mut Definition)| {
            let mut new = base();
            edit(&mut new);
            new.version = Some(version.to_owned());
            diff(&[base()], &[new]).missing_bumps.first().map(|missing| missing.expected.clone())
        };
        let breaking: fn(&mut Definition) = |t| t.input["required"] = json!(["a", "b"]);
        let adding: fn(&mut Definition) = |t| t.input["properties"]["n"] = json!({});
        assert_eq!(expected("1.3.0", breaking), Some("2.0.0".to_owned()));
        assert_eq!(expected("2.0.0", breaking), None);
        assert_eq!(expected("1.2.4", adding), Some("1.3.0".to_owned()));
        assert_eq!(expected("1.3.0", adding), None);
        assert_eq!(expected("1.2.3", |t| t.description = None), Some("1.2.4".to_owned()));
        assert_eq!(expected("1.2.3", |_| {}), None);
    }

    #[test]
    fn a_recursive_schema_is_compared_once() {
        let tree = |kind: &str| {
            let below = json!({"$ref": "#/$defs/node"});
            let node = json!({"properties": {
                "kind": {"type": kind}, "a": below, "b": below, "c": below}});
            tool(json!({"$defs": {"node": node}, "$ref": "#/$defs/node"}), json!({}))
        };
        let report = diff(&[tree("string")], &[tree("integer")]);
        let told: Vec<&str> = report.changes.iter().map(|change| change.what.as_str()).collect();
        assert_eq!(told, ["type of input `kind` changed from `string` to `integer`"]);
    }

    #[test]
    fn the_greatest_version_can_owe_no_more() {
        let most = format!("{}.0.0", u64::MAX);
        assert_eq!(missing_bump("t", &most, &most, Some(Bump::Major)), None);
    }

    #[test]
    fn what_is_no_version_is_owed_one() {
        let check = |from: &str, to: &str, needed: Option<Bump>| {
            missing_bump("t", from, to, needed).map(|missing| missing.expected)
        };
        assert_eq!(check("1.0.0", "banana", Some(Bump::Minor)).as_deref(), Some("1.1.0"));
        assert_eq!(check("1.0.0", "banana", None).as_deref(), Some("1.0.0"));
        assert_eq!(check("2.0.0", "1.9.0", None).as_deref(), Some("2.0.0"), "it fell");
        assert_eq!(check("1.0.0", "1.0.0", None), None);
        assert_eq!(check("banana", "1.0.0", Some(Bump::Major)), None, "there is nothing to raise");
    }
}
